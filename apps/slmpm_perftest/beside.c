/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective operation that is started and waited for: alone; then all members compute for as
 * long as that takes, alone as well; then they compute between starting the operation and waiting.
 */
#include "apps/slmpm_perftest/perftest.h"

#define SETTLING 16
#define UNITS    16

struct beside {
	uint64_t units;                              /* of computation: as long as the operation */
	double alone, computing, both, slowed, last; /* ns; last: of `both` */
};

/* From when all are there. */
static int gather_all(slmpm_group group, uint64_t *begin)
{
	int rc = slmpm_barrier(group, -1);

	*begin = now_ns();
	return rc;
}

static double since(uint64_t begin)
{
	return (double)(now_ns() - begin);
}

static int operate_alone(slmpm_group group, const struct slmpm_coll *coll, struct beside *b)
{
	uint64_t begin;
	slmpm_req req;
	int rc = gather_all(group, &begin);

	if (rc >= 0)
		rc = slmpm_collective_start(group, coll, NULL, &req);
	if (rc >= 0)
		rc = slmpm_wait(&req, 1, NULL, -1);
	b->alone += since(begin);
	return rc;
}

static int compute_alone(slmpm_group group, struct beside *b)
{
	uint64_t begin;
	int rc = gather_all(group, &begin);

	compute(b->units);
	b->computing += since(begin);
	return rc;
}

static int do_both(slmpm_group group, const struct slmpm_coll *coll, struct beside *b)
{
	uint64_t begin, working;
	slmpm_req req;
	int rc = gather_all(group, &begin);

	if (rc >= 0)
		rc = slmpm_collective_start(group, coll, NULL, &req);
	working = now_ns();
	compute(b->units);
	b->slowed += since(working);
	if (rc >= 0)
		rc = slmpm_wait(&req, 1, NULL, -1);
	b->last = since(begin);
	b->both += b->last;
	return rc;
}

/* Of a unit of computation, undisturbed by other members: the least of a few. */
static double least_unit_ns(void)
{
	double least = 0, ns;

	for (int i = 0; i < SETTLING; i++) {
		uint64_t begin = now_ns();

		compute(UNITS);
		ns = since(begin) / UNITS;
		least = i && least < ns ? least : ns;
	}
	return least;
}

/* Members that share a processor while all compute, as who has started them knows; 1. */
static unsigned sharers_of(const struct pair *p)
{
	unsigned processors = p->setup && p->setup->cpus ? p->setup->cpus : p->crew.members;

	return (p->crew.members + processors - 1) / processors;
}

/* All compute for as long, which is as long as the operation usually takes: the first ones take
 * longer. Of members that share a processor each has its part of that. */
static int choose_units(struct pair *p, const struct slmpm_coll *coll, struct beside *b)
{
	slmpm_group group = p->crew.group;
	double own[2] = {0, sharers_of(p)}, most[2] = {0, 1};
	int rc = 0;

	for (int i = 0; i < SETTLING && rc >= 0; i++) {
		struct beside t = {0};

		rc = operate_alone(group, coll, &t);
		own[0] = i && own[0] < t.alone ? own[0] : t.alone;
	}
	if (rc >= 0)
		rc = slmpm_allreduce(group, own, most, 2, SLMPM_DOUBLE, SLMPM_CALC_MAX, -1);
	b->units = (uint64_t)(most[0] / most[1] / least_unit_ns()) + 1;
	return rc;
}

static void say(struct extra *extra, const struct beside *b, double n)
{
	extra->each_ns = b->both / n;
	extra->bare_ns = b->alone / n;
	extra->kept = b->slowed > b->computing ? b->computing / b->slowed : 1;
	extra->hidden = 1 - (b->both - b->computing) / b->alone;
	extra->hidden = extra->hidden < 0 ? 0 : extra->hidden > 1 ? 1 : extra->hidden;
}

int collective_beside(struct pair *p, const struct slmpm_coll *coll, const struct job *j,
		      struct hist *stamps)
{
	slmpm_group group = p->crew.group;
	struct beside b = {0};
	int rc = choose_units(p, coll, &b);

	for (uint64_t i = 0; i < j->count && rc >= 0; i++) {
		rc = operate_alone(group, coll, &b);
		if (rc >= 0)
			rc = compute_alone(group, &b);
		if (rc >= 0)
			rc = do_both(group, coll, &b);
		if (stamps)
			hist_add(stamps, (uint64_t)(b.last + 0.5));
	}
	if (rc >= 0)
		say(&p->extra, &b, (double)j->count);
	return rc;
}
