/* SPDX-License-Identifier: BSD-3-Clause */
/* The systems under comparison, and taking one sample of one cell from one of them. */
#ifndef BENCH_SYSTEM_H
#define BENCH_SYSTEM_H

#include <stdint.h>

#include "tests/bench/cell.h"
#include "tests/bench/child.h"

enum { SYSTEMS = 48, KEPT = 24, ORDER_ROOM = 96 };

struct kept { /* an answer that serves several cells */
	char order[ORDER_ROOM], answer[1024];
};

struct system {
	char classes[64]; /* separated by commas */
	char name[32];
	char command[512];
	struct child child;
	int refused[METRICS][SIZES];    /* answered with an error: not asked again */
	uint64_t count[METRICS][SIZES]; /* messages that fill a sample; 0: not known yet */
	struct kept kept[KEPT];         /* of this round */
	int kept_count;
};

struct reading {
	double value, line_ns, hops, remote_reads, far_cpu; /* as in answer_number() */
};

/* Lines of "CLASSES<tab>NAME<tab>COMMAND"; the number of systems, or -1. */
int systems_read(const char *path, struct system *s);
int system_is(const struct system *s, const char *class);
/* Whether it is of use for a cell that was chosen. */
int system_is_wanted(const struct system *s);
/* Whether it takes part in a cell, for us, against us or to be shown. */
int system_plays(const struct system *s, enum metric m, int size);
/* Starts it and waits for its first answer; 0, or -1 after saying why. */
int system_start(struct system *s, int log);
/* 0, or -1; who fails for good is stopped, said aloud and left out from then on. */
int system_sample(struct system *s, enum metric m, int size, double sample_ms, struct reading *r);
/* The same where a sample is that long by itself. */
int system_sample_long(struct system *s, enum metric m, int size, int ms, struct reading *r);

/* Of several systems at a time, a cell that shares its answer: asks, and keeps the answer for the
 * sample of this round. */
int system_tell(struct system *s, enum metric m, int size);
int system_hear(struct system *s, enum metric m, int size);
/* Whether a sample would cost nothing, its answer being kept; and a new round, in which nothing
 * is. */
int system_keeps(const struct system *s, enum metric m, int size);
void system_forget(struct system *s);

#endif
