/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait that finds nothing: whether it scans again, yields or sleeps; and what a yield shows. */
#ifndef SLMPM_IDLE_H
#define SLMPM_IDLE_H

#include <sched.h>

#include "slmpm/base/clock.h"
#include "slmpm/context.h"

#define IDLE_POLLS 2 /* of a ring, that take as long as a pass */

/* It may scan again at once, if the pass to come finds nothing. */
static inline bool idle_goes_on(const struct context *ctx, uint32_t turns)
{
	return turns < ctx->scans / 4 && !ctx->oversubscribed && ctx->wait != SLMPM_WAIT_BLOCK &&
	       !(ctx->multiple && context_is_wanted(ctx));
}
/* How many polls in a row would come of that. */
static inline uint32_t idle_polls(const struct context *ctx, const struct idle *i)
{
	return idle_goes_on(ctx, i->turns + 1) ? (ctx->scans / 4 - i->turns) * IDLE_POLLS : 1;
}
/* After a pass that found nothing, or so many POLLS: true, scan again at once. */
static inline bool idle_is_new(struct context *ctx, struct idle *i, uint32_t polls)
{
	if (i->turns == 0)
		ctx->spin.quick++;
	i->turns += (polls + IDLE_POLLS - 1) / IDLE_POLLS;
	return idle_goes_on(ctx, i->turns);
}
/* SLMPM_SPIN_*: what to do NOW. */
int idle_next(struct context *ctx, struct idle *i, uint64_t now);
/* It has yielded from NOW until BACK. */
void idle_away(struct idle *i, uint64_t now, uint64_t back);
/* So long it polls, if nothing comes. */
uint64_t idle_until(const struct context *ctx, const struct idle *i);
/* Something has come (FOUND), or the wait is over. */
void idle_over(struct context *ctx, struct idle *i, bool found);

/* ---- yielding: is the processor shared (oversubscribed), or computed on (preempted)? -------- */

#define YIELD_SHARED   64 /* in a row that let no other run, until the processor is its own again */
#define YIELD_SLICE_NS 500000 /* one that took longer let another compute */

/* Now and then it is counted whether another has run; one that took so many TICKS may be long. */
bool yield_counted(struct context *ctx);
COLD bool yield_took(struct context *ctx, uint64_t ticks);
/* sched_yield, without the context's lock meanwhile. NOW is the time; returns that afterwards. */
uint64_t yield_turn(struct context *ctx, uint64_t now);
/* The same in a row of them, where others are known to share the processor, and with less of a look
 * at what it shows. False: that another computes: no more for now. */
static INLINE bool yield_among(struct context *ctx)
{
	uint64_t began, ticks;

	if (UNLIKELY(ctx->oversubscribed <= YIELD_SHARED / 2))
		return yield_counted(ctx);
	began = clock_ticks();
	sched_yield();
	ticks = clock_ticks() - began;
	ctx->oversubscribed--;
	/* Ticks are shorter than ns, if anything. */
	return LIKELY(ticks < YIELD_SLICE_NS) || yield_took(ctx, ticks);
}
/* What a yield of a thread without the lock shows: did another compute meanwhile, or run? */
bool yield_was_slice(uint64_t now, uint64_t back);
bool yield_was_switched(uint64_t now, uint64_t back);
/* Noted once it has the lock. */
void yield_taken(struct context *ctx, uint64_t now, uint64_t back, bool switched);
/* Many passes have found nothing: now and then a poll tries whether the processor is shared. */
COLD void yield_consider(struct context *ctx);
COLD void yield_polled(struct context *ctx);
/* At the end of a call that polls and has found nothing: the peer may want this very processor. */
static inline void yield_poll(struct context *ctx)
{
	if (UNLIKELY(ctx->yields))
		yield_polled(ctx);
}

#endif
