/* SPDX-License-Identifier: BSD-3-Clause */
/* Killing a child at one point after the other and asking each time what the survivor found. */
#ifndef TESTS_LIB_SWEEP_H
#define TESTS_LIB_SWEEP_H

#include "tests/lib/step.h"

struct sweep {
	const char *name;
	enum step_unit unit;
	struct step_body body;
	void (*reset)(void); /* before each run: the state the body begins with */
	/*
	 * After each kill: NULL, or what is wrong. *PROGRESS says how much was done; it may never go
	 * back from one point to the next.
	 */
	const char *(*check)(long *progress);
	bool planted; /* a fault is in the body: some points are enough, and some must fail */
	/* The body waits for others, and goes no quite the same way each time: a point may not come. */
	bool loose;
	long most; /* points, chosen evenly, unless SLMPM_TEST_SWEEP=all; 0: all of them */
};

/*
 * Before anything else in main: leaves with "skipped" where steps cannot be made, and sets what makes
 * each run of a body take the same ones.
 */
void sweep_begin(enum step_unit unit);

/*
 * Kills after each step of the body (of an instruction repeated in a long copy, only some) and
 * says how it went; stays on one CPU from then on. Returns at how many points the survivor was
 * wronged, but for a planted fault.
 */
long sweep_run(const struct sweep *s);
/* That a process with all of them may take, for child_run: SECONDS, unless all points are asked
 * for. */
unsigned sweep_seconds(unsigned seconds);

#endif
