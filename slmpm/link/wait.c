/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a call waits. Spinning comes first, for the peer usually answers at once; then yielding,
 * which is all that helps when processes outnumber processors; then sleep, which needs a bell.
 */
#include "slmpm/link/wait.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <time.h>

#include "slmpm/base/error.h"
#include "slmpm/link/idle.h"
#include "slmpm/link/progress.h"
#include "slmpm/part.h"

#define INSPECT_NS  200000  /* between inspections of the descriptors while spinning ... */
#define CONNECT_NS  5000    /* ... and while a handshake goes on, which shows in no ring: ... */
#define CONNECT_OF  32      /* ... or, of a longer wait, that part: one may go on for ever */
#define BUSY        64      /* passes with result between looks at the deadline */
#define KEPT_OUT_NS 2000000 /* others that wait, and do not come to have the lock */

struct waiter {
	struct context *ctx;
	int timeout_ms;
	uint32_t busy;    /* passes that found something, since the last look at the clock */
	uint32_t turns;   /* ctx->turns, at ... */
	uint64_t turned;  /* ... this time, or 0 */
	uint64_t started; /* 0: the clock has not been looked at yet */
	struct idle idle;
	uint64_t deadline;
	uint64_t inspected;      /* at the descriptors */
	uint64_t back;           /* from a yield, a pass ago; or 0 */
	bool (*test)(void *arg); /* what is waited for */
	void *arg;
};

/* ---- spinning and yielding ------------------------------------------------------------------ */

/* The time runs from the first look at the clock. */
static bool is_late(struct waiter *w, uint64_t now)
{
	if (!w->started) {
		w->started = w->inspected = now;
		w->deadline =
			w->timeout_ms < 0 ? UINT64_MAX : now + (uint64_t)w->timeout_ms * 1000000;
	}
	return now >= w->deadline;
}

static uint64_t inspect_interval(const struct waiter *w, uint64_t now)
{
	uint64_t part = (now - w->started) / CONNECT_OF;

	if (list_empty(&w->ctx->deadlines))
		return INSPECT_NS;
	return part < CONNECT_NS ? CONNECT_NS : least_of(part, INSPECT_NS);
}

/* Of the descriptors, which passes over the rings do not see. */
static int inspect_if_due(struct waiter *w, uint64_t now)
{
	if (now - w->inspected <= inspect_interval(w, now))
		return 0;
	w->inspected = now;
	context_changed(w->ctx); /* room in a ring comes without a word */
	return wait_inspect(w->ctx);
}

/* A yield does not always run who has been woken before this thread has the lock again: after a
 * while in which none has had it they are waited for. */
static void let_others_in(struct waiter *w)
{
	static const struct timespec moment = {.tv_nsec = 50000};
	struct context *ctx = w->ctx;
	uint64_t now = clock_now();
	bool kept_out = w->turned && w->turns == ctx->turns && now - w->turned > KEPT_OUT_NS;

	if (!w->turned || w->turns != ctx->turns || kept_out) {
		w->turned = now;
		w->turns = ctx->turns;
	}
	context_unlock(ctx);
	if (kept_out)
		(void)nanosleep(&moment, NULL);
	else
		sched_yield();
	context_lock(ctx);
}

/* After a pass that found something: traffic of others must not put the deadline off. */
static int wait_busy(struct waiter *w)
{
	w->back = 0;
	idle_over(w->ctx, &w->idle, true); /* what comes next may follow at once */
	if (++w->busy < BUSY && !w->ctx->laboured)
		return 0;
	w->busy = 0;
	w->ctx->laboured = false;
	/* Nor keep others from the context, those that wait for what such passes find among them:
	 * but where there are none, and the processor is shared, a turn would be given away for so
	 * few passes. */
	if (w->ctx->multiple && (context_is_wanted(w->ctx) || w->ctx->waiting))
		let_others_in(w);
	return !w->timeout_ms || is_late(w, clock_now()) ? -SLMPM_ETIMEOUT : 0;
}

/* Nothing but a word of a ring, or another thread, would bring anything before. */
static uint64_t scan_until(const struct waiter *w, uint64_t now)
{
	uint64_t until = least_of(w->deadline, idle_until(w->ctx, &w->idle));

	return least_of(until, w->inspected + inspect_interval(w, now) + 1);
}

static void wait_yield(struct waiter *w, uint64_t now)
{
	struct context *ctx = w->ctx;
	uint64_t back = 0;

	if (ctx->multiple && !ctx->oversubscribed)
		back = wait_scan(ctx, &w->idle, now, scan_until(w, now));
	if (!back) {
		back = yield_turn(ctx, now);
		idle_away(&w->idle, now, back);
	}
	w->back = back > now ? back : 0; /* a scan that was over at once has read no clock */
	(void)inspect_if_due(w, back);
}

/* What is to come shows in one ring, and a pass has nothing else to do: how often it may poll that.
 * A mere try polls once. */
static inline uint32_t wait_polls(const struct waiter *w)
{
	const struct context *ctx = w->ctx;
	const struct endpoint *ep;

	if (ctx->live != 1 || !w->timeout_ms || !list_empty(&ctx->ready) || ctx->collecting ||
	    ctx->due || ctx->lacking)
		return 1;
	ep = ctx->endpoints[0];
	return ep->state == SLMPM_PEER_UP && endpoint_is_at_rest(ep) && ep->link.fabric->awaited ?
		       idle_polls(ctx, &w->idle) :
		       1;
}

/* After a pass that found nothing, or so many POLLS; the context's lock may be given back
 * meanwhile. */
static int wait_idle(struct waiter *w, uint32_t polls)
{
	struct context *ctx = w->ctx;
	uint64_t now;

	if (!w->timeout_ms) {
		yield_poll(ctx);
		return -SLMPM_ETIMEOUT;
	}
	if (idle_is_new(ctx, &w->idle, polls)) {
		clock_between_polls();
		return 0;
	}
	if (ctx->moved) { /* what is waited for now is another thing */
		ctx->moved = false;
		idle_over(ctx, &w->idle, true);
		w->back = 0; /* time does not go back */
	}
	now = w->back ? w->back : clock_now();
	w->back = 0;
	if (is_late(w, now)) {
		(void)inspect_if_due(w, now); /* others may have had the processor all the time */
		return -SLMPM_ETIMEOUT;
	}
	if (inspect_if_due(w, now))
		return 0;
	switch (idle_next(ctx, &w->idle, now)) {
	case SLMPM_SPIN_ON: clock_pause(); break;
	case SLMPM_SPIN_YIELD: wait_yield(w, now); break;
	default:
		if (wait_sleep(ctx, now, w->deadline, w->test, w->arg))
			return wait_busy(w);
	}
	return 0;
}

/* ---- waiting for something ------------------------------------------------------------------ */

int wait_for_poller(struct context *ctx, uint64_t deadline)
{
	int rc;

	if (ctx->away) /* who polls: this call may have taken what was to wake it */
		context_rouse(ctx);
	ctx->waiting++;
	rc = lock_wait(&ctx->lock, &ctx->changed, deadline);
	ctx->waiting--;
	ctx->turns++;
	return rc == ETIMEDOUT ? -SLMPM_ETIMEOUT : 0;
}

/* A context of several threads: the engine's leaves the polling to those that wait. */
static void meet_others(struct context *ctx, const struct waiter *w)
{
	if (ctx->port && !w->test(w->arg))
		parts.step_aside(ctx, w->timeout_ms != 0);
	if (ctx->polling && !w->test(w->arg))
		/* The polling thread may sleep: what is staged goes now, a mere try has polled. */
		(void)progress_context(ctx);
}

/* What it waits for is not there yet. */
static NOINLINE int wait_long(struct context *ctx, wait_test *test, void *arg, int timeout_ms)
{
	uint64_t deadline = ctx->multiple ? clock_deadline(timeout_ms) : 0;
	struct waiter w = {.ctx = ctx, .timeout_ms = timeout_ms, .test = test, .arg = arg};
	int rc = 0;

	if (ctx->multiple)
		meet_others(ctx, &w);
	while (ctx->multiple && ctx->polling) {
		if (test(arg))
			return 0;
		if (!timeout_ms)
			yield_poll(ctx);
		rc = timeout_ms ? wait_for_poller(ctx, deadline) : -SLMPM_ETIMEOUT;
		if (rc < 0)
			return test(arg) ? 0 : rc;
	}
	if (ctx->multiple && timeout_ms > 0) {
		w.started = w.inspected = clock_now();
		w.deadline = deadline; /* what waiting for another thread took counts */
	}
	ctx->polling = true;
	if (!timeout_ms) /* its only pass finds what has come */
		ctx->rounds = 0;
	while (!test(arg)) {
		uint32_t polls = wait_polls(&w);

		rc = progress_polling(ctx, polls) ? wait_busy(&w) : wait_idle(&w, polls);
		if (rc < 0)
			break;
	}
	if (w.idle.since)
		idle_over(ctx, &w.idle, test(arg));
	ctx->quiet = false;
	ctx->polling = false;
	if (ctx->waiting)
		pthread_cond_broadcast(&ctx->changed);
	return test(arg) ? 0 : rc;
}

int wait_until(struct context *ctx, wait_test *test, void *arg, int timeout_ms)
{
	if (UNLIKELY(ctx->handling))
		return test(arg) ? 0 : context_forbids(ctx, "waiting");
	if (ctx->armed && !ctx->sleeping)
		wait_disarm(ctx);
	return test(arg) ? 0 : wait_long(ctx, test, arg, timeout_ms);
}

struct connecting {
	const struct endpoint *ep;
	uint64_t id; /* another thread may free it */
};

static bool has_connected_or_ended(void *arg)
{
	const struct connecting *c = arg;

	return handle_id(c->ep) != c->id || c->ep->state != SLMPM_PEER_CONNECTING;
}

int wait_connected(struct endpoint *ep, int timeout_ms)
{
	struct connecting c = {ep, handle_id(ep)};

	return wait_until(ep->ctx, has_connected_or_ended, &c, timeout_ms);
}
