/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doubling: after each round a rank has what twice as many ranks contributed, always neighbours, in
 * their order. Two that exchange results both combine the lower ranks' on the left, so that all
 * have the same bits.
 */
#include "slmpm/plan/rounds.h"

/* ---- allreduce ------------------------------------------------------------------------------- */

/* Of N ranks a power of two exchange. The first ones of the others are joined by a neighbour: of
 * so many pairs the lower one hands its contribution to the upper one, and gets the result. */
static uint32_t pairs_of(uint32_t n)
{
	return n - (1u << (31 - __builtin_clz(n)));
}

static uint32_t exchanges_of(uint32_t n)
{
	return 31 - (uint32_t)__builtin_clz(n);
}

/* Whose number among those that exchange is V. */
static uint32_t rank_of(uint32_t v, uint32_t pairs)
{
	return v < pairs ? 2 * v + 1 : v + pairs;
}

void prepare_doubling(struct plan *p)
{
	const uint32_t n = p->spec.size;
	const bool exscan = p->spec.kind == PLAN_EXSCAN;
	const uint32_t rounds = p->spec.kind == PLAN_ALLREDUCE ? exchanges_of(n) + 1 : plan_log2(n);

	plan_slots(p, rounds, p->spec.count, 1, exscan ? p->spec.count : 0);
	p->have = plan_at(p->input, 0);
}

/* Combines what comes from OTHER in round K into AT. */
static void combine_from(struct plan *p, uint32_t other, uint32_t k, struct plan_part at)
{
	const struct plan_part slot = plan_slot(p, k);
	const bool below = other < p->spec.rank;

	plan_fold(p, at, below ? slot : p->have, below ? p->have : slot, p->spec.count);
	p->have = at;
}

static void swap_with(struct plan *p, uint32_t other, uint32_t k)
{
	const uint64_t count = p->spec.count;
	const uint32_t comes = plan_recv(p, other, plan_slot(p, k), count, 0, plan_slot_flags(p));

	plan_send(p, other, p->have, count);
	plan_wait(p, 0, comes);
	combine_from(p, other, k, plan_at(PLAN_TO, 0));
}

static void join_lower(struct plan *p)
{
	const uint32_t upper = p->spec.rank + 1;
	const uint32_t flags = p->input == PLAN_TO ? 0 : PLAN_AHEAD;

	plan_send(p, upper, p->have, p->spec.count);
	plan_wait(p, 0, plan_recv(p, upper, plan_at(PLAN_TO, 0), p->spec.count, 0, flags));
}

static void join_upper(struct plan *p)
{
	const uint32_t lower = p->spec.rank - 1;

	plan_wait(p, 0, plan_recv(p, lower, plan_slot(p, 0), p->spec.count, 0, plan_slot_flags(p)));
	combine_from(p, lower, 0, plan_at(PLAN_TO, 0));
}

bool round_doubling(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, me = p->spec.rank, pairs = pairs_of(n);
	const bool joined = me < 2 * pairs;
	const uint32_t v = joined ? me / 2 : me - pairs, exchanges = exchanges_of(n);

	if (joined && me % 2 == 0) {
		join_lower(p);
		return false;
	}
	if (n == 1)
		plan_copy(p, plan_at(PLAN_TO, 0), p->have, p->spec.count);
	if (k == 0 && joined)
		join_upper(p);
	if (k > 0 && k <= exchanges)
		swap_with(p, rank_of(v ^ 1u << (k - 1), pairs), k);
	if (k > exchanges && joined)
		plan_send(p, me - 1, p->have, p->spec.count);
	return k <= exchanges;
}

/* ---- scan ------------------------------------------------------------------------------------ */

/* What this rank has goes D ranks on, what another has comes as far; whether something comes. */
static bool shift_by(struct plan *p, uint32_t d, uint32_t k)
{
	const uint32_t n = p->spec.size, me = p->spec.rank;
	const uint64_t count = p->spec.count;
	uint32_t comes = 0;

	if (me >= d)
		comes = plan_recv(p, me - d, plan_slot(p, k), count, 0, plan_slot_flags(p));
	if (me + d < n)
		plan_send(p, me + d, p->have, count);
	plan_wait(p, 0, comes);
	return comes;
}

bool round_doubling_scan(struct plan *p, uint32_t k)
{
	const uint32_t me = p->spec.rank, d = 1u << k;

	if (k == 0 && me == 0)
		plan_copy(p, plan_at(PLAN_TO, 0), p->have, p->spec.count);
	if (d >= p->spec.size)
		return false;
	if (shift_by(p, d, k))
		combine_from(p, me - d, k, plan_at(PLAN_TO, 0));
	return true;
}

/* In place the contribution is combined before the result replaces it. */
bool round_doubling_exscan(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, me = p->spec.rank, d = 1u << k;
	const struct plan_part to = plan_at(PLAN_TO, 0);

	if (d >= n)
		return false;
	if (!shift_by(p, d, k))
		return true;
	if (me + 2 * d < n)
		combine_from(p, me - d, k, plan_extra(p));
	if (p->begun)
		plan_fold(p, to, plan_slot(p, k), to, p->spec.count);
	else
		plan_copy(p, to, plan_slot(p, k), p->spec.count);
	p->begun = true;
	return true;
}

/* ---- allgather ------------------------------------------------------------------------------- */

/* SCRATCH has the blocks from this rank's on, one behind the other, beyond the last rank's the
 * first one's. So many elements are before the I-th. */
static uint64_t turned_before(struct plan *p, uint32_t i)
{
	const uint32_t n = p->spec.size, me = p->spec.rank;

	if (me + i <= n)
		return blocks_range(&p->to, me, me + i);
	return blocks_range(&p->to, me, n) + blocks_before(&p->to, me + i - n);
}

void prepare_bruck(struct plan *p)
{
	p->scratch = blocks_before(&p->to, p->spec.size);
}

bool round_bruck(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, me = p->spec.rank, d = 1u << k;
	uint32_t most, comes;
	uint64_t before;

	if (k == 0)
		plan_copy(p, plan_at(PLAN_SCRATCH, 0),
			  plan_at(p->input, p->input == PLAN_TO ? blocks_place(&p->to, me) : 0),
			  blocks_count(&p->to, me));
	if (d >= n)
		return false;
	most = n - d < d ? n - d : d;
	before = turned_before(p, d);
	comes = plan_recv(p, (me + d) % n, plan_at(PLAN_SCRATCH, before),
			  turned_before(p, d + most) - before, 0, PLAN_AHEAD);
	plan_send(p, (me + n - d) % n, plan_at(PLAN_SCRATCH, 0), turned_before(p, most));
	plan_wait(p, 0, comes);
	return true;
}

/* Without places two copies turn all of it back. */
static bool turn_back(struct plan *p)
{
	const uint32_t n = p->spec.size, me = p->spec.rank;
	const uint64_t first = turned_before(p, n - me);

	plan_copy(p, plan_at(PLAN_TO, blocks_before(&p->to, me)), plan_at(PLAN_SCRATCH, 0), first);
	plan_copy(p, plan_at(PLAN_TO, 0), plan_at(PLAN_SCRATCH, first), blocks_before(&p->to, me));
	return false;
}

bool round_bruck_place(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, rank = (p->spec.rank + k) % n;

	if (!p->to.places)
		return turn_back(p);
	plan_copy(p, plan_at(PLAN_TO, blocks_place(&p->to, rank)),
		  plan_at(PLAN_SCRATCH, turned_before(p, k)), blocks_count(&p->to, rank));
	return k + 1 < n;
}
