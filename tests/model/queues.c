/* SPDX-License-Identifier: BSD-3-Clause */
/* The model checker of work queues: every scene, as the code is (README.md). */
/* native-only */
/* has-time */
/* timeout: 300 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/model/explore.h"
#include "tests/model/queue/scene.h"

#define STATES_MAX 20000000

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char *nothing_wrong(void)
{
	return NULL; /* step_take has judged */
}

static struct search search_of(const struct scene *of)
{
	scene = of;
	return (struct search){
		.settled = nothing_wrong, .fresh = scene_sleep, .states_max = STATES_MAX};
}

/* The shortest way to the fault that is found by asking for ever shorter ones. */
static void show_fault(struct search search, struct outcome outcome)
{
	while (outcome.fault && outcome.depth > 1) {
		struct outcome shorter;

		search.limit = outcome.depth - 1;
		shorter = explore(&search);
		if (!shorter.fault) {
			search.limit = outcome.depth;
			outcome = explore(&search);
			break;
		}
		outcome = shorter;
	}
	explore_print_trace(&search);
}

/* True: there is nothing wrong with it. */
static bool run_scene(const struct scene *of, bool brief)
{
	struct search search = search_of(of);
	double began = now();
	struct outcome o = explore(&search);

	printf("%-32s %9llu %11llu %10.2g %6u %6.2f  %s\n", of->name, (unsigned long long)o.states,
	       (unsigned long long)o.transitions, o.executions, o.depth, now() - began,
	       o.fault ? o.fault : "ok");
	fflush(stdout);
	if (o.fault && !brief)
		show_fault(search, o);
	return !o.fault;
}

static bool is_wanted(const struct scene *of, char **wanted)
{
	if (!*wanted)
		return true;
	while (*wanted)
		if (!strcmp(of->name, *wanted++))
			return true;
	return false;
}

/* One of those that run has ended: 1, there is something wrong with it. */
static unsigned reap(void)
{
	int status;

	return wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status);
}

/* In a process of its own. */
static bool start_scene(const struct scene *of, bool brief)
{
	pid_t pid = fork();

	if (pid == 0)
		exit(!run_scene(of, brief));
	return pid > 0;
}

/* queues [-b] [SCENE...]: these, or all. -b: without the way to a fault. */
int main(int argc, char **argv)
{
	bool brief = argc > 1 && !strcmp(argv[1], "-b");
	long most = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned run = 0, ended = 0, faults = 0;

	(void)setenv("SLMPM_ENGINE", "none", 1);
	(void)setenv("SLMPM_MONITOR_MS", "0", 1);
	(void)setenv("SLMPM_RMA", "ring", 1);
	printf("%-32s %9s %11s %10s %6s %6s\n", "scene", "states", "transitions", "executions",
	       "steps", "s");
	fflush(stdout);
	for (unsigned i = 0; i < scene_count; i++) {
		if (!is_wanted(&scenes[i], argv + 1 + brief))
			continue;
		if ((long)(run - ended) >= most) {
			faults += reap();
			ended++;
		}
		if (!start_scene(&scenes[i], brief)) {
			perror("fork");
			return 2;
		}
		run++;
	}
	for (; ended < run; ended++)
		faults += reap();
	printf("%u scenes, %u with a fault\n", run, faults);
	return !run || faults;
}
