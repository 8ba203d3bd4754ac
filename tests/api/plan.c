/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans: words and numbers, what calls refuse, and that the messages of all members are each
 * other's. tests/unit/plan.c has what they come to.
 */
#include <slmpm_plan.h>

#include <string.h>

#include "tests/lib/actor.h"

#define MEMBERS 13

enum { BARRIER = 1, ALLREDUCE = 4, KINDS = 11 };

static struct slmpm_plan *open_plan(uint32_t kind, uint32_t algorithm, uint32_t rank)
{
	const struct slmpm_plan_spec spec = {.size = sizeof(spec),
					     .kind = kind,
					     .algorithm = algorithm,
					     .members = MEMBERS,
					     .rank = rank,
					     .root = 5,
					     .count = 100};
	struct slmpm_plan *plan;

	OK(slmpm_plan_open(&plan, &spec));
	return plan;
}

/* Each pair's sends are its receives, with as many elements together. */
static void all_members(uint32_t kind, uint32_t algorithm)
{
	int64_t messages[MEMBERS][MEMBERS] = {0}, elements[MEMBERS][MEMBERS] = {0}, sent = 0;
	struct slmpm_plan_step step = {.size = sizeof(step)};

	for (uint32_t rank = 0; rank < MEMBERS; rank++) {
		struct slmpm_plan *plan = open_plan(kind, algorithm, rank);

		while (slmpm_plan_next(plan, &step) == 1) {
			uint32_t from = step.op == SLMPM_PLAN_SEND ? rank : step.peer;
			uint32_t to = step.op == SLMPM_PLAN_SEND ? step.peer : rank;

			CHECK(step.op >= SLMPM_PLAN_SEND && step.op <= SLMPM_PLAN_COPY, "op %u",
			      step.op);
			CHECK(step.lane < SLMPM_PLAN_LANES, "lane %u", step.lane);
			if (step.op > SLMPM_PLAN_RECV)
				continue;
			CHECK(from < MEMBERS && to < MEMBERS && from != to, "to %u", to);
			messages[from][to] += step.op == SLMPM_PLAN_SEND ? 1 : -1;
			elements[from][to] += step.op == SLMPM_PLAN_SEND ? (int64_t)step.count :
									   -(int64_t)step.count;
			sent += step.op == SLMPM_PLAN_SEND;
		}
		EXPECT(slmpm_plan_next(plan, &step), 0);
		slmpm_plan_close(plan);
	}
	for (int a = 0; a < MEMBERS; a++)
		for (int b = 0; b < MEMBERS; b++)
			CHECK(!messages[a][b] && !elements[a][b], "%s by %s: from %d to %d",
			      slmpm_plan_kind(kind), slmpm_plan_algorithm(algorithm), a, b);
	CHECK(sent >= MEMBERS - 1, "only %lld messages", (long long)sent);
}

static void every_kind(void)
{
	int algorithm;
	uint32_t kind;

	for (kind = 1; slmpm_plan_kind(kind); kind++) {
		for (uint32_t i = 0; (algorithm = slmpm_plan_algorithm_at(kind, i)) > 0; i++) {
			CHECK(slmpm_plan_algorithm((uint32_t)algorithm), "a number without a word");
			all_members(kind, (uint32_t)algorithm);
		}
		EXPECT(algorithm, -SLMPM_ENOENT);
	}
	EXPECT(kind, KINDS + 1);
	CHECK(!strcmp(slmpm_plan_kind(BARRIER), "barrier"), "%s", slmpm_plan_kind(BARRIER));
	CHECK(!strcmp(slmpm_plan_kind(ALLREDUCE), "allreduce"), "%s", slmpm_plan_kind(ALLREDUCE));
}

/* Left open, it is one that the kind has, the same as if it were given. */
static void chosen(void)
{
	struct slmpm_plan_info info = {.size = sizeof(info)}, given = {.size = sizeof(given)};
	struct slmpm_plan *plan;

	for (uint32_t kind = 1; kind <= KINDS; kind++) {
		plan = open_plan(kind, 0, 0);
		OK(slmpm_plan_query(plan, &info));
		slmpm_plan_close(plan);
		plan = open_plan(kind, info.algorithm, 0);
		OK(slmpm_plan_query(plan, &given));
		slmpm_plan_close(plan);
		CHECK(!memcmp(&info, &given, sizeof(info)), "%s", slmpm_plan_kind(kind));
	}
}

static int open_with(struct slmpm_plan_spec spec)
{
	struct slmpm_plan *plan;

	return slmpm_plan_open(&plan, &spec);
}

static void refused(void)
{
	const struct slmpm_plan_spec well = {
		.size = sizeof(well), .kind = ALLREDUCE, .members = 4, .count = 1};
	struct slmpm_plan_step step = {.size = sizeof(step)}, no_step = {.size = 0};
	struct slmpm_plan_info info = {.size = sizeof(info)};
	struct slmpm_plan_spec bad;
	struct slmpm_plan *plan;

	REFUSED(slmpm_plan_open(NULL, &well), SLMPM_EINVAL, "no place");
	REFUSED(slmpm_plan_open(&plan, NULL), SLMPM_EINVAL, "no structure");
	REFUSED(open_with((bad = well, bad.kind = 0, bad)), SLMPM_EINVAL, "kind 0");
	REFUSED(open_with((bad = well, bad.kind = 12, bad)), SLMPM_EINVAL, "kind 12");
	REFUSED(open_with((bad = well, bad.algorithm = 99, bad)), SLMPM_EINVAL, "by none");
	REFUSED(open_with((bad = well, bad.algorithm = 1, bad)), SLMPM_EINVAL, "dissemination");
	REFUSED(open_with((bad = well, bad.members = 0, bad)), SLMPM_EINVAL, "0 members");
	REFUSED(open_with((bad = well, bad.members = 1 << 25, bad)), SLMPM_EINVAL, "members");
	REFUSED(open_with((bad = well, bad.rank = 4, bad)), SLMPM_EINVAL, "rank 4");
	REFUSED(open_with((bad = well, bad.kind = 2, bad.root = 4, bad)), SLMPM_EINVAL, "root 4");
	REFUSED(open_with((bad = well, bad.flags = 8, bad)), SLMPM_EINVAL, "flags 0x8");
	REFUSED(open_with((bad = well, bad.kind = 7, bad.count = UINT64_MAX / 2, bad)),
		SLMPM_ELIMIT, "more elements");
	REFUSED(slmpm_plan_algorithm_at(0, 0), SLMPM_EINVAL, "kind 0");
	REFUSED(slmpm_plan_algorithm_at(BARRIER, 9), SLMPM_ENOENT, "barrier");
	REFUSED(slmpm_plan_next(NULL, &step), SLMPM_EINVAL, "no plan");
	REFUSED(slmpm_plan_query(NULL, &info), SLMPM_EINVAL, "no plan");
	plan = open_plan(BARRIER, 0, 0);
	REFUSED(slmpm_plan_next(plan, &no_step), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_plan_query(plan, NULL), SLMPM_EINVAL, "no structure");
	slmpm_plan_close(plan);
}

int main(void)
{
	every_kind();
	chosen();
	refused();
	return 0;
}
