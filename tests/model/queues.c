/* SPDX-License-Identifier: BSD-3-Clause */
/* The model checker of work queues: every scene, as the code is (README.md). */
/* native-only */
/* has-time */
/* timeout: 600 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/model/queue/scene.h"
#include "tests/model/report.h"

#define STATES_MAX 20000000

static const char *nothing_wrong(void)
{
	return NULL; /* step_take has judged */
}

/* True: there is nothing wrong with it. */
static bool run_scene(const struct scene *of, bool brief)
{
	const struct search search = {
		.settled = nothing_wrong, .fresh = scene_sleep, .states_max = STATES_MAX};

	scene = of;
	return report_search(of->name, &search, brief);
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
	report_head("scene");
	for (unsigned i = 0; i < scene_count; i++) {
		if (!report_is_wanted(scenes[i].name, argv + 1 + brief))
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
