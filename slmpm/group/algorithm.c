/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By which algorithms a group does what it does by messages: those that SLMPM_COLL_ALGORITHM
 * forces, and whether reductions keep to the order of the ranks, both as who has founded it has set
 * them.
 */
#include <stdio.h>
#include <string.h>

#include "slmpm/base/config.h"
#include "slmpm/group/group.h"
#include "slmpm/plan/plan.h"

#define NAME "SLMPM_COLL_ALGORITHM"
#define BITS 4 /* of each kind, from the lowest on */
_Static_assert(PLAN_ALGORITHMS <= 1 << BITS && (PLAN_KINDS - 1) * BITS <= 64, "they have room");

static uint32_t algorithm_of(uint64_t algorithms, uint32_t kind)
{
	return (uint32_t)(algorithms >> (kind - 1) * BITS) & ((1u << BITS) - 1);
}

static bool kind_has(uint32_t kind, uint32_t algorithm)
{
	uint32_t one;

	for (uint32_t i = 0; (one = plan_algorithm_at(kind, i)) != PLAN_AUTO; i++)
		if (one == algorithm)
			return true;
	return false;
}

bool algorithms_are_known(uint64_t algorithms)
{
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++) {
		uint32_t one = algorithm_of(algorithms, kind);

		if (one && !kind_has(kind, one))
			return false;
	}
	return !(algorithms >> (PLAN_KINDS - 1) * BITS);
}

/* ---- as set ---------------------------------------------------------------------------------- */

static void force(uint64_t *algorithms, uint32_t kind, uint32_t algorithm)
{
	uint32_t shift = (kind - 1) * BITS;

	*algorithms &= ~(((UINT64_C(1) << BITS) - 1) << shift);
	*algorithms |= (uint64_t)algorithm << shift;
}

static uint32_t kind_by_name(const char *name, size_t length)
{
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++)
		if (strlen(plan_kind_name(kind)) == length &&
		    !strncmp(plan_kind_name(kind), name, length))
			return kind;
	return 0;
}

/* "ring", for all kinds that have it, or "allreduce:ring". False: there is no such. */
static bool take_forced(uint64_t *algorithms, const char *word)
{
	const char *colon = strchr(word, ':'), *name = colon ? colon + 1 : word;
	uint32_t only = colon ? kind_by_name(word, (size_t)(colon - word)) : 0;
	uint32_t algorithm = plan_by_name(name);
	bool is_auto = !strcmp(name, plan_name(PLAN_AUTO)), found = false;

	if (colon && !only)
		return false;
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++) {
		if ((only && kind != only) ||
		    !(is_auto || (algorithm && kind_has(kind, algorithm))))
			continue;
		force(algorithms, kind, algorithm);
		found = true;
	}
	return found;
}

int algorithms_set(struct algorithms *a)
{
	const struct config *config = config_get();
	const char *at = config->coll_algorithm;
	char word[64];

	*a = (struct algorithms){.any_order = config->coll_order};
	while (*at) {
		size_t length = strcspn(at, ",");

		(void)snprintf(word, sizeof(word), "%.*s", (int)length, at);
		if (length >= sizeof(word) || !take_forced(&a->forced, word))
			return error_set(SLMPM_EINVAL,
					 NAME ": \"%s\" is no algorithm, and no KIND:ALGORITHM of "
					      "slmpm_plan(3)",
					 word);
		at += length + (at[length] == ',');
	}
	return 0;
}

/* ---- chosen ---------------------------------------------------------------------------------- */

uint32_t algorithm_choose(const struct group *g, const struct plan_spec *spec, uint32_t width)
{
	uint32_t forced = algorithm_of(g->algorithms.forced, spec->kind);

	/* Who is not the root need not know the others' counts. */
	if (spec->kind == PLAN_SCATTER || spec->kind == PLAN_GATHER)
		return PLAN_FLAT;
	return forced && plan_keeps_order(spec, forced) ? forced : plan_choose(spec, width);
}
