/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer made by hand that holds keys to a region and lets a region of its own be reached: its
 * requests, right or wrong. It is a child of the process whose region it is.
 */
#ifndef TESTS_LIB_RAW_KEY_H
#define TESTS_LIB_RAW_KEY_H

#include <slmpm.h>
#include <stdatomic.h>

#include "tests/lib/raw_peer.h"

#define RAW_PACKET  8192 /* the longest, as agreed */
#define RAW_LEAD    40   /* struct wire_target */
#define RAW_FOREIGN 5000 /* bytes of its own region */

struct raw_keys { /* shared with the child */
	struct slmpm_key read_write, read_only, write_only, revoked;
	struct slmpm_key foreign; /* to its own region */
	_Atomic int ready;        /* 1: the keys are there; 2: it is through */
};

extern struct raw_keys *raw_keys;

struct raw_request {
	struct wire_target target;
	struct wire_atomic atomic;
};

/* Before the child is started. */
void raw_keys_make(void);
/* A region of SIZE bytes of its own, reached by requests alone: what is to be said; the key is
 * there. */
struct wire_grant raw_keys_grant(uint64_t size);
/* In the child: connects to NAME, says "legal" on stream 1, waits for the keys. */
void raw_keys_come(struct raw_peer *p, const char *name);

/* What KEY is for; the same with the key to read and write. */
struct raw_request raw_ask_with(const struct slmpm_key *key, uint64_t offset, uint64_t length);
struct raw_request raw_ask(uint64_t offset, uint64_t length);
/* LENGTH bytes of payload that begin with R (of what is no atomic operation, with its target). */
void raw_request(struct raw_peer *p, uint8_t opcode, uint64_t seq, uint32_t flags,
		 const struct raw_request *r, uint64_t extent, uint32_t length);
/* What was said is to be looked at. */
void raw_push(struct raw_peer *p);

/* For the process whose region it is: the next to come, started with BODY(ARG); its key to MEM is
 * there, but it has not been told. */
slmpm_peer raw_keys_meet(slmpm_listener listener, slmpm_mem mem, int (*body)(void *), void *arg,
			 pid_t *pid);

#endif
