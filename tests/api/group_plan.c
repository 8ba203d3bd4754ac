/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Plans that members give as texts: taken between members over TCP for what they are for, also in
 * place, from any root and by an operation of the program's own; another, or none, at a member is
 * an error that says so; on one machine they are of no use.
 */
#include <slmpm_plan.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG  3
#define MANY 3
#define MOST 1000
#define LONG 64 /* bytes: from there on */

static char ring[4096], bad[1024];

/* Each sends to all others, and adds up by rank. */
static const char sum[] = "collective allreduce\nmembers 3\nbytes 0 63\n"
			  "rank 0\nrecv 1 scratch[1]\nrecv 2 scratch[2]\nsend 1 from\nsend 2 from\n"
			  "wait\nfold to from scratch[1]\nfold to to scratch[2]\n"
			  "rank 1\nrecv 0 scratch[0]\nrecv 2 scratch[2]\nsend 0 from\nsend 2 from\n"
			  "wait\nfold to scratch[0] from\nfold to to scratch[2]\n"
			  "rank 2\nrecv 0 scratch[0]\nrecv 1 scratch[1]\nsend 0 from\nsend 1 from\n"
			  "wait\nfold to scratch[0] scratch[1]\nfold to to from\n";

static const char line[] = "collective broadcast\nmembers 3\n"
			   "rank 0\nsend 1 from\n"
			   "rank 1\nrecv 0 to\nwait\nsend 2 to\n"
			   "rank 2\nrecv 1 to\nwait\n";

/* apps/examples/allreduce.plan, of long vectors. */
static void make_ring(void)
{
	size_t n = (size_t)snprintf(ring, sizeof(ring),
				    "collective allreduce\nmembers 3\nparts 3\nbytes %d %d\n", LONG,
				    1 << 20);

	for (unsigned r = 0; r < MANY; r++) {
		const unsigned next = (r + 1) % MANY, last = (r + 2) % MANY;

		n += (size_t)snprintf(ring + n, sizeof(ring) - n,
				      "rank %u\nrecv %u scratch[%u]\nsend %u from[%u]\nwait\n"
				      "fold scratch[%u] scratch[%u] from[%u]\n"
				      "recv %u scratch[%u]\nsend %u scratch[%u]\nwait\n"
				      "fold to[%u] scratch[%u] from[%u]\n"
				      "recv %u to[%u]\nsend %u to[%u]\nwait\n"
				      "recv %u to[%u]\nsend %u to[%u]\nwait\n",
				      r, last, last, next, r, last, last, last, last, next, next,
				      last, next, next, next, last, r, next, next, last, last, next,
				      r);
	}
}

static void took(slmpm_group g, const char *algorithm)
{
	const char *name = slmpm_plan_algorithm(circle_query(g).algorithm);

	CHECK(!algorithm ? !name : name && !strcmp(name, algorithm), "by %s, not %s",
	      name ? name : "boards", algorithm ? algorithm : "boards");
}

static void add_up(slmpm_group g, int rank, int n, bool in_place, const char *algorithm)
{
	static int64_t from[MOST], to[MOST];

	for (int i = 0; i < n; i++)
		(in_place ? to : from)[i] = rank * 1000 + i;
	OK(slmpm_allreduce(g, in_place ? SLMPM_IN_PLACE : from, to, (uint64_t)n, SLMPM_INT64,
			   SLMPM_CALC_SUM, PATIENCE));
	took(g, algorithm);
	for (int i = 0; i < n; i++)
		CHECK(to[i] == 3000 + 3 * i, "%lld at %d of %d", (long long)to[i], i, n);
}

static void add(void *to, const void *left, const void *right, uint64_t count, void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < count; i++)
		((int64_t *)to)[i] = ((const int64_t *)left)[i] + ((const int64_t *)right)[i];
}

static void add_own(slmpm_group g, int rank)
{
	const struct slmpm_combine own = {
		.size = sizeof(own), .flags = SLMPM_COLL_COMMUTES, .width = 8, .function = add};
	int64_t from[100], to[100];
	const struct slmpm_coll c = {.size = sizeof(c),
				     .kind = SLMPM_COLL_ALLREDUCE,
				     .from = from,
				     .to = to,
				     .count = 100,
				     .combine = &own};

	for (int i = 0; i < 100; i++)
		from[i] = rank + i;
	OK(slmpm_collective(g, &c, PATIENCE));
	took(g, "text");
	for (int i = 0; i < 100; i++)
		CHECK(to[i] == 3 + 3 * i, "%lld at %d", (long long)to[i], i);
}

static void send_from(slmpm_group g, int rank, int root)
{
	int32_t word[5] = {0};

	for (int i = 0; i < 5 && rank == root; i++)
		word[i] = root * 10 + i;
	OK(slmpm_broadcast(g, word, 5, SLMPM_INT32, root, PATIENCE));
	took(g, "text");
	for (int i = 0; i < 5; i++)
		CHECK(word[i] == root * 10 + i, "%d at %d, root %d", word[i], i, root);
}

static void refused(slmpm_group g)
{
	REFUSED(slmpm_group_plan((slmpm_group){0}, ring), SLMPM_EHANDLE, "group");
	REFUSED(slmpm_group_plan((slmpm_group){0}, "bad"), SLMPM_EHANDLE, "group");
	REFUSED(slmpm_group_plan(g, "collective scan\nmembers 1\nrank 0\ncopy to from\n"),
		SLMPM_EINVAL, "for 1 members, the group has 3");
	REFUSED(slmpm_group_plan(g, bad), SLMPM_EINVAL, "line 18, rank 1: to[0] lacks rank 2's");
}

/* While one waits for the others. */
static void busy(slmpm_group g)
{
	const struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_BARRIER};
	slmpm_req req;

	OK(slmpm_collective_start(g, &c, NULL, &req));
	REFUSED(slmpm_group_plan(g, ring), SLMPM_EBUSY, "under way");
	REFUSED(slmpm_group_plan(g, NULL), SLMPM_EBUSY, "under way");
	OK(slmpm_wait(&req, 1, NULL, PATIENCE));
}

static void play(slmpm_peer founder, int i, void *apart)
{
	const char *text = apart ? "text" : NULL, *table = apart ? "flat" : NULL;
	slmpm_group g, part;

	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	refused(g);
	add_up(g, i, 4, false, table);
	OK(slmpm_group_plan(g, ring));
	OK(slmpm_group_plan(g, sum));
	OK(slmpm_group_plan(g, line));
	for (int in_place = 0; in_place < 2; in_place++) {
		add_up(g, i, 4, in_place, text); /* sum's */
		for (int n = 8; n < MOST; n = n * 3 + 1)
			add_up(g, i, n, in_place, text);
	}
	OK(slmpm_group_split(&part, g, 0, 0, PATIENCE)); /* has none */
	add_up(part, i, 4, false, table);
	OK(slmpm_group_destroy(part));
	if (apart) {
		add_own(g, i);
		busy(g);
		for (int root = 0; root < MANY; root++)
			send_from(g, i, root);
	}
	OK(slmpm_barrier(g, PATIENCE));
	OK(slmpm_group_plan(g, NULL)); /* none is left, */
	add_up(g, i, 4, false, table);
	OK(slmpm_group_plan(g, sum)); /* and others can be given */
	add_up(g, i, 4, false, text);
	OK(slmpm_group_destroy(g));
}

/* Rank 1 has none. */
static void play_alone(slmpm_peer founder, int i, void *arg)
{
	int64_t word = i, got;
	slmpm_group g;
	int rc;

	(void)arg;
	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	if (i != 1)
		OK(slmpm_group_plan(g, sum));
	rc = slmpm_allreduce(g, &word, &got, 1, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE);
	CHECK(rc == -SLMPM_EINVAL, "%s", slmpm_strerror(rc));
	CHECK(strstr(slmpm_error_detail(), "another count or plan"), "%s", slmpm_error_detail());
	OK(slmpm_group_destroy(g));
}

static void found(circle_part *part, bool apart)
{
	struct circle c = {.apart = apart ? 0xff : 0};
	slmpm_group g;

	circle_begin(&c, MANY, part, apart ? &c : NULL, 40);
	OK(slmpm_group_create(&g, c.ctx, c.peers, MANY, TAG, PATIENCE));
	for (int i = 0; i < MANY; i++)
		EXPECT(circle_wait(&c, i), 0);
	circle_end(&c);
}

static int apart(void *alone)
{
	found(alone ? play_alone : play, true);
	return 0;
}

static int together(void *arg)
{
	(void)arg;
	found(play, false);
	return 0;
}

int main(void)
{
	make_ring();
	snprintf(bad, sizeof(bad), "%s", sum);
	*strstr(bad, "fold to to scratch[2]\nrank 2") = '#'; /* rank 1 combines less */
	EXPECT(child_run(together, NULL, 40), 0);
	EXPECT(child_run(apart, NULL, 40), 0);
	EXPECT(child_run(apart, ring, 40), 0);
	return 0;
}
