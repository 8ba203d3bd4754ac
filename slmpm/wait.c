/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a call waits. Spinning comes first, for the peer usually answers at once; then yielding,
 * which is all that helps when processes outnumber processors; then sleep, which needs a bell.
 *
 * The order around the sleep: announce it to the peers (and pay for the barrier), look at the rings
 * once more, sleep. A peer that commits after the look sees the announcement and rings.
 */
#include "slmpm/wait.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "slmpm/bootstrap.h"
#include "slmpm/bulk.h"
#include "slmpm/engine.h"
#include "slmpm/error.h"
#include "slmpm/listener.h"
#include "slmpm/process.h"
#include "slmpm/progress.h"

#define SPINS     64     /* passes before the clock is looked at */
#define LOOK_NS   200000 /* between looks at the descriptors while spinning */
#define SWITCH_NS 2500   /* a yield that took longer let somebody else run */
#define CROWDED   64     /* waits that begin with a yield after one that did */
#define BUSY      64     /* passes with result between looks at the deadline */
#define EVENTS    16

struct waiter {
	struct context *ctx;
	int timeout_ms;
	uint32_t turns;   /* passes that found nothing */
	uint32_t busy;    /* and that found something, since the last look at the clock */
	uint64_t started; /* 0: the clock has not been looked at yet */
	uint64_t deadline;
	uint64_t looked;         /* at the descriptors */
	bool (*test)(void *arg); /* what is waited for */
	void *arg;
};

uint64_t wait_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t wait_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : wait_now() + (uint64_t)timeout_ms * 1000000;
}

int wait_ms(uint64_t now, uint64_t deadline, int longest)
{
	uint64_t ms;

	if (deadline == UINT64_MAX)
		return longest;
	ms = deadline > now ? (deadline - now - 1) / 1000000 + 1 : 0;
	if (ms > INT_MAX)
		ms = INT_MAX;
	return longest >= 0 && (uint64_t)longest < ms ? longest : (int)ms;
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void wait_relax(uint64_t ns)
{
	uint64_t until = wait_now() + ns;

	do {
		for (int i = 0; i < 4; i++)
			relax();
	} while (wait_now() < until);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

static void dispatch(struct context *ctx, struct watch *w)
{
	uint64_t count;

	switch (w->kind) {
	case WATCH_SOCKET: bootstrap_socket_ready(w->owner); break;
	case WATCH_PROCESS: bootstrap_process_ended(w->owner); break;
	case WATCH_LISTENER: listener_ready(w->owner); break;
	case WATCH_ENGINE: engine_rung(w->owner); break;
	case WATCH_KICK: (void)!read(ctx->kick, &count, sizeof(count)); break;
	}
}

/* Who ends by one of them may have another: nobody is freed in between. */
static void dispatch_all(struct context *ctx, struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++)
		dispatch(ctx, events[i].data.ptr);
	if (UNLIKELY(ctx->refused))
		listener_forget_refused(ctx);
}

/* Those that no call waits for: the next, 0 when one has just passed. */
static uint64_t inner_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t a = bootstrap_deadlines(ctx, now), b = listener_deadlines(ctx, now);

	return a < b ? a : b;
}

/* Descriptors and deadlines: how many had something to say. */
static int look(struct context *ctx)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(ctx->epoll, events, EVENTS, 0);

	dispatch_all(ctx, events, n);
	n = n < 0 ? 0 : n;
	if ((ctx->paused || !list_empty(&ctx->deadlines)) && !inner_deadlines(ctx, wait_now()))
		n++;
	return n;
}

int wait_look(struct context *ctx)
{
	/* Another thread's: a bell taken here would not wake it. A handler's caller looks later. */
	if (ctx->sleeping || ctx->handling)
		return 0;
	process_kill_due(ctx);
	return look(ctx);
}

/* ---- sleeping ------------------------------------------------------------------------------- */

void wait_arm(struct context *ctx)
{
	ctx->armed = true;
	for (uint32_t i = 0; i < ctx->count; i++)
		if (ctx->endpoints[i]->state == SLMPM_PEER_UP)
			progress_settle(ctx->endpoints[i]);
	if (ctx->domain)
		ctx->domain->fabric->arm(ctx->domain, true);
	for (uint32_t i = 0; i < ctx->count; i++)
		endpoint_stats(ctx->endpoints[i]);
}

void wait_disarm(struct context *ctx)
{
	ctx->armed = false;
	if (ctx->domain)
		ctx->domain->fabric->arm(ctx->domain, false);
}

void wait_wake(struct context *ctx)
{
	static const uint64_t one = 1;

	if (ctx->waiting)
		pthread_cond_broadcast(&ctx->changed);
	if (ctx->sleeping && ctx->kick >= 0)
		(void)!write(ctx->kick, &one, sizeof(one));
}

/* Is there something to do although nobody has rung? What came before the announcement has not. */
static bool has_work(struct context *ctx, wait_test *test, void *arg)
{
	if (progress_context(ctx) || test(arg))
		return true;
	wait_changed(ctx); /* and those behind us test for themselves */
	return false;
}

static void sleep_until(struct context *ctx, uint64_t now, uint64_t deadline, wait_test *test,
			void *arg)
{
	struct epoll_event events[EVENTS];
	uint64_t until = inner_deadlines(ctx, now), kill = process_kill_due(ctx);
	int n;

	if (ctx->rung) { /* take the bells out now, when nobody waits for us */
		ctx->rung = false;
		(void)look(ctx);
		until = inner_deadlines(ctx, now);
	}
	until = deadline < until ? deadline : until;
	until = kill < until ? kill : until;
	wait_arm(ctx);
	if (has_work(ctx, test, arg)) {
		wait_disarm(ctx);
		return;
	}
	ctx->sleeps++;
	ctx->sleeping = true;
	context_unlock(ctx);
	n = epoll_wait(ctx->epoll, events, EVENTS, wait_ms(now, until, -1));
	context_lock(ctx);
	ctx->sleeping = false;
	wait_disarm(ctx);
	/* The message first: what rang is only the bell. */
	if (n > 0 && progress_context(ctx))
		ctx->rung = true;
	else if (n > 0 && ctx->multiple) /* another thread may have closed what they point at */
		(void)look(ctx);
	else
		dispatch_all(ctx, events, n);
	wait_changed(ctx);
}

/* The time runs from the first look at the clock. */
static bool is_late(struct waiter *w, uint64_t now)
{
	if (!w->started) {
		w->started = w->looked = now;
		w->deadline =
			w->timeout_ms < 0 ? UINT64_MAX : now + (uint64_t)w->timeout_ms * 1000000;
	}
	return now >= w->deadline;
}

/* At the descriptors, which passes over the rings do not see. */
static int look_if_due(struct waiter *w, uint64_t now)
{
	if (now - w->looked <= LOOK_NS)
		return 0;
	w->looked = now;
	wait_changed(w->ctx); /* room in a ring comes without a word */
	return wait_look(w->ctx);
}

/*
 * A yield that lets somebody run shows that processors are short: from then on yield first. Where
 * each wait is one long yield, neither its time nor its passes would ever come to a look.
 */
static void yield(struct waiter *w, uint64_t now)
{
	struct context *ctx = w->ctx;
	uint64_t back;

	context_unlock(ctx);
	sched_yield();
	context_lock(ctx);
	back = wait_now();
	if (back - now > SWITCH_NS)
		ctx->crowded = CROWDED;
	else if (ctx->crowded)
		ctx->crowded--;
	(void)look_if_due(w, back);
}

/* After a pass that found something: traffic of others must not put the deadline off. */
static int wait_busy(struct waiter *w)
{
	w->turns = 0;
	if (++w->busy < BUSY)
		return 0;
	w->busy = 0;
	if (w->ctx->multiple) { /* nor keep others from the context */
		context_unlock(w->ctx);
		sched_yield();
		context_lock(w->ctx);
	}
	return !w->timeout_ms || is_late(w, wait_now()) ? -SLMPM_ETIMEOUT : 0;
}

/* After a pass that found nothing; the context's lock may be given back meanwhile. */
static int wait_idle(struct waiter *w)
{
	struct context *ctx = w->ctx;
	uint64_t now;

	if (!w->timeout_ms)
		return -SLMPM_ETIMEOUT;
	if (++w->turns < SPINS && !ctx->crowded && ctx->wait != SLMPM_WAIT_BLOCK &&
	    !ctx->multiple) {
		relax();
		return 0;
	}
	now = wait_now();
	if (is_late(w, now)) {
		(void)look_if_due(w, now); /* others may have had the processor all the time */
		return -SLMPM_ETIMEOUT;
	}
	if (look_if_due(w, now))
		return 0;
	if (ctx->helped) { /* a share of a put: the next one may follow at once */
		ctx->helped = false;
		w->started = now;
	}
	if (ctx->wait == SLMPM_WAIT_SPIN && !ctx->crowded && !ctx->multiple)
		relax();
	else if (ctx->wait == SLMPM_WAIT_SPIN ||
		 (ctx->wait == SLMPM_WAIT_ADAPTIVE && now - w->started < ctx->spin_ns))
		yield(w, now);
	else
		sleep_until(ctx, now, w->deadline, w->test, w->arg);
	return 0;
}

/* ---- waiting for something ------------------------------------------------------------------ */

/* Until another thread, which polls, has changed something. */
static int await_poller(struct context *ctx, uint64_t deadline)
{
	int rc;

	ctx->waiting++;
	if (deadline == UINT64_MAX) {
		rc = pthread_cond_wait(&ctx->changed, &ctx->lock);
	} else {
		struct timespec t = {
			.tv_sec = (time_t)(deadline / 1000000000),
			.tv_nsec = (long)(deadline % 1000000000),
		};
		rc = pthread_cond_timedwait(&ctx->changed, &ctx->lock, &t);
	}
	ctx->waiting--;
	return rc == ETIMEDOUT ? -SLMPM_ETIMEOUT : 0;
}

int wait_in_handler(const char *call)
{
	return error_set(SLMPM_ESTATE, "%s: it would block inside a handler", call);
}

int wait_until(struct context *ctx, wait_test *test, void *arg, int timeout_ms)
{
	uint64_t deadline = ctx->multiple ? wait_deadline(timeout_ms) : 0;
	struct waiter w = {.ctx = ctx, .timeout_ms = timeout_ms, .test = test, .arg = arg};
	int rc = 0;

	if (UNLIKELY(ctx->handling))
		return test(arg) ? 0 : wait_forbidden(ctx, "waiting");
	if (ctx->armed && !ctx->sleeping)
		wait_disarm(ctx);
	if (ctx->multiple && ctx->polling && !test(arg))
		/* Who polls may sleep: what we have staged goes now, and who only tries has looked. */
		(void)progress_context(ctx);
	while (ctx->multiple && ctx->polling) {
		if (test(arg))
			return 0;
		rc = timeout_ms ? await_poller(ctx, deadline) : -SLMPM_ETIMEOUT;
		if (rc < 0)
			return test(arg) ? 0 : rc;
	}
	if (ctx->multiple && timeout_ms) {
		w.started = w.looked = wait_now();
		w.deadline = deadline; /* what waiting for another thread took counts */
	}
	ctx->polling = true;
	while (!test(arg)) {
		rc = progress_context(ctx) ? wait_busy(&w) : wait_idle(&w);
		if (rc < 0)
			break;
	}
	ctx->polling = false;
	if (UNLIKELY(ctx->pulls))
		bulk_rest_all(ctx);
	if (ctx->waiting)
		pthread_cond_broadcast(&ctx->changed);
	return test(arg) ? 0 : rc;
}

int slmpm_fd(slmpm_ctx handle)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);

	return ctx ? ctx->epoll : rc;
}

int slmpm_arm(slmpm_ctx handle)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);

	if (!ctx)
		return rc;
	context_lock(ctx);
	ctx->news |= wait_look(ctx) > 0; /* takes the bells out, which have done their work */
	/* A bell taken since has used that announcement up; that of a sleeping thread stands. */
	if (ctx->armed && !ctx->sleeping)
		wait_disarm(ctx);
	wait_arm(ctx);
	(void)progress_context(ctx);
	rc = ctx->news || bootstrap_hung_up(ctx); /* a deadline that the descriptor does not show */
	ctx->news = false;
	if (rc && !ctx->sleeping)
		wait_disarm(ctx);
	context_unlock(ctx);
	return rc;
}
