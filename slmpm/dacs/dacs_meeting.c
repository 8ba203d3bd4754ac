/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The barrier of a group: a meeting of a group of SLMPM's, which needs no word of the owner's. A
 * word would be behind the puts that went before it, a meeting is not: what this process has put
 * and the target may not see yet is fenced first.
 */
#include "slmpm/dacs/dacs_group.h"

#include <stdlib.h>

/* ---- its life ------------------------------------------------------------------------------- */

/* Of the owner's handle: of those that form at a time no two are the same. */
static uint32_t meeting_tag(uint64_t handle)
{
	return (uint32_t)handle;
}

void dacsi_meeting_found(struct dacsi_group *g)
{
	slmpm_peer *peers;
	int n = 0;

	for (const struct dacsi_member *member = g->is.members; member; member = member->next)
		n += !member->left;
	peers = calloc((size_t)n + 1, sizeof(*peers));
	if (!peers)
		return;
	n = 0;
	for (const struct dacsi_member *member = g->is.members; member; member = member->next)
		if (!member->left)
			peers[n++] = member->process ? member->process->peer : (slmpm_peer){0};
	if (slmpm_group_create_start(&g->meets, dacsi.ctx, peers, n, meeting_tag(g->is.number)) < 0)
		g->meets.id = 0;
	g->deserted = false;
	g->founding = g->meets.id;
	dacsi.awaited += g->founding;
	free(peers);
}

void dacsi_meeting_join(struct dacsi_group *g)
{
	g->joins = false;
	if (dacsi_object_check(&g->is) != DACS_SUCCESS ||
	    slmpm_group_join_start(&g->meets, g->is.process->peer, meeting_tag(g->is.theirs)) < 0)
		g->meets.id = 0;
}

bool dacsi_meeting_formed(const struct dacsi_group *g)
{
	struct slmpm_group_info info = {.size = sizeof(info)};

	return slmpm_group_query(g->meets, &info) == 0 && info.members > 0;
}

static void end_founding(struct dacsi_group *g)
{
	dacsi.awaited -= g->founding;
	g->founding = false;
}

/* A member whose join comes later would wait for ever: it is told that the group is closed again,
 * and that the owner counts. */
void dacsi_meeting_end(struct dacsi_group *g)
{
	(void)slmpm_group_destroy(g->meets);
	g->meets.id = 0;
	end_founding(g);
	for (struct dacsi_member *member = g->is.members; member; member = member->next)
		member->close_pending = member->process && !member->left;
	if (g->is.members)
		dacsi_object_due(&g->is);
}

/* ---- fences --------------------------------------------------------------------------------- */

/* The first PUTS that went to PROCESS can be seen there: true; or else it is asked, in its turn. */
static bool are_seen(struct dacsi_process *process, uint32_t puts)
{
	int rc = 0;

	if (process->fence.id && slmpm_test(&process->fence, NULL))
		process->puts_seen = process->puts_fenced;
	if ((int32_t)(process->puts_seen - puts) >= 0)
		return true;
	if (process->fence.id)
		return false;
	process->puts_fenced = process->puts;
	if (slmpm_flush(process->peer, 0) != 0)
		rc = dacsi_word_fence(process, &process->fence);
	if (process->fence.id || rc == -SLMPM_ENOMEM)
		return false;
	process->puts_seen = process->puts_fenced; /* or it has ended, and sees nothing */
	return true;
}

/* Whether those are that are members, or own the group. FIRST: what has been put by now counts. */
static bool all_is_seen(struct dacsi_group *g, bool first)
{
	bool all = true;

	if (!g->is.owner) {
		g->puts = first ? g->is.process->puts : g->puts;
		return are_seen(g->is.process, g->puts);
	}
	for (struct dacsi_member *member = g->is.members; member; member = member->next) {
		if (member->left || !member->process)
			continue;
		member->puts = first ? member->process->puts : member->puts;
		all &= are_seen(member->process, member->puts);
	}
	return all;
}

/* ---- the barrier ---------------------------------------------------------------------------- */

DACS_ERR_T dacsi_meeting_advance(struct dacsi_group *g)
{
	int rc;

	if (g->fence != FENCE_OVER) {
		bool seen = all_is_seen(g, g->fence == FENCE_NONE);

		g->fence = seen ? FENCE_OVER : FENCE_WAITS;
		if (!seen)
			return DACS_WID_BUSY;
	}
	rc = slmpm_group_meet(g->meets, 0);
	if (rc == 0) {
		end_founding(g);
		return DACS_SUCCESS;
	}
	if (rc == -SLMPM_EAGAIN)
		return DACS_WID_BUSY;
	if (dacsi_meeting_formed(g))
		return dacsi_code(rc);
	dacsi_meeting_end(g);
	return DACS_WID_BUSY;
}
