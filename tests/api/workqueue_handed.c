/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A context of one thread, with a mirror, hands the entries that a call leaves to the engine's
 * thread. That begins with them at once: no call of before, when it was not needed yet, keeps it
 * away for a while.
 */
#include <slmpm_queue.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define ROUNDS   200               /* one of them has a processor for a millisecond */
#define ELEMENTS ((uint64_t)16384) /* more pieces than a call does */
#define AWAY_NS  950000            /* a little less than it stays away for a call */
#define LATE_NS  UINT64_C(5000000000)
#define MIRRORED 4096

static unsigned char mirrored[MIRRORED] __attribute__((aligned(MIRRORED)));
static slmpm_ctx ctx;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The engine's thread may write it just now, in an array of its own: no race but this look. */
static __attribute__((noinline, no_sanitize("thread"))) bool is_there(
	const volatile uint64_t *element)
{
	return *element;
}

/* That from FROM is in TO: how long behind the call, while no other is made. UINT64_MAX: before
 * its end. */
static uint64_t calculate(slmpm_wq wq, uint64_t *to, uint64_t *from)
{
	struct slmpm_operand arg = {.at = from}, target = {.at = to};
	struct slmpm_calc calc = {.size = sizeof(calc),
				  .op = SLMPM_CALC_SUM,
				  .type = SLMPM_UINT64,
				  .count = {ELEMENTS},
				  .args = &arg,
				  .targets = &target,
				  .arg_count = 1,
				  .target_count = 1};
	const struct slmpm_wr wr = {.size = sizeof(wr), .op = SLMPM_OP_CALC, .calc = &calc};
	const volatile uint64_t *last = &to[ELEMENTS - 1];
	uint64_t began, took;

	EXPECT(slmpm_post(wq, &wr, 1), 1);
	began = now();
	if (is_there(last)) /* others had this processor for as long as that takes */
		return UINT64_MAX;
	do
		took = now() - began;
	while (!is_there(last) && took < LATE_NS);
	CHECK(is_there(last), "it is never done");
	return took;
}

/* Behind a receive that may wait. */
static uint64_t hand_over(void)
{
	uint64_t *to = calloc(ELEMENTS, sizeof(*to)), *from = malloc(ELEMENTS * sizeof(*from));
	struct slmpm_wq_options o = {.size = sizeof(o)};
	slmpm_mirror mirror;
	uint64_t took;
	slmpm_peer a, b;
	slmpm_wq wq;

	CHECK(to && from, "out of memory");
	memset(from, 1, ELEMENTS * sizeof(*from));
	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	OK(slmpm_mirror_create(ctx, mirrored, MIRRORED, NULL, &mirror));
	OK(slmpm_cq_create(ctx, &o.cq));
	OK(slmpm_wq_create(ctx, &o, &wq));
	actor_tell(a, 1);
	actor_hear(b, 1);
	took = calculate(wq, to, from);
	OK(slmpm_shut(ctx, PATIENCE));
	free(to);
	free(from);
	return took;
}

static int at_once(void *unused)
{
	uint64_t least = UINT64_MAX, away = AWAY_NS * (uint64_t)actor_slow();

	(void)unused;
	for (int i = 0; i < ROUNDS && least > away; i++) {
		uint64_t took = hand_over();

		least = took < least ? took : least;
	}
	printf("%llu ns at least\n", (unsigned long long)least);
	CHECK(least < away, "the thread is late each time, by %llu ns", (unsigned long long)least);
	return 0;
}

int main(void)
{
	settings_set("SLMPM_FABRIC", "shm");
	settings_set("SLMPM_ENGINE", "thread");
	settings_run("at once", at_once, NULL);
	return 0;
}
