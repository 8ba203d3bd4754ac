/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rounds of a plan are made of, and the rounds of each algorithm. A round function adds
 * the steps of round K, PLAN_ROUND at most, to its plan; false: it was the last round, or there
 * was none such.
 */
#ifndef SLMPM_ROUNDS_H
#define SLMPM_ROUNDS_H

#include "slmpm/plan/plan.h"

typedef bool plan_round(struct plan *p, uint32_t k);
typedef void plan_prepare(struct plan *p);

#define PLAN_PHASES 4

struct plan_method {
	uint8_t kind, algorithm;
	uint8_t properties;
	plan_prepare *prepare;          /* sets slots and scratch; NULL: it needs none */
	plan_round *phase[PLAN_PHASES]; /* up to the first NULL */
};

/* ---- blocks (blocks.c) ----------------------------------------------------------------------- */

/* False: their sum is more than can be counted. */
bool blocks_begin(struct plan_blocks *b, uint32_t size, uint64_t count, const uint64_t *counts,
		  const uint64_t *places);
uint64_t blocks_count(const struct plan_blocks *b, uint32_t rank);
/* Elements of the ranks below RANK, which may be b->size; quick where it asks for neighbours. */
uint64_t blocks_before(struct plan_blocks *b, uint32_t rank);
/* Where the block of RANK begins. */
uint64_t blocks_place(struct plan_blocks *b, uint32_t rank);
/* Of ranks LO to below HI. */
uint64_t blocks_range(struct plan_blocks *b, uint32_t lo, uint32_t hi);
uint64_t blocks_most(const struct plan_blocks *b);

/* ---- steps (steps.c) ------------------------------------------------------------------------- */

static inline struct plan_part plan_at(uint8_t area, uint64_t first)
{
	return (struct plan_part){area, first};
}

/* Without elements these add nothing; plan_recv returns how many receives it has added. */
void plan_send(struct plan *p, uint32_t peer, struct plan_part at, uint64_t count);
uint32_t plan_recv(struct plan *p, uint32_t peer, struct plan_part at, uint64_t count,
		   uint32_t lane, uint32_t flags);
void plan_wait(struct plan *p, uint32_t lane, uint64_t count);
void plan_fold(struct plan *p, struct plan_part at, struct plan_part left, struct plan_part right,
	       uint64_t count);
/* Nothing either where both are the same. */
void plan_copy(struct plan *p, struct plan_part at, struct plan_part left, uint64_t count);
/* Empty messages. */
void plan_token(struct plan *p, uint32_t peer);
void plan_await_token(struct plan *p, uint32_t peer, uint32_t lane);

/* SCRATCH has a slot for each of ROUNDS receives of ELEMENTS if they are short, else LEAST of
 * them; then EXTRA elements more. */
void plan_slots(struct plan *p, uint32_t rounds, uint64_t elements, uint32_t least, uint64_t extra);
/* The slot of receive K, and what is behind the slots. */
struct plan_part plan_slot(const struct plan *p, uint32_t k);
struct plan_part plan_extra(const struct plan *p);
/* PLAN_AHEAD, where each receive has its slot. */
uint32_t plan_slot_flags(const struct plan *p);

/* COUNT elements of WIDTH or fewer; the K-th of so many. */
static inline uint32_t plan_pieces(const struct plan *p)
{
	return (uint32_t)((p->spec.count + p->piece - 1) / p->piece);
}

static inline uint64_t plan_piece_len(const struct plan *p, uint32_t k)
{
	uint64_t rest = p->spec.count - k * p->piece;

	return rest < p->piece ? rest : p->piece;
}

/* The least K with 1 << K >= N. */
static inline uint32_t plan_log2(uint32_t n)
{
	return n > 1 ? 32 - (uint32_t)__builtin_clz(n - 1) : 0;
}

/* ---- prepare --------------------------------------------------------------------------------- */

plan_prepare prepare_binomial_reduce, prepare_binomial_scatter, prepare_binomial_gather;
plan_prepare prepare_flat_reduce, prepare_chain, prepare_doubling, prepare_bruck, prepare_ring;
plan_prepare prepare_pairwise_reduce, prepare_pairwise;

plan_prepare prepare_binary_reduce, prepare_hosts, prepare_star, prepare_text;

/* ---- rounds ---------------------------------------------------------------------------------- */

plan_round round_dissemination, round_tree_up, round_tree_down;
plan_round round_binary_up, round_binary_down, round_binary_broadcast, round_binary_reduce;
plan_round round_binomial_broadcast, round_binomial_reduce;
plan_round round_pack, round_binomial_scatter, round_binomial_gather, round_unpack;
plan_round round_hosts_gather, round_hosts_fold, round_hosts_down;
plan_round round_flat_broadcast, round_flat_reduce, round_flat_allreduce, round_linear;
plan_round round_flat_scatter, round_flat_gather;
plan_round round_chain_broadcast, round_chain_reduce;
plan_round round_chain_scan, round_chain_exscan;
plan_round round_doubling, round_doubling_scan, round_doubling_exscan;
plan_round round_bruck, round_bruck_place;
plan_round round_ring_reduce, round_ring_gather;
plan_round round_pairwise_reduce, round_own_block, round_pairwise;
plan_round round_star;
plan_round round_text_own, round_text;

#endif
