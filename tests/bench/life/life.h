/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a pair costs besides its messages: set-up, idleness, death, a fair share. Each call is one
 * sample; NULL and *value, or why there is none.
 */
#ifndef BENCH_LIFE_H
#define BENCH_LIFE_H

#include <stdint.h>
#include <time.h>

#define LIFE_SELF "/proc/self/exe" /* accelerators are this program, told by argv[1] what to be */

/* ms from nothing to a first message from each of n accelerators. */
const char *setup_spawn(unsigned n, double *ms);
/* ms for n of the same program to run and say so through a pipe, without the library's part. */
const char *setup_bare(unsigned n, double *ms);
int setup_accelerator(void);
int setup_bare_child(void);

/* ms from the SIGKILL of one side until the other, which waits in that way, has the error. */
const char *watch_death(const char *way, double *ms);
/* Wake-ups of two sides asleep, in so many ms. */
const char *watch_idle(uint64_t ms, double *wakeups);
/* ms of processor time of both sides in the first so many ms of silence. */
const char *watch_idle_cpu(uint64_t ms, double *cpu_ms);
int watch_host(const char *way);
int watch_accelerator(const char *way);

/* Messages of the slowest of n accelerators that send without a pause, over the mean. */
const char *fair_share(unsigned n, uint64_t ms, double *share);
int fair_accelerator(const char *number);

static inline uint64_t life_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
