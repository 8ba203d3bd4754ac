/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer killed at any moment of a region's life, as its owner and as its acceptor: each call here
 * ends, with success or with its death; regions end at once afterwards, and nothing is left.
 * SLMPM_TEST_KILLS sets another number.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define KILLS     40
#define SIZE      40000
#define LATEST_US 8000 /* a peer's life, once it is connected */
#define BOUND_MS  5000

static unsigned char memory[SIZE];
static slmpm_ctx ctx;

/* ---- what both do until it ends -------------------------------------------------------------- */

/* Also where the connection's end is noticed only by a later call. */
static bool is_end(int rc)
{
	return rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED;
}

static int own(slmpm_ctx c, slmpm_peer peer, struct rng *g)
{
	for (;;) {
		bool mapped = rng_one_in(g, 2);
		void *base = memory;
		slmpm_mem mem;
		int rc;

		if (mapped)
			OK(slmpm_mem_alloc(c, SIZE, SLMPM_READ_WRITE, &mem, &base));
		else
			OK(slmpm_mem_register(c, base, SIZE, SLMPM_READ_WRITE, &mem));
		rc = slmpm_mem_share(mem, peer, SLMPM_READ_WRITE, PATIENCE);
		if (rc == 0 && rng_one_in(g, 2))
			rc = slmpm_mem_revoke(mem, peer, PATIENCE);
		OK(slmpm_mem_destroy(mem, PATIENCE)); /* it waits for the release, or the end */
		if (rc < 0)
			return rc;
	}
}

static int use(slmpm_peer peer)
{
	for (;;) {
		unsigned char byte = 1;
		slmpm_rmem rmem;
		int rc = slmpm_mem_accept(peer, &rmem, PATIENCE), put, get;

		if (rc < 0)
			return rc;
		put = slmpm_put(rmem, SIZE - 1, &byte, 1, NULL, NULL);
		get = slmpm_get(rmem, 0, &byte, 1, NULL, NULL);
		CHECK(!put || put == -SLMPM_EACCES || is_end(put), "put: %d", put);
		CHECK(!get || get == -SLMPM_EACCES || is_end(get), "get: %d", get);
		OK(slmpm_mem_release(rmem));
	}
}

/* ---- who dies -------------------------------------------------------------------------------- */

static int role(slmpm_peer host, char **words)
{
	struct rng g = {(uint64_t)atoll(words[1])};
	slmpm_ctx none = {0};

	alarm(60);
	OK(slmpm_send(host, 1, "up", 2, PATIENCE));
	(void)(words[0][0] == 'o' ? own(none, host, &g) : use(host));
	return 0;
}

static void sleep_us(uint32_t us)
{
	struct timespec t = {.tv_nsec = (long)us * 1000};

	nanosleep(&t, NULL);
}

struct kill {
	pid_t victim;
	uint32_t after_us;
};

static int kill_later(void *arg)
{
	const struct kill *k = arg;

	sleep_us(k->after_us);
	kill(k->victim, SIGKILL);
	return 0;
}

static void one_kill(struct rng *g, bool owner)
{
	struct holdings before = holdings_now();
	char seed[24], got[4];
	struct kill k = {.after_us = rng_below(g, LATEST_US)};
	int64_t begin;
	slmpm_peer peer;
	pid_t killer;
	int rc;

	snprintf(seed, sizeof(seed), "%u", rng_below(g, 1u << 30));
	peer = actor_spawn("peer", owner ? "owner" : "acceptor", seed);
	EXPECT(slmpm_recv(peer, 1, got, sizeof(got), NULL, PATIENCE), 2);
	k.victim = pid_of(peer);
	killer = child_start(kill_later, &k, 20);
	begin = actor_now_ms();
	rc = owner ? use(peer) : own(ctx, peer, g);
	CHECK(is_end(rc), "it ended with %d (%s)", rc, slmpm_error_detail());
	CHECK(actor_now_ms() - begin < BOUND_MS * actor_slow(), "after %lld ms",
	      (long long)(actor_now_ms() - begin));
	(void)child_wait(killer);
	(void)slmpm_join(peer, NULL, PATIENCE);
	holdings_expect(before, owner ? "its owner was killed" : "its acceptor was killed");
}

static const struct actor roles[] = {{"peer", role}, {NULL, NULL}};

int main(int argc, char **argv)
{
	const char *text = getenv("SLMPM_TEST_KILLS");
	int kills = text ? atoi(text) : KILLS;
	struct rng g;

	settings_one_link(NULL);
	actor_begin(argc, argv, roles);
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	g.state = rng_run_seed((uint64_t)actor_now_ms());
	OK(slmpm_default(&ctx));
	for (int i = 0; i < kills; i++)
		one_kill(&g, i % 2);
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}
