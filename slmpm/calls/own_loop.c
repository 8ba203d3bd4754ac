/* SPDX-License-Identifier: BSD-3-Clause */
/* slmpm_fd, slmpm_arm, slmpm_next_event: a context in the application's own loop. */
#include "slmpm/watch.h"
#include "slmpm/base/sized.h"
#include "slmpm/engine/engine.h"
#include "slmpm/link/wait.h"

int slmpm_fd(slmpm_ctx handle)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);

	if (!ctx)
		return rc;
	context_lock(ctx);
	(void)alarm_open(ctx);
	rc = engine_descriptor(ctx);
	context_unlock(ctx);
	return rc;
}

int slmpm_arm(slmpm_ctx handle)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);

	if (!ctx)
		return rc;
	context_lock(ctx);
	rc = !wait_announce(ctx);
	if (ctx->port)
		engine_seen(ctx);
	if (rc && !ctx->sleeping)
		wait_disarm(ctx);
	context_unlock(ctx);
	return rc;
}

static bool has_event(void *arg)
{
	return !list_empty(&((struct context *)arg)->events);
}

int slmpm_next_event(slmpm_ctx handle, struct slmpm_event *event, int timeout_ms)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);

	if (!ctx)
		return rc;
	rc = sized_check_own("slmpm_next_event", event, sizeof(*event));
	if (rc < 0)
		return rc;
	context_lock(ctx);
	if (!timeout_ms && !has_event(ctx))
		(void)wait_inspect(ctx);
	(void)wait_until(ctx, has_event, ctx, timeout_ms);
	rc = context_next_event(ctx, event);
	context_unlock(ctx);
	return rc;
}
