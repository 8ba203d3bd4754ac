/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer made by hand, which calls a link of the fabric "tcp" and can say anything: the layouts here are
 * written from doc/wire.md, not from the fabric.
 */
#ifndef TESTS_LIB_STREAM_PEER_H
#define TESTS_LIB_STREAM_PEER_H

#include "tests/lib/link_end.h"

#define STREAM_HEADER 32
#define STREAM_HELLO  40

struct stream_peer {
	struct link_end end;               /* the fabric's */
	int socket;                        /* ours */
	uint16_t port;                     /* where the fabric's end listens, */
	unsigned char hello[STREAM_HELLO]; /* and what it wants to hear there */
	int bell;
};

/* The fabric's end listens, and has heard our offer: a ring of SEGMENTS by SIZE on both sides. */
void stream_peer_begin(struct stream_peer *p, uint32_t segments, uint32_t size);
/* A connection to it, as anybody may open one. */
int stream_peer_call(const struct stream_peer *p);
/* And connected. */
void stream_peer_open(struct stream_peer *p, uint32_t segments, uint32_t size);
void stream_peer_close(struct stream_peer *p);

void stream_peer_say(int socket, const void *bytes, size_t n);
/* The first word of a frame, its check right. */
uint64_t stream_word(uint64_t consumed, uint32_t length, uint8_t kind);
/* A frame of BYTES whose header has that WORD; HEAD in its other three. */
void stream_peer_frame(struct stream_peer *p, uint64_t word, uint64_t head, size_t bytes);

#endif
