/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * SLMPM_SPAWN_DIE_WITH_HOST: however the host ends, its leashed accelerators are killed, whatever
 * they are doing; the others see its end and decide themselves.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"

#define ACCELERATORS 4

static struct shared {
	pid_t pids[ACCELERATORS + 1];
} * shared;
static char byte;

/* ---- accelerators ---- */

static int wait_asleep(slmpm_peer host, char **words)
{
	int64_t n;

	alarm(60);
	OK(slmpm_send(host, 1, "x", 1, PATIENCE));
	n = slmpm_recv(host, 1, &byte, 1, NULL, -1);
	while (words[0]) /* it may have heard of the end before it was killed for it */
		(void)poll(NULL, 0, -1);
	return n == -SLMPM_EDEAD ? 5 : n == -SLMPM_ECLOSED ? 6 : 1;
}

static int work_on(slmpm_peer host, char **words)
{
	static volatile uint64_t work;

	(void)words;
	alarm(60);
	OK(slmpm_send(host, 1, "x", 1, PATIENCE));
	for (;;)
		work++;
}

static int be_stopped(slmpm_peer host, char **words)
{
	(void)words;
	alarm(60);
	OK(slmpm_send(host, 1, "x", 1, PATIENCE));
	raise(SIGSTOP);
	return 1;
}

/* ---- hosts ---- */

struct plan {
	const char *name;
	void (*end)(void);
	int ended; /* what its parent sees */
};

static void end_killed(void)
{
	death_now();
}

static void end_by_exit(void)
{
	_exit(4);
}

/* A child of the host that lives on must not hold the parent-death pipe. */
static void end_survived(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(50);
		for (;;)
			(void)poll(NULL, 0, -1);
	}
	shared->pids[ACCELERATORS] = pid;
	death_now();
}

static void end_shut(void)
{
	slmpm_ctx ctx;

	OK(slmpm_default(&ctx));
	(void)slmpm_shut(ctx, 100);
	_exit(4);
}

static int be_host(void *arg)
{
	static const char *const roles[ACCELERATORS] = {"asleep", "busy", "stopped", "asleep"};
	const struct plan *plan = arg;

	for (int i = 0; i < ACCELERATORS; i++) {
		struct slmpm_spawn_options options = {
			.size = sizeof(options),
			.flags = i < ACCELERATORS - 1 ? SLMPM_SPAWN_DIE_WITH_HOST : 0,
		};
		slmpm_peer peer = actor_spawn_with(&options, roles[i],
						   options.flags ? "leashed" : NULL, NULL);

		EXPECT(slmpm_recv(peer, 1, &byte, 1, NULL, PATIENCE), 1);
		shared->pids[i] = pid_of(peer);
	}
	actor_await_state(shared->pids[2], "T");
	actor_await_state(shared->pids[3], "S");
	plan->end();
	return 99;
}

/* How the process, an orphan of ours, ended: as of child_wait. */
static int end_of(pid_t pid)
{
	int64_t until = actor_now_ms() + 2000 * actor_slow();
	int status;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (actor_now_ms() > until) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			return CHILD_LATE;
		}
		(void)poll(NULL, 0, 1);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"asleep", wait_asleep}, {"busy", work_on}, {"stopped", be_stopped}, {NULL, NULL}};
	static const struct plan plans[] = {{"killed", end_killed, -SIGKILL},
					    {"exit", end_by_exit, 4},
					    {"killed, a child lives on", end_survived, -SIGKILL},
					    {"shut down", end_shut, 4}};

	actor_begin(argc, argv, roles);
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "orphans cannot be adopted");
	shared = child_common(sizeof(*shared));
	for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
		const struct plan *plan = &plans[i];
		int rc, late = 0;

		memset(shared, 0, sizeof(*shared));
		rc = child_run(be_host, (void *)(uintptr_t)plan, 30);
		CHECK(rc == plan->ended, "%s: the host ended with %d", plan->name, rc);
		for (int a = 0; a < ACCELERATORS - 1; a++) {
			rc = end_of(shared->pids[a]);
			late += rc == CHILD_LATE;
			CHECK(rc == -SIGKILL || rc == CHILD_LATE,
			      "%s: accelerator %d ended with %d", plan->name, a, rc);
		}
		rc = end_of(shared->pids[ACCELERATORS - 1]);
		CHECK(rc == (plan->end == end_shut ? 6 : 5),
		      "%s: the one without death_pipe ended with %d", plan->name, rc);
		if (shared->pids[ACCELERATORS]) {
			OK(kill(shared->pids[ACCELERATORS], SIGKILL));
			CHECK(end_of(shared->pids[ACCELERATORS]) == -SIGKILL, "the host's child");
		}
		CHECK(late == 0, "%s: %d leashed accelerators lived on", plan->name, late);
		printf("host %s: leashed ones killed, the other told\n", plan->name);
	}
	return 0;
}
