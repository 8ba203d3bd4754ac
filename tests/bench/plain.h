/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs that call the library themselves share: an error ends them; time. */
#ifndef BENCH_PLAIN_H
#define BENCH_PLAIN_H

#include <slmpm.h>

#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* WHAT is the call that has returned RC. */
static inline void ok(int64_t rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, slmpm_error_detail());
	_exit(1);
}

/* Seconds. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Between two tries to connect. */
static inline void nap(void)
{
	const struct timespec t = {.tv_nsec = 10000000};

	nanosleep(&t, NULL);
}

#endif
