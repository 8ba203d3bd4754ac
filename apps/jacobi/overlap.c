/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of what was under way was hidden by computing. What an accelerator does not compute is
 * not: it waits, or leaves the processor to others.
 */
#include <time.h>

#include "apps/jacobi/jacobi.h"

static double computed;

double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void overlap_computed(double since)
{
	computed += seconds_now() - since;
}

void overlap_begin(struct overlap *o)
{
	o->began = seconds_now();
	o->before = computed;
}

void overlap_end(struct overlap *o)
{
	o->under_way += seconds_now() - o->began;
	o->hidden += computed - o->before;
	o->began = 0;
}
