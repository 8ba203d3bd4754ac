/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups and their barrier. Where all members are on this machine it is a meeting (dacs_meeting.c),
 * which the owner begins to form when it closes the group. Else, and where that does not form, the
 * owner counts those that have come, and notifies them when all have. Whether it has formed the
 * owner decides, and all go one way. Either way barriers are numbered: one that a member's death
 * has ended is over for later comers, too.
 */
#include "slmpm/dacs/dacs_group.h"

/* ---- counting, at the owner ----------------------------------------------------------------- */

static void group_member_left(struct dacsi_object *object, struct dacsi_member *member, bool died)
{
	struct dacsi_group *g = (struct dacsi_group *)object;

	g->failed |= g->closed && died && member->theirs;
	g->deserted = true;
}

static bool all_are_there(const struct dacsi_group *g)
{
	uint32_t members = 0;

	for (const struct dacsi_member *member = g->is.members; member; member = member->next) {
		if (member->left)
			continue;
		if (!member->asks)
			return false;
		members++;
	}
	return members > 0;
}

static void note_answer(struct dacsi_group *g, DACS_ERR_T answer)
{
	g->answered = true;
	g->answer = answer;
	g->seen++;
}

/* False: there is no memory now. */
static bool send_to(const struct dacsi_group *g, const struct dacsi_member *member,
		    enum dacsi_word_type type, uint32_t value)
{
	/* A member that has ended needs no word. */
	return !member->process || dacsi_word_send(member->process, type, value, member->theirs,
						   g->is.number) != DACS_ERR_NO_RESOURCE;
}

/* Sends what MEMBER is to know; once more when there is memory. */
static void notify_member(struct dacsi_group *g, struct dacsi_member *member)
{
	if (member->close_pending)
		member->close_pending = !send_to(g, member, DACSI_CLOSED, g->meets.id != 0);
	if (!member->close_pending && member->deferred &&
	    send_to(g, member, member->deferred, member->round))
		member->deferred = 0;
	if (member->close_pending || member->deferred)
		dacsi_object_due(&g->is);
}

/* This round is over. What members send meanwhile belongs to the next. */
static void end_round(struct dacsi_group *g, DACS_ERR_T answer)
{
	uint32_t over = g->round++;

	g->failed = false;
	for (struct dacsi_member *member = g->is.members; member; member = member->next) {
		if (!member->asks)
			continue;
		member->asks = 0;
		dacsi.awaited--;
		if (!member->process) {
			note_answer(g, answer);
			continue;
		}
		member->deferred = answer == DACS_SUCCESS ? DACSI_PASS : DACSI_FAIL;
		member->round = over;
		notify_member(g, member);
	}
}

static void settle_own(struct dacsi_group *g)
{
	for (struct dacsi_member *member = g->is.members; member; member = member->next)
		notify_member(g, member);
	if (g->meets.id)
		return;
	if (g->failed)
		end_round(g, DACS_ERR_DE_TERM);
	else if (all_are_there(g))
		end_round(g, DACS_SUCCESS);
}

static void arrived(struct dacsi_group *g, struct dacsi_member *member)
{
	if (member->asks)
		return;
	member->asks = 1;
	dacsi.awaited++;
	dacsi_object_due(&g->is);
}

static uint32_t group_word(struct dacsi_object *object, struct dacsi_member *member,
			   const struct dacsi_word *word, uint32_t *value)
{
	struct dacsi_group *g = (struct dacsi_group *)object;

	if (member) {
		*value = word->value;
		if (word->type == DACSI_ARRIVE && word->value != g->round)
			return DACSI_FAIL;
		if (word->type == DACSI_ARRIVE)
			arrived(g, member);
		g->deserted = true;
	} else if (word->type == DACSI_CLOSED) {
		g->joins = !g->closed && word->value;
		g->deserted = !word->value;
		g->closed = true;
		dacsi_object_due(object);
	} else if ((word->type == DACSI_PASS || word->type == DACSI_FAIL) && g->sent &&
		   !g->answered && word->value == g->seen) {
		note_answer(g, word->type == DACSI_PASS ? DACS_SUCCESS : DACS_ERR_DE_TERM);
	}
	return 0;
}

/* ---- the barrier, at a member --------------------------------------------------------------- */

/* Where the owner counts. */
static DACS_ERR_T send_arrival(struct dacsi_group *g)
{
	DACS_ERR_T rc = dacsi_object_check(&g->is);

	if (rc != DACS_SUCCESS)
		return rc;
	g->sent = true; /* the answer may come at once */
	if (!g->is.owner)
		rc = dacsi_word_up(&g->is, DACSI_ARRIVE, g->seen);
	else if (g->seen == g->round)
		arrived(g, dacsi_member_find(&g->is, NULL));
	else
		note_answer(g, DACS_ERR_DE_TERM);
	g->sent = rc == DACS_SUCCESS;
	return rc;
}

/* DACS_WID_BUSY: some have not come, or the group is open. */
static DACS_ERR_T advance_barrier(struct dacsi_group *g)
{
	DACS_ERR_T rc = DACS_SUCCESS;

	if (!g->answered && g->closed && !g->joins) {
		if (g->meets.id)
			return dacsi_meeting_advance(g);
		if (!g->sent)
			rc = send_arrival(g);
	}
	if (rc != DACS_SUCCESS)
		return rc;
	return g->answered ? g->answer : DACS_WID_BUSY;
}

static void settle_group(struct dacsi_object *object)
{
	struct dacsi_group *g = (struct dacsi_group *)object;
	DACS_ERR_T rc;

	if (!g->closed)
		return;
	if (g->meets.id && g->deserted && !dacsi_meeting_formed(g))
		dacsi_meeting_end(g);
	g->deserted = false;
	if (g->is.owner)
		settle_own(g);
	else if (g->joins)
		dacsi_meeting_join(g);
	if (!g->there || g->inside || g->answered)
		return;
	/* It has come, and waits no more: the others need not wait for its next call. */
	rc = advance_barrier(g);
	if (rc == DACS_SUCCESS || rc == DACS_ERR_DE_TERM) {
		g->answered = true;
		g->answer = rc;
	}
}

/* Comes to the barrier, unless it stands there since a deadline. */
static DACS_ERR_T come_to_barrier(struct dacsi_group *g)
{
	DACS_ERR_T rc;

	if (g->inside)
		return DACS_ERR_RESOURCE_BUSY;
	if (g->is.owner && !dacsi_member_find(&g->is, NULL))
		return DACS_ERR_NO_PERM;
	rc = dacsi_object_check(&g->is);
	g->there |= rc == DACS_SUCCESS;
	return rc;
}

/* DACS_WID_BUSY: some have not come. */
static DACS_ERR_T barrier_outcome(struct dacsi_group *g)
{
	DACS_ERR_T rc;

	if (!g)
		return DACS_ERR_INVALID_HANDLE;
	rc = advance_barrier(g);
	if (rc == DACS_WID_BUSY) {
		rc = dacsi_object_check(&g->is);
		return rc == DACS_SUCCESS ? DACS_WID_BUSY : rc;
	}
	g->there = g->sent = g->answered = false;
	g->fence = FENCE_NONE;
	return rc;
}

static DACS_ERR_T wait_at_barrier(dacs_group_t group)
{
	struct dacsi_group *g = dacsi_handle_find(group, DACSI_GROUP);
	struct dacsi_pause pause;
	DACS_ERR_T rc;

	if (!g)
		return DACS_ERR_INVALID_HANDLE;
	rc = come_to_barrier(g);
	if (rc != DACS_SUCCESS)
		return rc;
	(void)dacsi_object_settle();
	g->inside = true;
	dacsi_pause_begin(&pause);
	do
		rc = barrier_outcome(dacsi_handle_find(group, DACSI_GROUP));
	while (rc == DACS_WID_BUSY && (rc = dacsi_pause(&pause)) == DACS_SUCCESS);
	g = dacsi_handle_find(group, DACSI_GROUP);
	if (g)
		g->inside = false;
	return rc;
}

/* ---- members -------------------------------------------------------------------------------- */

static DACS_ERR_T add_self(dacs_group_t group)
{
	DACS_ERR_T rc;
	struct dacsi_group *g = dacsi_handle_find_as(group, DACSI_GROUP, true, &rc);

	if (!g)
		return rc;
	if (g->closed)
		return DACS_ERR_GROUP_CLOSED;
	if (dacsi_member_find(&g->is, NULL))
		return DACS_ERR_GROUP_DUPLICATE;
	return dacsi_member_join(&g->is, NULL) ? DACS_SUCCESS : DACS_ERR_NO_RESOURCE;
}

static DACS_ERR_T close_group(dacs_group_t group)
{
	DACS_ERR_T rc;
	struct dacsi_group *g = dacsi_handle_find_as(group, DACSI_GROUP, true, &rc);

	if (!g)
		return rc;
	if (g->closed)
		return DACS_ERR_GROUP_CLOSED;
	(void)slmpm_progress(dacsi.ctx); /* who has accepted belongs to it */
	g->closed = true;
	dacsi_share_withdraw(&g->is);
	dacsi_meeting_found(g);
	for (struct dacsi_member *member = g->is.members; member; member = member->next)
		member->close_pending = member->process && !member->left;
	dacsi_object_due(&g->is);
	return DACS_SUCCESS;
}

/* DACS_WID_BUSY while the group is open. */
static DACS_ERR_T leave_group(struct dacsi_object *object)
{
	const struct dacsi_group *g = (const struct dacsi_group *)object;

	if (g->inside)
		return DACS_ERR_RESOURCE_BUSY;
	if (!g->closed && dacsi_object_check(object) == DACS_SUCCESS)
		return DACS_WID_BUSY;
	return dacsi_object_leave(object);
}

static void forget_group(struct dacsi_object *object, const struct dacsi_process *process)
{
	struct dacsi_group *g = (struct dacsi_group *)object;

	if (!process && g->meets.id)
		dacsi_meeting_end(g);
}

static DACS_ERR_T is_group_closed(const struct dacsi_object *object)
{
	return ((const struct dacsi_group *)object)->closed ? DACS_SUCCESS : DACS_ERR_GROUP_OPEN;
}

static DACS_ERR_T is_group_open(const struct dacsi_object *object)
{
	return ((const struct dacsi_group *)object)->closed ? DACS_ERR_GROUP_CLOSED : DACS_SUCCESS;
}

const struct dacsi_kind dacsi_group_kind = {
	.size = sizeof(struct dacsi_group),
	.reshare = DACS_ERR_GROUP_DUPLICATE,
	.withdrawn = DACS_ERR_GROUP_CLOSED,
	.downward = true,
	.shareable = is_group_open,
	.destroyable = is_group_closed,
	.leave = leave_group,
	.word = group_word,
	.settle = settle_group,
	.left = group_member_left,
	.forget = forget_group,
};

/* ---- the calls ------------------------------------------------------------------------------ */

DACS_ERR_T dacs_group_init(dacs_group_t *group, uint32_t flags)
{
	DACS_ERR_T rc = dacsi_enter_with(group);
	const struct dacsi_object *object;

	if (rc != DACS_SUCCESS)
		return rc;
	if (flags)
		return dacsi_leave_fast(DACS_ERR_INVALID_ATTR);
	object = dacsi_object_new(DACSI_GROUP, NULL);
	if (object)
		*group = object->number;
	return dacsi_leave_fast(object ? DACS_SUCCESS : DACS_ERR_NO_RESOURCE);
}

DACS_ERR_T dacs_group_add_member(de_id_t de, dacs_process_id_t pid, dacs_group_t group)
{
	if (de != DACS_DE_SELF || pid != DACS_PID_SELF)
		return dacsi_share(DACSI_GROUP, de, pid, group);
	return dacsi_enter() ? dacsi_leave_fast(add_self(group)) : DACS_ERR_NOT_INITIALIZED;
}

DACS_ERR_T dacs_group_close(dacs_group_t group)
{
	return dacsi_enter() ? dacsi_leave(close_group(group)) : DACS_ERR_NOT_INITIALIZED;
}

DACS_ERR_T dacs_group_accept(de_id_t de, dacs_process_id_t pid, dacs_group_t *group)
{
	return dacsi_accept(DACSI_GROUP, de, pid, group);
}

DACS_ERR_T dacs_group_leave(dacs_group_t *group)
{
	return dacsi_release(DACSI_GROUP, group);
}

DACS_ERR_T dacs_group_destroy(dacs_group_t *group)
{
	return dacsi_destroy(DACSI_GROUP, group);
}

DACS_ERR_T dacs_barrier_wait(dacs_group_t group)
{
	return dacsi_enter() ? dacsi_leave_fast(wait_at_barrier(group)) : DACS_ERR_NOT_INITIALIZED;
}
