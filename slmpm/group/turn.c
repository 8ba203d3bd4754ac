/* SPDX-License-Identifier: BSD-3-Clause */
/* What the groups of a context do as it makes progress, is to sleep, or a deadline passes. */
#include "slmpm/group/tags.h"

#include "slmpm/context.h"

#define UNRUNG_NS UINT64_C(50000000) /* between inspections that no bell is needed for */

int group_advance(struct context *ctx)
{
	int n = 0;

	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node) {
		if (UNLIKELY(g->to_reap)) {
			group_reap(g);
			continue;
		}
		n += operations_go_on(g) + tags_go_on(g) + meeting_advance(g);
		n += g->shrinking && g->shrink_on(g);
	}
	return n;
}

bool group_arm(struct context *ctx, bool asleep)
{
	bool unfenced = false;

	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node) {
		unfenced |= operation_arm(g, asleep);
		unfenced |= tags_arm(g, asleep);
	}
	return unfenced;
}

/* A bell may be lost, by its holders' doing or for want of memory: then the others are inspected
 * without one, now and again; what is shown of the group is no older. True: that has broken it. */
static bool group_inspect_unrung(struct group *g, uint64_t now)
{
	bool broken = group_is_broken(g);

	if (now < g->inspect_at)
		return false;
	g->inspect_at = now + UNRUNG_NS;
	group_inspect(g);
	if (g->apart && g->under_way)
		messages_inspect(g);
	if (g->apart && g->lane && g->lane->under_way)
		messages_inspect(g->lane);
	blocked_inspect(g, now);
	return group_is_broken(g) != broken;
}

uint64_t group_next_deadline(struct group *g, uint64_t now, bool *passed)
{
	uint64_t next;

	/* Who starts the next one need not wake a thread that wakes by then. */
	if (!group_waits(g) && !tags_wait(g))
		return g->inspect_at > now ? g->inspect_at : UINT64_MAX;
	*passed |= group_inspect_unrung(g, now);
	next = least_of(g->inspect_at, operation_deadlines(g, now, passed));
	return least_of(next, tags_deadlines(g, now, passed));
}

uint64_t operations_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	bool passed = false;

	LIST_EACH_ENTRY(struct group, g, &ctx->groups, node)
		next = least_of(next, group_next_deadline(g, now, &passed));
	return passed ? 0 : next;
}
