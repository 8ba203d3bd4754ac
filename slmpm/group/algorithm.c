/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By which algorithms a group does what it does by messages: those that SLMPM_COLL_ALGORITHM
 * forces, how long a short vector is (SLMPM_COLL_SHORT), and whether reductions keep to the order
 * of the ranks, all as who has founded it has set them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/config.h"
#include "slmpm/group/machine_ops.h"
#include "slmpm/plan/plan.h"

#define BITS 4 /* of each kind, from the lowest on */
_Static_assert(PLAN_ALGORITHMS <= 1 << BITS && (PLAN_KINDS - 1) * PLAN_LIMIT_BITS <= 64,
	       "they have room");
_Static_assert(PLAN_LIMITS == sizeof(((struct algorithms *)0)->limits) / sizeof(uint64_t),
	       "of each order");

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

bool algorithms_are_known(const struct algorithms *a)
{
	for (uint32_t kind = PLAN_BARRIER; kind < PLAN_KINDS; kind++) {
		uint32_t one = algorithm_of(a->forced, kind);

		if (one && !kind_has(kind, one))
			return false;
	}
	for (int i = 0; i < PLAN_LIMITS; i++)
		if (a->limits[i] >> (PLAN_KINDS - 1) * PLAN_LIMIT_BITS)
			return false;
	return !(a->forced >> (PLAN_KINDS - 1) * BITS);
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

/* "allreduce:32k": up to a power of two vectors are short. */
static bool take_limit(uint64_t *limits, const char *word)
{
	const char *colon = strchr(word, ':');
	uint32_t kind = colon ? kind_by_name(word, (size_t)(colon - word)) : 0, power;
	char *end = NULL;
	uint64_t bytes = colon ? strtoull(colon + 1, &end, 10) : 0;
	const uint32_t shift = (kind - 1) * PLAN_LIMIT_BITS;

	if (!kind || end == colon + 1 || colon[1] < '0' || colon[1] > '9')
		return false;
	power = *end == 'k' ? 10 : *end == 'm' ? 20 : *end == 'g' ? 30 : 0;
	if (end[power != 0] || !bytes || bytes & (bytes - 1))
		return false;
	power += (uint32_t)__builtin_ctzll(bytes);
	if (!power || power >= 1 << PLAN_LIMIT_BITS)
		return false;
	*limits &= ~(((UINT64_C(1) << PLAN_LIMIT_BITS) - 1) << shift);
	*limits |= (uint64_t)power << shift;
	return true;
}

/* Each word of TEXT, which a comma ends. */
static int take_words(const char *text, uint64_t *to, bool (*take)(uint64_t *to, const char *word),
		      const char *name, const char *what)
{
	char word[64];

	while (*text) {
		size_t length = strcspn(text, ",");

		(void)snprintf(word, sizeof(word), "%.*s", (int)length, text);
		if (length >= sizeof(word) || !take(to, word))
			return error_set(SLMPM_EINVAL, "SLMPM_COLL_%s: \"%s\" is none, and no %s",
					 name, word, what);
		text += length + (text[length] == ',');
	}
	return 0;
}

int algorithms_set(struct algorithms *a)
{
	const struct config *config = config_get();
	const char *limit = "KIND:BYTES, a power of two up to 1g";
	int rc;

	*a = (struct algorithms){.any_order = config->coll_order};
	rc = take_words(config->coll_algorithm, &a->forced, take_forced, "ALGORITHM",
			"KIND:ALGORITHM of slmpm_plan(3)");
	if (rc == 0)
		rc = take_words(config->coll_short, &a->limits[PLAN_LIMIT_ANY], take_limit, "SHORT",
				limit);
	if (rc == 0)
		rc = take_words(config->coll_short_rank, &a->limits[PLAN_LIMIT_RANK], take_limit,
				"SHORT_RANK", limit);
	return rc;
}

/* ---- chosen ---------------------------------------------------------------------------------- */

static bool has_order(const struct plan_spec *spec)
{
	return spec->flags & (PLAN_RANK_ORDER | PLAN_NONCOMMUTATIVE);
}

bool algorithm_may_gather(const struct group *g, const struct plan_spec *spec, uint32_t width)
{
	uint32_t forced = algorithm_of(g->algorithms.forced, spec->kind);

	return (forced == PLAN_AUTO || forced == PLAN_HOSTS) &&
	       (spec->kind == PLAN_REDUCE || spec->kind == PLAN_ALLREDUCE) && has_order(spec) &&
	       plan_bytes(spec, width) <= MACHINE_GATHERED / spec->size;
}

bool algorithm_may_meet(const struct group *g, const struct plan_spec *spec, uint32_t width)
{
	uint32_t forced = algorithm_of(g->algorithms.forced, spec->kind);

	if (has_order(spec))
		return algorithm_may_gather(g, spec, width);
	/* A leader of a reduce that is not the root would need memory for all of it. */
	return (forced == PLAN_AUTO || forced == PLAN_HOSTS) && spec->kind != PLAN_REDUCE &&
	       kind_has(spec->kind, PLAN_HOSTS);
}

uint32_t algorithm_choose(const struct group *g, const struct plan_spec *spec, uint32_t width)
{
	uint32_t forced = algorithm_of(g->algorithms.forced, spec->kind);

	/* Who is not the root need not know the others' counts. */
	if (spec->kind == PLAN_SCATTER || spec->kind == PLAN_GATHER)
		return PLAN_FLAT;
	return forced && plan_keeps_order(spec, forced) ? forced : plan_choose(spec, width);
}
