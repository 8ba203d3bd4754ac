/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Prepared operations: started some ten thousand times, by requests, counters, queues and calls
 * that block, beside others that are not prepared; refused while they run; gone with their group.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/circle.h"
#include "tests/lib/crew.h"
#include "tests/lib/random.h"

#define RUNS 10000
#define MOST 3  /* members */
#define LONG 64 /* elements: more than lie in a post */

enum { SUMS, PAIRS, BLOCKS, KINDS };

struct all {
	slmpm_group group;
	int rank, n;
	slmpm_prepared prepared[KINDS];
	int64_t from[MOST * LONG], sums[LONG], came[MOST * LONG];
	slmpm_ctr ctr;
	slmpm_cq cq;
	uint64_t counted;
};

static void prepare(struct all *a)
{
	uint64_t counts[MOST], places[MOST], to_counts[MOST];
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_ALLREDUCE,
			       .type = SLMPM_INT64,
			       .op = SLMPM_CALC_SUM,
			       .from = a->from,
			       .to = a->sums,
			       .count = 3};

	OK(slmpm_collective_prepare(&a->prepared[SUMS], a->group, &c));
	c.count = LONG;
	OK(slmpm_collective_prepare(&a->prepared[BLOCKS], a->group, &c));
	for (int r = 0; r < a->n; r++) { /* r gets r + 1 elements of each */
		counts[r] = (uint64_t)r + 1;
		places[r] = (uint64_t)(a->n - 1 - r) * MOST;
		to_counts[r] = (uint64_t)a->rank + 1;
	}
	c.kind = SLMPM_COLL_ALLTOALL;
	c.op = 0;
	c.to = a->came;
	c.counts = counts;
	c.places = places;
	c.to_counts = to_counts;
	OK(slmpm_collective_prepare(&a->prepared[PAIRS], a->group, &c));
	memset(&c, 0xff, sizeof(c)); /* all has been copied */
	memset(counts, 0xff, sizeof(counts));
	memset(places, 0xff, sizeof(places));
	memset(to_counts, 0xff, sizeof(to_counts));
}

static int64_t value(int rank, int run, int i)
{
	return run * 3 + rank * 1000 + i;
}

static void give(struct all *a, int run)
{
	for (int i = 0; i < MOST * LONG; i++)
		a->from[i] = value(a->rank, run, i);
	memset(a->sums, 0, sizeof(a->sums));
	memset(a->came, 0, sizeof(a->came));
}

static void check(const struct all *a, int kind, int run)
{
	for (int i = 0; i < (kind == SUMS ? 3 : LONG) && kind != PAIRS; i++) {
		int64_t want = 0;

		for (int r = 0; r < a->n; r++)
			want += value(r, run, i);
		CHECK(a->sums[i] == want, "run %d, element %d: %lld, not %lld", run, i,
		      (long long)a->sums[i], (long long)want);
	}
	for (int r = 0; r < a->n && kind == PAIRS; r++)
		for (int i = 0; i <= a->rank; i++)
			CHECK(a->came[r * (a->rank + 1) + i] ==
				      value(r, run, (a->n - 1 - a->rank) * MOST + i),
			      "run %d, of rank %d, element %d: %lld", run, r, i,
			      (long long)a->came[r * (a->rank + 1) + i]);
}

static void run_once(struct all *a, slmpm_prepared p, uint32_t way)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE, .cookie = way};
	struct slmpm_done d;
	slmpm_req req;

	switch (way) {
	case 0: OK(slmpm_prepared_start(p, &how, NULL)); break;
	case 1:
		OK(slmpm_prepared_start(p, NULL, &req));
		EXPECT(slmpm_wait(&req, 1, &d, PATIENCE), 0);
		OK(d.status);
		break;
	case 2:
		how.ctr = a->ctr;
		OK(slmpm_prepared_start(p, &how, NULL));
		OK(slmpm_ctr_wait(a->ctr, ++a->counted, PATIENCE));
		break;
	default:
		how.cq = a->cq;
		OK(slmpm_prepared_start(p, &how, NULL));
		EXPECT(slmpm_cq_wait(a->cq, &d, 1, PATIENCE), 1);
		CHECK(d.status == 0 && d.cookie == way, "status %d", d.status);
	}
}

static void again(const struct crew *crew, int rank)
{
	struct rng same = {3}, own = {1000 + (uint64_t)rank};
	struct all a = {.group = crew->group[0], .rank = rank, .n = crew->members};
	const int runs = (crew->apart ? RUNS / 10 : RUNS) / actor_slow();

	OK(slmpm_ctr_create(crew->ctx, &a.ctr));
	OK(slmpm_cq_create(crew->ctx, &a.cq));
	prepare(&a);
	for (int k = 0; k < runs; k++) {
		int kind = (int)rng_below(&same, KINDS);

		give(&a, k);
		if (k == runs / 2) /* they go on without one */
			OK(slmpm_prepared_destroy(a.prepared[SUMS]));
		if (k >= runs / 2 && kind == SUMS)
			kind = PAIRS;
		run_once(&a, a.prepared[kind], rng_below(&own, 4));
		check(&a, kind, k);
		if (k % 100 == 0)
			OK(slmpm_barrier(a.group, PATIENCE));
	}
	OK(slmpm_ctr_destroy(a.ctr));
	OK(slmpm_cq_destroy(a.cq));
}

static void refused(const struct crew *crew, int rank)
{
	slmpm_prepared p, lone, none = {0};
	slmpm_group g = crew->group[0], own;
	slmpm_peer self = {0};
	struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_BARRIER};
	struct slmpm_how how = {.size = sizeof(how), .flags = 1};
	slmpm_req req, another;

	REFUSED(slmpm_collective_prepare(NULL, g, &c), SLMPM_EINVAL, "no place");
	REFUSED(slmpm_collective_prepare(&p, g, NULL), SLMPM_EINVAL, "slmpm_collective_prepare");
	c.kind = 99;
	REFUSED(slmpm_collective_prepare(&p, g, &c), SLMPM_EINVAL, "no kind 99");
	c.kind = SLMPM_COLL_BARRIER;
	REFUSED(slmpm_prepared_start(none, NULL, &req), SLMPM_EHANDLE, "prepared");
	REFUSED(slmpm_prepared_destroy(none), SLMPM_EHANDLE, "prepared");
	OK(slmpm_collective_prepare(&p, g, &c));
	REFUSED(slmpm_prepared_start(p, &how, NULL), SLMPM_EINVAL, "flags 0x1");
	how.flags = 0;
	REFUSED(slmpm_prepared_start(p, &how, NULL), SLMPM_EAGAIN, "timeout of 0");
	if (!rank) {
		OK(slmpm_prepared_start(p, NULL, &req));
		REFUSED(slmpm_prepared_start(p, NULL, &another), SLMPM_EBUSY, "has not ended");
		REFUSED(slmpm_prepared_destroy(p), SLMPM_EBUSY, "has not ended");
	}
	OK(slmpm_barrier(crew->group[1], PATIENCE));
	if (rank) /* the other members need not have prepared it */
		OK(slmpm_barrier(g, PATIENCE));
	else
		EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	OK(slmpm_prepared_destroy(p));
	REFUSED(slmpm_prepared_start(p, NULL, NULL), SLMPM_EHANDLE, "prepared");
	OK(slmpm_group_create(&own, crew->ctx, &self, 1, 1, PATIENCE));
	OK(slmpm_collective_prepare(&lone, own, &c));
	OK(slmpm_prepared_start(lone, NULL, NULL));
	OK(slmpm_group_destroy(own));
	REFUSED(slmpm_prepared_start(lone, NULL, NULL), SLMPM_EHANDLE, "prepared");
	OK(slmpm_collective_prepare(&p, g, &c)); /* it goes with its group */
}

static void run(struct crew *crew)
{
	int64_t before = actor_now_ms();

	crew->body = refused;
	crew_run(crew, 40);
	crew->body = again;
	crew_run(crew, 60);
	printf("%d processes: %lld ms\n", crew->members, (long long)(actor_now_ms() - before));
	fflush(stdout);
}

int main(void)
{
	struct crew crew = {.groups = 2};

	for (crew.members = 2; crew.members <= MOST; crew.members++)
		run(&crew);
	crew.members = MOST;
	crew.apart = 2; /* rank 2 is connected by TCP */
	run(&crew);
	return 0;
}
