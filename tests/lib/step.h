/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stopping a child at an exact point: after its i-th instruction, or at its i-th system call. For
 * killing a process everywhere it can die and looking at what the survivor is left with.
 */
#ifndef TESTS_LIB_STEP_H
#define TESTS_LIB_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum step_unit {
	STEP_INSTRUCTION,
	STEP_SYSTEM_CALL, /* entry and exit are a step each */
};

/* What the child runs, in its own copy of this process's memory. */
struct step_body {
	void (*run)(void *arg);
	void *arg;
	/* Where both have to meet first, each NULL or called with ARG: */
	void (*prepare)(void *arg); /* in the child, before the first step */
	void (*meet)(void *arg);    /* here, once, as soon as there is a child */
	void (*beside)(void *arg);  /* here, again and again while the child goes on */
	/*
	 * Here, before the child runs the body: another thread of the child, whose steps are meant;
	 * NULL: its first. Each is stepped through, and there are as many as come until the first
	 * thread is through with the body.
	 */
	pid_t (*thread)(void *arg);
};

/* After which step: the VISIT-th time, from 0, that the instruction at ADDRESS is next. */
struct step_point {
	long steps;
	uintptr_t address;
	long visit;
};

/* False where this machine cannot (no port, no ptrace, an emulator): skip aloud. */
bool step_possible(enum step_unit unit);
/*
 * Runs the body to its end and returns the number of its steps, -1 when it is over MOST. ADDRESSES,
 * if not NULL, gets the address of each instruction, for step_thin.
 */
long step_count(const struct step_body *body, enum step_unit unit, uintptr_t *addresses, long most);
/*
 * Runs the body up to that point, then kills it with SIGKILL and reaps it. False: it ended before.
 * Instructions are not stepped through where a breakpoint leads there as well, by the address.
 */
bool step_kill(const struct step_body *body, enum step_unit unit, const struct step_point *point);
/*
 * Chooses points among COUNT: the first VISITS executions of each address and then those at every
 * doubling, so that a loop over a long copy does not count. Returns how many are left in POINTS.
 */
long step_thin(const uintptr_t *addresses, long count, int visits, struct step_point *points);

#endif
