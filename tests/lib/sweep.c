/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop over all points of a sweep. */
#include "tests/lib/sweep.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"

#define STEPS_MOST   200000
#define VISITS       3 /* of one instruction, before its repetitions are thinned */
#define PLANTED_STEP 5 /* of the points, where only a few faults have to be found */

/* Parent and child take turns at every step: on one CPU that is much the quicker. */
static void stay_on_this_cpu(void)
{
	cpu_set_t here;
	int cpu = sched_getcpu();

	CPU_ZERO(&here);
	if (cpu >= 0) {
		CPU_SET((unsigned)cpu, &here);
		(void)sched_setaffinity(0, sizeof(here), &here);
	}
}

void sweep_begin(enum step_unit unit)
{
	if (!step_possible(unit))
		test_skip("no single-stepping on this machine");
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	setenv("SLMPM_CPUS", "inherit", 1); /* as stay_on_this_cpu wants it */
	setenv("SLMPM_MONITOR_MS", "0", 1); /* looks at a time would make steps of another number */
}

/* The numbers of steps after which to kill, from none at all. */
static long choose_points(const struct sweep *s, struct step_point *points, long *count)
{
	uintptr_t *addresses = calloc(STEPS_MOST, sizeof(*addresses));
	long kept;

	CHECK(addresses, "out of memory");
	s->reset();
	*count = step_count(&s->body, s->unit, addresses, STEPS_MOST);
	CHECK(*count > 0, "%s: the body does not end", s->name);
	points[0] = (struct step_point){0};
	if (s->unit == STEP_INSTRUCTION) {
		kept = step_thin(addresses, *count, VISITS, points + 1);
	} else {
		for (kept = 0; kept < *count; kept++)
			points[kept + 1].steps = kept + 1;
	}
	free(addresses);
	return kept + 1;
}

/* One in so many points is tried. */
static long stride(const struct sweep *s, long chosen)
{
	const char *how = getenv("SLMPM_TEST_SWEEP");

	if (s->planted && !s->most)
		return PLANTED_STEP;
	return s->most && !(how && !strcmp(how, "all")) ? chosen / s->most + 1 : 1;
}

long sweep_run(const struct sweep *s)
{
	struct step_point *points = calloc(STEPS_MOST + 1, sizeof(*points));
	long count, chosen, step, kills = 0, missed = 0, faults = 0, before = -1, progress = 0;

	CHECK(points, "out of memory");
	stay_on_this_cpu();
	chosen = choose_points(s, points, &count);
	step = stride(s, chosen);
	for (long i = 0; i < chosen; i += step) {
		const char *fault;

		s->reset();
		/* The last system call may be the one that ends the body. */
		if (!step_kill(&s->body, s->unit, &points[i])) {
			CHECK(s->unit == STEP_SYSTEM_CALL || s->loose, "%s: ended before step %ld",
			      s->name, points[i].steps);
			missed++;
		}
		fault = s->check(&progress);
		if (!fault && progress < before && !s->loose)
			fault = "what had been done was undone";
		if (fault && !s->planted)
			fprintf(stderr, "%s: killed after %ld steps: %s\n", s->name,
				points[i].steps, fault);
		faults += fault != NULL;
		before = progress;
		kills++;
	}
	printf("%-44s %5ld steps, %4ld kills, %3ld faults%s\n", s->name, count, kills - missed,
	       faults, s->planted ? " (planted)" : "");
	fflush(stdout);
	/* Of what also waits, and so takes steps by the clock, more do. */
	CHECK(missed <= kills / (s->loose ? 2 : 4), "%s: %ld of %ld points did not come", s->name,
	      missed, kills);
	CHECK(faults || !s->planted, "%s: the planted fault was not noticed", s->name);
	free(points);
	return s->planted ? 0 : faults;
}

unsigned sweep_seconds(unsigned seconds)
{
	return getenv("SLMPM_TEST_SWEEP") ? 600 : seconds;
}
