/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans that the members of a group have given as texts: the last one that fits is taken. */
#include "slmpm/group/tags.h"
#include "slmpm/plan/plan.h"

#include <stdlib.h>

#define CALL "slmpm_group_plan"

struct given_text {
	struct list node; /* of the group's */
	struct plan_text *text;
};

static int check_text(const struct group *g, const struct plan_text *t)
{
	if (plan_text_members(t) != g->boards.size)
		return error_set(SLMPM_EINVAL,
				 "slmpm_group_plan: it is for %u members, the group has %u",
				 plan_text_members(t), g->boards.size);
	/* Each may have a GATE before it. */
	if (plan_text_longest(t) > MESSAGES_DEPTH / 2 - 4)
		return error_set(SLMPM_ELIMIT, "slmpm_group_plan: %u steps of a rank, at most %u",
				 plan_text_longest(t), MESSAGES_DEPTH / 2 - 4);
	return 0;
}

static int keep_text(struct group *g, struct plan_text *t)
{
	struct given_text *given;
	int rc = check_text(g, t);

	if (rc < 0)
		return rc;
	given = malloc(sizeof(*given));
	if (!given)
		return error_set(SLMPM_ENOMEM, "for a plan's text");
	given->text = t;
	list_append(&g->texts, &given->node);
	return 0;
}

void texts_free(struct group *g)
{
	LIST_EACH_ENTRY(struct given_text, given, &g->texts, node) {
		list_remove(&given->node);
		plan_text_free(given->text);
		free(given);
	}
}

int slmpm_group_plan(slmpm_group group, const char *text)
{
	struct plan_text *t = NULL;
	struct context *ctx;
	struct group *g;
	int rc = handle_get(&group_table, group.id) ? 0 : handle_error(&group_table, group.id);

	if (rc == 0 && text)
		rc = plan_text_load(&t, text);
	if (rc < 0)
		return error_name_call(CALL, rc);
	g = group_lock(group, CALL, &ctx, &rc);
	if (!g) {
		plan_text_free(t);
		return rc;
	}
	if (!g->boards.own)
		rc = founder_refused(CALL);
	else if (g->begun != g->done || tags_wait(g))
		rc = error_set(SLMPM_EBUSY, CALL ": an operation is under way");
	else if (t)
		rc = keep_text(g, t);
	else
		texts_free(g);
	if (rc < 0)
		plan_text_free(t);
	context_unlock(ctx);
	return rc;
}

const struct plan_text *texts_choose(const struct group *g, const struct plan_spec *spec,
				     uint32_t width)
{
	const struct plan_text *last = NULL;

	LIST_EACH_ENTRY(struct given_text, given, &g->texts, node)
		if (plan_text_fits(given->text, spec, width))
			last = given->text;
	return last;
}
