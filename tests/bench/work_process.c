/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of a sample: started together, bound in time, with a page in common. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <slmpm.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/work.h"

enum { LIMIT_S = 60 };

struct common *common;
unsigned cpus[2];

bool common_make(void)
{
	common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return common != MAP_FAILED;
}

static void start(int number, void (*body)(int number))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	body(number);
	_exit(0);
}

/* All of them go with the first that fails: the others would wait for it. */
static bool await_all(const pid_t *child, int count)
{
	bool well = true;
	int status;

	for (int left = count; left > 0; left--) {
		if (wait(&status) > 0 && status == 0)
			continue;
		for (int i = 0; i < count && well; i++)
			if (child[i] > 0)
				kill(child[i], SIGKILL);
		well = false;
	}
	return well;
}

bool run_processes(int count, void (*body)(int number))
{
	pid_t child[PROCESSES];

	memset(common, 0, sizeof *common);
	fflush(stdout);
	for (int i = 0; i < count; i++)
		if ((child[i] = fork()) == 0)
			start(i, body);
	return await_all(child, count);
}

void meet(unsigned arrived)
{
	atomic_fetch_add(&common->arrived, 1);
	while (atomic_load(&common->arrived) < arrived)
		sched_yield();
}

void bind_to(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

void bind_to_both(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpus[0], &set);
	CPU_SET(cpus[1], &set);
	sched_setaffinity(0, sizeof set, &set);
}

double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void busy_ns(double ns)
{
	double until = now_ns() + ns;

	while (now_ns() < until)
		;
}

void ok(int64_t rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, slmpm_error_detail());
	_exit(1);
}
