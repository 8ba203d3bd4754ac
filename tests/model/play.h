/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two sides of a scenario keep outside their stacks, and share with who judges them. */
#ifndef TESTS_MODEL_PLAY_H
#define TESTS_MODEL_PLAY_H

#include "shm/doorbell.h"
#include "shm/ring.h"
#include "tests/model/sides.h"

#define HELD_MAX       2
#define SEGMENT(total) ((unsigned)((total) & (scenario->segments - 1)))

/* What a function leaves in its frame must not outlive it: it would tell states apart. */
#define SHALLOW __attribute__((noinline))

/* What the writer sent: for the reader to compare with, not shared memory. */
struct sent {
	uint64_t total;
	uint32_t bytes;
	uint8_t kind;
};

enum doing { RUNS, WAITS, SLEEPS, ENDED };

struct sides {
	struct ring_writer w;
	struct ring_reader r;
	struct doorbell writer_bell, reader_bell;
	uint64_t stale, done; /* the ring's private bits */
	struct sent sent[MACHINE_SEGMENTS];
	uint64_t word[MACHINE_SEGMENTS]; /* payload in a first word */
	struct ring_packet held[HELD_MAX];
	uint64_t got; /* total behind the last packet, pads not counted */
	uint32_t held_count;
	uint32_t aborts;
	uint16_t doing[THREADS]; /* enum doing */
	bool quiet;              /* the writer has deferred a look at the sleeper */
	bool kept;               /* the reader has slept with what it holds */
};

extern struct sides sides;
extern const struct scenario *scenario;

static inline bool has(unsigned flag)
{
	return scenario->flags & flag;
}

/* Totals end at the first packet that reaches the scenario's sum. */
static inline bool all_sent(uint64_t total)
{
	return total - scenario->start >= scenario->send;
}

/* What both sides' set-ups have in common. */
struct ring_setup common_setup(void);
_Noreturn void end_of(int side);

/* The coroutines. */
void play_writer(void);
void play_reader(void);

#endif
