/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of a few lines for two threads, each with an outcome that C11 allows or forbids. */
#include "tests/model/litmus.h"

#include <stdio.h>

#include "tests/model/explore.h"

#define STEPS   4
#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release
#define ACQ_REL memory_order_acq_rel
#define SEQ_CST memory_order_seq_cst

/* The writer stores A and B, the reader C; a load adds its value to what the thread has read. */
enum word { A = WORD_PRODUCED, B = WORD_WRITER_ASLEEP, C = WORD_READER_ASLEEP };

struct line {
	enum { END, STORE, LOAD, FENCE, BARRIER } what;
	memory_order order;
	enum word word;
	unsigned value;
};

static const struct litmus {
	const char *name;
	struct line lines[THREADS][STEPS];
	unsigned read[THREADS]; /* the outcome: values read, as decimal digits */
	bool allowed;
} litmus[] = {
	{"message passing, relaxed",
	 {{{STORE, RELAXED, A, 1}, {STORE, RELAXED, B, 1}},
	  {{LOAD, RELAXED, B, 0}, {LOAD, RELAXED, A, 0}}},
	 {0, 10},
	 true},
	{"message passing, release alone",
	 {{{STORE, RELAXED, A, 1}, {STORE, RELEASE, B, 1}},
	  {{LOAD, RELAXED, B, 0}, {LOAD, RELAXED, A, 0}}},
	 {0, 10},
	 true},
	{"message passing, acquire alone",
	 {{{STORE, RELAXED, A, 1}, {STORE, RELAXED, B, 1}},
	  {{LOAD, ACQUIRE, B, 0}, {LOAD, RELAXED, A, 0}}},
	 {0, 10},
	 true},
	{"message passing, release and acquire",
	 {{{STORE, RELAXED, A, 1}, {STORE, RELEASE, B, 1}},
	  {{LOAD, ACQUIRE, B, 0}, {LOAD, RELAXED, A, 0}}},
	 {0, 10},
	 false},
	{"message passing, not yet there",
	 {{{STORE, RELAXED, A, 1}, {STORE, RELEASE, B, 1}},
	  {{LOAD, ACQUIRE, B, 0}, {LOAD, RELAXED, A, 0}}},
	 {0, 1},
	 true},
	{"message passing, fences",
	 {{{STORE, RELAXED, A, 1}, {FENCE, RELEASE, A, 0}, {STORE, RELAXED, B, 1}},
	  {{LOAD, RELAXED, B, 0}, {FENCE, ACQUIRE, A, 0}, {LOAD, RELAXED, A, 0}}},
	 {0, 10},
	 false},
	{"message passing, a fence behind",
	 {{{STORE, RELAXED, A, 1}, {STORE, RELAXED, B, 1}, {FENCE, RELEASE, A, 0}},
	  {{LOAD, RELAXED, B, 0}, {FENCE, ACQUIRE, A, 0}, {LOAD, RELAXED, A, 0}}},
	 {0, 10},
	 true},
	{"coherence",
	 {{{STORE, RELAXED, A, 1}, {STORE, RELAXED, A, 2}},
	  {{LOAD, RELAXED, A, 0}, {LOAD, RELAXED, A, 0}}},
	 {0, 21},
	 false},
	{"coherence, the older one twice",
	 {{{STORE, RELAXED, A, 1}, {STORE, RELAXED, A, 2}},
	  {{LOAD, RELAXED, A, 0}, {LOAD, RELAXED, A, 0}}},
	 {0, 11},
	 true},
	{"store buffering, release and acquire",
	 {{{STORE, RELEASE, B, 1}, {LOAD, ACQUIRE, C, 0}},
	  {{STORE, RELEASE, C, 1}, {LOAD, ACQUIRE, B, 0}}},
	 {0, 0},
	 true},
	{"store buffering, weak fences",
	 {{{STORE, RELAXED, B, 1}, {FENCE, ACQ_REL, A, 0}, {LOAD, RELAXED, C, 0}},
	  {{STORE, RELAXED, C, 1}, {FENCE, ACQ_REL, A, 0}, {LOAD, RELAXED, B, 0}}},
	 {0, 0},
	 true},
	{"store buffering, one fence",
	 {{{STORE, RELAXED, B, 1}, {LOAD, RELAXED, C, 0}},
	  {{STORE, RELAXED, C, 1}, {FENCE, SEQ_CST, A, 0}, {LOAD, RELAXED, B, 0}}},
	 {0, 0},
	 true},
	{"store buffering, both fences",
	 {{{STORE, RELAXED, B, 1}, {FENCE, SEQ_CST, A, 0}, {LOAD, RELAXED, C, 0}},
	  {{STORE, RELAXED, C, 1}, {FENCE, SEQ_CST, A, 0}, {LOAD, RELAXED, B, 0}}},
	 {0, 0},
	 false},
	{"store buffering, both see it",
	 {{{STORE, RELAXED, B, 1}, {FENCE, SEQ_CST, A, 0}, {LOAD, RELAXED, C, 0}},
	  {{STORE, RELAXED, C, 1}, {FENCE, SEQ_CST, A, 0}, {LOAD, RELAXED, B, 0}}},
	 {1, 1},
	 true},
	{"store buffering, membarrier",
	 {{{STORE, RELAXED, B, 1}, {LOAD, RELAXED, C, 0}},
	  {{STORE, RELAXED, C, 1}, {BARRIER, RELAXED, A, 0}, {LOAD, RELAXED, B, 0}}},
	 {0, 0},
	 false},
	{"store buffering, membarrier too late",
	 {{{STORE, RELAXED, B, 1}, {LOAD, RELAXED, C, 0}},
	  {{STORE, RELAXED, C, 1}, {LOAD, RELAXED, B, 0}, {BARRIER, RELAXED, A, 0}}},
	 {0, 0},
	 true},
};

static const struct litmus *program;
static unsigned result[THREADS];

static void play(int t)
{
	for (const struct line *l = program->lines[t]; l < program->lines[t] + STEPS; l++) {
		volatile void *word = &machine_words[l->word];

		switch (l->what) {
		case STORE: model_store(SITE_none, word, l->value, l->order); break;
		case LOAD:
			result[t] =
				result[t] * 10 + (unsigned)model_load(SITE_none, word, l->order);
			break;
		case FENCE: model_fence(SITE_none, l->order); break;
		case BARRIER: model_barrier(); break;
		case END: model_end();
		}
	}
	model_end();
}

static void play_first(void)
{
	play(WRITER);
}

static void play_second(void)
{
	play(READER);
}

static void nothing(void) {}

static const char *settled(void)
{
	for (int t = 0; t < THREADS; t++) {
		if (result[t] != program->read[t])
			return NULL;
	}
	return "reached";
}

unsigned litmus_failures(void)
{
	const unsigned count = sizeof(litmus) / sizeof(litmus[0]);
	struct search search = {
		.entry = {play_first, play_second},
		.private = result,
		.private_size = sizeof(result),
		.canonical = nothing,
		.settled = settled,
		.states_max = 10000,
	};
	unsigned failures = 0;

	for (unsigned i = 0; i < count; i++) {
		bool reached;

		program = &litmus[i];
		reached = explore(&search).fault;
		if (reached == program->allowed)
			continue;
		printf("%s: %s, but %s\n", program->name,
		       program->allowed ? "allowed" : "forbidden",
		       reached ? "reached" : "never reached");
		failures++;
	}
	printf("%u programs of a few lines, %u with an outcome against C11\n\n", count, failures);
	return failures;
}
