/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer over TCP made by hand: the control connection's packets, one behind the other. What it
 * does by itself is legal.
 */
#ifndef TESTS_LIB_RAW_STREAM_H
#define TESTS_LIB_RAW_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slmpm/base/wire.h"

/* What it will say; change it before it says it. */
struct raw_stream {
	int fd;
	struct wire_hello hello, heard; /* ours, the other's */
	unsigned char secret[16];
};

/* A socket to 127.0.0.1:PORT; -1 when nobody takes us now. */
int raw_stream_connect(uint16_t port);
/* Connected, everything prepared, nothing said. SECRET: 32 hex digits. */
void raw_stream_begin(struct raw_stream *s, uint16_t port, const char *secret);
/* The same over FD, whoever called. */
void raw_stream_prepare(struct raw_stream *s, int fd, const char *secret);

/* Any bytes; false when the other side is gone. */
bool raw_stream_say(int fd, const void *bytes, size_t n);
/* One at a time, each in a segment of its own, MS milliseconds apart. */
bool raw_stream_say_slowly(int fd, const void *bytes, size_t n, int ms);
/* With a right head. */
bool raw_stream_say_packet(int fd, uint32_t type, void *packet, size_t n);
void raw_stream_say_hello(struct raw_stream *s);
/* A head alone, which promises LENGTH bytes. */
void raw_stream_claim(struct raw_stream *s, uint32_t type, uint32_t length);
/* All N bytes, or false: the end. A connection that is reset has one, too. */
bool raw_stream_read(int fd, void *to, size_t n);
/* The next packet: its length, 0 at the end. */
size_t raw_stream_hear(int fd, void *packet, size_t room);
/* Waits until the other side shuts the connection; REASON: what its BYE said, or "". */
void raw_stream_hear_end(int fd, char reason[112]);

/* Says the hello and hears the other's. */
void raw_stream_meet(struct raw_stream *s);

#endif
