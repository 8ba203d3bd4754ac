/* SPDX-License-Identifier: BSD-3-Clause */
/* Members before a plan, and what its kind says that they have behind it. */
#ifndef TESTS_UNIT_PLAN_REFERENCE_H
#define TESTS_UNIT_PLAN_REFERENCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/plan_run.h"

/* ---- what it should be ----------------------------------------------------------------------- */

static bool contributes_all(uint32_t rank)
{
	return trial.kind == PLAN_SCATTER ?
		       rank == trial.root :
		       trial.kind == PLAN_ALLTOALL || trial.kind == PLAN_REDUCE_SCATTER;
}

static bool gets_all(uint32_t rank)
{
	return trial.kind == PLAN_GATHER ?
		       rank == trial.root :
		       trial.kind == PLAN_ALLGATHER || trial.kind == PLAN_ALLTOALL;
}

static uint64_t lay(uint64_t *counts, uint64_t *places, uint32_t rank, bool sends)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < trial.size; i++) {
		const uint32_t r = trial.shape == PLACED ? trial.size - 1 - i : i;

		counts[r] = sends ? block_len(rank, r) : block_len(r, rank);
		if (trial.kind != PLAN_ALLTOALL)
			counts[r] = block_len(0, r);
		end += trial.shape == PLACED ? i % 3 : 0;
		places[r] = end;
		end += counts[r];
	}
	return end;
}

static void define(struct memory *m, uint64_t at, uint32_t from, uint32_t to, uint64_t count)
{
	for (uint64_t e = 0; e < count; e++) {
		m->at[at + e] = given(from, to, e);
		m->state[at + e] = DEFINED;
	}
}

static void contribute(uint32_t rank)
{
	struct member *me = &members[rank];
	struct memory *m = &me->area[trial.in_place ? PLAN_TO : PLAN_FROM];
	const bool to = trial.in_place && trial.kind == PLAN_ALLTOALL;

	if (contributes_all(rank)) {
		for (uint32_t r = 0; r < trial.size; r++)
			define(m, to ? me->to_places[r] : me->places[r], rank, r,
			       to ? me->to_counts[r] : me->counts[r]);
	} else if (is_in_blocks(trial.kind)) {
		const bool placed = trial.in_place && gets_all(rank);

		if (trial.kind != PLAN_SCATTER)
			define(m, placed ? me->places[rank] : 0, rank, 0, me->counts[rank]);
	} else if (trial.kind != PLAN_BROADCAST || rank == trial.root) {
		define(m, 0, rank, 0, trial.count);
	}
}

static void member_make(uint32_t rank)
{
	struct member *me = &members[rank];
	const bool counted = trial.shape != EVEN, placed = trial.shape == PLACED;
	const uint64_t from_end = lay(me->counts, me->places, rank, true);
	const uint64_t to_end = lay(me->to_counts, me->to_places, rank, false);
	uint64_t from_len = trial.count, to_len = trial.count;
	const struct plan_spec spec = {
		.kind = trial.kind,
		.algorithm = trial.algorithm,
		.size = trial.size,
		.rank = rank,
		.root = trial.root,
		.flags = trial.in_place ? PLAN_IN_PLACE : 0,
		.count = counted ? 0 : trial.count,
		.counts = counted ? me->counts : NULL,
		.places = placed ? me->places : NULL,
		.to_counts = counted ? me->to_counts : NULL,
		.to_places = placed ? me->to_places : NULL,
		.piece = trial.piece,
		.hosts = hosts_of_trial(),
		.processors = trial.processors,
		.text = trial.text,
	};

	assert_int_equal(plan_begin(&me->plan, &spec), 0);
	if (is_in_blocks(trial.kind)) {
		from_len = contributes_all(rank) ? from_end : me->counts[rank];
		to_len = gets_all(rank) ? to_end : me->to_counts[rank];
	}
	if (trial.kind == PLAN_REDUCE && rank != trial.root && !trial.in_place)
		to_len = 0;
	if (trial.kind == PLAN_GATHER && rank != trial.root && !trial.in_place)
		to_len = 0;
	if (trial.kind == PLAN_BROADCAST && rank == trial.root && !trial.in_place)
		to_len = 0;
	if (trial.in_place) {
		to_len = to_len > from_len ? to_len : from_len;
		from_len = 0;
	}
	memory_make(&me->area[PLAN_FROM], from_len);
	memory_make(&me->area[PLAN_TO], to_len);
	memory_make(&me->area[PLAN_SCRATCH], me->plan.scratch);
	contribute(rank);
	me->known = 1ull << rank;
}

static void member_steps(uint32_t rank)
{
	struct member *me = &members[rank];
	struct plan_step step;

	me->steps = 0;
	while (plan_next(&me->plan, &step)) {
		if (me->steps == me->room) {
			me->room = me->room * 2 + 16;
			me->step = realloc(me->step, me->room * sizeof(step));
		}
		me->step[me->steps++] = step;
	}
}

static void member_free(uint32_t rank)
{
	struct member *me = &members[rank];

	for (int a = PLAN_FROM; a <= PLAN_SCRATCH; a++)
		memory_free(&me->area[a]);
	me->next = me->sending = me->inbox = 0;
	memset(me->lane, 0, sizeof(me->lane));
	for (uint32_t to = 0; to < trial.size; to++) {
		while (messages[rank][to]) {
			struct message *m = messages[rank][to];

			messages[rank][to] = m->next;
			free(m->data);
			free(m);
		}
		while (receives[rank][to]) {
			struct posted *r = receives[rank][to];

			receives[rank][to] = r->next;
			free(r);
		}
	}
}

/* Element E of block TO of a reduction over the ranks below END. */
static uint64_t reduced(uint32_t end, uint32_t to, uint64_t e)
{
	uint64_t sum = given(0, to, e);

	for (uint32_t r = 1; r < end; r++)
		sum = combine(trial.op, sum, given(r, to, e));
	return sum;
}

static bool expect(uint32_t rank, uint64_t at, uint64_t value)
{
	const struct memory *m = &members[rank].area[PLAN_TO];

	if (at >= m->len || m->state[at] != DEFINED)
		return wrong(rank, (uint32_t)at, "no result there");
	return m->at[at] == value || wrong(rank, (uint32_t)at, "another result");
}

static bool expect_blocks(uint32_t rank)
{
	const struct member *me = &members[rank];
	const bool alltoall = trial.kind == PLAN_ALLTOALL;

	for (uint32_t r = 0; r < trial.size; r++)
		for (uint64_t e = 0; e < me->to_counts[r]; e++)
			if (!expect(rank, me->to_places[r] + e, given(r, alltoall ? rank : 0, e)))
				return false;
	return true;
}

static uint64_t value_at(uint32_t rank, uint64_t e)
{
	switch (trial.kind) {
	case PLAN_BROADCAST: return given(trial.root, 0, e);
	case PLAN_SCATTER: return given(trial.root, rank, e);
	case PLAN_SCAN: return reduced(rank + 1, 0, e);
	case PLAN_EXSCAN: return reduced(rank, 0, e);
	case PLAN_REDUCE_SCATTER: return reduced(trial.size, rank, e);
	default: return reduced(trial.size, 0, e);
	}
}

static bool has_result(uint32_t rank)
{
	switch (trial.kind) {
	case PLAN_BARRIER: return false;
	case PLAN_BROADCAST: return rank != trial.root || trial.in_place;
	case PLAN_REDUCE:
	case PLAN_GATHER: return rank == trial.root;
	case PLAN_SCATTER: return rank != trial.root || !trial.in_place;
	case PLAN_EXSCAN: return rank > 0;
	default: return true;
	}
}

static bool result_right(uint32_t rank)
{
	const uint64_t all = trial.size == 64 ? UINT64_MAX : (1ull << trial.size) - 1;
	const struct member *me = &members[rank];
	const uint64_t len = is_in_blocks(trial.kind) ? me->to_counts[rank] : trial.count;

	if (trial.kind == PLAN_BARRIER && me->known != all)
		return wrong(rank, 0, "leaves before all have entered");
	if (!has_result(rank))
		return true;
	if (gets_all(rank))
		return expect_blocks(rank);
	for (uint64_t e = 0; e < len; e++)
		if (!expect(rank, e, value_at(rank, e)))
			return false;
	return true;
}

/* Whatever it computes, it is the same everywhere. */
static bool results_same(void)
{
	const struct memory *first = &members[0].area[PLAN_TO];

	for (uint32_t r = 1; trial.kind == PLAN_ALLREDUCE && r < trial.size; r++)
		if (memcmp(first->at, members[r].area[PLAN_TO].at, first->len * sizeof(uint64_t)))
			return wrong(r, 0, "other bits than rank 0");
	return true;
}

static const uint32_t no_step = UINT32_MAX;

/* One run; without step LOST of rank LOSER. Its failure is in `failure`. */
static bool run_without(uint32_t loser, uint32_t lost)
{
	const bool exact =
		trial.op != MIX || plan_properties(trial.kind, trial.algorithm) & PLAN_LINEAR;
	bool right;

	failure[0] = 0;
	for (uint32_t r = 0; r < trial.size; r++) {
		member_make(r);
		member_steps(r);
	}
	if (lost != no_step) {
		struct member *m = &members[loser];

		memmove(m->step + lost, m->step + lost + 1,
			(m->steps - lost - 1) * sizeof(*m->step));
		m->steps--;
	}
	right = run_all();
	for (uint32_t r = 0; right && exact && r < trial.size; r++)
		right = result_right(r);
	right = right && results_same();
	for (uint32_t r = 0; r < trial.size; r++)
		member_free(r);
	return right;
}

#endif
