/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scenario and the two sides that play it: what is sent, how both wait, and what must hold. The
 * sides use the ring and the doorbell as a fabric does.
 */
#ifndef TESTS_MODEL_SIDES_H
#define TESTS_MODEL_SIDES_H

#include <stdint.h>

#include "tests/model/explore.h"

enum {
	LENGTHS = 1 << 0,    /* every packet length in segments, else 1, max, 1, max, ... */
	BYTES = 1 << 1,      /* every length in bytes */
	MIMIC = 1 << 2,      /* payload that looks like a commit word, of every harmful kind */
	SHORTEN = 1 << 3,    /* reserve more than is committed */
	ABORT = 1 << 4,      /* give reservations back, or replace them */
	HOLD = 1 << 5,       /* hold packets, release them in any order */
	COUNT = 1 << 7,      /* look at J before the packets */
	THRESHOLDS = 1 << 8, /* every threshold and every batch */
	READER_SLEEPS = 1 << 9,
	WRITER_SLEEPS = 1 << 10,
	MEMBARRIER = 1 << 11,
	MORE = 1 << 12, /* bursts with one look at the sleeper */
	KILL = 1 << 13,
	SECOND_LAP = 1 << 14, /* packets of the longest length in the second lap only */
	HOSTILE_WRITER = 1 << 15,
	HOSTILE_READER = 1 << 16,
	LATE = 1 << 19,       /* the link comes up while its owner sleeps, is not announced */
	TWICE = 1 << 20,      /* announced again without a retraction */
	EACH_STORE = 1 << 18, /* no store is taken at once (struct search, hurry) */
	DUPLEX = 1 << 17,     /* a ring each way, one doorbell: both send, both sleep */
	LOCK = 1 << 21,       /* no ring, but a lock that its owner enters so often */
};

struct scenario {
	const char *name;
	uint32_t segments; /* N */
	uint32_t send;     /* packets until so many segments are used */
	unsigned flags;
	uint32_t threshold, batch; /* as ring_setup */
	uint32_t lag;              /* publish J every so many segments; 0: the ring's own */
	uint64_t start;
	uint32_t epoch;
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

const struct scenario *scenario_named(const char *name);
/* What the search needs to know to play it. */
struct search scenario_search(const struct scenario *scenario);

struct doorbell;
/* What fabrics/shm.c does behind doorbell_announce, and behind doorbell_retract. */
void sides_announced(const struct doorbell *b);
void sides_retracted(struct doorbell *b);

/* The scenarios with a hostile side (hostile.c). */
struct search hostile_search(const struct scenario *scenario);
/* Those with a ring each way (duplex.c). */
struct search duplex_search(const struct scenario *scenario);
/* Those of a lock (lock.c). */
struct search lock_search(const struct scenario *scenario);

#endif
