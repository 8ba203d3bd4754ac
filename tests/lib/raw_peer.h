/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer made by hand, for lies: the wire's steps one by one, and then both rings' memory and
 * words. What it does by itself is legal.
 */
#ifndef TESTS_LIB_RAW_PEER_H
#define TESTS_LIB_RAW_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shm/mapping.h"
#include "shm/ring.h"
#include "slmpm/base/wire.h"

#define RAW_SEGMENTS     1024
#define RAW_SEGMENT_SIZE 64

struct raw_offer { /* the blob of round 0 */
	uint32_t segments, segment_size;
	uint64_t epoch, start;
	uint32_t membarrier, zero;
};

/* What it will say; change it before the step that says it. */
struct raw_peer {
	int fd;
	struct wire_hello hello, heard; /* ours, the other's */
	struct raw_offer offer, offered;
	struct mapping own, other; /* the ring we read, the ring we write */
	struct ring_writer w;
	struct ring_reader r;
	uint64_t sent; /* envelopes */
};

enum raw_step { RAW_HELLO, RAW_NONCE, RAW_OFFER, RAW_MAPPED, RAW_UP };

/* Of a listener at shm:NAME; -1 when it does not take us now. The same of another user's. */
int raw_connect(const char *name);
int raw_connect_as(const char *name, unsigned user);
/* What slmpm_spawn left to its child. */
int raw_inherited(void);

/* Everything prepared, nothing said. */
void raw_begin(struct raw_peer *p, int fd);
/* Legal steps from FROM to TO. */
void raw_steps(struct raw_peer *p, enum raw_step from, enum raw_step to);
void raw_end(struct raw_peer *p);

/* Any bytes, with any descriptors; false when the other side is gone. */
bool raw_say(int fd, const void *bytes, size_t n, const int *fds, int count);
/* With a right head. */
bool raw_say_packet(int fd, uint32_t type, void *packet, size_t n, int passed);
/* A round's packet. */
bool raw_say_round(struct raw_peer *p, uint32_t round, const void *blob, size_t n, int passed);
/* The next that is no bell: its length, 0 at the end. *PASSED (or NULL) gets its descriptor. */
size_t raw_hear(int fd, void *packet, size_t room, int *passed);
/* Waits until the other side shuts the connection; REASON: what its BYE said, or "". */
void raw_hear_end(int fd, char reason[112]);

/* A packet with this header into the ring; waits for room, or until the other side is
 * gone. Not rung for. */
void raw_post(struct raw_peer *p, uint8_t opcode, uint64_t seq, uint64_t route, uint64_t extent,
	      const void *data, uint32_t length);
/* Of an active message's: handler ID, HEAD bytes of head, TOTAL bytes in all; the next envelope. */
void raw_active(struct raw_peer *p, uint8_t opcode, uint32_t flags, uint16_t id, uint32_t head,
		uint64_t total, const void *data, uint32_t length);
/* A message by TAG, of what is written (IMM 0) or was read (1); the next envelope. */
void raw_tagged(struct raw_peer *p, uint32_t tag, uint32_t imm, const void *data, uint32_t length);
/* The next message, legal: of one packet. */
void raw_send(struct raw_peer *p, uint32_t stream, const void *data, uint32_t length);
/* The other has sent something; it is released. */
void raw_await_packet(struct raw_peer *p);
void raw_ring_bell(struct raw_peer *p);
struct ring_words *raw_words(struct raw_peer *p);
/* The word in which the packet at TOTAL begins. */
_Atomic uint64_t *raw_commit_word(struct raw_peer *p, uint64_t total);

#endif
