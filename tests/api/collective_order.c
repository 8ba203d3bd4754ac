/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * The same bits of sums of floating-point numbers on one machine and over TCP, by whatever
 * algorithm (SLMPM_COLL_ORDER=rank); in any order the same bits at all members; algorithms that are
 * forced by who has founded the group; settings that mean nothing.
 */
#include <slmpm_plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG  8
#define MANY 5
#define MOST 1500

struct scene {
	const char *algorithm, *order; /* as set at who founds */
	bool apart;
	const char *allreduce; /* the algorithm of a long one; NULL: whichever */
	bool any;              /* its sum may be another */
	const char *brief;     /* SLMPM_COLL_SHORT, SLMPM_COLL_SHORT_RANK */
};

static double mine(int rank, int i)
{
	return (rank % 2 ? 1e16 : 1.0) / (i + 3) - (rank == 3 ? 1e16 / (i + 3) : 0) + rank * 0.1;
}

/* In the order of the ranks. */
static double sum_of(int first, int last, int i)
{
	double sum = mine(first, i);

	for (int r = first + 1; r <= last; r++)
		sum += mine(r, i);
	return sum;
}

static void same_bits(const char *what, const double *got, int n, int from, int last)
{
	for (int i = 0; i < n; i++) {
		double want = sum_of(0, last, from + i);

		CHECK(memcmp(&got[i], &want, sizeof(want)) == 0, "%s: %.17g at %d, expected %.17g",
		      what, got[i], i, want);
	}
}

/* All members have what this one has. */
static void same_everywhere(slmpm_group g, const double *got, int n)
{
	static double all[MANY * MOST];

	OK(slmpm_allgather(g, got, all, (uint64_t)n, SLMPM_DOUBLE, PATIENCE));
	for (int r = 0; r < MANY; r++)
		CHECK(memcmp(&all[r * n], got, (size_t)n * sizeof(*got)) == 0,
		      "rank %d has other bits", r);
}

static void sum_all(slmpm_group g, const struct scene *s, int rank, int n)
{
	static double own[MANY * MOST], got[MANY * MOST];
	struct slmpm_group_info info;
	const char *took;

	for (int i = 0; i < MANY * n; i++)
		own[i] = mine(rank, i);
	OK(slmpm_allreduce(g, own, got, (uint64_t)n, SLMPM_DOUBLE, SLMPM_CALC_SUM, PATIENCE));
	info = circle_query(g);
	took = slmpm_plan_algorithm(info.algorithm);
	CHECK(!took == !s->apart, "by %s", took ? took : "boards");
	CHECK(n < MOST || !s->allreduce || !strcmp(took, s->allreduce), "by %s, not %s", took,
	      s->allreduce);
	CHECK(info.any_order == (s->order && !strcmp(s->order, "any")), "order");
	same_everywhere(g, got, n);
	if (s->any)
		return;
	same_bits("allreduce", got, n, 0, MANY - 1);
	OK(slmpm_reduce(g, own, got, (uint64_t)n, SLMPM_DOUBLE, SLMPM_CALC_SUM, 2, PATIENCE));
	if (rank == 2)
		same_bits("reduce", got, n, 0, MANY - 1);
	OK(slmpm_scan(g, own, got, (uint64_t)n, SLMPM_DOUBLE, SLMPM_CALC_SUM, PATIENCE));
	same_bits("scan", got, n, 0, rank);
	OK(slmpm_reduce_scatter(g, own, got, (uint64_t)n, SLMPM_DOUBLE, SLMPM_CALC_SUM, PATIENCE));
	same_bits("reduce-scatter", got, n, rank * n, MANY - 1);
}

static void play(slmpm_peer founder, int i, void *arg)
{
	slmpm_group g, part;

	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	sum_all(g, arg, i, 1);
	sum_all(g, arg, i, 100);
	sum_all(g, arg, i, MOST);
	OK(slmpm_group_split(&part, g, 0, 0, PATIENCE)); /* as the whole */
	sum_all(part, arg, i, MOST);
	OK(slmpm_group_destroy(part));
	OK(slmpm_barrier(g, PATIENCE));
	OK(slmpm_group_destroy(g));
}

static int found(void *arg)
{
	struct scene *s = arg;
	struct circle c = {.apart = s->apart ? 0xff : 0};
	slmpm_group g;

	settings_set("SLMPM_COLL_ALGORITHM", s->algorithm ? s->algorithm : "");
	settings_set("SLMPM_COLL_SHORT", s->brief ? s->brief : "");
	settings_set("SLMPM_COLL_SHORT_RANK", s->brief ? s->brief : "");
	settings_set("SLMPM_COLL_ORDER", s->order ? s->order : "rank");
	circle_begin(&c, MANY, play, s, 60);
	OK(slmpm_group_create(&g, c.ctx, c.peers, MANY, TAG, PATIENCE));
	for (int i = 0; i < MANY; i++)
		EXPECT(circle_wait(&c, i), 0);
	circle_end(&c);
	return 0;
}

static int refused(void *word)
{
	const slmpm_peer self = {0};
	slmpm_group g;

	settings_set("SLMPM_COLL_ALGORITHM", word);
	REFUSED(slmpm_group_create(&g, (slmpm_ctx){0}, &self, 1, TAG, PATIENCE), SLMPM_EINVAL,
		"SLMPM_COLL_ALGORITHM: ");
	return 0;
}

static int refused_bytes(void *word)
{
	const slmpm_peer self = {0};
	slmpm_group g;

	settings_set("SLMPM_COLL_SHORT", "allreduce:1k");
	settings_set("SLMPM_COLL_SHORT_RANK", word);
	REFUSED(slmpm_group_create(&g, (slmpm_ctx){0}, &self, 1, TAG, PATIENCE), SLMPM_EINVAL,
		"SLMPM_COLL_SHORT_RANK: ");
	return 0;
}

int main(void)
{
	static struct scene scenes[] = {
		{NULL, NULL, false, NULL, false, NULL},
		{"ring", "any", false, NULL, false, NULL},
		{NULL, NULL, true, "pairwise", false, NULL},
		{NULL, "any", true, NULL, true, NULL},
		{"flat", NULL, true, "flat", false, NULL},
		{"ring,allreduce:auto,reduce:chain,scan:chain", "rank", true, "pairwise", false,
		 NULL},
		{"ring", "rank", true, "pairwise", false, NULL}, /* it would be another sum */
		{"ring", "any", true, "ring", true, NULL},
		{"flat,allreduce:recursive_doubling", "any", true, "recursive_doubling", true,
		 NULL},
		{NULL, "any", true, "ring", true, "reduce:2,allreduce:8k"},
		{NULL, "any", true, "recursive_doubling", true, "allreduce:1k,allreduce:16k"},
		{NULL, NULL, true, "flat", false, "allreduce:16k"},
	};
	static char *const bytes[] = {"allreduce", "allreduce:", "all:1k", "scan:3",  "scan:0",
				      "scan:4g",   "scan:-2",    "scan:1", "scan:1kb"};
	static char *const words[] = {"rings", "allreduce:bruck", "broad:flat", "ring,,"};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		EXPECT(child_run(refused, words[i], 20), 0);
	for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
		EXPECT(child_run(refused_bytes, bytes[i], 20), 0);
	for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		printf("%s, order %s, %s\n", scenes[i].algorithm ? scenes[i].algorithm : "auto",
		       scenes[i].order ? scenes[i].order : "rank", scenes[i].apart ? "tcp" : "shm");
		fflush(stdout);
		EXPECT(child_run(found, &scenes[i], 60), 0);
	}
	return 0;
}
