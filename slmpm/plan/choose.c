/* SPDX-License-Identifier: BSD-3-Clause */
/* Which algorithm a plan is made by: by its name, or by a table of sizes. */
#include "slmpm/plan/plan.h"

#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

static const char *const algorithm_names[PLAN_ALGORITHMS] = {
	[PLAN_AUTO] = "auto",
	[PLAN_DISSEMINATION] = "dissemination",
	[PLAN_TREE] = "tree",
	[PLAN_BINOMIAL] = "binomial",
	[PLAN_CHAIN] = "chain",
	[PLAN_FLAT] = "flat",
	[PLAN_RECURSIVE_DOUBLING] = "recursive_doubling",
	[PLAN_RING] = "ring",
	[PLAN_REDUCE_BROADCAST] = "reduce_broadcast",
	[PLAN_PAIRWISE] = "pairwise",
	[PLAN_BRUCK] = "bruck",
	[PLAN_BINARY] = "binary",
	[PLAN_STAR] = "star",
	[PLAN_HOSTS] = "hosts",
	[PLAN_TEXT] = "text",
};

static const char *const kind_names[PLAN_KINDS] = {
	[PLAN_BARRIER] = "barrier",
	[PLAN_BROADCAST] = "broadcast",
	[PLAN_REDUCE] = "reduce",
	[PLAN_ALLREDUCE] = "allreduce",
	[PLAN_SCATTER] = "scatter",
	[PLAN_GATHER] = "gather",
	[PLAN_ALLGATHER] = "allgather",
	[PLAN_ALLTOALL] = "alltoall",
	[PLAN_REDUCE_SCATTER] = "reduce_scatter",
	[PLAN_SCAN] = "scan",
	[PLAN_EXSCAN] = "exscan",
};

const char *plan_name(enum plan_algorithm algorithm)
{
	return algorithm < PLAN_ALGORITHMS ? algorithm_names[algorithm] : "unknown";
}

const char *plan_kind_name(uint32_t kind)
{
	return kind < PLAN_KINDS ? kind_names[kind] : NULL;
}

enum plan_algorithm plan_by_name(const char *name)
{
	for (enum plan_algorithm a = PLAN_DISSEMINATION; a < PLAN_ALGORITHMS; a++)
		if (!strcmp(name, algorithm_names[a]))
			return a;
	return PLAN_AUTO;
}

/* ---- choice ---------------------------------------------------------------------------------- */

#define ANY UINT64_MAX

#define BY_ANY  (PLAN_LIMIT_ANY + 1)
#define BY_RANK (PLAN_LIMIT_RANK + 1)

/* Of a kind the first row that fits (by machines: where several members share one; star, which has
 * the fewest messages, and binary, of whose long ones none waits for a piece: where they share
 * processors, and no limit is given; allreduce's chain, which has the fewest bytes between
 * machines: both), and whose algorithm keeps to the order that is asked for. */
static const struct choice {
	uint8_t kind, algorithm;
	uint32_t members; /* at most */
	uint64_t bytes;   /* at most, of all that one member has at one end */
	uint8_t limit;    /* and 1 more: plan_limit that replaces that; 0: none does */
} choices[] = {
	{PLAN_BARRIER, PLAN_HOSTS, UINT32_MAX, ANY, 0},
	{PLAN_BARRIER, PLAN_STAR, UINT32_MAX, ANY, 0},
	{PLAN_BARRIER, PLAN_DISSEMINATION, UINT32_MAX, ANY, 0},
	{PLAN_BROADCAST, PLAN_HOSTS, UINT32_MAX, 64 << 10, 0},
	{PLAN_BROADCAST, PLAN_FLAT, 3, ANY, 0},
	{PLAN_BROADCAST, PLAN_BINOMIAL, UINT32_MAX, 128 << 10, BY_ANY},
	{PLAN_BROADCAST, PLAN_BINARY, UINT32_MAX, ANY, 0},
	{PLAN_BROADCAST, PLAN_CHAIN, UINT32_MAX, ANY, 0},
	{PLAN_REDUCE, PLAN_HOSTS, UINT32_MAX, 32 << 10, 0},
	{PLAN_REDUCE, PLAN_FLAT, 3, 16 << 10, 0},
	{PLAN_REDUCE, PLAN_BINOMIAL, UINT32_MAX, 128 << 10, BY_ANY},
	{PLAN_REDUCE, PLAN_FLAT, 16, 4 << 10, BY_RANK},
	{PLAN_REDUCE, PLAN_CHAIN, UINT32_MAX, ANY, 0},
	{PLAN_ALLREDUCE, PLAN_HOSTS, UINT32_MAX, 32 << 10, 0},
	{PLAN_ALLREDUCE, PLAN_STAR, 16, 64 << 10, 0}, /* its centres keep pieces of all */
	{PLAN_ALLREDUCE, PLAN_CHAIN, UINT32_MAX, ANY, 0},
	{PLAN_ALLREDUCE, PLAN_STAR, 16, ANY, 0},
	{PLAN_ALLREDUCE, PLAN_FLAT, 4, 1 << 10, 0},
	{PLAN_ALLREDUCE, PLAN_RECURSIVE_DOUBLING, UINT32_MAX, 32 << 10, BY_ANY},
	{PLAN_ALLREDUCE, PLAN_RING, UINT32_MAX, ANY, 0},
	{PLAN_ALLREDUCE, PLAN_FLAT, 32, 4 << 10, BY_RANK},
	{PLAN_ALLREDUCE, PLAN_PAIRWISE, UINT32_MAX, ANY, 0},
	{PLAN_SCATTER, PLAN_FLAT, 4, ANY, 0},
	{PLAN_SCATTER, PLAN_BINOMIAL, UINT32_MAX, 64 << 10, 0},
	{PLAN_SCATTER, PLAN_FLAT, UINT32_MAX, ANY, 0},
	{PLAN_GATHER, PLAN_FLAT, 4, ANY, 0},
	{PLAN_GATHER, PLAN_BINOMIAL, UINT32_MAX, 64 << 10, 0},
	{PLAN_GATHER, PLAN_FLAT, UINT32_MAX, ANY, 0},
	{PLAN_ALLGATHER, PLAN_BRUCK, UINT32_MAX, 64 << 10, BY_ANY},
	{PLAN_ALLGATHER, PLAN_RING, UINT32_MAX, ANY, 0},
	{PLAN_ALLTOALL, PLAN_PAIRWISE, UINT32_MAX, ANY, 0},
	{PLAN_REDUCE_SCATTER, PLAN_PAIRWISE, UINT32_MAX, 64 << 10, BY_ANY},
	{PLAN_REDUCE_SCATTER, PLAN_RING, UINT32_MAX, ANY, 0},
	{PLAN_REDUCE_SCATTER, PLAN_PAIRWISE, UINT32_MAX, ANY, 0},
	{PLAN_SCAN, PLAN_RECURSIVE_DOUBLING, UINT32_MAX, 64 << 10, BY_ANY},
	{PLAN_SCAN, PLAN_CHAIN, UINT32_MAX, ANY, 0},
	{PLAN_EXSCAN, PLAN_RECURSIVE_DOUBLING, UINT32_MAX, 64 << 10, BY_ANY},
	{PLAN_EXSCAN, PLAN_CHAIN, UINT32_MAX, ANY, 0},
};

static uint64_t elements_of(const struct plan_spec *spec)
{
	uint64_t sum = 0;

	if (!(plan_takes(spec->kind) & PLAN_BLOCKS))
		return spec->count;
	if (!spec->counts)
		return spec->count * spec->size;
	for (uint32_t r = 0; r < spec->size; r++)
		sum += spec->counts[r];
	return sum;
}

bool plan_suits_order(const struct plan_spec *spec, uint32_t has)
{
	if (!(plan_takes(spec->kind) & PLAN_COMBINES))
		return true;
	if (spec->flags & PLAN_RANK_ORDER)
		return has & PLAN_LINEAR;
	return !(spec->flags & PLAN_NONCOMMUTATIVE && has & PLAN_COMMUTES);
}

bool plan_keeps_order(const struct plan_spec *spec, uint32_t algorithm)
{
	return plan_suits_order(spec, plan_properties(spec->kind, algorithm));
}

static uint64_t choice_bytes(const struct choice *c, const struct plan_spec *spec)
{
	uint32_t power = 0;

	if (c->limit && spec->limits)
		power = plan_limit_of(spec->limits[c->limit - 1], c->kind);
	return power ? UINT64_C(1) << power : c->bytes;
}

/* What is short is as the table says. */
static bool limits_are_default(const struct plan_spec *spec)
{
	uint64_t given = 0;

	for (int i = 0; spec->limits && i < PLAN_LIMITS; i++)
		given |= plan_limit_of(spec->limits[i], spec->kind);
	return !given;
}

static bool choice_fits(const struct choice *c, const struct plan_spec *spec, uint64_t bytes)
{
	const bool chain = c->algorithm == PLAN_CHAIN && c->kind == PLAN_ALLREDUCE;

	if (c->kind != spec->kind || c->members < spec->size || choice_bytes(c, spec) < bytes)
		return false;
	if ((c->algorithm == PLAN_HOSTS || chain) && !spec->hosts)
		return false;
	if ((c->algorithm == PLAN_STAR || c->algorithm == PLAN_BINARY || chain) &&
	    (!spec->processors || !limits_are_default(spec)))
		return false;
	/* Leaders hand pieces on within their machines meanwhile. */
	if (c->algorithm == PLAN_BINARY && spec->members)
		return false;
	return plan_keeps_order(spec, c->algorithm);
}

uint64_t plan_bytes(const struct plan_spec *spec, uint32_t width)
{
	uint64_t bytes;

	return __builtin_mul_overflow(elements_of(spec), width, &bytes) ? ANY : bytes;
}

enum plan_algorithm plan_choose(const struct plan_spec *spec, uint32_t width)
{
	const uint64_t bytes = plan_bytes(spec, width);

	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		if (choice_fits(&choices[i], spec, bytes))
			return choices[i].algorithm;
	return PLAN_AUTO;
}
