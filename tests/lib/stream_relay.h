/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pair of links over TCP whose bytes go through this test's hands: so many at a time, altered,
 * cut off. Everything happens in one thread, when asked.
 */
#ifndef TESTS_LIB_STREAM_RELAY_H
#define TESTS_LIB_STREAM_RELAY_H

#include "tests/lib/link_pair.h"

#define STREAM_PORT_AT 12 /* in what the passive side offers: doc/wire.md */

struct stream_relay {
	int end[SIDES];      /* connected to either side */
	uint64_t got[SIDES]; /* bytes taken from it */
	uint64_t alter;      /* the byte from LEFT, from 1, that is changed on its way; 0: none */
};

/* The fabric "tcp", or the test is skipped. */
const struct fabric *stream_fabric(void);
/* P connected with R in between, each ring of SEGMENTS by SIZE. */
void stream_relay_open(struct stream_relay *r, struct link_pair *p, uint32_t segments,
		       uint32_t size);
void stream_relay_close(struct stream_relay *r, struct link_pair *p);
/* Up to N bytes that SIDE has sent, to the other: how many. */
size_t stream_relay_move(struct stream_relay *r, int side, size_t n);
/* All that has been sent, both ways. */
void stream_relay_all(struct stream_relay *r);
/* SIDE hears nothing more: an end, or a reset. */
void stream_relay_end(struct stream_relay *r, int side);
void stream_relay_reset(struct stream_relay *r, int side);
/* Waits until what was moved has come to SIDE: bytes, an end. */
void stream_relay_await(struct stream_relay *r, struct link_pair *p, int side);

#endif
