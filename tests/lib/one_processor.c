/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lib/one_processor.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/test.h"

bool one_processor_bind(void)
{
	cpu_set_t set, one;

	if (sched_getaffinity(0, sizeof(set), &set))
		return false;
	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &set))
			CPU_SET(cpu, &one);
	CHECK(setenv("SLMPM_CPUS", "inherit", 1) == 0, "setenv");
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

static int64_t read_ns(clockid_t clock)
{
	struct timespec t;

	CHECK(clock_gettime(clock, &t) == 0, "no time of the other process");
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t spent_by(pid_t other)
{
	clockid_t theirs;

	CHECK(clock_getcpuclockid(other, &theirs) == 0, "no clock of process %d", (int)other);
	return read_ns(CLOCK_PROCESS_CPUTIME_ID) + read_ns(theirs);
}

struct one_processor one_processor_begin(pid_t other)
{
	return (struct one_processor){other, read_ns(CLOCK_MONOTONIC), spent_by(other)};
}

bool one_processor_was_ours(const struct one_processor *p)
{
	int64_t took = read_ns(CLOCK_MONOTONIC) - p->began, spent = spent_by(p->other) - p->spent;

	return spent > took - took / 8;
}
