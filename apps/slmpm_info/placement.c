/* SPDX-License-Identifier: BSD-3-Clause */
/* Where two processes may be: by the caches that their CPUs share. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/slmpm_info/calibrate.h"

#define CPUS   1024
#define CACHES 8

/* Is CPU in a list like "0-3,8"? */
static bool is_listed(const char *list, int cpu)
{
	char *end;

	for (const char *at = list; *at >= '0' && *at <= '9'; at = end + (*end == ',')) {
		long first = strtol(at, &end, 10), last = first;

		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		if (cpu >= first && cpu <= last)
			return true;
	}
	return false;
}

static bool read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	bool good = file && fgets(line, size, file);

	if (file)
		fclose(file);
	return good;
}

/* The level of the nearest cache that both share; CACHES: none, or unknown. */
static int shared_cache(int a, int b)
{
	int nearest = CACHES;

	for (int i = 0; i < CACHES; i++) {
		char path[96], line[4096];
		int level;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/level", a,
			 i);
		if (!read_line(path, line, sizeof(line)))
			break;
		level = atoi(line);
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", a, i);
		if (level > 0 && level < nearest && read_line(path, line, sizeof(line)) &&
		    is_listed(line, b))
			nearest = level;
	}
	return nearest;
}

static void describe(struct placement *p, int a, int b, int cache)
{
	p->cpu[0] = a;
	p->cpu[1] = b;
	if (a == b)
		snprintf(p->text, sizeof(p->text), "both on CPU %d", a);
	else if (cache == CACHES)
		snprintf(p->text, sizeof(p->text), "CPUs %d and %d, which share no cache", a, b);
	else
		snprintf(p->text, sizeof(p->text), "CPUs %d and %d, which share the L%d cache", a,
			 b, cache);
}

int placement_find(struct placement *places)
{
	int first = -1, near = -1, far = -1, nearest = CACHES + 1, farthest = 0;
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	(void)sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int c = 0; c < CPUS; c++) {
		int cache;

		if (!CPU_ISSET((size_t)c, &allowed))
			continue;
		if (first < 0) {
			first = c;
			continue;
		}
		cache = shared_cache(first, c);
		if (cache < nearest) {
			nearest = cache;
			near = c;
		}
		if (cache > farthest) {
			farthest = cache;
			far = c;
		}
	}
	first = first < 0 ? 0 : first;
	describe(&places[0], first, near < 0 ? first : near, nearest);
	if (near < 0 || farthest == nearest)
		return 1;
	describe(&places[1], first, far, farthest);
	return 2;
}
