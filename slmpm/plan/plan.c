/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: which algorithms there are, of which rounds each is made, and its steps one by one. */
#include "slmpm/plan/rounds.h"

#include <slmpm.h>
#include <string.h>

/* Of each kind the first one is as good as any where there are few members. */
static const struct plan_method methods[] = {
	{PLAN_BARRIER, PLAN_DISSEMINATION, 0, NULL, {round_dissemination}},
	{PLAN_BARRIER, PLAN_TREE, 0, NULL, {round_tree_up, round_tree_down}},
	{PLAN_BARRIER, PLAN_BINARY, 0, NULL, {round_binary_up, round_binary_down}},
	{PLAN_BARRIER, PLAN_STAR, 0, prepare_star, {round_star}},
	{PLAN_BARRIER,
	 PLAN_HOSTS,
	 0,
	 prepare_hosts,
	 {round_hosts_gather, round_hosts_fold, round_hosts_down}},
	{PLAN_BROADCAST, PLAN_BINOMIAL, 0, NULL, {round_binomial_broadcast}},
	{PLAN_BROADCAST, PLAN_CHAIN, 0, prepare_chain, {round_chain_broadcast}},
	{PLAN_BROADCAST, PLAN_FLAT, 0, NULL, {round_flat_broadcast}},
	{PLAN_BROADCAST, PLAN_BINARY, 0, NULL, {round_binary_broadcast}},
	{PLAN_BROADCAST, PLAN_HOSTS, 0, prepare_hosts, {round_hosts_down}},
	{PLAN_REDUCE, PLAN_BINOMIAL, 0, prepare_binomial_reduce, {round_binomial_reduce}},
	{PLAN_REDUCE, PLAN_CHAIN, PLAN_LINEAR, prepare_chain, {round_chain_reduce}},
	{PLAN_REDUCE,
	 PLAN_FLAT,
	 PLAN_LINEAR,
	 prepare_flat_reduce,
	 {round_flat_reduce, round_linear}},
	{PLAN_REDUCE, PLAN_BINARY, PLAN_COMMUTES, prepare_binary_reduce, {round_binary_reduce}},
	{PLAN_REDUCE,
	 PLAN_HOSTS,
	 PLAN_COMMUTES,
	 prepare_hosts,
	 {round_hosts_gather, round_hosts_fold}},
	{PLAN_ALLREDUCE, PLAN_RECURSIVE_DOUBLING, 0, prepare_doubling, {round_doubling}},
	{PLAN_ALLREDUCE,
	 PLAN_RING,
	 PLAN_COMMUTES,
	 prepare_ring,
	 {round_ring_reduce, round_ring_gather}},
	{PLAN_ALLREDUCE,
	 PLAN_REDUCE_BROADCAST,
	 0,
	 prepare_binomial_reduce,
	 {round_binomial_reduce, round_binomial_broadcast}},
	{PLAN_ALLREDUCE,
	 PLAN_PAIRWISE,
	 PLAN_LINEAR,
	 prepare_pairwise_reduce,
	 {round_pairwise_reduce, round_linear, round_ring_gather}},
	{PLAN_ALLREDUCE,
	 PLAN_FLAT,
	 PLAN_LINEAR,
	 prepare_flat_reduce,
	 {round_flat_allreduce, round_linear}},
	{PLAN_ALLREDUCE, PLAN_STAR, PLAN_LINEAR, prepare_star, {round_star}},
	{PLAN_ALLREDUCE,
	 PLAN_CHAIN,
	 PLAN_LINEAR,
	 prepare_chain,
	 {round_chain_reduce, round_chain_broadcast}},
	{PLAN_ALLREDUCE,
	 PLAN_BINARY,
	 PLAN_COMMUTES,
	 prepare_binary_reduce,
	 {round_binary_reduce, round_binary_broadcast}},
	{PLAN_ALLREDUCE,
	 PLAN_HOSTS,
	 PLAN_COMMUTES,
	 prepare_hosts,
	 {round_hosts_gather, round_hosts_fold, round_hosts_down}},
	{PLAN_SCATTER,
	 PLAN_BINOMIAL,
	 0,
	 prepare_binomial_scatter,
	 {round_pack, round_binomial_scatter}},
	{PLAN_SCATTER, PLAN_FLAT, 0, NULL, {round_flat_scatter}},
	{PLAN_GATHER,
	 PLAN_BINOMIAL,
	 0,
	 prepare_binomial_gather,
	 {round_binomial_gather, round_unpack}},
	{PLAN_GATHER, PLAN_FLAT, 0, NULL, {round_flat_gather}},
	{PLAN_ALLGATHER, PLAN_BRUCK, 0, prepare_bruck, {round_bruck, round_bruck_place}},
	{PLAN_ALLGATHER, PLAN_RING, 0, NULL, {round_ring_gather}},
	{PLAN_ALLTOALL, PLAN_PAIRWISE, 0, prepare_pairwise, {round_pairwise}},
	{PLAN_REDUCE_SCATTER,
	 PLAN_PAIRWISE,
	 PLAN_LINEAR,
	 prepare_pairwise_reduce,
	 {round_pairwise_reduce, round_linear, round_own_block}},
	{PLAN_REDUCE_SCATTER, PLAN_RING, PLAN_COMMUTES, prepare_ring, {round_ring_reduce}},
	{PLAN_SCAN, PLAN_RECURSIVE_DOUBLING, 0, prepare_doubling, {round_doubling_scan}},
	{PLAN_SCAN, PLAN_CHAIN, PLAN_LINEAR, prepare_chain, {round_chain_scan}},
	{PLAN_EXSCAN, PLAN_RECURSIVE_DOUBLING, 0, prepare_doubling, {round_doubling_exscan}},
	{PLAN_EXSCAN, PLAN_CHAIN, PLAN_LINEAR, prepare_chain, {round_chain_exscan}},
};

#define METHODS (sizeof(methods) / sizeof(methods[0]))

static const struct plan_method by_text = {
	0, PLAN_TEXT, 0, prepare_text, {round_text_own, round_text}};

static const struct plan_method *method_of(uint32_t kind, uint32_t algorithm)
{
	for (size_t i = 0; i < METHODS; i++)
		if (methods[i].kind == kind && methods[i].algorithm == algorithm)
			return &methods[i];
	return NULL;
}

enum plan_algorithm plan_algorithm_at(uint32_t kind, uint32_t i)
{
	for (size_t m = 0; m < METHODS; m++)
		if (methods[m].kind == kind && i-- == 0)
			return methods[m].algorithm;
	return PLAN_AUTO;
}

uint32_t plan_properties(uint32_t kind, enum plan_algorithm algorithm)
{
	const struct plan_method *method = method_of(kind, algorithm);

	return method ? method->properties : 0;
}

uint32_t plan_takes(uint32_t kind)
{
	static const uint8_t takes[PLAN_KINDS] = {
		[PLAN_BROADCAST] = PLAN_ROOT,
		[PLAN_REDUCE] = PLAN_ROOT | PLAN_COMBINES,
		[PLAN_ALLREDUCE] = PLAN_COMBINES,
		[PLAN_SCATTER] = PLAN_ROOT | PLAN_BLOCKS,
		[PLAN_GATHER] = PLAN_ROOT | PLAN_BLOCKS,
		[PLAN_ALLGATHER] = PLAN_BLOCKS,
		[PLAN_ALLTOALL] = PLAN_BLOCKS | PLAN_EXCHANGE,
		[PLAN_REDUCE_SCATTER] = PLAN_BLOCKS | PLAN_COMBINES,
		[PLAN_SCAN] = PLAN_COMBINES,
		[PLAN_EXSCAN] = PLAN_COMBINES,
	};

	return kind < PLAN_KINDS ? takes[kind] : 0;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* What is divided among the members, or what they have a block of each. */
static bool begin_blocks(struct plan *p)
{
	const struct plan_spec *s = &p->spec;
	const bool alltoall = s->kind == PLAN_ALLTOALL;
	const uint64_t *counts = alltoall ? s->to_counts : s->counts;
	const uint64_t *places = alltoall ? s->to_places : s->places;

	if (!blocks_begin(&p->from, s->size, s->count, s->counts, s->places) ||
	    !blocks_begin(&p->to, s->size, s->count, counts, places))
		return false;
	p->from.cut = p->to.cut = s->kind == PLAN_ALLREDUCE;
	return true;
}

/* What goes to the rank itself is what comes of it: else it would lie across other blocks. */
static bool exchange_fits(const struct plan_spec *s)
{
	return s->kind != PLAN_ALLTOALL || s->flags & PLAN_IN_PLACE ||
	       (s->counts ? s->counts[s->rank] : s->count) ==
		       (s->to_counts ? s->to_counts[s->rank] : s->count);
}

int plan_begin(struct plan *p, const struct plan_spec *spec)
{
	const struct plan_method *method =
		spec->text ? &by_text : method_of(spec->kind, spec->algorithm);
	const uint32_t takes = plan_takes(spec->kind);

	if (!method || spec->rank >= spec->size || spec->size > PLAN_MEMBERS ||
	    (takes & PLAN_ROOT && spec->root >= spec->size) || !exchange_fits(spec))
		return -SLMPM_EINVAL;
	memset(p, 0, offsetof(struct plan, step));
	p->spec = *spec;
	p->method = method;
	if (!(takes & PLAN_ROOT))
		p->spec.root = 0;
	if (!(takes & PLAN_BLOCKS))
		p->spec.counts = p->spec.places = NULL;
	p->input = spec->flags & PLAN_IN_PLACE ? PLAN_TO : PLAN_FROM;
	if (!begin_blocks(p))
		return -SLMPM_ELIMIT;
	if (method->prepare)
		method->prepare(p);
	return p->scratch == UINT64_MAX ? -SLMPM_ELIMIT : 0;
}

void plan_again(struct plan *p)
{
	const struct plan_spec spec = p->spec;

	plan_begin(p, &spec);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool next_round(struct plan *p)
{
	plan_round *round = p->phase < PLAN_PHASES ? p->method->phase[p->phase] : NULL;

	p->made = p->given = 0;
	if (!round)
		return false;
	if (round(p, p->round)) {
		p->round++;
		return true;
	}
	p->phase++;
	p->round = 0;
	p->behind = true;
	return true;
}

/* The next step, which stays; NULL: there is none left. */
static const struct plan_step *plan_peek(struct plan *p)
{
	while (p->given == p->made)
		if (!next_round(p))
			return NULL;
	return &p->step[p->given];
}

/* ---- as a program ---------------------------------------------------------------------------- */

/* All sends before STEP are to be done, and nothing else sees to that. */
static bool is_gated(const struct plan *p, const struct plan_step *step)
{
	return p->spec.flags & PLAN_PROGRAM && p->sends && step->op == PLAN_RECV &&
	       !(step->flags & PLAN_AHEAD);
}

/* A GATE before a receive, or the END behind the last step. */
static bool next_between(struct plan *p, struct plan_step *step, bool ends)
{
	if (p->ended || !(p->spec.flags & PLAN_PROGRAM))
		return false;
	*step = (struct plan_step){.op = ends ? PLAN_END : PLAN_GATE, .round = p->round};
	p->sends = false;
	p->ended = ends;
	return true;
}

bool plan_next(struct plan *p, struct plan_step *step)
{
	const struct plan_step *next = plan_peek(p);

	if (!next || is_gated(p, next))
		return next_between(p, step, !next);
	if (next->op == PLAN_SEND)
		p->sends = true;
	else if (next->op == PLAN_FOLD || next->op == PLAN_COPY)
		p->sends = false;
	*step = *next;
	if (p->spec.members && (step->op == PLAN_SEND || step->op == PLAN_RECV))
		step->peer = p->spec.members[step->peer];
	p->given++;
	return true;
}
