/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * Clocks jump: the time of day by years, to and fro, at each look at it; and once all clocks
 * forward by an hour, as a machine's do that slept. Deadlines are kept, nobody is taken for dead,
 * nothing is lost.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "tests/lib/child.h"
#include "tests/lib/settings.h"
#include "tests/lib/actor.h"

#define YEAR 31536000

static atomic_long inspections; /* at the time of day */
static _Atomic time_t slept;    /* seconds that every clock has jumped */

static int64_t real_ns(void)
{
	struct timespec t;

	CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t) == 0, "no clock");
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- in place of the C library's ------------------------------------------------------------- */

static time_t jump(void)
{
	long n = atomic_fetch_add(&inspections, 1);

	return n % 3 * 10 * YEAR - 10 * YEAR;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, id, t);

	if (rc == 0)
		t->tv_sec += id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE ? jump() : slept;
	return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}

/* ---- the test -------------------------------------------------------------------------------- */

static void exchange(slmpm_peer from, slmpm_peer to, int n)
{
	unsigned char there[20000], back[20000];

	for (int i = 0; i < n; i++) {
		size_t length = (size_t)(i * 977) % sizeof(there);

		actor_fill(there, (uint64_t)i, length);
		OK(slmpm_send(from, 1, there, length, PATIENCE));
		EXPECT(slmpm_recv(to, 1, back, sizeof(back), NULL, PATIENCE), length);
		CHECK(actor_filled(back, (uint64_t)i, length), "message %d is damaged", i);
	}
}

/* A deadline of MS is one of MS, whatever the time of day. */
static void expire(slmpm_peer peer, int ms)
{
	int64_t began = real_ns(), took;
	char nothing;

	EXPECT(slmpm_recv(peer, 3, &nothing, 1, NULL, ms), -SLMPM_ETIMEOUT);
	took = (real_ns() - began) / 1000000;
	CHECK(took >= ms - 1 && took < ms + 2000, "a deadline of %d ms: %lld ms", ms,
	      (long long)took);
}

static void no_loss(slmpm_ctx ctx)
{
	struct slmpm_event e = {.size = sizeof(e)};

	while (slmpm_next_event(ctx, &e, 0) == 1)
		CHECK(e.type != SLMPM_EVENT_DEAD && e.type != SLMPM_EVENT_SUSPECT &&
			      e.type != SLMPM_EVENT_LINK_LOST,
		      "an event: %s", e.detail);
}

static int try_fabric(void *arg)
{
	slmpm_peer a, b;
	slmpm_ctx ctx;

	settings_set("SLMPM_FABRIC", arg);
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	for (int i = 0; i < 3; i++) {
		exchange(a, b, 50);
		exchange(b, a, 50);
		expire(a, 20 + 40 * i);
	}
	CHECK(clock_gettime(CLOCK_REALTIME, &(struct timespec){0}) == 0, "the clock");
	for (int i = 0; i < 3; i++) {
		atomic_fetch_add(&slept, 3600);
		exchange(a, b, 20);
		expire(b, 30);
		atomic_fetch_add(&slept, 3600);
		actor_nap(ctx);
		exchange(b, a, 20);
		no_loss(ctx);
	}
	OK(slmpm_close(a, PATIENCE));
	EXPECT(slmpm_recv(b, 1, &(char){0}, 1, NULL, PATIENCE), -SLMPM_ECLOSED);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

int main(void)
{
	struct timespec mine, other;

	(void)clock_gettime(CLOCK_REALTIME, &mine);
	(void)clock_gettime(CLOCK_REALTIME, &other);
	CHECK(other.tv_sec - mine.tv_sec > 9 * YEAR, "the clock does not jump");
	settings_one_link(NULL);
	for (int i = 0; i < 2; i++)
		CHECK(child_run(try_fabric, (void *)(uintptr_t)(i ? "tcp" : "shm"), 25) == 0,
		      "over %s", i ? "tcp" : "shm");
	return 0;
}
