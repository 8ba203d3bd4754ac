/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the engine's thread runs: a host that is bound to one processor, as batch systems and
 * benches do, computes there, and the thread is to work meanwhile: it has the others. A host with
 * several shares all of them with it.
 */
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

static cpu_set_t all, one;

static cpu_set_t mask_of(pid_t thread)
{
	cpu_set_t set;

	CHECK(sched_getaffinity(thread, sizeof(set), &set) == 0, "getaffinity");
	return set;
}

/* The one besides this. */
static pid_t other_thread(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *at;
	pid_t found = 0;

	CHECK(tasks, "/proc/self/task");
	while ((at = readdir(tasks))) {
		pid_t thread = atoi(at->d_name);

		if (thread && thread != getpid())
			found = thread;
	}
	closedir(tasks);
	CHECK(found, "there is no thread");
	return found;
}

/* It sets that itself, once it runs. */
static void await_mask(const cpu_set_t *want)
{
	cpu_set_t set = mask_of(other_thread());

	for (int ms = 0; ms < PATIENCE && !CPU_EQUAL(&set, want); ms++) {
		usleep(1000);
		set = mask_of(other_thread());
	}
	CHECK(CPU_EQUAL(&set, want), "%d processors instead of %d", CPU_COUNT(&set),
	      CPU_COUNT(want));
}

static int opens(void *bound)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS};
	cpu_set_t rest, own;
	slmpm_ctx ctx;

	CPU_XOR(&rest, &all, &one);
	own = bound ? one : all;
	CHECK(sched_setaffinity(0, sizeof(own), &own) == 0, "setaffinity");
	settings_set("SLMPM_ENGINE", "thread");
	OK(slmpm_open(&ctx, &o));
	await_mask(bound ? &rest : &all);
	own = mask_of(0);
	CHECK(CPU_COUNT(&own) == CPU_COUNT(bound ? &one : &all), "the host's own");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	int first = 0;

	memset(&all, 0xff, sizeof(all));
	(void)sched_setaffinity(0, sizeof(all), &all); /* as far as the kernel lets it */
	all = mask_of(0);
	if (CPU_COUNT(&all) < 2)
		test_skip("one processor");
	while (!CPU_ISSET((size_t)first, &all))
		first++;
	CPU_SET((size_t)first, &one);
	CHECK(child_run(opens, NULL, 20) == 0, "not bound: see above");
	CHECK(child_run(opens, &one, 20) == 0, "bound: see above");
	return 0;
}
