/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A checked stream through a ring: one side sends packets whose lengths, kinds and bytes follow
 * from a seed, the other expects exactly those. For threads, processes and sleepers.
 */
#ifndef TESTS_LIB_RING_TRAFFIC_H
#define TESTS_LIB_RING_TRAFFIC_H

#include "shm/doorbell.h"
#include "shm/ring.h"
#include "tests/lib/random.h"

struct ring_traffic {
	uint64_t seed;
	uint32_t milliseconds; /* the sender then ends the stream */
	uint32_t hold_most;    /* the receiver holds up to so many, released in any order */
	uint32_t spins;        /* looks before sleeping */
	bool sleep;            /* else both poll for ever, yielding */
};

struct ring_tally {
	uint64_t packets;
	uint64_t bytes;
	uint64_t sleeps;
};

/* Sends until the time is up and the closing packet is out. A wake-up lost fails the test. */
void ring_send_traffic(struct ring_writer *w, struct doorbell *bell, const struct ring_traffic *t,
		       struct ring_tally *tally);
/* Receives until the closing packet; the next ring_peek would give nothing. */
void ring_receive_traffic(struct ring_reader *r, struct doorbell *bell,
			  const struct ring_traffic *t, struct ring_tally *tally);
/* For a reader of its own: is P the next packet of the STREAM that began with the seed? */
bool ring_traffic_next(struct rng *stream, const struct ring_reader *r,
		       const struct ring_packet *p);

#endif
