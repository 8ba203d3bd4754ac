/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGKILL of the peer amidst puts into FIFOs, both ways, with entries being stored: what had come
 * is whole and can be stored, every put ends, at once, and nothing of the peer's stays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/death.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define KILLS   12
#define LATEST  10 /* ms of a storm */
#define PENDING 16
#define SIZE    ((size_t)1 << 20)
#define LONGEST ((size_t)120 << 10)

static unsigned char data[LONGEST], *there;
static slmpm_ctx ctx;
static slmpm_mem mem;
static slmpm_rmem rmem;
static slmpm_ctr stores;
static uint64_t taken;

/* Whatever waits: looked at, and stored without waiting, or dropped. */
static void take_all(slmpm_peer peer)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = -1, .ctr = stores};
	struct slmpm_fifo e;

	while (slmpm_fifo_take(peer, &e, 0) == 0) {
		CHECK(actor_filled(e.data, e.imm, e.len), "%zu bytes are damaged", e.len);
		taken++;
		if (e.imm % 3)
			OK(slmpm_fifo_store(&e, e.mem, e.offset, &how, NULL));
		else
			OK(slmpm_fifo_drop(&e));
	}
}

static int put(struct rng *r, int timeout_ms, slmpm_req *req)
{
	struct slmpm_how how = {
		.size = sizeof(how),
		.flags = SLMPM_FIFO | (req ? SLMPM_REMOTE : 0),
		.imm = (uint32_t)rng_below(r, 100000),
		.timeout_ms = timeout_ms,
	};
	size_t len = rng_one_in(r, 5) ? rng_below(r, LONGEST) : rng_below(r, 300);

	if (req) /* they all have these bytes as their own */
		how.imm = 7;
	else
		actor_fill(data, how.imm, len);
	return slmpm_put(rmem, rng_below(r, SIZE - LONGEST), data, len, &how, req);
}

static int storm_on(slmpm_peer peer, struct rng *r, int64_t until)
{
	while (actor_now_ms() < until) {
		int rc = put(r, 5, NULL);

		if (rc < 0 && rc != -SLMPM_ETIMEOUT)
			return rc;
		take_all(peer);
	}
	return 0;
}

static void meet(slmpm_peer peer, bool first)
{
	if (first)
		OK(slmpm_mem_share(mem, peer, SLMPM_WRITE, PATIENCE));
	OK(slmpm_mem_accept(peer, &rmem, PATIENCE));
	if (!first)
		OK(slmpm_mem_share(mem, peer, SLMPM_WRITE, PATIENCE));
}

static void prepare(void)
{
	void *base;

	OK(slmpm_default(&ctx));
	OK(slmpm_mem_alloc(ctx, SIZE, SLMPM_WRITE, &mem, &base));
	OK(slmpm_ctr_create(ctx, &stores));
	there = base;
}

static int role_storm(slmpm_peer host, char **words)
{
	struct rng r = {strtoull(words[0], NULL, 10)};

	prepare();
	meet(host, false);
	return storm_on(host, &r, INT64_MAX) == 0;
}

static void survive(uint64_t seed)
{
	struct rng r = {seed};
	struct slmpm_done done;
	slmpm_req req[PENDING];
	slmpm_peer child;
	int64_t until;
	char word[24];
	int rc;

	snprintf(word, sizeof(word), "%llu", (unsigned long long)seed + 1);
	child = actor_spawn("storm", word, NULL);
	meet(child, true);
	rc = storm_on(child, &r, actor_now_ms() + rng_below(&r, LATEST));
	CHECK(rc == 0, "before the kill: %s", slmpm_error_detail());
	actor_fill(data, 7, LONGEST);
	for (int i = 0; i < PENDING; i++)
		OK(put(&r, -1, &req[i]));
	OK(slmpm_kill(child, 0));
	until = actor_now_ms() + 3000 * actor_slow();
	while ((rc = slmpm_send(child, 1, NULL, 0, 0)) == 0 || rc == -SLMPM_EAGAIN)
		CHECK(actor_now_ms() < until, "its death stays unknown");
	EXPECT(rc, -SLMPM_EDEAD);
	for (int i = 0; i < PENDING; i++) {
		EXPECT(slmpm_wait(&req[i], 1, &done, 0), 0);
		CHECK(!done.status || done.status == -SLMPM_EDEAD, "put %d ended with %d", i,
		      done.status);
	}
	take_all(child);
	OK(slmpm_ctr_wait(stores, SLMPM_ALL, 0)); /* none was left half done */
	OK(slmpm_mem_release(rmem));
	CHECK(slmpm_join(child, NULL, PATIENCE) == 128 + 9, "%s", slmpm_error_detail());
	while (slmpm_progress(ctx) > 0)
		;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"storm", role_storm}, {NULL, NULL}};
	static const char *const kinds[] = {"none", "inline", "thread"};
	struct holdings before;
	uint64_t seed;

	settings_one_link(NULL);
	actor_begin(argc, argv, roles);
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	seed = rng_run_seed(0xf1f0);
	setenv("SLMPM_ENGINE_MIN", "16k", 1);
	setenv("SLMPM_ENGINE", kinds[seed % 3], 1);
	printf("engine: %s\n", kinds[seed % 3]);
	prepare();
	before = holdings_now();
	for (uint64_t i = 0; i < KILLS; i++) {
		survive(seed + 10 * i);
		if (i == 2) /* the engine's thread is there by now */
			before = holdings_now();
		else if (i > 2)
			holdings_expect(before, "after a kill");
	}
	CHECK(taken, "nothing was taken");
	OK(slmpm_mem_destroy(mem, PATIENCE));
	OK(slmpm_ctr_destroy(stores));
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
