/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operation that the other side is asked for takes two processes without the library. */
#ifndef BENCH_ASKS_BARE_H
#define BENCH_ASKS_BARE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Seconds of a copy of each of the COUNT SIZES, mean over SAMPLE_S: a process on CPUS[0] wakes one
 * on CPUS[1] and sleeps; two threads of that one copy from the first one's memory into its own, a
 * piece each at a time, and wake the first. False: a process failed.
 */
bool bare_sample(const unsigned cpus[2], const size_t *sizes, int count, double sample_s,
		 double *taken_s);

#endif
