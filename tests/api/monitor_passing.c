/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that calls one thing now and then and waits for nothing shows others its figures all
 * the same, and where it only sends, how long a message takes. By each call, fewer times than
 * progress would need.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"

#define CALLS  900    /* direct ones look at their peers each 1024 */
#define GAP_NS 200000 /* between them */
#define SIZE   64

static slmpm_peer taker;
static slmpm_rmem theirs;
static char bytes[SIZE];

static void take_am(const struct slmpm_am *am, void *arg)
{
	(void)am, (void)arg;
}

/* Takes whatever comes, until the host closes. */
static int take(slmpm_peer host, char **words)
{
	slmpm_mem mem;
	slmpm_ctx ctx;
	void *base;

	(void)words;
	OK(slmpm_default(&ctx));
	OK(slmpm_am_handler(ctx, 1, take_am, NULL));
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	OK(slmpm_mem_share(mem, host, SLMPM_READ_WRITE, PATIENCE));
	while (slmpm_recv(host, 1, bytes, sizeof(bytes), NULL, -1) >= 0)
		;
	return 0;
}

static void by_send(void)
{
	OK(slmpm_send(taker, 1, bytes, 8, PATIENCE));
}

static void by_request(void)
{
	struct slmpm_iov iov = {bytes, 8};
	struct slmpm_done done;
	slmpm_req req;

	OK(slmpm_sendv(taker, 1, &iov, 1, NULL, &req));
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
}

static void by_burst(void)
{
	struct slmpm_iov iov[2] = {{bytes, 8}, {bytes + 8, 8}};

	EXPECT(slmpm_send_burst(taker, 1, iov, 2, PATIENCE), 2);
}

static void by_loan(void)
{
	void *loan;

	OK(slmpm_loan(taker, 1, 8, &loan, PATIENCE));
	OK(slmpm_commit(taker, loan, 8, NULL));
}

static void by_am(void)
{
	OK(slmpm_am(taker, 1, NULL, 0, bytes, 8, NULL, NULL));
}

static void by_put(void)
{
	OK(slmpm_put(theirs, 0, bytes, 8, NULL, NULL));
}

static void by_get(void)
{
	OK(slmpm_get(theirs, 0, bytes, 8, NULL, NULL));
}

static void by_atomic(void)
{
	uint64_t old;

	OK(slmpm_atomic(theirs, 0, SLMPM_FETCH_ADD, 64, 1, 0, &old, NULL, NULL));
}

static uint64_t done_on(const struct slmpm_monitor *m)
{
	uint64_t n = 0;

	for (int p = 0; p < SLMPM_PROTOCOLS; p++)
		n += m->requests[p];
	return n;
}

static void let_time_pass(void)
{
	struct timespec now;
	int64_t until = 0, ns;

	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
		until = until ? until : ns + GAP_NS;
	} while (ns < until);
}

/* What others see of it grows meanwhile. */
static void is_shown(struct slmpm_monitors *monitors, const char *name, void (*call)(void))
{
	struct slmpm_monitor m;
	uint64_t before;
	int inspections = 0;

	EXPECT(slmpm_monitors_read(monitors, 0, &m, sizeof(m)), 1);
	before = done_on(&m);
	for (int i = 0; i < CALLS && inspections < 2; i++) {
		call();
		let_time_pass();
		EXPECT(slmpm_monitors_read(monitors, 0, &m, sizeof(m)), 1);
		inspections += done_on(&m) > before;
		before = done_on(&m);
	}
	CHECK(inspections == 2, "%s: %d calls, and what others see has grown %d times", name, CALLS,
	      inspections);
}

/* A stream of short messages is measured, too; once in an eighth of SLMPM_MONITOR_MS. */
static void is_measured(void)
{
	struct slmpm_monitor m = {.size = 0};
	int64_t until = actor_now_ms() + PATIENCE;

	while (!m.timing[SLMPM_BY_SMT][0][SLMPM_WARM].latency_ns && actor_now_ms() < until) {
		for (int i = 0; i < 1000; i++)
			by_send();
		OK(slmpm_monitor(taker, &m, sizeof(m)));
	}
	CHECK(m.timing[SLMPM_BY_SMT][0][SLMPM_WARM].latency_ns, "nothing measured of %llu",
	      (unsigned long long)m.sent_messages);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"take", take}, {NULL, NULL}};
	static const struct {
		const char *name;
		void (*call)(void);
	} calls[] = {
		{"send", by_send}, {"request", by_request}, {"burst", by_burst},
		{"loan", by_loan}, {"am", by_am},           {"put", by_put},
		{"get", by_get},   {"atomic", by_atomic},
	};
	struct slmpm_monitors *monitors;

	CHECK(!setenv("SLMPM_MONITOR_MS", "100", 1), "environment");
	actor_begin(argc, argv, roles);
	taker = actor_spawn("take", NULL, NULL);
	OK(slmpm_mem_accept(taker, &theirs, PATIENCE));
	OK(slmpm_monitors_open(getpid(), &monitors));
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		is_shown(monitors, calls[i].name, calls[i].call);
	is_measured();
	slmpm_monitors_close(monitors);
	OK(slmpm_close(taker, PATIENCE));
	return 0;
}
