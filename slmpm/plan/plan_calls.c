/* SPDX-License-Identifier: BSD-3-Clause */
/* The public calls about plans. */
#include <slmpm_plan.h>

#include <errno.h>
#include <stdlib.h>

#include "slmpm/base/error.h"
#include "slmpm/base/sized.h"
#include "slmpm/plan/plan.h"
#include "slmpm/plan/plan_check.h"

_Static_assert((int)SLMPM_PLAN_SEND == PLAN_SEND && (int)SLMPM_PLAN_RECV == PLAN_RECV &&
		       (int)SLMPM_PLAN_WAIT == PLAN_WAIT && (int)SLMPM_PLAN_FOLD == PLAN_FOLD &&
		       (int)SLMPM_PLAN_COPY == PLAN_COPY && (int)SLMPM_PLAN_GATE == PLAN_GATE &&
		       (int)SLMPM_PLAN_END == PLAN_END,
	       "steps are public by their number");
_Static_assert((int)SLMPM_PLAN_FROM == PLAN_FROM && (int)SLMPM_PLAN_TO == PLAN_TO &&
		       (int)SLMPM_PLAN_SCRATCH == PLAN_SCRATCH,
	       "areas, too");
_Static_assert(SLMPM_PLAN_AHEAD == PLAN_AHEAD && SLMPM_PLAN_LANES == PLAN_LANES &&
		       SLMPM_PLAN_IN_PLACE == PLAN_IN_PLACE,
	       "and these");
_Static_assert(SLMPM_PLAN_RANK_ORDER == PLAN_RANK_ORDER &&
		       SLMPM_PLAN_NONCOMMUTATIVE == PLAN_NONCOMMUTATIVE &&
		       SLMPM_PLAN_PROGRAM == PLAN_PROGRAM,
	       "and those");

#define WIDTH 8 /* of an element, where none is given */

struct slmpm_plan {
	struct plan inner;
};

const char *slmpm_plan_kind(uint32_t kind)
{
	return kind && kind < PLAN_KINDS ? plan_kind_name(kind) : NULL;
}

const char *slmpm_plan_algorithm(uint32_t algorithm)
{
	return algorithm && algorithm < PLAN_ALGORITHMS ?
		       plan_name((enum plan_algorithm)algorithm) :
		       NULL;
}

int slmpm_plan_algorithm_at(uint32_t kind, uint32_t i)
{
	int algorithm;

	if (!slmpm_plan_kind(kind))
		return error_set(SLMPM_EINVAL, "slmpm_plan_algorithm_at: no collective is kind %u",
				 kind);
	algorithm = (int)plan_algorithm_at(kind, i);
	if (algorithm == PLAN_AUTO)
		return error_set(SLMPM_ENOENT, "slmpm_plan_algorithm_at: %s has only %u",
				 slmpm_plan_kind(kind), i);
	return algorithm;
}

/* As this room has it; its algorithm is chosen where that is left open. */
static int spec_of(struct plan_spec *to, const struct slmpm_plan_spec *given)
{
	struct slmpm_plan_spec s;
	int rc = sized_take("slmpm_plan_open", &s, given, sizeof(s));

	rc = rc < 0 ? rc : plan_check(&s);
	if (rc < 0)
		return rc;
	*to = (struct plan_spec){.kind = s.kind,
				 .algorithm = s.algorithm,
				 .size = s.members,
				 .rank = s.rank,
				 .root = s.root,
				 .flags = s.flags,
				 .count = s.count,
				 .counts = s.counts,
				 .places = s.places,
				 .to_counts = s.to_counts,
				 .to_places = s.to_places,
				 .hosts = s.hosts,
				 .piece = s.piece};
	if (!to->algorithm)
		to->algorithm = plan_choose(to, s.width ? s.width : WIDTH);
	return 0;
}

static int begin_plan(struct slmpm_plan *plan, const struct plan_spec *spec)
{
	if (plan_begin(&plan->inner, spec) < 0)
		return error_set(SLMPM_ELIMIT,
				 "slmpm_plan_open: %s: %s: more elements, or pieces, than can be "
				 "counted",
				 slmpm_plan_kind(spec->kind), spec->counts ? ".counts" : ".count");
	return 0;
}

int slmpm_plan_open(struct slmpm_plan **plan, const struct slmpm_plan_spec *spec)
{
	struct plan_spec inner;
	int rc;

	if (!plan)
		return error_set(SLMPM_EINVAL, "slmpm_plan_open: no place for the plan");
	rc = spec_of(&inner, spec);
	if (rc < 0)
		return rc;
	*plan = malloc(sizeof(**plan));
	if (!*plan)
		return error_system(-ENOMEM, "slmpm_plan_open: a plan");
	rc = begin_plan(*plan, &inner);
	if (rc < 0) {
		free(*plan);
		*plan = NULL;
	}
	return rc;
}

void slmpm_plan_close(struct slmpm_plan *plan)
{
	free(plan);
}

int slmpm_plan_query(const struct slmpm_plan *plan, struct slmpm_plan_info *info)
{
	struct slmpm_plan_info now;
	int rc;

	if (!plan)
		return error_set(SLMPM_EINVAL, "slmpm_plan_query: no plan");
	rc = sized_check_own("slmpm_plan_query", info, sizeof(now));
	if (rc < 0)
		return rc;
	now.algorithm = plan->inner.spec.algorithm;
	now.scratch = plan->inner.scratch;
	sized_give_own(info, &now, sizeof(now));
	return 0;
}

static void give_step(struct slmpm_plan_step *to, const struct plan_step *s)
{
	const struct slmpm_plan_step full = {.op = s->op,
					     .flags = s->flags,
					     .lane = s->lane,
					     .peer = s->peer,
					     .round = s->round,
					     .at_area = s->at_area,
					     .left_area = s->left_area,
					     .right_area = s->right_area,
					     .count = s->count,
					     .at = s->at,
					     .left = s->left,
					     .right = s->right};

	sized_give_own(to, &full, sizeof(full));
}

int slmpm_plan_next(struct slmpm_plan *plan, struct slmpm_plan_step *step)
{
	struct plan_step next;
	int rc;

	if (!plan)
		return error_set(SLMPM_EINVAL, "slmpm_plan_next: no plan");
	rc = sized_check_own("slmpm_plan_next", step, sizeof(*step));
	if (rc < 0)
		return rc;
	if (!plan_next(&plan->inner, &next))
		return 0;
	give_step(step, &next);
	return 1;
}
