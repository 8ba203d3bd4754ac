/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Yielding. Processes that share a processor have to hand it to one another: whoever polls on keeps it for a
 * turn of milliseconds, in which the other cannot answer.
 */
#include "slmpm/link/yield.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "slmpm/endpoint.h"
#include "slmpm/base/clock.h"

#define SWITCH_NS 500 /* a yield that took less let nobody run */
#define SHARED    64  /* yields in a row that let nobody run until the processor is its own again */
#define SLICE_NS  500000 /* one that took longer let somebody compute, who gives nothing back: */
#define LITTLE_NS (UINT64_C(5) << 20) /* ... so long none; if it happens right after */
#define MOST_NS   (32 * LITTLE_NS)    /* ... that, twice as long, to so long */
#define PEERS     16                  /* that are looked at: each costs some microseconds */
#define TRY_NS    150000   /* between yields of one that polls, where nobody is known to share */
#define FRESH_NS  10000000 /* a count of switches tells so long whether there was one since */
/* Yields behind one that let another run, for which the kernel is not asked: a question costs a fifth of a message. */
#define TRUSTED   8

/* Has another run in place of this thread from NOW until BACK? The kernel counts that; by a count of long ago it
 * may have been at any time since. */
static bool was_switched(uint64_t now, uint64_t back)
{
	static _Thread_local uint64_t counted_at;
	static _Thread_local long counted;
	struct rusage usage;
	long before = counted;
	bool fresh = now - counted_at < FRESH_NS;

	if (back - now < SWITCH_NS || getrusage(RUSAGE_THREAD, &usage))
		return false;
	counted = usage.ru_nivcsw;
	counted_at = back;
	return fresh && counted != before;
}

/* Who wakes from a sleep has his turn at once. */
static void was_preempted(struct context *ctx, uint64_t now, uint64_t back)
{
	bool again = now - ctx->preempted < ctx->preempted_ns;

	ctx->preempted_ns = again ? 2 * ctx->preempted_ns : LITTLE_NS;
	if (ctx->preempted_ns > MOST_NS)
		ctx->preempted_ns = MOST_NS;
	ctx->preempted = back + ctx->preempted_ns;
}

/*
 * A yield that lets somebody run shows that processors are short: from then on yield first. Where
 * each wait is one long yield, neither its time nor its passes would ever come to a look.
 */
void yield_taken(struct context *ctx, uint64_t now, uint64_t back)
{
	ctx->yielded = back;
	if (back - now > SLICE_NS && !ctx->port) /* an engine's thread does compute for us */
		was_preempted(ctx, now, back);
	if (ctx->oversubscribed <= SHARED - TRUSTED && was_switched(now, back))
		ctx->oversubscribed = SHARED;
	else if (ctx->oversubscribed)
		ctx->oversubscribed--;
}

uint64_t yield_turn(struct context *ctx, uint64_t now)
{
	uint64_t back;

	context_unlock(ctx);
	sched_yield();
	back = clock_now();
	context_lock(ctx);
	yield_taken(ctx, now, back);
	return back;
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

/* A peer that has the processor for long computes for us, or polls as this thread does. Two that took each other for
 * strangers would keep it from each other for good. */
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
