/* SPDX-License-Identifier: BSD-3-Clause */
#include "slmpm/base/clock.h"

#include <limits.h>
#include <time.h>

uint64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t clock_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : clock_now() + (uint64_t)timeout_ms * 1000000;
}

int clock_ms(uint64_t now, uint64_t deadline, int longest)
{
	uint64_t ms;

	if (deadline == UINT64_MAX)
		return longest;
	ms = deadline > now ? (deadline - now - 1) / 1000000 + 1 : 0;
	if (ms > INT_MAX)
		ms = INT_MAX;
	return longest >= 0 && (uint64_t)longest < ms ? longest : (int)ms;
}

void clock_relax(uint64_t ns)
{
	uint64_t until = clock_now() + ns;

	do {
		for (int i = 0; i < 4; i++)
			clock_pause();
	} while (clock_now() < until);
}
