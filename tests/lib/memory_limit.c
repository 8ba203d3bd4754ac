/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lib/memory_limit.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/test.h"

void memory_limit(uint64_t more)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%llu", &pages) == 1, "no statm");
	fclose(f);
	limit.rlim_cur =
		more ? (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more : RLIM_INFINITY;
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
}
