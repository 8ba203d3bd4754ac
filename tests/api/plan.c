/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans: words and numbers, what calls refuse, and that the messages of all members are each
 * other's. tests/unit/plan.c has what they come to.
 */
#include <slmpm_plan.h>

#include <stdio.h>
#include <string.h>

#include "tests/lib/actor.h"

#define MEMBERS 13

enum {
	BARRIER = 1,
	BROADCAST,
	ALLREDUCE = 4,
	ALLGATHER = 7,
	ALLTOALL,
	REDUCE_SCATTER,
	SCAN,
	KINDS
};
enum { CHAIN = 4, RING = 7, PAIRWISE = 9 };

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

/* The steps are the same as a program, but for gates, each before a receive, and the end. */
static void as_program(uint32_t kind, uint32_t algorithm)
{
	struct slmpm_plan_spec spec = {.size = sizeof(spec),
				       .kind = kind,
				       .algorithm = algorithm,
				       .members = MEMBERS,
				       .flags = SLMPM_PLAN_PROGRAM,
				       .root = 5,
				       .count = 100};
	struct slmpm_plan_step step = {.size = sizeof(step)}, entry = {.size = sizeof(entry)};

	for (; spec.rank < MEMBERS; spec.rank++) {
		struct slmpm_plan *plan = open_plan(kind, algorithm, spec.rank), *program;

		OK(slmpm_plan_open(&program, &spec));
		while (slmpm_plan_next(plan, &step) == 1) {
			EXPECT(slmpm_plan_next(program, &entry), 1);
			if (entry.op == SLMPM_PLAN_GATE) {
				CHECK(step.op == SLMPM_PLAN_RECV, "a gate before %u", step.op);
				EXPECT(slmpm_plan_next(program, &entry), 1);
			}
			CHECK(!memcmp(&entry, &step, sizeof(step)), "%u, not %u", entry.op,
			      step.op);
		}
		EXPECT(slmpm_plan_next(program, &entry), 1);
		EXPECT(entry.op, SLMPM_PLAN_END);
		EXPECT(slmpm_plan_next(program, &entry), 0);
		slmpm_plan_close(program);
		slmpm_plan_close(plan);
	}
}

static void every_kind(void)
{
	int algorithm;
	uint32_t kind;

	for (kind = 1; slmpm_plan_kind(kind); kind++) {
		for (uint32_t i = 0; (algorithm = slmpm_plan_algorithm_at(kind, i)) > 0; i++) {
			CHECK(slmpm_plan_algorithm((uint32_t)algorithm), "a number without a word");
			all_members(kind, (uint32_t)algorithm);
			as_program(kind, (uint32_t)algorithm);
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
	int rc = slmpm_plan_open(&plan, &spec);

	if (rc == 0)
		slmpm_plan_close(plan);
	return rc;
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
	REFUSED(open_with((bad = well, bad.kind = 0, bad)), SLMPM_EINVAL, ".kind 0");
	REFUSED(open_with((bad = well, bad.kind = 12, bad)), SLMPM_EINVAL, ".kind 12");
	REFUSED(open_with((bad = well, bad.algorithm = 99, bad)), SLMPM_EINVAL,
		"allreduce: .algorithm 99, unknown");
	REFUSED(open_with((bad = well, bad.algorithm = 1, bad)), SLMPM_EINVAL,
		"allreduce: .algorithm 1, dissemination");
	REFUSED(open_with((bad = well, bad.members = 0, bad)), SLMPM_EINVAL, ".members 0");
	REFUSED(open_with((bad = well, bad.members = 1 << 25, bad)), SLMPM_EINVAL, ".members");
	REFUSED(open_with((bad = well, bad.rank = 4, bad)), SLMPM_EINVAL, ".rank 4");
	REFUSED(open_with((bad = well, bad.kind = BROADCAST, bad.root = 4, bad)), SLMPM_EINVAL,
		"broadcast: .root 4");
	REFUSED(open_with((bad = well, bad.flags = 16, bad)), SLMPM_EINVAL,
		"allreduce: .flags 0x10: unknown");
	REFUSED(open_with((bad = well, bad.hosts = (const uint32_t[]){0, 0, 1, 3}, bad)),
		SLMPM_EINVAL, ".hosts: 1 of rank 2");
	REFUSED(open_with((bad = well, bad.hosts = (const uint32_t[]){0, 2, 2, 3}, bad)),
		SLMPM_EINVAL, ".hosts: 2 of rank 1");
	REFUSED(open_with((bad = well, bad.kind = ALLGATHER, bad.count = UINT64_MAX / 2, bad)),
		SLMPM_ELIMIT, "allgather: .count: more elements");
	REFUSED(open_with((bad = well, bad.kind = SCAN, bad.algorithm = CHAIN, bad.piece = 1,
			   bad.count = UINT64_C(1) << 33, bad)),
		SLMPM_ELIMIT, "pieces");
	REFUSED(slmpm_plan_algorithm_at(0, 0), SLMPM_EINVAL, "kind 0");
	REFUSED(slmpm_plan_algorithm_at(BARRIER, 9), SLMPM_ENOENT, "barrier");
	REFUSED(slmpm_plan_next(NULL, &step), SLMPM_EINVAL, "no plan");
	REFUSED(slmpm_plan_query(NULL, &info), SLMPM_EINVAL, "no plan");
	plan = open_plan(BARRIER, 0, 0);
	REFUSED(slmpm_plan_next(plan, &no_step), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_plan_query(plan, NULL), SLMPM_EINVAL, "no structure");
	slmpm_plan_close(plan);
}

/* ---- what a kind does not take --------------------------------------------------------------- */

enum { COUNTS = 1, PLACES = 2, TO_COUNTS = 4, TO_PLACES = 8, IN_PLACE = 16, ORDER = 32 };

static int open_as(uint32_t kind, uint32_t members)
{
	static const uint64_t some[4] = {1, 1, 1, 1};

	return open_with(
		(struct slmpm_plan_spec){.size = sizeof(struct slmpm_plan_spec),
					 .kind = kind,
					 .members = 4,
					 .count = 1,
					 .flags = (members & IN_PLACE ? SLMPM_PLAN_IN_PLACE : 0) |
						  (members & ORDER ? SLMPM_PLAN_RANK_ORDER : 0),
					 .counts = members & COUNTS ? some : NULL,
					 .places = members & PLACES ? some : NULL,
					 .to_counts = members & TO_COUNTS ? some : NULL,
					 .to_places = members & TO_PLACES ? some : NULL});
}

/* That SET is taken of a kind which TAKES it, else refused, and WORD named with the kind. */
static void kind_takes(uint32_t kind, bool takes, uint32_t set, const char *word)
{
	char text[64];

	if (takes) {
		EXPECT(open_as(kind, set), 0);
		return;
	}
	snprintf(text, sizeof(text), "slmpm_plan_open: %s: %s", slmpm_plan_kind(kind), word);
	REFUSED(open_as(kind, set), SLMPM_EINVAL, text);
}

static void taken(void)
{
	static const uint32_t combine = 1u << 3 | 1u << 4 | 1u << 9 | 1u << 10 | 1u << 11;

	for (uint32_t kind = BARRIER; kind <= KINDS; kind++) {
		const bool exchange = kind == ALLTOALL;
		const bool blocks = kind >= 5 && kind <= REDUCE_SCATTER;
		const uint32_t own = exchange ? COUNTS | TO_COUNTS : COUNTS;

		kind_takes(kind, true, IN_PLACE, "");
		kind_takes(kind, combine >> kind & 1, ORDER, ".flags 0x2");
		kind_takes(kind, blocks, own, ".counts");
		kind_takes(kind, blocks, own | PLACES, ".counts");
		kind_takes(kind, false, PLACES, ".places");
		kind_takes(kind, false, TO_PLACES, ".to_places");
		kind_takes(kind, exchange, own | TO_COUNTS | TO_PLACES,
			   blocks ? ".to_" : ".counts");
		kind_takes(kind, exchange, IN_PLACE | TO_COUNTS, ".to_counts");
	}
	kind_takes(ALLTOALL, false, COUNTS, ".counts without .to_counts");
	kind_takes(ALLTOALL, false, TO_COUNTS, ".to_counts without .counts");
	kind_takes(ALLTOALL, false, IN_PLACE | COUNTS | TO_COUNTS, ".counts: in place");
}

static void own_block(void)
{
	const uint64_t counts[2] = {2, 1}, to_counts[2] = {1, 1};
	struct slmpm_plan_spec spec = {.size = sizeof(spec),
				       .kind = ALLTOALL,
				       .members = 2,
				       .counts = counts,
				       .to_counts = to_counts};

	REFUSED(open_with(spec), SLMPM_EINVAL, "differ for .rank itself");
	spec.rank = 1;
	OK(open_with(spec));
}

/* An algorithm that is given keeps to the order that is asked for, or is refused. */
static void in_order(void)
{
	struct slmpm_plan_spec spec = {.size = sizeof(spec),
				       .kind = ALLREDUCE,
				       .algorithm = PAIRWISE,
				       .flags = SLMPM_PLAN_RANK_ORDER,
				       .members = 4,
				       .count = 1};

	EXPECT(open_with(spec), 0);
	spec.algorithm = RING;
	REFUSED(open_with(spec), SLMPM_EINVAL, "allreduce: .flags 0x2: not the order of ring");
	spec.flags = SLMPM_PLAN_NONCOMMUTATIVE;
	REFUSED(open_with(spec), SLMPM_EINVAL, "allreduce: .flags 0x4: not the order of ring");
}

/* ---- by a text ------------------------------------------------------------------------------- */

static const char text[] = "collective allreduce\nmembers 2\nparts 2\n"
			   "rank 0\nrecv 1 scratch\nsend 1 from\nwait\nfold to from scratch\n"
			   "rank 1\nrecv 0 scratch\nsend 0 from\nwait\nfold to scratch from\n";

static int load(struct slmpm_plan_spec spec, const char *words)
{
	struct slmpm_plan *plan;
	int rc = slmpm_plan_load(&plan, &spec, words);

	if (rc == 0)
		slmpm_plan_close(plan);
	return rc;
}

/* In place what is contributed is copied first. */
static void steps_of_text(uint32_t flags, const char *ops)
{
	const struct slmpm_plan_spec spec = {.size = sizeof(spec),
					     .kind = ALLREDUCE,
					     .members = 2,
					     .rank = 1,
					     .flags = flags,
					     .count = 5};
	struct slmpm_plan_step step = {.size = sizeof(step)};
	struct slmpm_plan_info info = {.size = sizeof(info)};
	struct slmpm_plan *plan;

	OK(slmpm_plan_load(&plan, &spec, text));
	OK(slmpm_plan_query(plan, &info));
	CHECK(!strcmp(slmpm_plan_algorithm(info.algorithm), "text"), "%u", info.algorithm);
	CHECK(info.scratch == (flags & SLMPM_PLAN_IN_PLACE ? 10 : 5), "%llu",
	      (unsigned long long)info.scratch);
	for (; *ops; ops++) {
		EXPECT(slmpm_plan_next(plan, &step), 1);
		CHECK(step.op == (uint32_t)(*ops - '0'), "%u, not %c", step.op, *ops);
	}
	EXPECT(slmpm_plan_next(plan, &step), 0);
	slmpm_plan_close(plan);
}

static void by_text(void)
{
	const struct slmpm_plan_spec well = {
		.size = sizeof(well), .kind = ALLREDUCE, .members = 2, .count = 1};
	struct slmpm_plan_spec bad;
	struct slmpm_plan *plan;

	steps_of_text(0, "2134");
	steps_of_text(SLMPM_PLAN_IN_PLACE, "52134");
	steps_of_text(SLMPM_PLAN_PROGRAM, "21347");
	REFUSED(slmpm_plan_load(NULL, &well, text), SLMPM_EINVAL, "no place");
	REFUSED(slmpm_plan_load(&plan, &well, NULL), SLMPM_EINVAL, "no text");
	REFUSED(slmpm_plan_load(&plan, NULL, text), SLMPM_EINVAL, "no structure");
	REFUSED(load(well, "collective allreduce\nmembers 2\nrank 0\n"), SLMPM_EINVAL, "line 3: ");
	REFUSED(load((bad = well, bad.members = 3, bad), text), SLMPM_EINVAL,
		"for allreduce of 2 members");
	REFUSED(load((bad = well, bad.kind = SCAN, bad), text), SLMPM_EINVAL, "for allreduce");
	REFUSED(load((bad = well, bad.algorithm = RING, bad), text), SLMPM_EINVAL, ".algorithm");
	REFUSED(load((bad = well, bad.count = UINT64_C(1) << 60, bad), text), SLMPM_ELIMIT,
		"more elements");
	OK(load((bad = well, bad.flags = SLMPM_PLAN_RANK_ORDER, bad), text));
}

int main(void)
{
	by_text();
	every_kind();
	chosen();
	refused();
	taken();
	own_block();
	in_order();
	return 0;
}
