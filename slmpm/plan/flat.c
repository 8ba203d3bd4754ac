/* SPDX-License-Identifier: BSD-3-Clause */
/* Flat: the root, or each rank, exchanges messages with all others. Contributions that all lie
 * here are combined in the order of the ranks. */
#include "slmpm/plan/rounds.h"

/* The K-th other rank, from this one on; false: they are through. */
static bool other_rank(const struct plan *p, uint32_t k, uint32_t *other)
{
	*other = (p->spec.rank + 1 + k) % p->spec.size;
	return k + 1 < p->spec.size;
}

static bool await_all(struct plan *p)
{
	plan_wait(p, 0, p->pending);
	return false;
}

bool round_flat_broadcast(struct plan *p, uint32_t k)
{
	const uint64_t count = p->spec.count;
	uint32_t other;

	if (p->spec.rank != p->spec.root) {
		plan_wait(p, 0,
			  plan_recv(p, p->spec.root, plan_at(PLAN_TO, 0), count, 0, PLAN_AHEAD));
		return false;
	}
	if (!other_rank(p, k, &other))
		return false;
	plan_send(p, other, plan_at(p->phase ? PLAN_TO : p->input, 0), count);
	return true;
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* This rank has all contributions. */
static bool combines_all(const struct plan *p)
{
	return p->spec.kind != PLAN_REDUCE || p->spec.rank == p->spec.root;
}

void prepare_flat_reduce(struct plan *p)
{
	if (combines_all(p))
		plan_slots(p, p->spec.size, p->spec.count, p->spec.size, 0);
	p->have = plan_at(PLAN_TO, 0);
	p->piece = p->spec.count;
}

bool round_flat_reduce(struct plan *p, uint32_t k)
{
	const uint64_t count = p->spec.count;
	uint32_t other;

	if (p->spec.rank != p->spec.root) {
		plan_send(p, p->spec.root, plan_at(p->input, 0), count);
		return false;
	}
	if (!other_rank(p, k, &other))
		return await_all(p);
	p->pending += plan_recv(p, other, plan_slot(p, other), count, 0, PLAN_AHEAD);
	return true;
}

/* Receives first, from the rank before, so that sends find them there. */
bool round_flat_allreduce(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, me = p->spec.rank;
	const uint64_t count = p->spec.count;
	uint32_t other;

	if (!other_rank(p, k, &other))
		return await_all(p);
	other = (me + n - 1 - k) % n;
	p->pending += plan_recv(p, other, plan_slot(p, other), count, 0, PLAN_AHEAD);
	plan_send(p, (me + 1 + k) % n, plan_at(p->input, 0), count);
	return true;
}

/* The contribution of RANK to the elements that are combined here. */
static struct plan_part contribution(const struct plan *p, uint32_t rank)
{
	return rank == p->spec.rank ? plan_at(p->input, p->own) : plan_slot(p, rank);
}

/*
 * What is in the slots and the own contribution, p->piece elements, becomes p->have. Until all are
 * combined the own slot has the result, for it may be the own contribution that it replaces.
 */
bool round_linear(struct plan *p, uint32_t k)
{
	const uint32_t last = p->spec.size - 1;
	struct plan_part sum;

	if (!combines_all(p))
		return false;
	sum = plan_slot(p, p->spec.rank);
	if (last == 0) {
		plan_copy(p, p->have, contribution(p, 0), p->piece);
		return false;
	}
	plan_fold(p, k + 1 == last ? p->have : sum, k ? sum : contribution(p, 0),
		  contribution(p, k + 1), p->piece);
	return k + 1 < last;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

bool round_flat_scatter(struct plan *p, uint32_t k)
{
	const uint32_t me = p->spec.rank;
	const struct plan_part own = plan_at(PLAN_TO, 0);
	uint32_t other;

	if (me != p->spec.root) {
		plan_wait(p, 0,
			  plan_recv(p, p->spec.root, own, blocks_count(&p->from, me), 0,
				    PLAN_AHEAD));
		return false;
	}
	if (!other_rank(p, k, &other)) {
		if (!(p->spec.flags & PLAN_IN_PLACE))
			plan_copy(p, own, plan_at(p->input, blocks_place(&p->from, me)),
				  blocks_count(&p->from, me));
		return false;
	}
	plan_send(p, other, plan_at(p->input, blocks_place(&p->from, other)),
		  blocks_count(&p->from, other));
	return true;
}

bool round_flat_gather(struct plan *p, uint32_t k)
{
	const uint32_t me = p->spec.rank;
	const struct plan_part own = plan_at(p->input, 0);
	uint32_t other;

	if (me != p->spec.root) {
		plan_send(p, p->spec.root, own, blocks_count(&p->to, me));
		return false;
	}
	if (!other_rank(p, k, &other)) {
		if (!(p->spec.flags & PLAN_IN_PLACE))
			plan_copy(p, plan_at(PLAN_TO, blocks_place(&p->to, me)), own,
				  blocks_count(&p->to, me));
		return await_all(p);
	}
	p->pending += plan_recv(p, other, plan_at(PLAN_TO, blocks_place(&p->to, other)),
				blocks_count(&p->to, other), 0, PLAN_AHEAD);
	return true;
}
