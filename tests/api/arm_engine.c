/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An application's own loop beside the engine's thread: behind a call that may block, which wakes
 * that thread, the descriptor is not ready again and again until the thread has had its turn.
 */
#include <poll.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define ROUNDS 10
#define QUIET  60 /* ms: then it sleeps */
#define MOST   50 /* times that it is ready, or not armed, in a round */

static slmpm_ctx ctx;

/* How often there was something to look at before it slept. */
static int sleep_once(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n = 0;

	while (n <= MOST && (slmpm_arm(ctx) || poll(&p, 1, QUIET) > 0))
		n++;
	return n;
}

static int loops(void *unused)
{
	struct slmpm_wq_options o = {.size = sizeof(o)};
	slmpm_peer a, b;
	slmpm_ctr ctr;
	slmpm_wq wq;
	int fd, most = 0;

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	OK(slmpm_ctr_create(ctx, &ctr));
	OK(slmpm_cq_create(ctx, &o.cq));
	OK(slmpm_wq_create(ctx, &o, &wq)); /* from here on there is that thread */
	fd = slmpm_fd(ctx);
	CHECK(fd >= 0, "no descriptor: %s", slmpm_error_detail());
	for (int i = 0; i < ROUNDS; i++) {
		int n;

		OK(slmpm_ctr_wait(ctr, 0, PATIENCE)); /* it has nothing to wait for */
		n = sleep_once(fd);
		most = n > most ? n : most;
	}
	printf("%d times at most\n", most);
	CHECK(most <= MOST, "ready again and again");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	settings_set("SLMPM_ENGINE", "thread");
	settings_set("SLMPM_FABRIC", "shm");
	settings_run("shared memory", loops, NULL);
	settings_set("SLMPM_FABRIC", "tcp");
	settings_run("TCP", loops, NULL);
	return 0;
}
