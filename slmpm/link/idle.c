/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait that finds nothing, in a call and in a loop of the application's own: one decision for both. */
#include "slmpm/link/idle.h"

#include "slmpm/domain.h"
#include "slmpm/link/inspect.h"
#include "slmpm/base/clock.h"
#include "slmpm/link/yield.h"

int idle_next(struct context *ctx, struct idle *i, uint64_t now)
{
	if (!i->since) {
		i->since = now;
		i->spin = spin_begin(&ctx->spin, now, domain_bells(ctx));
		if (ctx->spin.rang) /* while the peer wakes up there is time for it */
			inspect_tick(ctx);
	}
	if (ctx->wait == SLMPM_WAIT_SPIN)
		return ctx->oversubscribed || ctx->multiple ? SLMPM_SPIN_YIELD : SLMPM_SPIN_ON;
	if (ctx->wait == SLMPM_WAIT_ADAPTIVE && now - i->since < i->spin && now >= ctx->preempted)
		return SLMPM_SPIN_YIELD;
	i->slept = true;
	return SLMPM_SPIN_SLEEP;
}

void idle_over(struct context *ctx, struct idle *i, bool found)
{
	uint64_t now;
	struct spin_wait wait;

	i->turns = 0;
	if (found)
		ctx->scans = IDLE_SCANS;
	if (!i->since)
		return;
	now = clock_now();
	wait = (struct spin_wait){
		.took = now - i->since,
		.bells = domain_bells(ctx),
		.met = found,
		.asleep = i->slept,
	};
	spin_end(&ctx->spin, now, &wait);
	if (found && i->slept && !spin_may_pay(&ctx->spin))
		ctx->scans = IDLE_SCANS_BRIEF;
	i->since = 0;
	i->slept = false;
}

/* ---- the application's own loop --------------------------------------------------------------- */

static int spin_on(struct context *ctx)
{
	uint64_t yielding = ctx->yielding;
	int rc;

	ctx->yielding = 0;
	if (yielding) { /* it has yielded since */
		yield_taken(ctx, yielding, clock_now());
		return SLMPM_SPIN_ON;
	}
	if (idle_is_new(ctx, &ctx->own))
		return SLMPM_SPIN_ON;
	yielding = clock_now();
	rc = idle_next(ctx, &ctx->own, yielding);
	if (rc == SLMPM_SPIN_YIELD)
		ctx->yielding = yielding;
	return rc;
}

int slmpm_spin(slmpm_ctx handle, int found)
{
	int rc = 0;
	struct context *ctx = context_get_quickly(handle, &rc);

	if (UNLIKELY(!ctx))
		return rc;
	context_lock(ctx);
	if (found) {
		ctx->yielding = 0;
		idle_over(ctx, &ctx->own, true);
		rc = SLMPM_SPIN_ON;
	} else {
		rc = spin_on(ctx);
	}
	context_unlock(ctx);
	return rc;
}
