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
	struct plan_text *text; /* or NULL */
};

const char *slmpm_plan_kind(uint32_t kind)
{
	return plan_kind_name(kind);
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

	if (!plan_kind_name(kind))
		return error_set(SLMPM_EINVAL, "slmpm_plan_algorithm_at: no collective is kind %u",
				 kind);
	algorithm = (int)plan_algorithm_at(kind, i);
	if (algorithm == PLAN_AUTO)
		return error_set(SLMPM_ENOENT, "slmpm_plan_algorithm_at: %s has only %u",
				 plan_kind_name(kind), i);
	return algorithm;
}

/* As this room has it. */
static int spec_of(const char *call, struct plan_spec *to, const struct slmpm_plan_spec *given,
		   uint32_t *width)
{
	struct slmpm_plan_spec s;
	int rc = sized_take(call, &s, given, sizeof(s));

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
	*width = s.width ? s.width : WIDTH;
	return 0;
}

/* TEXT, or NULL, is the plan's then. */
static int begin_plan(const char *call, struct slmpm_plan **out, const struct plan_spec *spec,
		      struct plan_text *text)
{
	struct slmpm_plan *plan = malloc(sizeof(*plan));

	if (!plan)
		return error_system(-ENOMEM, call);
	if (plan_begin(&plan->inner, spec) < 0) {
		free(plan);
		return error_set(SLMPM_ELIMIT,
				 "%s: %s: %s: more elements, or pieces, than can be counted", call,
				 plan_kind_name(spec->kind), spec->counts ? ".counts" : ".count");
	}
	plan->text = text;
	*out = plan;
	return 0;
}

int slmpm_plan_open(struct slmpm_plan **plan, const struct slmpm_plan_spec *spec)
{
	struct plan_spec inner;
	uint32_t width;
	int rc;

	if (!plan)
		return error_set(SLMPM_EINVAL, "slmpm_plan_open: no place for the plan");
	*plan = NULL;
	rc = spec_of("slmpm_plan_open", &inner, spec, &width);
	if (rc < 0)
		return rc;
	if (!inner.algorithm)
		inner.algorithm = plan_choose(&inner, width);
	return begin_plan("slmpm_plan_open", plan, &inner, NULL);
}

static int check_fits(const struct plan_text *t, const struct plan_spec *spec, uint32_t width)
{
	if (plan_text_fits(t, spec, width))
		return 0;
	return error_set(SLMPM_EINVAL,
			 "slmpm_plan_load: the text is for %s of %u members, not for this "
			 "algorithm, these members, counts, bytes or this order",
			 plan_kind_name(plan_text_kind(t)), plan_text_members(t));
}

int slmpm_plan_load(struct slmpm_plan **plan, const struct slmpm_plan_spec *spec, const char *text)
{
	struct plan_text *t = NULL;
	struct plan_spec inner;
	uint32_t width;
	int rc;

	if (!plan || !text)
		return error_set(SLMPM_EINVAL, "slmpm_plan_load: no %s",
				 plan ? "text" : "place for the plan");
	*plan = NULL;
	rc = spec_of("slmpm_plan_load", &inner, spec, &width);
	if (rc == 0 && inner.algorithm)
		rc = error_set(SLMPM_EINVAL, "slmpm_plan_load: .algorithm %u beside a text",
			       inner.algorithm);
	rc = rc < 0 ? rc : plan_text_load(&t, text);
	rc = rc < 0 ? rc : check_fits(t, &inner, width);
	if (rc == 0) {
		inner.algorithm = PLAN_TEXT;
		inner.text = t;
		rc = begin_plan("slmpm_plan_load", plan, &inner, t);
	}
	if (rc < 0)
		plan_text_free(t);
	return rc;
}

void slmpm_plan_close(struct slmpm_plan *plan)
{
	if (plan)
		plan_text_free(plan->text);
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
