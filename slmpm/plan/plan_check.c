/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether what a caller asks for is a plan: what its kind does not take is refused by name. */
#include "slmpm/plan/plan_check.h"

#include <inttypes.h>
#include <stdio.h>

#include "slmpm/base/error.h"
#include "slmpm/plan/plan.h"

#define FLAGS                                                                                      \
	(SLMPM_PLAN_IN_PLACE | SLMPM_PLAN_RANK_ORDER | SLMPM_PLAN_NONCOMMUTATIVE |                 \
	 SLMPM_PLAN_PROGRAM)

static int refuse_member(const struct slmpm_plan_spec *s, const char *what)
{
	return error_set(SLMPM_EINVAL, "slmpm_plan_open: %s: %s", plan_kind_name(s->kind), what);
}

/* The arrays that are given and that a kind does not have, or that need another. */
static int check_arrays(const struct slmpm_plan_spec *s)
{
	const uint32_t takes = plan_takes(s->kind);

	if (!(takes & PLAN_BLOCKS) && s->counts)
		return refuse_member(s, ".counts: it has none");
	if (!(takes & PLAN_BLOCKS) && s->places)
		return refuse_member(s, ".places: it has none");
	if (!(takes & PLAN_EXCHANGE) && s->to_counts)
		return refuse_member(s, ".to_counts: it has none");
	if (!(takes & PLAN_EXCHANGE) && s->to_places)
		return refuse_member(s, ".to_places: it has none");
	if (s->places && !s->counts)
		return refuse_member(s, ".places without .counts");
	if (s->to_places && !s->to_counts)
		return refuse_member(s, ".to_places without .to_counts");
	return 0;
}

static int check_hosts(const struct slmpm_plan_spec *s)
{
	for (uint32_t r = 0; s->hosts && r < s->members; r++)
		if (s->hosts[r] > r || s->hosts[s->hosts[r]] != s->hosts[r])
			return error_set(SLMPM_EINVAL,
					 "slmpm_plan_open: %s: .hosts: %u of rank %u is not the "
					 "lowest rank of a machine",
					 slmpm_plan_kind(s->kind), s->hosts[r], r);
	return 0;
}

/* An exchange has counts of both sides, in place of one. */
static int check_exchange(const struct slmpm_plan_spec *s)
{
	if (!(plan_takes(s->kind) & PLAN_EXCHANGE))
		return 0;
	if (s->flags & SLMPM_PLAN_IN_PLACE)
		return s->counts ?
			       refuse_member(s,
					     ".counts: in place .to_counts are all that it has") :
			       0;
	if (s->counts && !s->to_counts)
		return refuse_member(s, ".counts without .to_counts");
	if (s->to_counts && !s->counts)
		return refuse_member(s, ".to_counts without .counts");
	if (s->counts && s->counts[s->rank] != s->to_counts[s->rank])
		return refuse_member(s, ".counts and .to_counts differ for .rank itself");
	return 0;
}

static int check_ranks(const struct slmpm_plan_spec *s)
{
	const char *kind = plan_kind_name(s->kind);

	if (!s->members || s->members > PLAN_MEMBERS)
		return error_set(SLMPM_EINVAL, "slmpm_plan_open: %s: .members %u: from 1 to %u",
				 kind, s->members, PLAN_MEMBERS);
	if (s->rank >= s->members)
		return error_set(SLMPM_EINVAL, "slmpm_plan_open: %s: .rank %u: from 0 to %u", kind,
				 s->rank, s->members - 1);
	if (plan_takes(s->kind) & PLAN_ROOT && s->root >= s->members)
		return error_set(SLMPM_EINVAL, "slmpm_plan_open: %s: .root %u: from 0 to %u", kind,
				 s->root, s->members - 1);
	return 0;
}

/* Whether the kind has the algorithm that is given, and its flags are such of it. */
static int check_algorithm(const struct slmpm_plan_spec *s)
{
	const struct plan_spec order = {.kind = s->kind, .flags = s->flags};
	const char *name = plan_name(s->algorithm);
	uint32_t i = 0, a;

	while ((a = plan_algorithm_at(s->kind, i)) != PLAN_AUTO && a != s->algorithm)
		i++;
	if (a != s->algorithm)
		return error_set(SLMPM_EINVAL,
				 "slmpm_plan_open: %s: .algorithm %u, %s, is not one of its",
				 plan_kind_name(s->kind), s->algorithm, name);
	if (s->algorithm && !plan_keeps_order(&order, s->algorithm))
		return error_set(SLMPM_EINVAL,
				 "slmpm_plan_open: %s: .flags %#x: not the order of %s",
				 plan_kind_name(s->kind), s->flags, name);
	return 0;
}

static int check_flags(const struct slmpm_plan_spec *s)
{
	const uint32_t orders = SLMPM_PLAN_RANK_ORDER | SLMPM_PLAN_NONCOMMUTATIVE;

	if (s->flags & ~FLAGS)
		return error_set(SLMPM_EINVAL, "slmpm_plan_open: %s: .flags %#x: unknown",
				 plan_kind_name(s->kind), s->flags);
	if (s->flags & orders && !(plan_takes(s->kind) & PLAN_COMBINES))
		return error_set(SLMPM_EINVAL,
				 "slmpm_plan_open: %s: .flags %#x: it combines nothing",
				 plan_kind_name(s->kind), s->flags);
	return 0;
}

int plan_check(const struct slmpm_plan_spec *s)
{
	int rc;

	if (!plan_kind_name(s->kind))
		return error_set(SLMPM_EINVAL, "slmpm_plan_open: no collective is .kind %u",
				 s->kind);
	rc = check_flags(s);
	rc = rc < 0 ? rc : check_ranks(s);
	rc = rc < 0 ? rc : check_arrays(s);
	rc = rc < 0 ? rc : check_hosts(s);
	rc = rc < 0 ? rc : check_exchange(s);
	return rc < 0 ? rc : check_algorithm(s);
}
