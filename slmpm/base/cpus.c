/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program inherits the processors of the thread that starts it. A batch system often leaves a
 * host a single one, on which it and its accelerators would take turns: then they get all of the
 * cpuset.
 */
#include "slmpm/base/cpus.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"

static atomic_int started; /* and not joined */

void cpus_started(int more)
{
	atomic_fetch_add_explicit(&started, more, memory_order_relaxed); /* orders nothing */
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* A number, or -1; behind it at *AT. */
static long read_number(const char **at)
{
	char *end;
	long n;

	if (**at < '0' || **at > '9')
		return -1;
	n = strtol(*at, &end, 10);
	*at = end;
	return n < CPUS_MAX ? n : -1;
}

static bool read_range(const char **at, cpus_mask set)
{
	long first = read_number(at), last = first;

	if (**at == '-') {
		++*at;
		last = read_number(at);
	}
	if (first < 0 || last < first || (**at && **at != ','))
		return false;
	for (long i = first; i <= last; i++)
		CPU_SET_S((size_t)i, sizeof(cpus_mask), set);
	return true;
}

/* 0-3,8 */
static bool read_list(const char *text, cpus_mask set)
{
	memset(set, 0, sizeof(cpus_mask));
	while (read_range(&text, set)) {
		if (!*text)
			return true;
		text++;
	}
	return false;
}

bool cpus_readable(const char *text, char why[80])
{
	cpus_mask set;

	if (!strcmp(text, "auto") || !strcmp(text, "inherit") || !strcmp(text, "cpuset") ||
	    read_list(text, set))
		return true;
	snprintf(why, 80, "auto, inherit, cpuset or a list up to %d like 0-3,8", CPUS_MAX - 1);
	return false;
}

static bool has(const cpu_set_t *set, size_t i)
{
	return i < CPUS_MAX && CPU_ISSET_S(i, sizeof(cpus_mask), set);
}

/* What has no room is left out. */
static void write_list(const cpu_set_t *set, char *text, size_t size)
{
	size_t used = 0;

	*text = 0;
	for (size_t i = 0; i < CPUS_MAX; i++) {
		size_t last = i;

		if (!has(set, i))
			continue;
		while (has(set, last + 1))
			last++;
		if (size - used < sizeof(",8191-8191,..")) {
			snprintf(text + used, size - used, ",..");
			return;
		}
		used += (size_t)snprintf(text + used, size - used, "%s%zu", used ? "," : "", i);
		if (last > i)
			used += (size_t)snprintf(text + used, size - used, "-%zu", last);
		i = last;
	}
}

void cpus_describe(const struct cpus *c, char *text, size_t size)
{
	char list[48];

	write_list(c->set, list, sizeof(list));
	snprintf(text, size, "%s: %s", list, c->why);
}

/* ---- masks ---------------------------------------------------------------------------------- */

/* All of them are those of the cpuset, and go on being so when it is changed. */
static int give_all(void)
{
	cpus_mask all;

	memset(all, 0xff, sizeof(all));
	return sched_setaffinity(0, sizeof(all), all) == 0 ? 0 : -errno;
}

static void give_back(const struct cpus *c)
{
	if (c->whole)
		(void)give_all();
	else
		(void)sched_setaffinity(0, sizeof(c->own), c->own);
}

/* The kernel tells what the cpuset leaves by what is left of all. */
static int find_cpuset(struct cpus *c, cpus_mask set)
{
	int rc = give_all();

	if (rc == 0 && sched_getaffinity(0, sizeof(cpus_mask), set) != 0)
		rc = -errno;
	c->whole = rc == 0 && CPU_EQUAL_S(sizeof(cpus_mask), set, c->own);
	if (!c->whole)
		give_back(c);
	return rc;
}

int cpus_enter(const struct cpus *c)
{
	if (c->stay)
		return 0;
	return sched_setaffinity(0, sizeof(c->set), c->set) == 0 ? 0 : -errno;
}

void cpus_leave(const struct cpus *c)
{
	if (!c->stay)
		give_back(c);
}

/* ---- the choice ----------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int stay(struct cpus *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->why, sizeof(c->why), format, args);
	va_end(args);
	c->stay = true;
	memcpy(c->set, c->own, sizeof(c->set));
	return 0;
}

static int choose_by_need(struct cpus *c)
{
	/* This process, those it has started, and the one that comes. */
	int busy = atomic_load_explicit(&started, memory_order_relaxed) + 2;
	int count = CPU_COUNT_S(sizeof(c->own), c->own);

	if (count >= busy)
		return stay(c, "this process's, who has %d for %d busy ones", count, busy);
	if (find_cpuset(c, c->set) < 0)
		return stay(c, "this process's; others are refused");
	if (c->whole)
		return stay(c, "this process's, all of the cpuset's");
	snprintf(c->why, sizeof(c->why), "the cpuset's, for this process has %d for %d busy ones",
		 count, busy);
	return 0;
}

static int choose_list(struct cpus *c, const char *name, const char *list)
{
	cpus_mask had;
	char text[64];
	int rc = find_cpuset(c, had);

	if (rc < 0)
		return error_system(rc, name);
	write_list(had, text, sizeof(text));
	for (size_t i = 0; i < CPUS_MAX; i++)
		if (has(c->set, i) && !has(had, i))
			return error_set(SLMPM_EINVAL,
					 "%s=%.40s: processor %zu is none of %s, the cpuset's",
					 name, list, i, text);
	snprintf(c->why, sizeof(c->why), "as set");
	return 0;
}

int cpus_choose(struct cpus *c, const char *name, const char *hint)
{
	int rc;

	memset(c, 0, sizeof(*c));
	if (sched_getaffinity(0, sizeof(c->own), c->own) != 0)
		return stay(c, "this process's, which cannot be told");
	if (!strcmp(hint, "inherit"))
		return stay(c, "this process's, as set");
	if (!strcmp(hint, "auto"))
		return choose_by_need(c);
	if (read_list(hint, c->set))
		return choose_list(c, name, hint);
	rc = find_cpuset(c, c->set);
	snprintf(c->why, sizeof(c->why), "the cpuset's, as set");
	return rc < 0 ? error_system(rc, name) : 0;
}
