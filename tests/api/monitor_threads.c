/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of one context that send, put and ask, and wait for nothing, while one waits now and
 * then: whoever comes by looks at the links, and all arrives, in order.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <unistd.h>

#include "tests/lib/actor.h"

#define WHILE_MS 600
#define SIZE     4096

static slmpm_ctx ctx;
static slmpm_peer here, there;
static slmpm_rmem theirs;
static slmpm_mirror leader;
static uint64_t mirrored[64];
static _Atomic bool over;
static _Atomic uint64_t sent, called, taken, asked;

static void take_am(const struct slmpm_am *am, void *arg)
{
	(void)am, (void)arg;
	atomic_fetch_add(&taken, 1);
}

static void *send_on(void *unused)
{
	(void)unused;
	while (!atomic_load(&over)) {
		uint64_t n = atomic_load(&sent);
		struct slmpm_iov iov = {&n, sizeof(n)};

		switch (n % 3) {
		case 0: OK(slmpm_send(here, 1, &n, sizeof(n), PATIENCE)); break;
		case 1: OK(slmpm_sendv(here, 1, &iov, 1, NULL, NULL)); break;
		default: EXPECT(slmpm_send_burst(here, 1, &iov, 1, PATIENCE), 1);
		}
		atomic_fetch_add(&sent, 1);
	}
	return NULL;
}

static void *receive_all(void *unused)
{
	uint64_t n = 0, got;

	(void)unused;
	for (;; n++) {
		int64_t rc = slmpm_recv(there, 1, &got, sizeof(got), NULL, 20);

		while (rc == -SLMPM_ETIMEOUT && !(atomic_load(&over) && n == atomic_load(&sent)))
			rc = slmpm_recv(there, 1, &got, sizeof(got), NULL, 20);
		if (rc == -SLMPM_ETIMEOUT)
			return NULL;
		EXPECT(rc, sizeof(got));
		CHECK(got == n, "%llu instead of %llu", (unsigned long long)got,
		      (unsigned long long)n);
	}
}

static void *put_on(void *unused)
{
	char bytes[256] = {1};
	uint64_t old;

	(void)unused;
	while (!atomic_load(&over)) {
		OK(slmpm_put(theirs, 64, bytes, sizeof(bytes), NULL, NULL));
		OK(slmpm_get(theirs, 1024, bytes, sizeof(bytes), NULL, NULL));
		OK(slmpm_atomic(theirs, 0, SLMPM_FETCH_ADD, 64, 1, 0, &old, NULL, NULL));
		EXPECT(old, atomic_load(&asked));
		atomic_fetch_add(&asked, 1);
	}
	return NULL;
}

static void *call_on(void *unused)
{
	(void)unused;
	while (!atomic_load(&over)) {
		OK(slmpm_am(here, 1, NULL, 0, "12345678", 8, NULL, NULL));
		atomic_fetch_add(&called, 1);
	}
	return NULL;
}

static void *mirror_on(void *unused)
{
	uint64_t n = 0;

	(void)unused;
	while (!atomic_load(&over)) {
		OK(slmpm_mirror_store64(leader, &mirrored[n % 64], n));
		OK(slmpm_mirror_flush(leader, PATIENCE));
		n++;
	}
	return NULL;
}

static void *look_on(void *unused)
{
	struct slmpm_monitors *monitors;
	struct slmpm_monitor m;

	(void)unused;
	OK(slmpm_monitors_open(getpid(), &monitors));
	while (!atomic_load(&over)) {
		OK(slmpm_monitor(here, &m, sizeof(m)));
		(void)slmpm_monitors_read(monitors, 0, &m, sizeof(m));
	}
	slmpm_monitors_close(monitors);
	return NULL;
}

/* One after the other, short: of them, too, some are timed. */
static void times_short_puts(void)
{
	struct slmpm_monitor m;
	uint64_t samples = 0;

	for (uint64_t n = 0; n < 3000; n++)
		OK(slmpm_put(theirs, 64, &n, sizeof(n), NULL, NULL));
	OK(slmpm_monitor(here, &m, sizeof(m)));
	for (int warmth = 0; warmth < SLMPM_WARMTH; warmth++)
		samples += m.timing[SLMPM_BY_PUT][0][warmth].samples;
	CHECK(samples || !m.requests[SLMPM_BY_PUT], "none of %llu puts",
	      (unsigned long long)m.requests[SLMPM_BY_PUT]);
}

static void mirror(void)
{
	static uint64_t follows[64];
	slmpm_mirror follower;

	OK(slmpm_mirror_create(ctx, mirrored, sizeof(mirrored), NULL, &leader));
	OK(slmpm_mirror_create(ctx, follows, sizeof(follows), NULL, &follower));
	EXPECT(slmpm_mirror_attach(follower, there, 1, SLMPM_MIRROR_FOLLOW, 0), -SLMPM_EAGAIN);
	OK(slmpm_mirror_attach(leader, here, 1, SLMPM_MIRROR_LEAD, PATIENCE));
}

int main(void)
{
	static void *(*const parts[])(void *) = {send_on, receive_all, put_on,
						 call_on, mirror_on,   look_on};
	const struct slmpm_options options = {.size = sizeof(options), .flags = SLMPM_THREADS};
	int64_t until = actor_now_ms() + WHILE_MS * actor_slow();
	pthread_t threads[6];
	struct slmpm_key key;
	slmpm_mem mem;
	void *base;
	uint32_t n = sizeof(parts) / sizeof(parts[0]);

	CHECK(!setenv("SLMPM_MONITOR_MS", "50", 1), "environment");
	OK(slmpm_open(&ctx, &options));
	actor_pair(ctx, &here, &there);
	OK(slmpm_am_handler(ctx, 1, take_am, NULL));
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_READ_WRITE, &mem, &base));
	memset(base, 0, SIZE);
	OK(slmpm_mem_key(mem, there, SLMPM_READ_WRITE, &key));
	OK(slmpm_mem_open(here, &key, &theirs));
	times_short_puts();
	mirror();
	for (uint32_t i = 0; i < n; i++)
		CHECK(pthread_create(&threads[i], NULL, parts[i], NULL) == 0, "thread %u", i);
	while (actor_now_ms() < until)
		(void)sched_yield();
	atomic_store(&over, true);
	for (uint32_t i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0, "thread %u", i);
	printf("%llu sent, %llu called, %llu taken, %llu asked\n", (unsigned long long)sent,
	       (unsigned long long)called, (unsigned long long)taken, (unsigned long long)asked);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
