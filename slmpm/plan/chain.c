/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains: each rank hands on to the next, in pieces, so that all of them work at a time. Of
 * reductions what is handed on is the result of the ranks so far, in their order; of an allreduce
 * the last rank has it, and hands it back.
 */
#include "slmpm/plan/rounds.h"

#define PIECES 32   /* in flight they are as many as there are ranks */
#define LEAST  2048 /* elements of a piece: shorter ones are not worth a message */

static uint64_t piece_of(const struct plan_spec *s)
{
	const uint64_t part = s->count / PIECES + (s->count % PIECES != 0);

	if (s->piece)
		return s->piece;
	return part < LEAST ? LEAST : part;
}

/* A slot for a piece that comes, one for the next; an exscan has one for what it hands on. */
void prepare_chain(struct plan *p)
{
	const uint64_t count = p->spec.count;

	p->piece = piece_of(&p->spec);
	if (p->piece > count)
		p->piece = count;
	if (count && count / p->piece >= UINT32_MAX) {
		p->scratch = UINT64_MAX; /* more than there are numbers of pieces */
		return;
	}
	if (p->spec.kind == PLAN_ALLREDUCE)
		p->spec.root = p->spec.size - 1;
	if (!count || p->spec.kind == PLAN_BROADCAST || p->spec.rank == 0)
		return;
	plan_slots(p, plan_pieces(p), p->piece, 2, p->spec.kind == PLAN_EXSCAN ? p->piece : 0);
}

static struct plan_part nth_piece(const struct plan *p, uint8_t area, uint32_t k)
{
	return plan_at(area, k * p->piece);
}

static bool in_pieces(const struct plan *p, uint32_t k)
{
	return p->spec.count && k < plan_pieces(p);
}

/* Results go back by the way that contributions have come. */
static uint32_t chain_next(const struct plan *p)
{
	return (p->spec.rank + (p->phase ? p->spec.size - 1 : 1)) % p->spec.size;
}

static uint32_t chain_before(const struct plan *p)
{
	return (p->spec.rank + (p->phase ? 1 : p->spec.size - 1)) % p->spec.size;
}

static void forward_await(struct plan *p, uint32_t k)
{
	if (in_pieces(p, k))
		plan_recv(p, chain_before(p), nth_piece(p, PLAN_TO, k), plan_piece_len(p, k), k % 2,
			  PLAN_AHEAD);
}

bool round_chain_broadcast(struct plan *p, uint32_t k)
{
	const uint32_t next = chain_next(p);
	const bool root = p->spec.rank == p->spec.root;

	if (!in_pieces(p, k))
		return false;
	if (!root) {
		if (k == 0)
			forward_await(p, 0);
		forward_await(p, k + 1);
		plan_wait(p, k % 2, 1);
	}
	if (next != p->spec.root)
		plan_send(p, next, nth_piece(p, root && !p->phase ? p->input : PLAN_TO, k),
			  plan_piece_len(p, k));
	return true;
}

/* ---- reductions ------------------------------------------------------------------------------ */

static void piece_await(struct plan *p, uint32_t k)
{
	if (in_pieces(p, k))
		plan_recv(p, p->spec.rank - 1, plan_slot(p, k), plan_piece_len(p, k), k % 2,
			  plan_slot_flags(p));
}

/* The next piece's receive is posted before this piece is waited for. */
static struct plan_part piece_take(struct plan *p, uint32_t k)
{
	if (k == 0)
		piece_await(p, 0);
	piece_await(p, k + 1);
	plan_wait(p, k % 2, 1);
	return plan_slot(p, k);
}

/* The last rank sends the result to the root, which receives each piece when it has handed its
 * own on: that may lie where the result will. */
static void result_await(struct plan *p, uint32_t k)
{
	const uint32_t last = p->spec.size - 1;

	if (p->spec.rank == p->spec.root && p->spec.root != last)
		p->pending += plan_recv(p, last, nth_piece(p, PLAN_TO, k), plan_piece_len(p, k), 2,
					p->input == PLAN_TO ? 0 : PLAN_AHEAD);
}

bool round_chain_reduce(struct plan *p, uint32_t k)
{
	const uint32_t last = p->spec.size - 1, me = p->spec.rank, root = p->spec.root;
	const struct plan_part own = nth_piece(p, p->input, k), to = nth_piece(p, PLAN_TO, k);
	const bool ends = me == last && root == last;
	struct plan_part sum = own, got;

	if (!in_pieces(p, k)) {
		plan_wait(p, 2, p->pending);
		return false;
	}
	if (me) {
		got = piece_take(p, k);
		sum = ends ? to : got;
		plan_fold(p, sum, got, own, plan_piece_len(p, k));
	} else if (ends) {
		plan_copy(p, to, own, plan_piece_len(p, k));
	}
	if (!ends)
		plan_send(p, me < last ? me + 1 : root, sum, plan_piece_len(p, k));
	result_await(p, k);
	return true;
}

bool round_chain_scan(struct plan *p, uint32_t k)
{
	const uint32_t me = p->spec.rank;
	const struct plan_part own = nth_piece(p, p->input, k), to = nth_piece(p, PLAN_TO, k);

	if (!in_pieces(p, k))
		return false;
	if (me)
		plan_fold(p, to, piece_take(p, k), own, plan_piece_len(p, k));
	else
		plan_copy(p, to, own, plan_piece_len(p, k));
	if (me + 1 < p->spec.size)
		plan_send(p, me + 1, to, plan_piece_len(p, k));
	return true;
}

/* In place the contribution is combined before the result replaces it. */
bool round_chain_exscan(struct plan *p, uint32_t k)
{
	const uint32_t me = p->spec.rank;
	const bool hands_on = me + 1 < p->spec.size;
	const uint64_t len = in_pieces(p, k) ? plan_piece_len(p, k) : 0;
	struct plan_part own = nth_piece(p, p->input, k), got;

	if (!len)
		return false;
	if (me) {
		got = piece_take(p, k);
		if (hands_on)
			plan_fold(p, plan_extra(p), got, own, len);
		plan_copy(p, nth_piece(p, PLAN_TO, k), got, len);
		own = plan_extra(p);
	}
	if (hands_on)
		plan_send(p, me + 1, own, len);
	return true;
}
