/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads: many in one context, where one polls for all, peers come and go and are closed under
 * those that wait; and a context for each thread. SLMPM_TEST_SECONDS says for how long.
 */
#include <poll.h>
#include <pthread.h>
#include <slmpm.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define WORKERS  8
#define PEERS    3
#define ROUNDS   12
#define LONG     ((size_t)100000)
#define MS       30000
#define SILENT   5000u /* streams on which nothing ever comes */
#define OK(call) CHECK((call) == 0, "%s: %s", #call, slmpm_error_detail())

static slmpm_ctx shared;
static slmpm_peer peers[PEERS];
static _Atomic bool stop;
static _Atomic uint64_t echoes, visitors;
static uint64_t seed;

/* Sends back what comes, until the end. */
static int echo(void)
{
	static unsigned char buf[LONG];
	struct slmpm_done done;
	slmpm_peer host;
	int64_t n;

	if (slmpm_parent(&host) < 0)
		return 1; /* closed too early; who wants it to last sees the exit status */
	while ((n = slmpm_recv(host, SLMPM_ANY_STREAM, buf, sizeof(buf), &done, -1)) >= 0)
		if (slmpm_send(host, done.stream, buf, (size_t)n, -1) < 0)
			break;
	return n == -SLMPM_ECLOSED || n >= 0 ? 0 : 1;
}

static slmpm_peer start(slmpm_ctx ctx)
{
	struct slmpm_spawn_options o = {
		.size = sizeof(o), .ctx = ctx, .flags = SLMPM_SPAWN_DIE_WITH_HOST};
	slmpm_peer peer;

	OK(slmpm_spawn(&peer, "/proc/self/exe", NULL, &o));
	return peer;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- one context, many threads -------------------------------------------------------------- */

struct worker {
	struct rng rng;
	uint32_t stream; /* its own: what comes there is what it sent */
	slmpm_peer peer;
	unsigned char *out, *in;
	size_t n;
};

static void fill(struct worker *w)
{
	w->n = rng_one_in(&w->rng, 30) ? LONG :
	       rng_one_in(&w->rng, 5)  ? rng_below(&w->rng, 30000) :
					 rng_below(&w->rng, 300);
	for (size_t i = 0; i < w->n; i++)
		w->out[i] = (unsigned char)(rng_next(&w->rng));
	memset(w->in, 0, w->n);
}

static void is_back(struct worker *w, int64_t n, const void *in)
{
	CHECK(n == (int64_t)w->n, "%lld of %zu bytes: %s", (long long)n, w->n,
	      slmpm_error_detail());
	CHECK(!memcmp(w->out, in, w->n), "damaged");
}

static void send_it(struct worker *w)
{
	int rc;

	/* While another thread has a loan open it has the ring. */
	do
		rc = slmpm_send(w->peer, w->stream, w->out, w->n, MS);
	while (rc == -SLMPM_EBUSY);
	OK(rc);
}

static void receive_it(struct worker *w, int timeout_ms)
{
	int64_t n = slmpm_recv(w->peer, w->stream, w->in, w->n, NULL, timeout_ms);

	is_back(w, n, w->in);
}

static void plainly(struct worker *w)
{
	send_it(w);
	receive_it(w, MS);
}

static void by_requests(struct worker *w)
{
	struct slmpm_iov out = {w->out, w->n}, in = {w->in, w->n};
	struct slmpm_done done;
	slmpm_req req[2] = {{0}, {0}};

	OK(slmpm_recvv(w->peer, w->stream, &in, 1, NULL, &req[0]));
	OK(slmpm_sendv(w->peer, w->stream, &out, 1, NULL, &req[1]));
	for (int i = 0; i < 2; i++) {
		CHECK(slmpm_wait(req, 2, &done, MS) >= 0 && done.status == 0, "%d: %s", done.status,
		      slmpm_error_detail());
		CHECK(done.len == w->n, "length");
	}
	is_back(w, (int64_t)done.len, w->in);
}

static void by_testing(struct worker *w)
{
	struct slmpm_iov in = {w->in, w->n};
	struct slmpm_done done;
	slmpm_req req;
	int rc;

	OK(slmpm_recvv(w->peer, w->stream, &in, 1, NULL, &req));
	send_it(w);
	while ((rc = slmpm_test(&req, &done)) == 0)
		(void)poll(NULL, 0, 0);
	CHECK(rc == 1 && done.status == 0, "%s", slmpm_error_detail());
	is_back(w, (int64_t)done.len, w->in);
}

static void by_probing(struct worker *w)
{
	struct slmpm_done done = {.len = 0};

	send_it(w);
	CHECK(slmpm_probe(w->peer, w->stream, &done, MS) == 1, "%s", slmpm_error_detail());
	CHECK(done.len == w->n && done.stream == w->stream, "probed another");
	receive_it(w, MS);
}

static void in_place(struct worker *w)
{
	const void *held = NULL;
	void *loan;
	int64_t n;
	int rc;

	do
		rc = slmpm_loan(w->peer, w->stream, w->n, &loan, MS);
	while (rc == -SLMPM_EBUSY);
	OK(rc);
	memcpy(loan, w->out, w->n);
	OK(slmpm_commit(w->peer, loan, w->n, NULL));
	n = slmpm_hold(w->peer, w->stream, &held, NULL, MS);
	is_back(w, n, held);
	OK(slmpm_release(w->peer, held));
}

static void in_vain(struct worker *w)
{
	struct slmpm_iov in = {w->in, 1};
	slmpm_req req;

	CHECK(slmpm_recv(w->peer, SILENT + w->stream, w->in, 1, NULL, 2) == -SLMPM_ETIMEOUT,
	      "something came");
	CHECK(slmpm_probe(w->peer, SILENT + w->stream, NULL, 1) == 0, "something is there");
	OK(slmpm_recvv(slmpm_any(shared), SILENT + w->stream, &in, 1, NULL, &req));
	CHECK(slmpm_wait(&req, 1, NULL, 1) == -SLMPM_ETIMEOUT, "something came");
	OK(slmpm_cancel(req));
	CHECK(slmpm_wait(&req, 1, NULL, MS) == 0, "%s", slmpm_error_detail());
}

static void *work(void *arg)
{
	static void (*const ways[])(struct worker *) = {plainly,    by_requests, by_testing,
							by_probing, in_place,    in_vain};
	uint64_t number = (uint64_t)(uintptr_t)arg;
	struct worker w = {.rng = {seed + number}, .stream = 10 + (uint32_t)number};

	w.out = malloc(LONG);
	w.in = malloc(LONG);
	CHECK(w.out && w.in, "memory");
	while (!atomic_load(&stop)) {
		w.peer = peers[rng_below(&w.rng, PEERS)];
		fill(&w);
		ways[rng_below(&w.rng, 6)](&w);
		atomic_fetch_add(&echoes, 1);
	}
	free(w.out);
	free(w.in);
	return NULL;
}

/* Looks at everything, waits for nothing. */
static void *look_around(void *arg)
{
	struct slmpm_event event = {.size = sizeof(event)};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	struct slmpm_stats stats;

	(void)arg;
	while (!atomic_load(&stop)) {
		CHECK(slmpm_progress(shared) >= 0, "%s", slmpm_error_detail());
		CHECK(slmpm_next_event(shared, &event, 0) >= 0, "%s", slmpm_error_detail());
		OK(slmpm_peer_query(peers[0], &info));
		OK(slmpm_peer_stats(peers[1], &stats, sizeof(stats)));
		CHECK(!stats.violations && info.state <= SLMPM_PEER_UP, "the peer has ended");
		(void)poll(NULL, 0, 1);
	}
	return NULL;
}

/* Others come, say a word and go, one way or another. */
static void *visit(void *arg)
{
	struct rng g = {seed};

	(void)arg;
	while (!atomic_load(&stop)) {
		slmpm_peer peer = start(shared);
		int status = -1;
		char byte = 'x';

		if (!rng_one_in(&g, 3)) {
			OK(slmpm_send(peer, 1, &byte, 1, MS));
			CHECK(slmpm_recv(peer, 1, &byte, 1, NULL, MS) == 1, "%s",
			      slmpm_error_detail());
		}
		if (rng_one_in(&g, 3)) {
			OK(slmpm_kill(peer, 0));
			OK(slmpm_join(peer, &status, MS));
		} else {
			if (rng_one_in(&g, 2)) {
				OK(slmpm_send(peer, 1, &byte, 1, MS));
				OK(slmpm_close(peer, MS));
			}
			OK(slmpm_join(peer, &status, MS));
			CHECK(status == 0, "status %x", status);
		}
		atomic_fetch_add(&visitors, 1);
	}
	return NULL;
}

static void many_in_one(uint32_t how, uint64_t ms)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS, .wait = how};
	pthread_t threads[WORKERS + 2];

	atomic_store(&stop, false);
	OK(slmpm_open(&shared, &o));
	for (int i = 0; i < PEERS; i++)
		peers[i] = start(shared);
	for (uintptr_t i = 0; i < WORKERS + 2; i++)
		CHECK(pthread_create(&threads[i], NULL,
				     i < WORKERS  ? work :
				     i == WORKERS ? look_around :
						    visit,
				     (void *)i) == 0,
		      "thread");
	for (uint64_t end = now_ms() + ms; now_ms() < end;)
		(void)poll(NULL, 0, 10);
	atomic_store(&stop, true);
	for (int i = 0; i < WORKERS + 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < PEERS; i++)
		CHECK(slmpm_join(peers[i], NULL, MS) == 0, "%s", slmpm_error_detail());
	OK(slmpm_shut(shared, MS));
}

/* ---- closed under those that wait ----------------------------------------------------------- */

static slmpm_peer victim;

static void ended(int64_t rc)
{
	CHECK(rc == -SLMPM_ECLOSED || rc == -SLMPM_EDEAD || rc == -SLMPM_EHANDLE, "%lld: %s",
	      (long long)rc, slmpm_error_detail());
}

static void *await_word(void *arg)
{
	char byte;

	ended(slmpm_recv(victim, (uint32_t)(uintptr_t)arg, &byte, 1, NULL, -1));
	return NULL;
}

static void *await_any(void *arg)
{
	const void *held;
	struct slmpm_done done;

	(void)arg;
	ended(slmpm_hold(slmpm_any(shared), 77, &held, &done, -1));
	return NULL;
}

static void *await_request(void *arg)
{
	struct slmpm_iov in = {&(char){0}, 1};
	struct slmpm_done done;
	slmpm_req req;
	int64_t rc = slmpm_recvv(victim, 78, &in, 1, NULL, &req);

	(void)arg;
	if (rc == 0) {
		CHECK(slmpm_wait(&req, 1, &done, -1) == 0, "%s", slmpm_error_detail());
		rc = done.status;
	}
	ended(rc);
	return NULL;
}

static void *fill_ring(void *arg)
{
	static char much[LONG];
	int rc;

	(void)arg;
	do
		rc = slmpm_send(victim, 80, much, sizeof(much), -1);
	while (rc == 0 || rc == -SLMPM_EBUSY);
	ended(rc);
	return NULL;
}

static void *await_loan(void *arg)
{
	void *buf;
	int rc;

	(void)arg;
	do {
		rc = slmpm_loan(victim, 81, 8000, &buf, -1);
		if (rc == 0)
			rc = slmpm_commit(victim, buf, 8000, NULL);
	} while (rc == 0);
	CHECK(rc == -SLMPM_ESTATE || rc == -SLMPM_ECLOSED || rc == -SLMPM_EDEAD ||
		      rc == -SLMPM_EHANDLE,
	      "%s", slmpm_error_detail());
	return NULL;
}

static void *close_it(void *arg)
{
	int rc = slmpm_close(victim, (int)(uintptr_t)arg);

	CHECK(rc == 0 || rc == -SLMPM_EHANDLE || rc == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
	return NULL;
}

static void closed_by_others(int round, uint32_t how)
{
	static void *(*const waits[])(void *) = {await_word,    await_word, await_any,
						 await_request, fill_ring,  await_loan};
	struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS, .wait = how};
	pthread_t threads[8];
	int n = 0, status;

	OK(slmpm_open(&shared, &o));
	victim = start(shared);
	for (int i = 0; i < 6; i++)
		CHECK(pthread_create(&threads[n++], NULL, waits[i], (void *)(uintptr_t)i) == 0,
		      "thread");
	(void)poll(NULL, 0, round % 4 * 5);
	if (round % 3 == 0) {
		OK(slmpm_kill(victim, 0));
	} else {
		CHECK(pthread_create(&threads[n++], NULL, close_it, (void *)5) == 0, "thread");
		CHECK(pthread_create(&threads[n++], NULL, close_it, (void *)5) == 0, "thread");
	}
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	(void)slmpm_kill(victim, 0); /* it may be blocked in its answer */
	OK(slmpm_join(victim, &status, MS));
	OK(slmpm_shut(shared, 0));
}

/* ---- a context for each thread -------------------------------------------------------------- */

/* Each listens for the one before it and connects to the next: a ring of threads. */
static void *in_the_ring(void *arg)
{
	int number = (int)(uintptr_t)arg;
	const slmpm_ctx own = {0};
	slmpm_listener listener;
	slmpm_peer before, next, accel;
	char here[64], there[64];
	uint64_t word;
	slmpm_ctx ctx;

	snprintf(here, sizeof(here), "shm:stress-threads-%d-%d", (int)getpid(), number);
	snprintf(there, sizeof(there), "shm:stress-threads-%d-%d", (int)getpid(),
		 (number + 1) % WORKERS);
	OK(slmpm_listen(&listener, own, here));
	accel = start(own);
	for (;;) {
		int rc = slmpm_connect(&next, own, there, MS);

		if (rc == 0)
			break;
		CHECK(rc == -SLMPM_ENOENT, "%s", slmpm_error_detail());
		(void)slmpm_progress(own);
	}
	OK(slmpm_accept(listener, &before, MS));
	OK(slmpm_unlisten(listener));
	for (uint64_t i = 0; i < 300; i++) {
		word = i * 100 + (uint64_t)number;
		OK(slmpm_send(accel, 1, &word, 8, MS));
		CHECK(slmpm_recv(accel, 1, &word, 8, NULL, MS) == 8, "%s", slmpm_error_detail());
		OK(slmpm_send(next, 2, &word, 8, MS));
		CHECK(slmpm_recv(before, 2, &word, 8, NULL, MS) == 8, "%s", slmpm_error_detail());
		CHECK(word == i * 100 + (uint64_t)(number + WORKERS - 1) % WORKERS, "not its word");
	}
	CHECK(slmpm_join(accel, NULL, MS) == 0, "%s", slmpm_error_detail());
	OK(slmpm_close(next, MS));
	CHECK(slmpm_recv(before, 2, &word, 8, NULL, MS) == -SLMPM_ECLOSED, "%s",
	      slmpm_error_detail());
	OK(slmpm_close(before, MS));
	OK(slmpm_default(&ctx));
	OK(slmpm_shut(ctx, MS));
	return NULL;
}

static void one_each(void)
{
	pthread_t threads[WORKERS];

	for (uintptr_t i = 0; i < WORKERS; i++)
		CHECK(pthread_create(&threads[i], NULL, in_the_ring, (void *)i) == 0, "thread");
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	const char *seconds = getenv("SLMPM_TEST_SECONDS");
	uint64_t ms = 1000 * (seconds ? strtoull(seconds, NULL, 10) : 2) / 3;

	if (getenv("SLMPM_PARENT"))
		return echo();
	seed = rng_run_seed((uint64_t)time(NULL));
	one_each();
	for (uint32_t how = SLMPM_WAIT_ADAPTIVE; how <= SLMPM_WAIT_BLOCK; how++) {
		many_in_one(how, ms);
		for (int round = 0; round < ROUNDS; round++)
			closed_by_others(round, how);
	}
	printf("%llu echoes, %llu visitors\n", (unsigned long long)atomic_load(&echoes),
	       (unsigned long long)atomic_load(&visitors));
	return 0;
}
