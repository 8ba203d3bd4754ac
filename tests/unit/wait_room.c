/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room that a peer tells of behind the last try to send, when no descriptor shows it any more: who
 * is about to sleep tries again.
 */
#include "slmpm/link/wait.h"
#include "tests/lib/actor.h"
#include "tests/lib/test.h"

static bool nothing(void *arg)
{
	(void)arg;
	return false;
}

/* What taking in a credit does. */
static bool room_comes(void *link)
{
	((struct fabric_link *)link)->room++;
	return false;
}

int main(void)
{
	struct slmpm_options o = {.size = sizeof(o), .wait = SLMPM_WAIT_BLOCK};
	slmpm_ctx handle;
	struct context *ctx;
	slmpm_peer a, b;
	uint64_t slept, notified;
	int rc = 0;

	OK(slmpm_open(&handle, &o));
	actor_pair(handle, &a, &b);
	ctx = context_get(handle, &rc);
	context_lock(ctx);
	slept = ctx->sleeps;
	while (ctx->sleeps == slept) /* until there is nothing else to do */
		wait_sleep(ctx, clock_now(), clock_deadline(10), nothing, NULL);
	slept = ctx->sleeps;
	notified = wait_room(endpoint_get(a));
	wait_sleep(ctx, clock_now(), clock_deadline(100), room_comes, endpoint_get(a)->link.port);
	CHECK(ctx->sleeps == slept, "slept, and there was room");
	CHECK(wait_room(endpoint_get(a)) != notified, "room that does not show");
	context_unlock(ctx);
	OK(slmpm_shut(handle, 0));
	return 0;
}
