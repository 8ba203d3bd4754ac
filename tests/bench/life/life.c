/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serves orders as every system of the bench does, here "TEST WHICH COUNT": setup 1|64, death
 * recv|epoll|spin|try, fair 64, idle pair and idle-cpu pair, where COUNT is the milliseconds of the
 * last three. The answer's key is "value". Started as "life CPU,CPU bare" it answers setup for
 * plain fork and exec.
 */
#include "tests/bench/life/life.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static const char *obey(const char *line, int bare, double *value)
{
	char test[16], which[16];
	unsigned long long count;

	if (sscanf(line, "%15s %15s %llu", test, which, &count) != 3)
		return "want TEST WHICH COUNT";
	if (strcmp(test, "setup") == 0)
		return (bare ? setup_bare : setup_spawn)((unsigned)atoi(which), value);
	if (bare)
		return "test not served here";
	if (strcmp(test, "death") == 0)
		return watch_death(which, value);
	if (strcmp(test, "idle") == 0)
		return watch_idle(count, value);
	if (strcmp(test, "idle-cpu") == 0)
		return watch_idle_cpu(count, value);
	if (strcmp(test, "fair") == 0)
		return fair_share((unsigned)atoi(which), count, value);
	return "unknown test";
}

static int serve(int bare)
{
	char *line = NULL;
	size_t room = 0;

	prctl(PR_SET_CHILD_SUBREAPER, 1); /* who outlives a host that was killed comes to us */
	while (getline(&line, &room, stdin) > 0) {
		double value = 0;
		const char *why = obey(line, bare, &value);

		if (why)
			printf("{\"error\":\"%s\"}\n", why);
		else
			printf("{\"value\":%.6g}\n", value);
		fflush(stdout);
	}
	free(line);
	return 0;
}

/* Both processors for everybody; children inherit it. */
static int confine(const char *cpus)
{
	unsigned a, b;
	cpu_set_t set;

	if (sscanf(cpus, "%u,%u", &a, &b) != 2)
		return -1;
	CPU_ZERO(&set);
	CPU_SET(a, &set);
	CPU_SET(b, &set);
	setenv("SLMPM_CPUS", "inherit", 1);
	return sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "";

	if (strcmp(what, "--hello") == 0)
		return setup_accelerator();
	if (strcmp(what, "--bare") == 0)
		return setup_bare_child();
	if (strcmp(what, "--watch") == 0)
		return watch_host(how);
	if (strcmp(what, "--watched") == 0)
		return watch_accelerator(how);
	if (strcmp(what, "--flood") == 0)
		return fair_accelerator(how);
	if (confine(what)) {
		fprintf(stderr, "usage: %s CPU,CPU [bare]\n", argv[0]);
		return 2;
	}
	return serve(strcmp(how, "bare") == 0);
}
