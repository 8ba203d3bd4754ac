/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of mirror_demo share: the particles, and one run. */
#ifndef MIRROR_DEMO_H
#define MIRROR_DEMO_H

#include <slmpm.h>
#include <stdbool.h>
#include <stdint.h>

#define PARTICLES 256
#define TAG       1u
#define ASK_MS    10000

enum { STREAM_KEY, STREAM_END };

struct particle { /* positions from 0 to below 1 */
	double x, y, dx, dy;
};

struct state {
	uint64_t step;
	struct particle particle[PARTICLES];
};

struct run {
	const char *fabric;
	bool get; /* by remote reads, not by a mirror */
	bool draw;
	unsigned accelerators;
	double seconds;
};

struct figures {
	double reads, seconds; /* of one word each */
	double steps;          /* of the simulation that were seen */
	uint64_t remote;       /* operations on the other's memory, asked by the reader */
};

/* The accelerator's part: its exit status. */
int simulate(bool get);
/* The host's: 0, or 1 once it has said why. */
int watch(const struct run *run, struct figures *figures);
double seconds_now(void);

#endif
