/* SPDX-License-Identifier: BSD-3-Clause */
/* native-only */
/* The thread that makes progress for the application takes short turns, the application its own. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/actor.h"

#define SHORT 100000

/* As of sched_getattr(2). */
struct turns {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t length, deadline, period;
};

/* 0: the kernel does not say. */
static uint64_t length_of_turns(pid_t thread)
{
	struct turns t = {.size = 0};

	return syscall(SYS_sched_getattr, thread, &t, sizeof(t), 0) == 0 ? t.length : 0;
}

/* Of threads besides this. */
static int with_short_turns(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *at;
	int n = 0;

	CHECK(tasks, "/proc/self/task");
	while ((at = readdir(tasks))) {
		pid_t thread = atoi(at->d_name);

		n += thread && thread != getpid() && length_of_turns(thread) == SHORT;
	}
	closedir(tasks);
	return n;
}

int main(void)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS};
	uint64_t own = length_of_turns(0);
	slmpm_ctx ctx;

	if (!own)
		test_skip("the kernel knows no turns of a thread's own");
	setenv("SLMPM_ENGINE", "thread", 1);
	OK(slmpm_open(&ctx, &o));
	for (int ms = 0; ms < PATIENCE && !with_short_turns(); ms++) /* it sets that itself */
		usleep(1000);
	EXPECT(with_short_turns(), 1);
	CHECK(length_of_turns(0) == own, "the application's own");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
