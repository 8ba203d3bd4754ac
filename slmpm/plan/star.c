/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Star: the root takes a piece of each rank's contribution, combines them in the order of the ranks
 * and sends the result to each. So 2 messages a rank and piece, the least there can be; a rank has
 * so few pieces under way that they are read while they are still at hand.
 */
#include "slmpm/plan/rounds.h"

/* Pieces under way of a rank: the root awaits as many, so that each finds its receive. */
#define AHEAD 2

static uint32_t others(const struct plan *p)
{
	return p->spec.size - 1;
}

/* The K-th of them. */
static uint32_t other_of(const struct plan *p, uint32_t k)
{
	return (p->spec.root + 1 + k) % p->spec.size;
}

void prepare_star(struct plan *p)
{
	const uint64_t count = p->spec.count;
	uint64_t pieces;

	p->piece = p->spec.piece && p->spec.piece < count ? p->spec.piece : count;
	pieces = count ? (count - 1) / p->piece + 1 : 0;
	if (pieces > UINT32_MAX / 4 / p->spec.size) {
		p->scratch = UINT64_MAX;
		return;
	}
	if (p->spec.rank == p->spec.root) {
		const uint32_t slots = (uint32_t)(pieces < AHEAD ? pieces : AHEAD) * p->spec.size;

		plan_slots(p, slots, p->piece, slots, 0);
	}
}

/* ---- the root -------------------------------------------------------------------------------- */

static struct plan_part star_slot(const struct plan *p, uint32_t piece, uint32_t rank)
{
	return plan_slot(p, piece % AHEAD * p->spec.size + rank);
}

/* Step K of those that await a piece. */
static void star_await(struct plan *p, uint32_t piece, uint32_t k)
{
	const uint32_t other = other_of(p, k);

	if (piece < plan_pieces(p))
		plan_recv(p, other, star_slot(p, piece, other), plan_piece_len(p, piece),
			  piece % AHEAD, PLAN_AHEAD);
}

static struct plan_part star_part(const struct plan *p, uint32_t piece, uint32_t rank)
{
	return rank == p->spec.rank ? plan_at(p->input, piece * p->piece) :
				      star_slot(p, piece, rank);
}

/* Until all are combined the own slot has the result, for it may be the own contribution that it
 * replaces. */
static void star_fold(struct plan *p, uint32_t piece, uint32_t k)
{
	const struct plan_part sum = star_slot(p, piece, p->spec.rank);
	const struct plan_part to = plan_at(PLAN_TO, piece * p->piece);

	plan_fold(p, k + 1 == others(p) ? to : sum, k ? sum : star_part(p, piece, 0),
		  star_part(p, piece, k + 1), plan_piece_len(p, piece));
}

/* A round of the root is one step for one of the others: at first it awaits pieces of all; then of
 * each piece it awaits one more of all, combines, and sends to all. */
static bool star_root(struct plan *p, uint32_t k)
{
	const uint32_t n = others(p), first = (AHEAD - 1) * n, at = k % n;
	const uint32_t piece = k < first ? k / n : (k - first) / (3 * n);
	const uint32_t step = k < first ? 0 : (k - first) / n % 3;

	if (k < first) {
		star_await(p, piece, at);
	} else if (step == 0) {
		star_await(p, piece + AHEAD - 1, at);
	} else if (step == 1) {
		if (at == 0)
			plan_wait(p, piece % AHEAD, n);
		star_fold(p, piece, at);
	} else {
		plan_send(p, other_of(p, at), plan_at(PLAN_TO, piece * p->piece),
			  plan_piece_len(p, piece));
	}
	return k + 1 < first + 3 * n * plan_pieces(p);
}

/* ---- the others ------------------------------------------------------------------------------ */

/* Round K sends piece K once the result of the one AHEAD before is here. */
static bool star_other(struct plan *p, uint32_t k)
{
	const uint32_t pieces = plan_pieces(p);
	const bool in_place = p->input == PLAN_TO;

	if (k >= AHEAD && k < pieces + AHEAD)
		plan_wait(p, k % AHEAD, 1);
	if (k < pieces) {
		const struct plan_part to = plan_at(PLAN_TO, k * p->piece);
		const uint64_t count = plan_piece_len(p, k);

		if (!in_place)
			plan_recv(p, p->spec.root, to, count, k % AHEAD, PLAN_AHEAD);
		plan_send(p, p->spec.root, plan_at(p->input, k * p->piece), count);
		if (in_place)
			plan_recv(p, p->spec.root, to, count, k % AHEAD, 0);
	}
	return k + 1 < pieces + AHEAD;
}

bool round_star(struct plan *p, uint32_t k)
{
	if (!p->spec.count)
		return false;
	if (p->spec.size == 1) {
		plan_copy(p, plan_at(PLAN_TO, 0), plan_at(p->input, 0), p->spec.count);
		return false;
	}
	return p->spec.rank == p->spec.root ? star_root(p, k) : star_other(p, k);
}

/* ---- barrier: all but the root send at once, so members that disagree are found out ---------- */

bool round_star_gather(struct plan *p, uint32_t k)
{
	if (p->spec.rank != p->spec.root) {
		plan_token(p, p->spec.root);
		return false;
	}
	if (k < others(p))
		plan_await_token(p, other_of(p, k), 0);
	else
		plan_wait(p, 0, others(p));
	return k < others(p);
}

bool round_star_release(struct plan *p, uint32_t k)
{
	if (p->spec.rank != p->spec.root) {
		plan_await_token(p, p->spec.root, 0);
		plan_wait(p, 0, 1);
		return false;
	}
	if (k < others(p))
		plan_token(p, other_of(p, k));
	return k + 1 < others(p);
}
