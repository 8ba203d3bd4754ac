/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Collective operations of a group, by name, of a few bytes and of many, by 2 to 8 processes that
 * poll, or sleep at once; with other traffic of theirs meanwhile.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG    3
#define LONG   70000 /* elements: more than lie on a board */
#define ROUNDS 20

enum { DONE = 1 };

static int64_t *from, *to;
static uint64_t apart; /* those that connect by TCP, without memory that all have */

static int64_t value(int rank, uint64_t i)
{
	return (int64_t)(i * 7 % 1000) + 1000 * (int64_t)rank;
}

static void fill(int rank, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		from[i] = value(rank, i);
	memset(to, 0x77, n * sizeof(*to));
}

static int64_t sum(int lo, int hi, uint64_t i)
{
	int64_t s = 0;

	for (int r = lo; r < hi; r++)
		s += value(r, i);
	return s;
}

static void is(const char *what, int rank, uint64_t i, int64_t want)
{
	CHECK(to[i] == want, "%s, rank %d, element %llu: %lld, not %lld", what, rank,
	      (unsigned long long)i, (long long)to[i], (long long)want);
}

static void reductions(slmpm_group g, int rank, int n, uint64_t count, int root)
{
	fill(rank, count);
	OK(slmpm_allreduce(g, from, to, count, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
	for (uint64_t i = 0; i < count; i++)
		is("allreduce", rank, i, sum(0, n, i));
	fill(rank, count);
	OK(slmpm_reduce(g, from, to, count, SLMPM_INT64, SLMPM_CALC_SUM, root, PATIENCE));
	for (uint64_t i = 0; i < count && rank == root; i++)
		is("reduce", rank, i, sum(0, n, i));
	fill(rank, count);
	OK(slmpm_scan(g, from, to, count, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
	for (uint64_t i = 0; i < count; i++)
		is("scan", rank, i, sum(0, rank + 1, i));
	memcpy(to, from, count * sizeof(*to));
	OK(slmpm_exscan(g, SLMPM_IN_PLACE, to, count, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
	for (uint64_t i = 0; i < count; i++)
		is("exscan", rank, i, rank ? sum(0, rank, i) : value(0, i));
}

static void moves(slmpm_group g, int rank, int n, uint64_t count, int root)
{
	uint64_t all = count * (uint64_t)n;

	fill(rank, count);
	if (rank == root)
		memcpy(to, from, count * sizeof(*to));
	OK(slmpm_broadcast(g, to, count, SLMPM_INT64, root, PATIENCE));
	for (uint64_t i = 0; i < count; i++)
		is("broadcast", rank, i, value(root, i));
	fill(rank, all);
	OK(slmpm_scatter(g, from, to, count, SLMPM_INT64, root, PATIENCE));
	for (uint64_t i = 0; i < count; i++)
		is("scatter", rank, i, value(root, (uint64_t)rank * count + i));
	fill(rank, all);
	OK(slmpm_gather(g, from, to, count, SLMPM_INT64, root, PATIENCE));
	for (uint64_t i = 0; i < all && rank == root; i++)
		is("gather", rank, i, value((int)(i / count), i % count));
	OK(slmpm_allgather(g, from, to, count, SLMPM_INT64, PATIENCE));
	for (uint64_t i = 0; i < all; i++)
		is("allgather", rank, i, value((int)(i / count), i % count));
	OK(slmpm_alltoall(g, from, to, count, SLMPM_INT64, PATIENCE));
	for (uint64_t i = 0; i < all; i++)
		is("alltoall", rank, i,
		   value((int)(i / count), (uint64_t)rank * count + i % count));
	OK(slmpm_reduce_scatter(g, from, to, count, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
	for (uint64_t i = 0; i < count; i++)
		is("reduce-scatter", rank, i, sum(0, n, (uint64_t)rank * count + i));
}

static void all(slmpm_group g, int n)
{
	struct slmpm_group_info info;
	int rank = circle_query(g).rank;
	uint64_t room = (uint64_t)n * LONG * sizeof(*from);

	from = malloc(room);
	to = malloc(room);
	CHECK(from && to, "no memory");
	for (int k = 0; k < ROUNDS; k++) {
		OK(slmpm_barrier(g, PATIENCE));
		if (k % n == rank)
			usleep(2000); /* the others sleep by then, or yield */
		reductions(g, rank, n, 1 + (uint64_t)k, k % n);
		moves(g, rank, n, 1 + (uint64_t)k, k % n);
	}
	reductions(g, rank, n, LONG, n - 1);
	moves(g, rank, n, LONG / 2, 0);
	info = circle_query(g);
	CHECK(info.begun == info.done && info.begun == ROUNDS * 11 + 10, "%llu of %llu",
	      (unsigned long long)info.done, (unsigned long long)info.begun);
	free(from);
	free(to);
}

static void join(slmpm_peer founder, int i, void *arg)
{
	slmpm_group g;

	(void)i;
	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	all(g, *(int *)arg);
	OK(slmpm_group_destroy(g));
}

static int found(void *arg)
{
	int n = *(int *)arg;
	slmpm_peer members[CIRCLE_MAX] = {{0}};
	struct circle c = {.apart = apart};
	slmpm_group g;

	circle_begin(&c, n - 1, join, arg, 60);
	memcpy(&members[1], c.peers, sizeof(c.peers[0]) * (size_t)(n - 1));
	OK(slmpm_group_create(&g, c.ctx, members, n, TAG, PATIENCE));
	all(g, n);
	OK(slmpm_group_destroy(g));
	circle_end(&c);
	return 0;
}

static void try(int n, const char *what)
{
	int64_t before = actor_now_ms();

	EXPECT(child_run(found, &n, 60), 0);
	printf("%d processes, %s: %lld ms\n", n, what, (long long)(actor_now_ms() - before));
	fflush(stdout);
}

int main(void)
{
	static const char *const ways[] = {"adaptive", "block", "spin"};

	for (unsigned w = 0; w < 3; w++) {
		setenv("SLMPM_WAIT", ways[w], 1);
		setenv("SLMPM_ATTACH", w < 2 ? "y" : "n", 1); /* straight, and by the rings */
		for (int n = 2; n <= 8 && (n <= 3 || w < 2); n += n == 3 ? 5 : 1)
			try(n, ways[w]);
	}
	setenv("SLMPM_WAIT", ways[0], 1);
	apart = 0x7f;
	for (int n = 2; n <= 8; n += n == 3 ? 5 : 1)
		try(n, "over TCP");
	apart = 2;
	try(5, "one of them over TCP");
	return 0;
}
