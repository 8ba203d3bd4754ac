/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Members of a group are killed at any moment, in operations and while those that are left agree on
 * who is gone: each time all of them go on as the same group, and what they do is right.
 * SLMPM_TEST_KILLS sets another number of rounds.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/random.h"
#include "tests/lib/settings.h"

#define ROUNDS 60
#define MOST   8
#define TAG    2
#define LONG   50000
#define BLOCK  5000 /* each one goes straight to its member's buffer, where that is allowed */

struct round {
	int members;
	uint64_t seed;
	_Atomic bool stop;
	_Atomic uint64_t who[MOST + 1]; /* by generation: those that are left, as at first */
	_Atomic uint32_t shrinking;     /* members, now */
};

struct play {
	struct round *round;
	slmpm_group group;
	int seat, rank;
	int64_t members, done;
};

/* All have the same: who is left, by where each was at first. */
static int look_around(struct play *p)
{
	struct slmpm_group_info info = circle_query(p->group);
	uint64_t own = UINT64_C(1) << p->seat, all, before = 0;
	int rc = slmpm_allreduce(p->group, &own, &all, 1, SLMPM_UINT64, SLMPM_CALC_SUM, PATIENCE);

	p->rank = info.rank;
	p->members = info.members;
	CHECK(info.generation <= MOST, "generation %llu", (unsigned long long)info.generation);
	if (rc < 0)
		return rc;
	CHECK(__builtin_popcountll(all) == (int)info.members, "%llx, but %u members",
	      (unsigned long long)all, info.members);
	CHECK(__builtin_popcountll(all & (own - 1)) == info.rank, "%llx, but rank %d",
	      (unsigned long long)all, info.rank);
	if (!atomic_compare_exchange_strong(&p->round->who[info.generation], &before, all))
		CHECK(before == all, "generation %llu: %llx and %llx",
		      (unsigned long long)info.generation, (unsigned long long)before,
		      (unsigned long long)all);
	return 0;
}

/* A block of each for each. */
static int exchange(const struct play *p)
{
	static int64_t from[MOST * BLOCK], to[MOST * BLOCK];
	int rc;

	for (int64_t i = 0; i < p->members * BLOCK; i++)
		from[i] = p->done * MOST + p->rank + i;
	rc = slmpm_alltoall(p->group, from, to, BLOCK, SLMPM_INT64, PATIENCE);
	for (int64_t i = 0; i < p->members * BLOCK && rc == 0; i++)
		CHECK(to[i] == p->done * MOST + i / BLOCK + p->rank * BLOCK + i % BLOCK,
		      "element %lld of another block", (long long)i);
	return rc;
}

/* Some operations, of which each says as well whether all are to end; 1: they are. */
static int work(struct play *p)
{
	static int64_t block[LONG];
	int64_t own[2] = {p->round->stop, p->done}, sum[2];
	int root = (int)(p->done % p->members);
	int rc = slmpm_allreduce(p->group, own, sum, 2, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE);

	if (rc < 0)
		return rc;
	CHECK(sum[1] == p->members * p->done, "%lld", (long long)sum[1]);
	for (int64_t i = 0; i < LONG; i++)
		block[i] = p->rank == root ? p->done + i : 0;
	rc = slmpm_broadcast(p->group, block, LONG, SLMPM_INT64, root, PATIENCE);
	for (int64_t i = 0; i < LONG && rc == 0; i++)
		CHECK(block[i] == p->done + i, "element %lld of another", (long long)i);
	if (rc == 0)
		rc = exchange(p);
	p->done++;
	return rc < 0 ? rc : sum[0] != 0;
}

static void member(slmpm_peer founder, int i, void *arg)
{
	struct play p = {.round = arg, .seat = i};
	int rc;

	OK(slmpm_group_join(&p.group, founder, TAG, PATIENCE));
	for (;;) {
		p.done = 0;
		rc = look_around(&p);
		while (rc == 0)
			rc = work(&p);
		if (rc > 0)
			break;
		CHECK(rc == -SLMPM_EDEAD || rc == -SLMPM_ECLOSED, "%s", slmpm_error_detail());
		p.round->shrinking++;
		OK(slmpm_group_shrink(p.group, PATIENCE));
		p.round->shrinking--;
	}
	OK(slmpm_group_destroy(p.group));
}

static void nap(uint32_t ns)
{
	struct timespec t = {.tv_nsec = ns};

	(void)nanosleep(&t, NULL);
}

/* Now and then just as they agree. */
static void await_moment(struct rng *g, struct round *round)
{
	if (rng_one_in(g, 2))
		for (int i = 0; i < 100 && !round->shrinking; i++)
			nap(20000);
	nap(rng_below(g, rng_one_in(g, 2) ? 200000 : 5000000));
}

static int play_round(void *arg)
{
	struct round *round = arg;
	struct rng g = {round->seed};
	struct circle c = {0};
	slmpm_group group;
	uint32_t kills = 1 + rng_below(&g, (uint32_t)round->members - 1);

	setenv("SLMPM_ATTACH", rng_one_in(&g, 3) ? "n" : "y", 1);
	setenv("SLMPM_WAIT", rng_one_in(&g, 2) ? "block" : "adaptive", 1);
	circle_begin(&c, round->members, member, round, 60);
	OK(slmpm_group_create(&group, c.ctx, c.peers, round->members, TAG, PATIENCE));
	for (uint32_t k = 0; k < kills; k++) {
		await_moment(&g, round);
		(void)kill(c.pids[rng_below(&g, (uint32_t)round->members)], SIGKILL);
	}
	nap(20000000);
	round->stop = true;
	for (int i = 0; i < round->members; i++) {
		int rc = circle_wait(&c, i);

		CHECK(rc == 0 || rc == -SIGKILL, "member %d of %d: %d", i, round->members, rc);
	}
	circle_end(&c);
	return 0;
}

int main(void)
{
	const char *text = getenv("SLMPM_TEST_KILLS");
	uint32_t rounds = text ? (uint32_t)strtoul(text, NULL, 0) : ROUNDS, generations = 0;
	struct rng g = {rng_run_seed((uint64_t)getpid())};

	settings_one_link("shm");
	for (uint32_t i = 0; i < rounds; i++) {
		struct round *round = child_common(sizeof(*round));

		round->members = 2 + (int)rng_below(&g, MOST - 1);
		round->seed = rng_next(&g);
		EXPECT(child_run(play_round, round, 90), 0);
		for (int n = 1; n <= MOST; n++)
			generations += round->who[n] != 0;
	}
	printf("%u generations in %u rounds\n", generations, rounds);
	return 0;
}
