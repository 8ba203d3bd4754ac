/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wait that finds nothing, in a call or a loop of the application's own: one decision for both.
 * Processes that share a processor have to yield it to one another: one that polls on keeps it for
 * a turn of milliseconds, in which the other cannot answer.
 */
#include "slmpm/link/idle.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "slmpm/domain.h"
#include "slmpm/endpoint.h"
#include "slmpm/link/inspect.h"
#include "slmpm/base/clock.h"

#define SWITCH_NS  500 /* a yield that took less let no other run, by any kernel (switch_ns) */
#define DEAR_NS    (8 * SWITCH_NS) /* what took more, and let no other run, was held up */
/* One longer than a slice let another compute, which gives nothing back: */
#define LITTLE_NS  (UINT64_C(5) << 17) /* ... so long none; if it happens again ... */
#define AGAIN_NS   (UINT64_C(5) << 20) /* ... within this, or as long as that was, twice as long, */
#define MOST_NS    (32 * AGAIN_NS)     /* ... and so on, to so long */
#define PEERS      16                  /* that are inspected: each costs some microseconds */
#define TRY_NS     150000 /* between yields of one that polls, where none is known to share */
/* Of the time that is its own a member polls so long for the others, which need the processor to
 * come: once all sleep, each has to be woken by the last, and the account of waits shows no way
 * back. */
#define COLLECT_NS 100000
/* Times its own polling that a wait lasts at most, away or not; as often more as others share. */
#define MOST_SPINS 8
#define FRESH_NS   10000000 /* a count of switches tells so long whether there was one since */
/* Yields behind one that let another run, before the costly question to the kernel. */
#define TRUSTED    8
#define RATE_NS    5000   /* in which ticks are compared with the clock */
#define LETS_IN_NS 100000 /* so long one that wakes up for the lock is waited for */

/* So long the engine's thread does not poll where two tries in a row have shown that another
 * computes there: each puts off what it is there for by a turn of the scheduler's. */
#define DISPLACED_NS UINT64_C(1000000000)

/* A yield that took less let no other run. Where a system call is dear each takes longer than
 * SWITCH_NS: so it is learnt from the kernel's count of switches (yield_was_switched). */
static _Thread_local uint64_t switch_ns = SWITCH_NS;

/* Several members of a group share a processor, and wait for one another. */
static bool is_collecting(const struct context *ctx)
{
	return (ctx->collecting || ctx->depositing) && ctx->sharers;
}

/* What others have computed meanwhile has cost nothing; but a wait is not to last for ever. */
static bool may_poll(const struct context *ctx, const struct idle *i, uint64_t now)
{
	uint64_t took = now - i->since;
	uint32_t most = MOST_SPINS + (is_collecting(ctx) ? ctx->sharers : 0);

	return excess_of(took, i->away) < i->spin && took / most < i->spin;
}

int idle_next(struct context *ctx, struct idle *i, uint64_t now)
{
	i->bells = domain_bells(ctx);
	i->read = now;
	if (!i->since) {
		i->since = now;
		i->spin = spin_begin(&ctx->spin, now, i->bells);
		if (is_collecting(ctx) && ctx->spin.fixed == SPIN_AUTO)
			i->spin = i->spin > COLLECT_NS ? i->spin : COLLECT_NS;
		/* One yield at least: the engine of another member may have to have this processor, and
		 * a sleep would not show that it had. */
		if (!i->spin && ctx->collecting && ctx->spin.fixed == SPIN_AUTO &&
		    context_is_server(ctx))
			i->spin = 1;
		if (ctx->spin.rang) /* while the peer wakes up there is time for it */
			inspect_tick(ctx);
	}
	if (ctx->wait == SLMPM_WAIT_SPIN)
		return ctx->oversubscribed || ctx->multiple ? SLMPM_SPIN_YIELD : SLMPM_SPIN_ON;
	if (ctx->wait == SLMPM_WAIT_ADAPTIVE && may_poll(ctx, i, now) &&
	    now >= (context_is_server(ctx) ? ctx->displaced : ctx->preempted))
		return SLMPM_SPIN_YIELD;
	i->slept = true;
	return SLMPM_SPIN_SLEEP;
}

uint64_t idle_until(const struct context *ctx, const struct idle *i)
{
	return ctx->wait == SLMPM_WAIT_SPIN ? UINT64_MAX : i->since + i->away + i->spin;
}

void idle_away(struct idle *i, uint64_t now, uint64_t back)
{
	i->read = back;
	if (back - now >= switch_ns)
		i->away += back - now;
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
	if (found && !i->slept && i->away < YIELD_SLICE_NS && context_is_server(ctx))
		ctx->displaced = 0;
	now = i->slept ? clock_now() : i->read; /* else a pass ago */
	wait = (struct spin_wait){
		.took = now - i->since,
		.away = i->away,
		.bells = i->bells,
		.met = found,
		.asleep = i->slept,
	};
	spin_end(&ctx->spin, now, &wait);
	if (found && i->slept && !spin_may_pay(&ctx->spin))
		ctx->scans = IDLE_SCANS_BRIEF;
	i->since = i->away = 0;
	i->slept = false;
}

/* ---- yielding ------------------------------------------------------------------------------- */

/* Whether a yield lets others run is known by now, for a while. */
static bool is_trusted(const struct context *ctx)
{
	return ctx->oversubscribed > YIELD_SHARED - TRUSTED;
}

bool yield_was_slice(uint64_t now, uint64_t back)
{
	return back - now > YIELD_SLICE_NS;
}

/* Quickly up, slowly down: one in sixteen may take long for other reasons. */
static void longer_without_switch(void)
{
	switch_ns += switch_ns / 16;
}

static void shorter_without_switch(uint64_t took)
{
	if (took < switch_ns / 2 && switch_ns > SWITCH_NS)
		switch_ns -= switch_ns / 256;
}

/* Has another thread run here from NOW until BACK? The kernel counts switches; since a count of
 * long ago there may have been one at any time. */
bool yield_was_switched(uint64_t now, uint64_t back)
{
	static _Thread_local uint64_t counted_at;
	static _Thread_local long counted;
	struct rusage usage;
	long before = counted;
	bool fresh = now - counted_at < FRESH_NS;

	if (back - now < switch_ns) {
		shorter_without_switch(back - now);
		return false;
	}
	if (getrusage(RUSAGE_THREAD, &usage))
		return false;
	counted = usage.ru_nivcsw;
	counted_at = back;
	if (fresh && counted == before && back - now < DEAR_NS)
		longer_without_switch();
	return fresh && counted != before;
}

/* Who wakes from a sleep has his turn at once. */
static void was_preempted(struct context *ctx, uint64_t now, uint64_t back)
{
	uint64_t soon = ctx->preempted_ns > AGAIN_NS ? ctx->preempted_ns : AGAIN_NS;
	bool again = now - ctx->preempted < soon;

	ctx->preempted_ns = again ? 2 * ctx->preempted_ns : LITTLE_NS;
	if (ctx->preempted_ns > MOST_NS)
		ctx->preempted_ns = MOST_NS;
	ctx->preempted = back + ctx->preempted_ns;
}

/* One turn may have been that of a process which is soon over. */
static void was_displaced(struct context *ctx, uint64_t back)
{
	ctx->displaced = back + (ctx->displaced ? DISPLACED_NS : LITTLE_NS);
}

/* This thread has yielded from NOW until BACK. If another has run, SWITCHED, processors are short:
 * from then on yield first. */
void yield_taken(struct context *ctx, uint64_t now, uint64_t back, bool switched)
{
	ctx->yielded = back;
	/* Of several members each may have had its turn. */
	if (back - now > YIELD_SLICE_NS * (is_collecting(ctx) ? ctx->sharers : 1)) {
		if (context_is_server(ctx))
			was_displaced(ctx, back);
		else if (!ctx->port) /* an engine's thread does compute for us */
			was_preempted(ctx, now, back);
	}
	ctx->switches += switched;
	if (switched)
		ctx->oversubscribed = YIELD_SHARED;
	else if (ctx->oversubscribed)
		ctx->oversubscribed--;
}

/* Yields from NOW on without the lock. An application that sleeps for it is not back from that by
 * the time the engine's thread is, which therefore waits for it: else a call could last as long as
 * an operation. Returns the time afterwards. */
static uint64_t yield_out(const struct context *ctx, uint64_t now)
{
	uint64_t back;

	do {
		sched_yield();
		back = clock_now();
	} while (context_is_wanted(ctx) && context_is_server(ctx) && back - now < LETS_IN_NS);
	return back;
}

uint64_t yield_turn(struct context *ctx, uint64_t now)
{
	bool trusted = is_trusted(ctx), switched;
	uint64_t back;

	context_unlock(ctx);
	back = yield_out(ctx, now);
	switched = !trusted && yield_was_switched(now, back); /* others have the lock meanwhile */
	context_lock(ctx);
	yield_taken(ctx, now, back, switched);
	return back;
}

/* What took so many ticks, in ns. */
static COLD uint64_t ns_of(uint64_t ticks)
{
	uint64_t began = clock_ticks(), now = clock_now(), back = now;

	while (back - now < RATE_NS)
		back = clock_now();
	return (uint64_t)((double)ticks * (double)(back - now) / (double)(clock_ticks() - began));
}

bool yield_counted(struct context *ctx)
{
	uint64_t back = yield_turn(ctx, clock_now());

	return ctx->preempted <= back;
}

bool yield_took(struct context *ctx, uint64_t ticks)
{
	uint64_t back;

	ticks = ns_of(ticks);
	back = clock_now();
	yield_taken(ctx, back - ticks, back, false);
	return ctx->preempted <= back;
}

#define BEFORE_PROCESSOR 37 /* blanks behind the name in /proc/PID/stat (proc(5)) */

/* Has the peer's process, on this machine, last run on the processor of this thread? */
static bool shares_processor(const struct endpoint *ep)
{
	char path[64], line[512], *at = NULL;
	FILE *f;

	if (ep->state != SLMPM_PEER_UP || !ep->life->pid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", ep->life->pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f))
		at = strrchr(line, ')');
	fclose(f);
	for (int i = 0; i < BEFORE_PROCESSOR && at; i++)
		at = strchr(at + 1, ' ');
	return at && atoi(at) == sched_getcpu();
}

/* A peer that has the processor for long computes for us, or polls as this thread does. Two that
 * did not know each other would keep it from each other for good. */
static bool is_with_a_peer(const struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count && i < PEERS; i++)
		if (shares_processor(ctx->endpoints[i]))
			return true;
	return false;
}

COLD void yield_consider(struct context *ctx)
{
	uint64_t now = clock_now();

	ctx->yields =
		now >= ctx->preempted && (ctx->oversubscribed || now - ctx->yielded >= TRY_NS);
}

COLD void yield_polled(struct context *ctx)
{
	uint64_t back;

	if (ctx->handling)
		return;
	back = yield_turn(ctx, clock_now());
	if (ctx->preempted > back && is_with_a_peer(ctx))
		ctx->preempted = back;
	ctx->yields = ctx->oversubscribed && back >= ctx->preempted;
}

/* ---- the application's own loop ------------------------------------------------------------- */

static int spin_on(struct context *ctx)
{
	uint64_t yielding = ctx->yielding, back;
	int rc;

	ctx->yielding = 0;
	if (yielding) { /* it has yielded since */
		back = clock_now();
		idle_away(&ctx->own, yielding, back);
		yield_taken(ctx, yielding, back,
			    !is_trusted(ctx) && yield_was_switched(yielding, back));
		return SLMPM_SPIN_ON;
	}
	if (idle_is_new(ctx, &ctx->own, 1))
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
