/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings: each rank sends to the next, blocks of a vector go round. Of a reduction the block of rank
 * r begins behind it and has been combined with all contributions when it comes there: one rank
 * alone has made each, but not in the order of the ranks.
 */
#include "slmpm/plan/rounds.h"

/* While a slot is sent from, the next one is received into, and one beyond that waits. */
#define SLOTS 3

void prepare_ring(struct plan *p)
{
	if (p->spec.size > 1)
		plan_slots(p, p->spec.size - 1, blocks_most(&p->from), SLOTS, 0);
}

/* The rank so far before this one. */
static uint32_t back_by(const struct plan *p, uint32_t d)
{
	return (p->spec.rank + 2 * p->spec.size - d) % p->spec.size;
}

static uint32_t next_rank(const struct plan *p)
{
	return (p->spec.rank + 1) % p->spec.size;
}

static struct plan_part own_part(struct plan *p, uint32_t rank)
{
	return plan_at(p->input, blocks_place(&p->from, rank));
}

static void await_block(struct plan *p, uint32_t k)
{
	if (k + 1 < p->spec.size)
		plan_recv(p, back_by(p, 1), plan_slot(p, k),
			  blocks_count(&p->from, back_by(p, k + 2)), k % 2, plan_slot_flags(p));
}

/* Where the block that is complete goes. Of a reduce-scatter in place it may lie across the
 * contribution to it, which is none of what a calculation may do. */
static void store_block(struct plan *p, struct plan_part slot, struct plan_part own, uint64_t count)
{
	const bool scatters = p->spec.kind == PLAN_REDUCE_SCATTER;
	const uint64_t place = scatters ? 0 : blocks_before(&p->to, p->spec.rank);

	if (scatters && p->input == PLAN_TO) {
		plan_fold(p, slot, slot, own, count);
		plan_copy(p, plan_at(PLAN_TO, 0), slot, count);
	} else {
		plan_fold(p, plan_at(PLAN_TO, place), slot, own, count);
	}
}

/* Round K sends the block of the rank K + 1 before, and combines that of the rank before that. */
bool round_ring_reduce(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, sent = back_by(p, k + 1), comes = back_by(p, k + 2);
	const uint64_t count = blocks_count(&p->from, comes);
	struct plan_part slot;

	if (n == 1) {
		plan_copy(p, plan_at(PLAN_TO, 0), own_part(p, 0), blocks_count(&p->from, 0));
		return false;
	}
	if (k == 0)
		await_block(p, 0);
	await_block(p, k + 1);
	plan_send(p, next_rank(p), k ? plan_slot(p, k - 1) : own_part(p, sent),
		  blocks_count(&p->from, sent));
	plan_wait(p, k % 2, count != 0);
	slot = plan_slot(p, k);
	if (k + 2 < n)
		plan_fold(p, slot, slot, own_part(p, comes), count);
	else
		store_block(p, slot, own_part(p, comes), count);
	return k + 2 < n;
}

static void gather_await(struct plan *p, uint32_t k)
{
	const uint32_t comes = back_by(p, k + 1);
	const struct plan_part at = plan_at(PLAN_TO, blocks_place(&p->to, comes));

	if (k + 1 >= p->spec.size)
		return;
	plan_recv(p, back_by(p, 1), at, blocks_count(&p->to, comes), k % 2, PLAN_AHEAD);
}

/* Round K sends the block of the rank K before. */
bool round_ring_gather(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, sent = back_by(p, k);
	const struct plan_part at = plan_at(PLAN_TO, blocks_place(&p->to, sent));
	const uint64_t count = blocks_count(&p->to, sent);
	const bool comes = blocks_count(&p->to, back_by(p, k + 1));

	if (k == 0 && p->phase == 0 && p->input != PLAN_TO)
		plan_copy(p, at, plan_at(p->input, 0), count);
	if (k + 1 >= n)
		return false;
	if (k == 0)
		gather_await(p, 0);
	gather_await(p, k + 1);
	plan_send(p, next_rank(p), at, count);
	plan_wait(p, k % 2, comes);
	return true;
}
