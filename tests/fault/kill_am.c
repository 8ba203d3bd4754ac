/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGKILL of the peer amidst active messages: in the middle of a long one, with answers waiting,
 * with requests open. What had come whole has been handled, nothing of the rest; every request
 * ends, at once; who is left goes on with others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/death.h"
#include "tests/lib/random.h"

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define KILLS   12
#define LATEST  10 /* ms of a storm */
#define PENDING 16
#define LONGEST (600u << 10)
#define ASK     1
#define ANSWER  2

static unsigned char data[LONGEST];
static uint64_t whole, answers;

static void answer(const struct slmpm_am *am, void *arg)
{
	(void)am;
	(void)arg;
	answers++;
}

/* Its seed is its head: damaged or cut short it would show. */
static void ask(const struct slmpm_am *am, void *arg)
{
	uint64_t seed;

	(void)arg;
	CHECK(am->head_len == sizeof(seed), "a head of %zu bytes", am->head_len);
	memcpy(&seed, am->head, sizeof(seed));
	CHECK(actor_filled(am->data, seed, am->data_len), "%zu bytes are damaged", am->data_len);
	whole++;
	(void)slmpm_am_reply(am, ANSWER, am->head, am->head_len, am->data,
			     am->data_len < 5000 ? am->data_len : 5000);
}

static void handle(slmpm_ctx ctx)
{
	OK(slmpm_am_handler(ctx, ASK, ask, NULL));
	OK(slmpm_am_handler(ctx, ANSWER, answer, NULL));
}

static int storm_on(slmpm_peer peer, uint64_t seed, int64_t until)
{
	struct rng r = {seed};
	slmpm_ctx ctx;

	OK(slmpm_default(&ctx));
	for (uint64_t n = 0; actor_now_ms() < until; n++) {
		size_t len = rng_one_in(&r, 5) ? rng_below(&r, LONGEST) : rng_below(&r, 300);
		int rc;

		actor_fill(data, n, len);
		rc = slmpm_am(peer, ASK, &n, sizeof(n), data, len, NULL, NULL);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int role_storm(slmpm_peer host, char **words)
{
	slmpm_ctx ctx;

	OK(slmpm_default(&ctx));
	handle(ctx);
	OK(slmpm_send(host, 1, NULL, 0, PATIENCE));
	return storm_on(host, strtoull(words[0], NULL, 10), INT64_MAX) == 0;
}

static void survive(slmpm_ctx ctx, uint64_t seed)
{
	struct rng r = {seed};
	struct slmpm_done done;
	slmpm_req req[PENDING];
	int64_t began, until;
	slmpm_peer child;
	char word[24];
	int rc;

	snprintf(word, sizeof(word), "%llu", (unsigned long long)seed + 1);
	child = actor_spawn("storm", word, NULL);
	EXPECT(slmpm_recv(child, 1, NULL, 0, NULL, PATIENCE), 0);
	rc = storm_on(child, seed, actor_now_ms() + rng_below(&r, LATEST));
	CHECK(rc == 0, "before the kill: %s", slmpm_error_detail());
	actor_fill(data, 7, LONGEST);
	for (int i = 0; i < PENDING; i++) {
		uint64_t number = 7;

		OK(slmpm_am(child, ASK, &number, sizeof(number), data,
			    i % 2 ? LONGEST : 20000 * (size_t)i, NULL, &req[i]));
	}
	OK(slmpm_kill(child, 0));
	began = actor_now_ms();
	until = began + 3000 * actor_slow();
	while ((rc = slmpm_am(child, ASK, &seed, sizeof(seed), NULL, 0, NULL, NULL)) == 0)
		CHECK(actor_now_ms() < until, "its death stays unknown");
	EXPECT(rc, -SLMPM_EDEAD);
	for (int i = 0; i < PENDING; i++) {
		EXPECT(slmpm_wait(&req[i], 1, &done, 0), 0);
		CHECK(!done.status || done.status == -SLMPM_EDEAD, "request %d ended with %d", i,
		      done.status);
	}
	CHECK(slmpm_join(child, NULL, PATIENCE) == 128 + 9, "%s", slmpm_error_detail());
	while (slmpm_progress(ctx) > 0)
		;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"storm", role_storm}, {NULL, NULL}};
	const slmpm_ctx none = {0};
	struct holdings before;
	uint64_t seed;
	slmpm_ctx ctx;

	settings_one_link(NULL);
	actor_begin(argc, argv, roles);
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	seed = rng_run_seed(0xdea0);
	OK(slmpm_default(&ctx));
	handle(ctx);
	before = holdings_now();
	for (uint64_t i = 0; i < KILLS; i++) {
		survive(ctx, seed + 10 * i);
		holdings_expect(before, "after a kill");
	}
	CHECK(whole && answers, "%llu handled, %llu answers", (unsigned long long)whole,
	      (unsigned long long)answers);
	OK(slmpm_shut(none, PATIENCE));
	return 0;
}
