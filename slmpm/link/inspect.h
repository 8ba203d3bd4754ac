/* SPDX-License-Identifier: BSD-3-Clause */
/* When the links of a context are inspected for the monitor: by waits, receives and sleeps. */
#ifndef SLMPM_INSPECT_H
#define SLMPM_INSPECT_H

#include "slmpm/base/clock.h"
#include "slmpm/part.h"

#define INSPECT_TICKS UINT64_C(20000000) /* of clock_ticks, between two: 4 to 20 ms */

static inline void inspect_now(struct context *ctx, uint64_t ticks)
{
	parts.inspect(ctx, ticks);
	if (ctx->stats_queues)
		parts.publish(ctx);
	if (!list_empty(&ctx->groups))
		parts.collect_publish(ctx);
}

static inline void inspect_tick(struct context *ctx)
{
	uint64_t ticks = clock_ticks();

	/* Who waits comes first: it measures more. */
	if (UNLIKELY(ticks - ctx->monitor.inspected >= INSPECT_TICKS << ctx->monitor.opportunistic))
		inspect_now(ctx, ticks);
}

/* A tick amid traffic: the first messages after a sleep do not pay for what became due in it. */
static inline void inspect_tick_amid(struct context *ctx)
{
	if (clock_ticks() >= ctx->monitor.not_before)
		inspect_tick(ctx);
}

/* A tick, sooner: others are to see how things are before this context rests. */
static inline void inspect_tick_often(struct context *ctx)
{
	uint64_t ticks = clock_ticks();

	if (ticks - ctx->monitor.inspected >= INSPECT_TICKS / 16)
		inspect_now(ctx, ticks);
}

/* This thread has slept, and a message has woken it. */
static inline void inspect_woken(struct context *ctx)
{
	ctx->monitor.not_before = clock_ticks() + INSPECT_TICKS;
}

#endif
