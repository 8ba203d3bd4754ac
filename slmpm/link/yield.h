/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processor given to others, and what that shows: whether somebody shares it (oversubscribed), or computes
 * on it and so takes a whole turn for each yield (preempted).
 */
#ifndef SLMPM_YIELD_H
#define SLMPM_YIELD_H

#include "slmpm/context.h"

/* sched_yield, with the context's lock given back meanwhile. NOW is the time; returns that afterwards. */
uint64_t yield_turn(struct context *ctx, uint64_t now);
/* This thread has yielded from NOW until BACK. */
void yield_taken(struct context *ctx, uint64_t now, uint64_t back);
/* Many passes have found nothing: from time to time a poll tries whether the processor is shared. */
COLD void yield_consider(struct context *ctx);
COLD void yield_polled(struct context *ctx);
/* At the end of a call that looks without waiting and has found nothing; the context's lock may be given back
 * meanwhile. Who is waited for may want this very processor. */
static inline void yield_poll(struct context *ctx)
{
	if (UNLIKELY(ctx->yields))
		yield_polled(ctx);
}

#endif
