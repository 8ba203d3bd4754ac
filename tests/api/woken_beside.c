/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of a context's threads one polls for all; one that waits for it comes to its deadline, and to
 * what it waits for, though the polling one always finds something.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

enum { SHORT_MS = 100, LONG_MS = 10000, TURN_US = 20 };

static slmpm_ctx ctx;
static slmpm_ctr polled, other;
static _Atomic bool polls, over;
static _Atomic uint64_t runs;

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* It takes longer than the next one takes to come. */
static void handle(const struct slmpm_am *am, void *arg)
{
	int64_t until = now_us() + TURN_US;

	(void)am, (void)arg;
	runs++;
	while (now_us() < until)
		;
}

static void *flood(void *url)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};
	slmpm_ctx mine;
	slmpm_peer to;

	OK(slmpm_open(&mine, NULL));
	OK(slmpm_connect(&to, mine, url, PATIENCE));
	while (!atomic_load(&over)) {
		int rc = slmpm_am(to, 1, NULL, 0, NULL, 0, &how, NULL);

		CHECK(rc == 0 || atomic_load(&over), "%s", slmpm_error_detail());
	}
	(void)slmpm_shut(mine, 0);
	return NULL;
}

static void *poll_for_all(void *unused)
{
	(void)unused;
	atomic_store(&polls, true);
	EXPECT(slmpm_ctr_wait(polled, 1, LONG_MS), -SLMPM_EHANDLE);
	atomic_store(&over, true);
	return NULL;
}

static int beside(void *unused)
{
	struct slmpm_options o = {.size = sizeof(o), .flags = SLMPM_THREADS};
	struct timespec moment = {.tv_nsec = 50000000};
	pthread_t flooding, polling;
	slmpm_listener l;
	slmpm_peer from;
	char url[64];
	int64_t before, took;

	(void)unused;
	snprintf(url, sizeof(url), "shm:beside-%d", (int)getpid());
	OK(slmpm_open(&ctx, &o));
	OK(slmpm_am_handler(ctx, 1, handle, NULL));
	OK(slmpm_ctr_create(ctx, &polled));
	OK(slmpm_ctr_create(ctx, &other));
	OK(slmpm_listen(&l, ctx, url));
	CHECK(pthread_create(&flooding, NULL, flood, url) == 0, "thread");
	OK(slmpm_accept(l, &from, PATIENCE));
	CHECK(pthread_create(&polling, NULL, poll_for_all, NULL) == 0, "thread");
	while (!atomic_load(&polls))
		nanosleep(&moment, NULL);
	nanosleep(&moment, NULL);
	before = actor_now_ms();
	EXPECT(slmpm_ctr_wait(other, 1, SHORT_MS), -SLMPM_ETIMEOUT);
	took = actor_now_ms() - before;
	printf("%lld ms, %llu messages\n", (long long)took, (unsigned long long)runs);
	CHECK(took < LONG_MS / 2, "%lld ms instead of %d", (long long)took, SHORT_MS);
	OK(slmpm_ctr_destroy(polled)); /* so that it waits no longer */
	pthread_join(polling, NULL);
	(void)slmpm_shut(ctx, 0); /* with that the flood ends */
	pthread_join(flooding, NULL);
	return 0;
}

int main(void)
{
	settings_run("a busy context", beside, NULL);
	return 0;
}
