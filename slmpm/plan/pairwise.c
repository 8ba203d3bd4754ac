/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairwise exchange: in round K the ranks whose sum is K, beyond the last rank from 0 again,
 * exchange blocks. So each has one partner at a time, at last each other rank, and once itself.
 */
#include "slmpm/plan/rounds.h"

static uint32_t partner_of(const struct plan *p, uint32_t k)
{
	return (k + p->spec.size - p->spec.rank) % p->spec.size;
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* A block of each rank's contribution comes here and is combined in the order of the ranks. */
void prepare_pairwise_reduce(struct plan *p)
{
	const uint32_t n = p->spec.size, me = p->spec.rank;
	const bool scatters = p->spec.kind == PLAN_REDUCE_SCATTER;

	p->piece = blocks_count(&p->from, me);
	p->own = blocks_place(&p->from, me);
	plan_slots(p, n, p->piece, n, 0);
	/* In place a reduce-scatter's result may lie across the contribution to it. */
	if (scatters && p->input == PLAN_TO)
		p->have = plan_slot(p, me);
	else
		p->have = plan_at(PLAN_TO, scatters ? 0 : p->own);
}

bool round_pairwise_reduce(struct plan *p, uint32_t k)
{
	const uint32_t other = partner_of(p, k);

	if (k >= p->spec.size) {
		plan_wait(p, 0, p->pending);
		return false;
	}
	if (other == p->spec.rank)
		return true;
	p->pending += plan_recv(p, other, plan_slot(p, other), p->piece, 0, PLAN_AHEAD);
	plan_send(p, other, plan_at(p->input, blocks_place(&p->from, other)),
		  blocks_count(&p->from, other));
	return true;
}

bool round_own_block(struct plan *p, uint32_t k)
{
	(void)k;
	plan_copy(p, plan_at(PLAN_TO, 0), p->have, p->piece);
	return false;
}

/* ---- alltoall -------------------------------------------------------------------------------- */

void prepare_pairwise(struct plan *p)
{
	if (p->input == PLAN_TO)
		p->scratch = blocks_most(&p->to);
}

/* A block is sent before its place is received into: by way of SCRATCH, for both sides send. */
static void exchange_in_place(struct plan *p, uint32_t other)
{
	const struct plan_part block = plan_at(PLAN_TO, blocks_place(&p->to, other)),
			       scratch = plan_at(PLAN_SCRATCH, 0);
	const uint64_t count = blocks_count(&p->to, other);
	const uint32_t comes = plan_recv(p, other, scratch, count, 0, PLAN_AHEAD);

	plan_send(p, other, block, count);
	plan_wait(p, 0, comes);
	plan_copy(p, block, scratch, count);
}

bool round_pairwise(struct plan *p, uint32_t k)
{
	const uint32_t other = partner_of(p, k);
	const bool in_place = p->input == PLAN_TO;

	if (k >= p->spec.size) {
		plan_wait(p, 0, p->pending);
		return false;
	}
	if (in_place) {
		if (other != p->spec.rank)
			exchange_in_place(p, other);
		return true;
	}
	if (other == p->spec.rank) {
		plan_copy(p, plan_at(PLAN_TO, blocks_place(&p->to, other)),
			  plan_at(p->input, blocks_place(&p->from, other)),
			  blocks_count(&p->to, other));
		return true;
	}
	p->pending += plan_recv(p, other, plan_at(PLAN_TO, blocks_place(&p->to, other)),
				blocks_count(&p->to, other), 0, PLAN_AHEAD);
	plan_send(p, other, plan_at(p->input, blocks_place(&p->from, other)),
		  blocks_count(&p->from, other));
	return true;
}
