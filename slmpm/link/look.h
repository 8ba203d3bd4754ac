/* SPDX-License-Identifier: BSD-3-Clause */
/* When the links are looked at, by who waits, receives or sleeps: once in a while (slmpm/monitor). */
#ifndef SLMPM_LOOK_H
#define SLMPM_LOOK_H

#include "slmpm/base/clock.h"
#include "slmpm/part.h"

#define LOOK_TICKS UINT64_C(20000000) /* of clock_ticks, between looks: 4 to 20 ms */

static inline void look_tick(struct context *ctx)
{
	uint64_t ticks = clock_ticks();

	/* Who waits comes first: it measures more. */
	if (UNLIKELY(ticks - ctx->monitor.looked >= LOOK_TICKS << ctx->monitor.in_passing))
		parts.look(ctx, ticks);
}

/* A tick amid traffic: the first messages after a sleep do not pay for what became due in it. */
static inline void look_tick_amid(struct context *ctx)
{
	if (clock_ticks() >= ctx->monitor.not_before)
		look_tick(ctx);
}

/* This thread has slept, and a message has woken it. */
static inline void look_woken(struct context *ctx)
{
	ctx->monitor.not_before = clock_ticks() + LOOK_TICKS;
}

/* The same, sooner: others are to see how things are before this context rests. */
static inline void look_tick_often(struct context *ctx)
{
	uint64_t ticks = clock_ticks();

	if (ticks - ctx->monitor.looked >= LOOK_TICKS / 16)
		parts.look(ctx, ticks);
}

#endif
