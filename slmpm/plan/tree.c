/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers and binomial trees. A broadcast's tree has ranks counted from its root on. In those that
 * combine or gather, the ranks of each subtree are neighbours, whichever the root: a block of
 * 1 << k ranks has a leader, which is the root where that is among them, else the lowest rank.
 */
#include "slmpm/plan/rounds.h"

/* ---- barriers -------------------------------------------------------------------------------- */

bool round_dissemination(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, me = p->spec.rank, d = 1u << k;

	if (d >= n)
		return false;
	plan_await_token(p, (me + n - d) % n, 0);
	plan_token(p, (me + d) % n);
	plan_wait(p, 0, 1);
	return true;
}

bool round_tree_up(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, me = p->spec.rank, d = 1u << k;

	if (d >= n || (me & (d - 1)))
		return false;
	if (me & d) {
		plan_token(p, me - d);
	} else if (me + d < n) {
		plan_await_token(p, me + d, 0);
		plan_wait(p, 0, 1);
	}
	return true;
}

/* How many rounds a rank that is V from the root on sends in: it has received by then. */
static uint32_t rounds_below(uint32_t v, uint32_t n)
{
	return v ? (uint32_t)__builtin_ctz(v) : plan_log2(n);
}

bool round_tree_down(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, me = p->spec.rank, below = rounds_below(me, n);
	uint32_t d;

	if (k == 0 && me) {
		plan_await_token(p, me & (me - 1), 0);
		plan_wait(p, 0, 1);
	}
	if (k >= below)
		return false;
	d = 1u << (below - 1 - k);
	if (me + d < n)
		plan_token(p, me + d);
	return true;
}

/* ---- broadcast ------------------------------------------------------------------------------- */

bool round_binomial_broadcast(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, root = p->spec.root;
	const uint32_t v = (p->spec.rank + n - root) % n, below = rounds_below(v, n);
	const struct plan_part data = plan_at(v || p->phase ? PLAN_TO : p->input, 0);
	const uint64_t count = p->spec.count;
	uint32_t d;

	if (k == 0 && v)
		plan_wait(p, 0,
			  plan_recv(p, ((v & (v - 1)) + root) % n, data, count, 0, PLAN_AHEAD));
	if (k >= below)
		return false;
	d = 1u << (below - 1 - k);
	if (v + d < n)
		plan_send(p, (v + d + root) % n, data, count);
	return true;
}

/* ---- blocks of ranks ------------------------------------------------------------------------- */

static uint32_t leader(const struct plan *p, uint32_t lo, uint32_t len)
{
	return p->spec.root - lo < len ? p->spec.root : lo;
}

/* The block of 1 << K ranks of which this one is, and whether it leads it. */
static uint32_t block_start(const struct plan *p, uint32_t k)
{
	return p->spec.rank & ~((1u << k) - 1);
}

static bool leads(const struct plan *p, uint32_t k)
{
	return leader(p, block_start(p, k), 1u << k) == p->spec.rank;
}

static uint32_t block_end(const struct plan *p, uint32_t lo, uint32_t len)
{
	return p->spec.size - lo < len ? p->spec.size : lo + len;
}

/* The end of the greatest block that this rank, not the root, leads. */
static uint32_t own_end(const struct plan *p)
{
	uint32_t k = 0;

	while (leads(p, k + 1))
		k++;
	return block_end(p, p->spec.rank, 1u << k);
}

/* ---- reduce ---------------------------------------------------------------------------------- */

void prepare_binomial_reduce(struct plan *p)
{
	const bool root = p->spec.rank == p->spec.root;

	plan_slots(p, plan_log2(p->spec.size), p->spec.count, 1, root ? 0 : p->spec.count);
}

static void combine_block(struct plan *p, uint32_t k, uint32_t other, bool below)
{
	const bool root = p->spec.rank == p->spec.root;
	const struct plan_part at = root ? plan_at(PLAN_TO, 0) : plan_extra(p),
			       slot = plan_slot(p, k);
	const uint64_t count = p->spec.count;

	plan_wait(p, 0, plan_recv(p, other, slot, count, 0, plan_slot_flags(p)));
	plan_fold(p, at, below ? slot : p->have, below ? p->have : slot, count);
	p->have = at;
}

bool round_binomial_reduce(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, len = 1u << k, lo = block_start(p, k), other = lo ^ len;

	if (k == 0)
		p->have = plan_at(p->input, 0);
	if (len >= n) {
		if (n == 1)
			plan_copy(p, plan_at(PLAN_TO, 0), p->have, p->spec.count);
		return false;
	}
	if (!leads(p, k))
		return false;
	if (other >= n)
		return true;
	if (leads(p, k + 1))
		combine_block(p, k, leader(p, other, len), other < lo);
	else
		plan_send(p, leader(p, block_start(p, k + 1), 2 * len), p->have, p->spec.count);
	return true;
}

/* ---- scatter --------------------------------------------------------------------------------- */

/* The root has all blocks one behind the other; another, those of the ranks that it leads. */
static void prepare_blocks(struct plan *p, struct plan_blocks *b)
{
	const uint32_t me = p->spec.rank;

	if (me == p->spec.root)
		p->scratch = b->places ? blocks_before(b, p->spec.size) : 0;
	else if (own_end(p) > me + 1)
		p->scratch = blocks_range(b, me, own_end(p));
}

void prepare_binomial_scatter(struct plan *p)
{
	prepare_blocks(p, &p->from);
}

bool round_pack(struct plan *p, uint32_t k)
{
	const bool packs = p->spec.rank == p->spec.root && p->from.places && k < p->spec.size;

	if (packs)
		plan_copy(p, plan_at(PLAN_SCRATCH, blocks_before(&p->from, k)),
			  plan_at(p->input, blocks_place(&p->from, k)), blocks_count(&p->from, k));
	return packs;
}

/* Where a scatter's or gather's blocks from LO on lie, of which this rank has several. */
static struct plan_part packed(struct plan *p, struct plan_blocks *b, uint8_t area, uint32_t lo)
{
	const uint64_t before = blocks_before(b, lo);

	if (p->spec.rank == p->spec.root)
		return plan_at(b->places ? PLAN_SCRATCH : area, before);
	return plan_at(PLAN_SCRATCH, before - blocks_before(b, p->spec.rank));
}

static void take_blocks(struct plan *p, uint32_t k)
{
	const uint32_t me = p->spec.rank, end = block_end(p, me, 1u << k);
	const struct plan_part own = plan_at(PLAN_TO, 0), all = plan_at(PLAN_SCRATCH, 0);
	const uint32_t from = leader(p, block_start(p, k + 1), 2u << k);

	plan_wait(p, 0,
		  plan_recv(p, from, end > me + 1 ? all : own, blocks_range(&p->from, me, end), 0,
			    PLAN_AHEAD));
	if (end > me + 1)
		plan_copy(p, own, all, blocks_count(&p->from, me));
}

bool round_binomial_scatter(struct plan *p, uint32_t k)
{
	const uint32_t me = p->spec.rank, levels = plan_log2(p->spec.size);
	uint32_t level, other;

	if (k == 0 && me == p->spec.root && !(p->spec.flags & PLAN_IN_PLACE))
		plan_copy(p, plan_at(PLAN_TO, 0), plan_at(p->input, blocks_place(&p->from, me)),
			  blocks_count(&p->from, me));
	if (k >= levels)
		return false;
	level = levels - 1 - k;
	if (!leads(p, level))
		return true;
	if (!leads(p, level + 1)) {
		take_blocks(p, level);
		return true;
	}
	other = block_start(p, level) ^ 1u << level;
	if (other < p->spec.size)
		plan_send(p, other, packed(p, &p->from, p->input, other),
			  blocks_range(&p->from, other, block_end(p, other, 1u << level)));
	return true;
}

/* ---- gather ---------------------------------------------------------------------------------- */

void prepare_binomial_gather(struct plan *p)
{
	prepare_blocks(p, &p->to);
}

static void gather_own(struct plan *p)
{
	const uint32_t me = p->spec.rank;
	const struct plan_part own = plan_at(p->input, 0);

	if (me != p->spec.root && own_end(p) > me + 1)
		plan_copy(p, plan_at(PLAN_SCRATCH, 0), own, blocks_count(&p->to, me));
	else if (me == p->spec.root && !(p->spec.flags & PLAN_IN_PLACE))
		plan_copy(p, plan_at(PLAN_TO, blocks_place(&p->to, me)), own,
			  blocks_count(&p->to, me));
}

static void give_blocks(struct plan *p, uint32_t k)
{
	const uint32_t me = p->spec.rank, end = block_end(p, me, 1u << k);

	plan_wait(p, 0, p->pending);
	p->pending = 0;
	plan_send(p, leader(p, block_start(p, k + 1), 2u << k),
		  plan_at(end > me + 1 ? PLAN_SCRATCH : p->input, 0),
		  blocks_range(&p->to, me, end));
}

bool round_binomial_gather(struct plan *p, uint32_t k)
{
	const uint32_t n = p->spec.size, len = 1u << k, other = block_start(p, k) ^ len;

	if (k == 0)
		gather_own(p);
	if (len >= n) {
		plan_wait(p, 0, p->pending);
		return false;
	}
	if (!leads(p, k))
		return false;
	if (!leads(p, k + 1))
		give_blocks(p, k);
	else if (other < n)
		p->pending += plan_recv(p, leader(p, other, len), packed(p, &p->to, PLAN_TO, other),
					blocks_range(&p->to, other, block_end(p, other, len)), 0,
					PLAN_AHEAD);
	return true;
}

bool round_unpack(struct plan *p, uint32_t k)
{
	const bool unpacks = p->spec.rank == p->spec.root && p->to.places && k < p->spec.size;

	if (unpacks && k != p->spec.root)
		plan_copy(p, plan_at(PLAN_TO, blocks_place(&p->to, k)),
			  plan_at(PLAN_SCRATCH, blocks_before(&p->to, k)), blocks_count(&p->to, k));
	return unpacks;
}
