/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slmpm_progress: for one peer that sends active messages or changes of a mirror straight from its
 * ring, else a pass; and a context in the application's own loop.
 */
#include "slmpm/watch.h"
#include "slmpm/base/sized.h"
#include "slmpm/engine/engine.h"
#include "slmpm/link/progress.h"
#include "slmpm/am/am_take.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/link/wait.h"
#include "slmpm/link/idle.h"

#define POLLS 16 /* of one ring in a call before it is found empty */

/*
 * The fast path of a call, for one peer that sends active messages: takes those that are there and
 * counts them in TAKEN. False: the slow path has to look, too.
 */
static inline bool progress_shortly(struct context *ctx, int *taken)
{
	struct endpoint *ep;
	struct link *l;
	uint64_t awaited = 0;
	int n = 0, polls = POLLS;
	bool all = true;

	if (UNLIKELY(ctx->multiple || ctx->live != 1 || ctx->handling || ctx->armed))
		return false;
	ep = ctx->endpoints[0];
	l = &ep->link;
	while (LIKELY(!ep->blocked && !ep->unpack.left && !ep->bundle.count &&
		      ctx->idle < PROGRESS_INSPECT_EVERY)) {
		struct fabric_arrival *a;

		/* Behind a violation there may be more. */
		while (!(a = progress_take(ep)) && --polls && !ep->blocked) {
			if (polls == POLLS - 1 && ep->rooms->mirrors)
				awaited = mirror_now(); /* not in the way of a change to come */
			else
				clock_between_polls();
		}
		if (!a && !n)
			return clock_ticks() - ctx->inspected < PROGRESS_ASK_TICKS && !ep->blocked;
		if (!a)
			break;
		if (UNLIKELY(!(mirror_is_change(a->kind) ? mirror_take_shortly(ep, a, awaited) :
							   am_take_inline(ep, a)))) {
			l->next--;
			all = false;
			break;
		}
		ctx->idle++;
		awaited = 0;
		/* The ring had no more than it gave, or others want a look. */
		n++;
		if (LIKELY(l->next == l->end && l->end < l->arrivals + LINK_BATCH) ||
		    n == PROGRESS_SHARE)
			break;
	}
	ctx->news |= n > 0;
	*taken = n;
	return LIKELY(n && all && !ep->blocked);
}

/* All that is there, and no more than a pass over everybody would find. */
static int progress_locked(struct context *ctx)
{
	int n = 0;

	if (ctx->armed && !ctx->sleeping) {
		wait_disarm(ctx);
		ctx->inspected = 0;
	}
	for (uint32_t passes = ctx->live * PROGRESS_SHARE + 1; passes; passes--) {
		n += progress_context(ctx);
		if (!ctx->finished)
			break;
	}
	return n;
}

HOT int slmpm_progress(slmpm_ctx handle)
{
	int rc = 0, taken = 0;
	struct context *ctx = context_get_quickly(handle, &rc);

	if (UNLIKELY(!ctx))
		return rc;
	if (LIKELY(progress_shortly(ctx, &taken)))
		return taken;
	if (UNLIKELY(ctx->multiple)) {
		context_lock_shared(ctx);
		if (ctx->port)
			engine_step_aside(ctx, false);
	}
	rc = taken + progress_locked(ctx);
	/* Who calls all the time need not ask the kernel each time. */
	if (!rc && clock_ticks() - ctx->inspected >= PROGRESS_ASK_TICKS) {
		rc = wait_inspect(ctx);
		ctx->inspected = clock_ticks();
		if (!rc)
			yield_consider(ctx);
	}
	if (!rc)
		yield_poll(ctx);
	if (UNLIKELY(ctx->yields)) /* the next one comes this way, too */
		ctx->inspected = 0;
	context_unlock(ctx);
	return rc;
}

/* ---- the application's own loop ---------------------------------------------------------- */

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
