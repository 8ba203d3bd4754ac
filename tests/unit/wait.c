/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: deadlines and their rounding, tests that come true, one thread polling for several. */
#include <pthread.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "slmpm/link/wait.h"
#include "tests/lib/test.h"

#define MS       UINT64_C(1000000)
#define THREADS  6
#define OK(call) CHECK((call) == 0, "%s: %s", #call, slmpm_error_detail())

static slmpm_ctx open_context(uint32_t flags, uint32_t wait)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = flags, .wait = wait};
	slmpm_ctx ctx;

	OK(slmpm_open(&ctx, &o));
	return ctx;
}

static struct context *inside(slmpm_ctx handle)
{
	int rc = 0;

	return context_get(handle, &rc);
}

static void milliseconds(void)
{
	/* Rounded up: a wait that ends early would spin through the last millisecond. */
	CHECK(clock_ms(5 * MS, 5 * MS, -1) == 0, "at the deadline");
	CHECK(clock_ms(6 * MS, 5 * MS, -1) == 0, "past it");
	CHECK(clock_ms(5 * MS, 5 * MS + 1, -1) == 1, "a nanosecond");
	CHECK(clock_ms(5 * MS, 6 * MS, -1) == 1, "a millisecond");
	CHECK(clock_ms(5 * MS, 6 * MS + 1, -1) == 2, "a little more");
	CHECK(clock_ms(0, UINT64_MAX, -1) == -1, "none");
	CHECK(clock_ms(0, UINT64_MAX, 7) == 7, "none, bounded");
	CHECK(clock_ms(0, 100 * MS, 7) == 7, "bounded");
	CHECK(clock_ms(0, 3 * MS, 7) == 3, "below the bound");
	CHECK(clock_ms(0, UINT64_MAX - 1, -1) == INT_MAX, "too far for an int");
	CHECK(clock_deadline(-1) == UINT64_MAX, "no deadline");
	CHECK(clock_deadline(-1000) == UINT64_MAX, "any negative number");
	CHECK(clock_deadline(INT_MAX) > clock_now(), "a long one");
	CHECK(clock_now() > 0 && clock_deadline(0) <= clock_now(), "at once");
}

struct flag {
	bool set;
	int asked;
};

static bool is_set(void *arg)
{
	struct flag *f = arg;

	f->asked++;
	return f->set;
}

/* Takes its time. */
static bool is_slow(void *arg)
{
	(void)arg;
	usleep(40000);
	return false;
}

/* How much later than its deadline a sleep ends that such a test precedes. */
static uint64_t late_by(struct context *ctx)
{
	uint64_t deadline = clock_now() + 200 * MS, now;

	while ((now = clock_now()) < deadline)
		(void)wait_sleep(ctx, now, deadline, is_slow, NULL);
	return now - deadline;
}

/* What is done first shortens it. */
static void slow_tests(void)
{
	slmpm_ctx handle = open_context(0, SLMPM_WAIT_BLOCK);
	struct context *ctx = inside(handle);
	uint64_t least = UINT64_MAX;

	context_lock(ctx);
	for (int i = 0; i < 5 && least > 30 * MS; i++) { /* others may have the processor */
		uint64_t late = late_by(ctx);

		least = late < least ? late : least;
	}
	context_unlock(ctx);
	CHECK(least < 30 * MS, "too late by %llu ns", (unsigned long long)least);
	OK(slmpm_shut(handle, 0));
}

static void deadlines(uint32_t flags, uint32_t how)
{
	slmpm_ctx handle = open_context(flags, how);
	struct context *ctx = inside(handle);
	struct flag f = {.set = false};
	uint64_t begin;

	context_lock(ctx);
	CHECK(wait_until(ctx, is_set, &f, 0) == -SLMPM_ETIMEOUT && f.asked, "one try");
	begin = clock_now();
	CHECK(wait_until(ctx, is_set, &f, 20) == -SLMPM_ETIMEOUT, "20 ms");
	CHECK(clock_now() - begin >= 20 * MS, "too early by %llu ns",
	      (unsigned long long)(20 * MS - (clock_now() - begin)));
	CHECK(clock_now() - begin < 2000 * MS, "much too late");
	f.set = true;
	f.asked = 0;
	CHECK(wait_until(ctx, is_set, &f, 0) == 0 && f.asked, "true at once");
	CHECK(wait_until(ctx, is_set, &f, -1) == 0, "true at once, without a deadline");
	context_unlock(ctx);
	CHECK(ctx->count == 0 && !ctx->polling && !ctx->sleeping, "state left behind");
	OK(slmpm_shut(handle, 0));
}

/* ---- beside somebody who computes ------------------------------------------------------------ */

static void *compute(void *arg)
{
	atomic_bool *stop = arg;

	while (!atomic_load_explicit(stop, memory_order_relaxed))
		;
	return NULL;
}

/* Who gets his whole turn for each yield is not yielded to again and again: the wait sleeps, long
 * before it would otherwise. */
static void beside_a_computation(void)
{
	slmpm_ctx handle = open_context(0, SLMPM_WAIT_ADAPTIVE);
	struct context *ctx = inside(handle);
	struct flag f = {.set = false};
	atomic_bool stop = false;
	cpu_set_t before, one;
	pthread_t thread;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0, "affinity");
	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one)) /* not under every emulator */
		goto end;
	CHECK(pthread_create(&thread, NULL, compute, &stop) == 0, "thread");
	ctx->spin.fixed = UINT64_MAX - 1;
	context_lock(ctx);
	for (int i = 0; i < 400 && !ctx->sleeps; i++)
		CHECK(wait_until(ctx, is_set, &f, 50) == -SLMPM_ETIMEOUT, "50 ms");
	context_unlock(ctx);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	CHECK(ctx->preempted && ctx->sleeps, "it has yielded all the time");
	CHECK(sched_setaffinity(0, sizeof(before), &before) == 0, "affinity");
end:
	OK(slmpm_shut(handle, 0));
}

/* ---- several threads ------------------------------------------------------------------------ */

static slmpm_ctx shared;
static struct flag flags[THREADS];
static _Atomic int through;

/* An operation of a group goes on in each pass, and does not end. */
static bool moves_on(void *arg)
{
	struct context *ctx = arg;

	ctx->moved = true;
	ctx->preempted = 0; /* others may compute here */
	return false;
}

/* What is waited for each time is another thing, and comes soon: that is no long wait. */
static void the_next_piece_is_another_wait(void)
{
	slmpm_ctx handle = open_context(0, SLMPM_WAIT_ADAPTIVE);
	struct context *ctx = inside(handle);

	spin_init(&ctx->spin, MS);
	CHECK(wait_until(ctx, moves_on, ctx, 10) == -SLMPM_ETIMEOUT, "10 ms");
	CHECK(ctx->sleeps == 0, "it slept %llu times", (unsigned long long)ctx->sleeps);
	OK(slmpm_shut(handle, 0));
}

static void *await_flag(void *arg)
{
	struct flag *f = arg;
	struct context *ctx = inside(shared);
	int rc;

	context_lock(ctx);
	rc = wait_until(ctx, is_set, f, 30000);
	CHECK(rc == 0 && f->set, "it did not come true: %d", rc);
	context_unlock(ctx);
	atomic_fetch_add(&through, 1);
	return NULL;
}

/* What a thread changes and tells is seen by who polls asleep and by who waits for that one. */
static void one_polls_for_all(uint32_t how)
{
	struct context *ctx;
	pthread_t threads[THREADS];

	shared = open_context(SLMPM_THREADS, how);
	ctx = inside(shared);
	atomic_store(&through, 0);
	memset(flags, 0, sizeof(flags));
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, await_flag, &flags[i]) == 0, "thread");
	for (int i = 0; i < THREADS; i++) {
		uint64_t begin = clock_now();

		/* Some of them first time round while all are still on their way to sleep. */
		if (i % 2)
			usleep(20000);
		context_lock(ctx);
		flags[i].set = true;
		context_changed(ctx);
		context_unlock(ctx);
		while (atomic_load(&through) <= i) {
			CHECK(clock_now() - begin < 10000 * MS, "thread %d sleeps on", i);
			usleep(100);
		}
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(!ctx->polling && !ctx->waiting && !ctx->sleeping, "state left behind");
	OK(slmpm_shut(shared, 0));
}

static void *shorter(void *arg)
{
	struct context *ctx = inside(shared);
	struct flag f = {.set = false};
	uint64_t begin = clock_now();

	(void)arg;
	context_lock(ctx);
	CHECK(wait_until(ctx, is_set, &f, 50) == -SLMPM_ETIMEOUT, "no deadline behind another");
	context_unlock(ctx);
	CHECK(clock_now() - begin >= 50 * MS && clock_now() - begin < 5000 * MS,
	      "its own deadline");
	return NULL;
}

/* Each keeps its own deadline, whoever polls. */
static void own_deadlines(void)
{
	pthread_t longer, others[3];

	shared = open_context(SLMPM_THREADS, SLMPM_WAIT_BLOCK);
	memset(flags, 0, sizeof(flags));
	CHECK(pthread_create(&longer, NULL, await_flag, &flags[0]) == 0, "thread");
	usleep(20000);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&others[i], NULL, shorter, NULL) == 0, "thread");
	for (int i = 0; i < 3; i++)
		pthread_join(others[i], NULL);
	context_lock(inside(shared));
	flags[0].set = true;
	context_changed(inside(shared));
	context_unlock(inside(shared));
	pthread_join(longer, NULL);
	OK(slmpm_shut(shared, 0));
}

/* ---- the descriptor ------------------------------------------------------------------------- */

/* Armed with nothing there it is silent; a connection makes it readable and arm says 1. */
static void the_descriptor(void)
{
	slmpm_ctx handle = open_context(0, 0), other = open_context(0, 0);
	struct pollfd p = {.fd = slmpm_fd(handle), .events = POLLIN};
	slmpm_listener listener;
	slmpm_peer a, b;
	char url[64];

	CHECK(p.fd >= 0 && slmpm_fd(handle) == p.fd, "descriptor");
	CHECK(slmpm_arm(handle) == 0 && poll(&p, 1, 0) == 0, "idle");
	snprintf(url, sizeof(url), "shm:unit-wait-%d", (int)getpid());
	OK(slmpm_listen(&listener, handle, url));
	CHECK(slmpm_arm(handle) == 0 && poll(&p, 1, 0) == 0, "listening, idle");
	/* Its own other end does not look, so this ends at its deadline, in doubt of nothing. */
	CHECK(slmpm_connect(&a, other, url, 20) == -SLMPM_ETIMEOUT, "connected to a sleeper");
	CHECK(poll(&p, 1, 1000) == 1, "not woken");
	CHECK(slmpm_arm(handle) == 1, "nothing to do");
	CHECK(slmpm_accept(listener, &b, 0) == -SLMPM_EAGAIN, "accepted who had gone");
	OK(slmpm_unlisten(listener));
	while (slmpm_arm(handle) == 1)
		(void)slmpm_progress(handle);
	CHECK(poll(&p, 1, 0) == 0, "readable for nothing");
	OK(slmpm_shut(other, 0));
	OK(slmpm_shut(handle, 0));
}

int main(void)
{
	milliseconds();
	slow_tests();
	for (uint32_t how = SLMPM_WAIT_ADAPTIVE; how <= SLMPM_WAIT_BLOCK; how++) {
		deadlines(0, how);
		deadlines(SLMPM_THREADS, how);
		one_polls_for_all(how);
	}
	beside_a_computation();
	the_next_piece_is_another_wait();
	own_deadlines();
	the_descriptor();
	return 0;
}
