/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages in a context that many threads use: handlers run one at a time, in whichever
 * thread makes progress, and may use the context; what they count needs no lock of its own.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/lib/random.h"

#include "tests/lib/actor.h"

#define THREADS 6
#define COUNT   1500
#define LONG    ((size_t)50000)

enum { ASK = 1, ANSWER, LETTER };

static slmpm_ctx ctx;
static slmpm_peer a, b;
static uint64_t asked, inside, per_thread[THREADS]; /* the handlers' own: plain on purpose */
static _Atomic uint64_t answered[THREADS];

struct head {
	uint32_t thread, number;
};

static void ask(const struct slmpm_am *am, void *arg)
{
	struct head h;

	(void)arg;
	CHECK(inside++ == 0, "two handlers at once");
	memcpy(&h, am->head, sizeof(h));
	CHECK(h.number == per_thread[h.thread], "thread %u: number %u after %llu", h.thread,
	      h.number, (unsigned long long)per_thread[h.thread]);
	per_thread[h.thread]++;
	asked++;
	CHECK(actor_filled(am->data, h.number, am->data_len), "damaged");
	OK(slmpm_am_reply(am, ANSWER, &h, sizeof(h), NULL, 0));
	if (h.number % 16 == 0) { /* for one of those that wait in a receive */
		int rc = slmpm_send(am->peer, LETTER, NULL, 0, -1);

		CHECK(rc == 0 || rc == -SLMPM_ESTATE, "%s", slmpm_error_detail());
	}
	inside--;
}

static void answer(const struct slmpm_am *am, void *arg)
{
	struct head h;

	(void)arg;
	CHECK(inside++ == 0, "two handlers at once");
	memcpy(&h, am->head, sizeof(h));
	atomic_fetch_add(&answered[h.thread], 1);
	inside--;
}

static void *work(void *arg)
{
	static _Thread_local unsigned char data[LONG];
	uint32_t self = (uint32_t)(uintptr_t)arg;
	struct rng r = {self + 1};
	int64_t until = actor_now_ms() + PATIENCE * actor_slow();

	for (struct head h = {self, 0}; h.number < COUNT; h.number++) {
		size_t len = rng_one_in(&r, 20) ? rng_below(&r, LONG) : rng_below(&r, 100);
		struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};

		actor_fill(data, h.number, len);
		OK(slmpm_am(a, ASK, &h, sizeof(h), data, len, &how, NULL));
	}
	while (atomic_load(&answered[self]) < COUNT) {
		CHECK(actor_now_ms() < until, "thread %u: %llu answers", self,
		      (unsigned long long)atomic_load(&answered[self]));
		if (self % 2) { /* sleeps where handlers run, or another thread runs them */
			int64_t n = slmpm_recv(a, LETTER, NULL, 0, NULL, 5);

			CHECK(n == 0 || n == -SLMPM_ETIMEOUT, "%s", slmpm_error_detail());
		} else {
			CHECK(slmpm_progress(ctx) >= 0, "%s", slmpm_error_detail());
		}
	}
	return NULL;
}

int main(void)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS};
	pthread_t threads[THREADS];

	OK(slmpm_open(&ctx, &o));
	actor_pair(ctx, &a, &b);
	OK(slmpm_am_handler(ctx, ASK, ask, NULL));
	OK(slmpm_am_handler(ctx, ANSWER, answer, NULL));
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0, "a thread");
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0, "a thread");
	EXPECT(asked, (uint64_t)THREADS * COUNT);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
