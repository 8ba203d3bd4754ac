/* SPDX-License-Identifier: BSD-3-Clause */
/* What is tried of plans: kind, algorithm, blocks; which elements ranks contribute. */
#ifndef TESTS_UNIT_PLAN_TRIAL_H
#define TESTS_UNIT_PLAN_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "slmpm/plan/plan.h"

#define MOST   64   /* members */
#define LENGTH 1200 /* elements of an area of a short vector */

static bool is_in_blocks(uint32_t kind)
{
	return kind == PLAN_SCATTER || kind == PLAN_GATHER || kind == PLAN_ALLGATHER ||
	       kind == PLAN_ALLTOALL || kind == PLAN_REDUCE_SCATTER;
}

static bool is_rooted(uint32_t kind)
{
	return kind == PLAN_BROADCAST || kind == PLAN_REDUCE || kind == PLAN_SCATTER ||
	       kind == PLAN_GATHER;
}

static bool is_reduction(uint32_t kind)
{
	return kind == PLAN_REDUCE || kind == PLAN_ALLREDUCE || kind == PLAN_REDUCE_SCATTER ||
	       kind == PLAN_SCAN || kind == PLAN_EXSCAN;
}

/* ---- elements -------------------------------------------------------------------------------- */

enum operation {
	ADD,     /* all orders are the same */
	COMPOSE, /* of functions a * x + b: neighbours may be combined first, sides may not change */
	MIX      /* each order and each grouping is another */
};

static uint64_t hash(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

static uint64_t combine(enum operation op, uint64_t left, uint64_t right)
{
	const uint32_t a = (uint32_t)left, b = (uint32_t)(left >> 32);
	const uint32_t c = (uint32_t)right, d = (uint32_t)(right >> 32);

	if (op == ADD)
		return left + right;
	if (op == MIX)
		return hash(left * 3 + hash(right));
	return (uint64_t)(b + a * d) << 32 | (a * c);
}

/* What a rank contributes at a place of its vector; to another rank's block, where it has such. */
static uint64_t given(uint32_t rank, uint32_t to, uint64_t i)
{
	return hash((uint64_t)rank << 40 | (uint64_t)to << 24 | i) | 1;
}

/* ---- a case ---------------------------------------------------------------------------------- */

enum shape { EVEN, UNEVEN, PLACED }; /* blocks: of count; of counts; where places say */

struct trial {
	uint32_t kind, algorithm, size, root;
	uint64_t count, piece;
	enum shape shape;
	bool in_place, rendezvous, strict; /* strict: nothing begins while a send is under way */
	uint32_t machines;                 /* on which the ranks are, in no order; 0: not said */
	uint32_t processors;
	enum operation op;
	const struct plan_text *text; /* of PLAN_TEXT */
};

static struct trial trial;

/* By rank the lowest one on its machine; NULL: not said. */
static const uint32_t *hosts_of_trial(void)
{
	static uint32_t hosts[MOST];

	for (uint32_t r = 0; trial.machines && r < trial.size; r++)
		for (hosts[r] = 0; hash(hosts[r]) % trial.machines != hash(r) % trial.machines;)
			hosts[r]++;
	return trial.machines ? hosts : NULL;
}

/* Elements that FROM sends to TO, or of the only block of the one of both that counts. */
static uint64_t block_len(uint32_t from, uint32_t to)
{
	const uint32_t a = trial.kind == PLAN_ALLTOALL ? from : 0;
	const uint32_t lo = a < to ? a : to, hi = a < to ? to : a;

	if (trial.shape == EVEN)
		return trial.count;
	if (trial.kind == PLAN_ALLTOALL && !trial.in_place)
		return hash(a * 64 + to) % (trial.count + 3);
	return hash(lo * 64 + hi) % (trial.count + 3);
}

#endif
