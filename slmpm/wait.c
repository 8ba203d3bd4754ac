/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a call waits. Spinning comes first, for the peer usually answers at once; then yielding,
 * which is all that helps when processes outnumber processors; then sleep, which needs a bell.
 */
#include "slmpm/wait_sleep.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <time.h>

#include "slmpm/domain.h"
#include "slmpm/error.h"
#include "slmpm/link/progress.h"

#define SPINS     64     /* passes before the clock is looked at */
#define LOOK_NS   200000 /* between looks at the descriptors while spinning */
#define SWITCH_NS 2500   /* a yield that took longer let somebody else run */
#define CROWDED   64     /* waits that begin with a yield after one that did */
#define SLICE_NS  500000 /* one that took longer let somebody compute, who gives nothing back: */
#define LITTLE_NS (UINT64_C(5) << 20) /* ... so long sleep instead; if it happens right after */
#define MOST_NS   (32 * LITTLE_NS)    /* ... that, twice as long, to so long */
#define BUSY      64                  /* passes with result between looks at the deadline */

struct waiter {
	struct context *ctx;
	int timeout_ms;
	uint32_t turns;   /* passes that found nothing */
	uint32_t busy;    /* and that found something, since the last look at the clock */
	uint64_t started; /* 0: the clock has not been looked at yet */
	uint64_t idle;    /* since when there has been nothing; 0: it has not since then */
	uint64_t spin;    /* so long it polls from then on */
	bool slept;
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

/* ---- spinning and yielding ------------------------------------------------------------------ */

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

/* Who wakes from a sleep has his turn at once. */
static void robbed(struct context *ctx, uint64_t now, uint64_t back)
{
	bool again = now - ctx->robbed < ctx->robbed_ns;

	ctx->robbed_ns = again ? 2 * ctx->robbed_ns : LITTLE_NS;
	if (ctx->robbed_ns > MOST_NS)
		ctx->robbed_ns = MOST_NS;
	ctx->robbed = back + ctx->robbed_ns;
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
	if (back - now > SLICE_NS && !ctx->port) /* an engine's thread does compute for us */
		robbed(ctx, now, back);
	if (back - now > SWITCH_NS)
		ctx->crowded = CROWDED;
	else if (ctx->crowded)
		ctx->crowded--;
	(void)look_if_due(w, back);
}

/* Something has come, for the first time since w->idle; or nothing has, and the wait is over. */
static void idle_ends(struct waiter *w, bool met)
{
	uint64_t now = wait_now();
	struct spin_wait wait = {.took = now - w->idle,
				 .bells = domain_bells(w->ctx),
				 .met = met,
				 .asleep = w->slept};

	spin_end(&w->ctx->spin, now, &wait);
	w->idle = 0;
	w->slept = false;
}

/* After a pass that found something: traffic of others must not put the deadline off. */
static int wait_busy(struct waiter *w)
{
	w->turns = 0;
	if (w->idle) /* what comes next may follow at once */
		idle_ends(w, true);
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
	if (w->turns == 0)
		ctx->spin.quick++;
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
	if (!w->idle) {
		w->idle = now;
		w->spin = spin_begin(&ctx->spin, now, domain_bells(ctx));
	}
	if (ctx->wait == SLMPM_WAIT_SPIN && !ctx->crowded && !ctx->multiple)
		relax();
	else if (ctx->wait == SLMPM_WAIT_SPIN || (ctx->wait == SLMPM_WAIT_ADAPTIVE &&
						  now - w->idle < w->spin && now >= ctx->robbed)) {
		yield(w, now);
	} else {
		w->slept = true;
		wait_sleep(ctx, now, w->deadline, w->test, w->arg);
	}
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
	if (w.idle)
		idle_ends(&w, test(arg));
	ctx->polling = false;
	if (ctx->waiting)
		pthread_cond_broadcast(&ctx->changed);
	return test(arg) ? 0 : rc;
}
