/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue within one process: a chain of entries that depend on each other, run by the call and by
 * the engine's thread; the chain armed again; from slmpm_post until the entry has begun.
 */
#include <pthread.h>
#include <slmpm.h>
#include <slmpm_queue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/stats.h"
#include "tests/bench/work.h"

enum { ENTRIES = 1000, RUNS = 200, THREAD_RUNS = 40, BEGINNINGS = 60, PATIENCE_MS = 5000 };
enum { MAIN, OTHER, RECEIVES, CHANNELS };

#define ASIDE_NS 3000000.0 /* the engine's thread is back by then from where a call has sent it */
/* Between posts: it spins again by then; ... */
#define PAUSE_NS 20000.0
/* ... or sleeps. In so long a time most processors of virtual machines have been interrupted, and
 * come back with cold caches, which is not the engine's doing. */
#define SLEEP_NS 100000.0

static const char *wait_mode;

static slmpm_ctx ctx;
static slmpm_ctr there, back;
static slmpm_wq chain;

static void open_context(const char *engine, const char *wait)
{
	setenv("SLMPM_ENGINE", engine, 1);
	setenv("SLMPM_WAIT", wait, 1);
	bind_to_both();
	ok(slmpm_open(&ctx, NULL), "slmpm_open");
	ok(slmpm_ctr_create(ctx, &there), "slmpm_ctr_create");
	ok(slmpm_ctr_create(ctx, &back), "slmpm_ctr_create");
}

static slmpm_wq queue_of(uint32_t depth, uint32_t flags)
{
	struct slmpm_wq_options o = {.size = sizeof o, .flags = flags, .depth = depth};
	slmpm_wq wq;

	o.channels = CHANNELS;
	ok(slmpm_cq_create(ctx, &o.cq), "slmpm_cq_create");
	ok(slmpm_wq_create(ctx, &o, &wq), "slmpm_wq_create");
	return wq;
}

static void post(slmpm_wq wq, struct slmpm_wr wr)
{
	wr.size = sizeof wr;
	wr.flags |= SLMPM_SILENT;
	ok(slmpm_post(wq, &wr, 1), "slmpm_post");
}

/* COUNT or WAIT, by one. */
static struct slmpm_wr step(uint32_t op, uint32_t channel, slmpm_ctr ctr)
{
	return (struct slmpm_wr){.size = sizeof(struct slmpm_wr),
				 .op = op,
				 .flags = SLMPM_RELATIVE | SLMPM_SILENT,
				 .channel = channel,
				 .ctr = ctr,
				 .value = 1};
}

/* Four in one call: a count that came before its WAIT is posted would not be waited for. */
static void post_chain(slmpm_wq wq)
{
	const struct slmpm_wr turn[] = {step(SLMPM_OP_COUNT, MAIN, there),
					step(SLMPM_OP_WAIT, OTHER, there),
					step(SLMPM_OP_COUNT, OTHER, back),
					step(SLMPM_OP_WAIT, MAIN, back)};

	for (int i = 0; i < ENTRIES / 4; i++)
		ok(slmpm_post(wq, turn, 4), "slmpm_post");
}

static bool one_process(void (*body)(int number), double *ns)
{
	bool well = run_processes(1, body);

	*ns = common->result[0];
	return well;
}

/* ---- by the call ---------------------------------------------------------------------------- */

static void run_inline(int number)
{
	double taken[RUNS];

	(void)number;
	open_context("none", "spin");
	bind_to(cpus[0]);
	chain = queue_of(ENTRIES, SLMPM_WQ_KEPT);
	post_chain(chain);
	ok(slmpm_wq_drain(chain, PATIENCE_MS), "slmpm_wq_drain");
	for (int i = 0; i < RUNS; i++) {
		double begin = now_ns();

		ok(slmpm_wq_arm(chain), "slmpm_wq_arm");
		ok(slmpm_wq_drain(chain, PATIENCE_MS), "slmpm_wq_drain");
		taken[i] = (now_ns() - begin) / ENTRIES;
	}
	common->result[0] = median(taken, RUNS);
}

bool chain_inline(double *entry_ns)
{
	return one_process(run_inline, entry_ns);
}

/* ---- by the thread --------------------------------------------------------------------------- */

/* A message from another context of this process begins it, one back says that it has ended: in
 * between no call of this thread is in the context whose queue it is. */
struct called {
	slmpm_wq wq;
	slmpm_ctr came;
	uint32_t stream;
	char byte;
};

static slmpm_ctx outside;
static slmpm_peer caller, callee; /* this thread's end, and the queue's */
static char url[48];

static void *connect_outside(void *unused)
{
	ok(slmpm_connect(&caller, outside, url, PATIENCE_MS), "slmpm_connect");
	return unused;
}

static void make_pair(void)
{
	slmpm_listener listener;
	pthread_t thread;

	ok(slmpm_open(&outside, NULL), "slmpm_open");
	snprintf(url, sizeof url, "shm:work-%d", (int)getpid());
	ok(slmpm_listen(&listener, ctx, url), "slmpm_listen");
	if (pthread_create(&thread, NULL, connect_outside, NULL))
		_exit(1);
	ok(slmpm_accept(listener, &callee, PATIENCE_MS), "slmpm_accept");
	pthread_join(thread, NULL);
}

static void post_message(const struct called *c, uint32_t op, uint32_t channel, slmpm_ctr ctr)
{
	const struct slmpm_iov iov = {(void *)(uintptr_t)&c->byte, 1};

	post(c->wq, (struct slmpm_wr){.op = op,
				      .channel = channel,
				      .peer = callee,
				      .stream = c->stream,
				      .iov = &iov,
				      .iov_count = 1,
				      .ctr = ctr});
}

static void make_called(struct called *c, uint32_t stream, bool with_chain)
{
	c->stream = stream;
	ok(slmpm_ctr_create(ctx, &c->came), "slmpm_ctr_create");
	c->wq = queue_of(ENTRIES + 3, SLMPM_WQ_KEPT);
	post_message(c, SLMPM_OP_RECV, RECEIVES, c->came);
	post(c->wq, step(SLMPM_OP_WAIT, MAIN, c->came));
	if (with_chain)
		post_chain(c->wq);
	post_message(c, SLMPM_OP_SEND, MAIN, (slmpm_ctr){0});
}

static double call(struct called *c)
{
	double begin;
	char byte = 1;

	busy_ns(ASIDE_NS);
	begin = now_ns();
	ok(slmpm_send(caller, c->stream, &byte, 1, PATIENCE_MS), "slmpm_send");
	ok(slmpm_recv(caller, c->stream, &byte, 1, NULL, PATIENCE_MS), "slmpm_recv");
	begin = now_ns() - begin;
	ok(slmpm_wq_drain(c->wq, PATIENCE_MS), "slmpm_wq_drain");
	ok(slmpm_wq_arm(c->wq), "slmpm_wq_arm");
	return begin;
}

/* Of all that has begun in the queue, 0 to 1. */
static double share_of_engine(slmpm_wq wq)
{
	struct slmpm_wq_info info = {.size = sizeof info};

	ok(slmpm_wq_query(wq, &info), "slmpm_wq_query");
	return (double)info.by_engine / (double)info.begun;
}

static void run_by_thread(int number)
{
	static struct called with, without;
	double taken[THREAD_RUNS];

	(void)number;
	open_context("thread", "spin");
	make_pair();
	bind_to(cpus[0]); /* the thread, which the first queue starts, has the other one */
	make_called(&with, 0, true);
	make_called(&without, 1, false);
	for (int i = 0; i < THREAD_RUNS; i++) {
		taken[i] = call(&with);
		taken[i] = (taken[i] - call(&without)) / ENTRIES;
	}
	common->result[0] = median(taken, THREAD_RUNS);
	common->result[1] = share_of_engine(with.wq);
}

bool chain_by_thread(double *entry_ns, double *by_engine)
{
	bool well = one_process(run_by_thread, entry_ns);

	*by_engine = common->result[1];
	return well;
}

/* ---- running again --------------------------------------------------------------------------- */

static void run_arming(int number)
{
	double taken[RUNS];
	slmpm_wq wq;

	(void)number;
	open_context("none", "spin");
	bind_to(cpus[0]);
	wq = queue_of(ENTRIES, SLMPM_WQ_KEPT | SLMPM_WQ_MANAGED);
	post_chain(wq);
	for (uint64_t i = 0; i < RUNS; i++) {
		double begin;

		ok(slmpm_wq_enable(wq, (i + 1) * ENTRIES), "slmpm_wq_enable");
		ok(slmpm_wq_drain(wq, PATIENCE_MS), "slmpm_wq_drain");
		begin = now_ns();
		ok(slmpm_wq_arm(wq), "slmpm_wq_arm"); /* of entries that are disabled */
		taken[i] = now_ns() - begin;
	}
	common->result[0] = median(taken, RUNS);
}

bool arming(double *ns)
{
	return one_process(run_arming, ns);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static bool has_counted(slmpm_ctr ctr, uint64_t done)
{
	struct slmpm_ctr_info info = {.size = sizeof info};

	ok(slmpm_ctr_query(ctr, &info), "slmpm_ctr_query");
	return info.done >= done;
}

/* When it is seen that DONE have been counted: by the call that has just returned, or later. */
static double when_counted(slmpm_ctr ctr, uint64_t done)
{
	double now = now_ns();

	while (!has_counted(ctr, done))
		now = now_ns();
	return now;
}

/* What is posted counts. A WAIT for what never comes keeps the engine's thread in the context. */
static void run_beginning(int number)
{
	double taken[BEGINNINGS], pause = strcmp(wait_mode, "spin") == 0 ? PAUSE_NS : SLEEP_NS;
	slmpm_wq wq;

	(void)number;
	open_context("thread", wait_mode);
	bind_to(cpus[0]); /* as above */
	wq = queue_of(BEGINNINGS + 1, 0);
	post(wq, step(SLMPM_OP_WAIT, OTHER, back));
	busy_ns(ASIDE_NS);
	for (uint64_t i = 0; i < BEGINNINGS; i++) {
		double begin;

		busy_ns(pause);
		begin = now_ns();
		post(wq, step(SLMPM_OP_COUNT, MAIN, there));
		taken[i] = when_counted(there, i + 1) - begin;
	}
	common->result[0] = median(taken, BEGINNINGS);
	common->result[1] = share_of_engine(wq);
}

bool beginning(const char *wait, double *ns, double *by_engine)
{
	bool well;

	wait_mode = wait;
	well = one_process(run_beginning, ns);
	*by_engine = common->result[1];
	return well;
}
