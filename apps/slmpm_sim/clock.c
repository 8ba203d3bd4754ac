/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock: 64 bits of picoseconds, 213 days. What takes longer ends with an error. */
#include "apps/slmpm_sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t clock_after(uint64_t time, double span)
{
	/* 2^64, which a double has exactly: what is below it fits, and the sum is looked at. */
	if (span + 0.5 < 0x1p64 && !__builtin_add_overflow(time, (uint64_t)(span + 0.5), &time))
		return time;
	fprintf(stderr, "slmpm_sim: it would take longer than 213 days, which the clock cannot "
			"show: a shorter --latency or --size, or a higher --bandwidth, --rate, "
			"--fold or --copy\n");
	exit(1);
}

uint64_t clock_bytes(uint64_t time, uint64_t bytes, double pace)
{
	return clock_after(time, (double)bytes * pace);
}
