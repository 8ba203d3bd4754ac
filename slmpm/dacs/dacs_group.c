/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups and their barrier: the owner counts who has come, and says when all have. Barriers are
 * numbered, so that one that a member's death has ended is over for who comes to it later, too.
 */
#include "slmpm/dacs/dacs_pact.h"
#include "slmpm/dacs/dacs_wait.h"

#include <stdlib.h>

static struct dacsi_group *find(dacs_group_t group)
{
	return dacsi_handle_find(group, DACSI_GROUP);
}

/* ---- the barrier, at the owner -------------------------------------------------------------- */

void dacsi_group_unseat(struct dacsi_group *g, bool died)
{
	g->failed |= g->closed && died;
}

static bool all_are_there(const struct dacsi_group *g)
{
	uint32_t members = 0;

	for (const struct dacsi_seat *seat = g->pact.seats; seat; seat = seat->next) {
		if (seat->left)
			continue;
		if (!seat->asks)
			return false;
		members++;
	}
	return members > 0;
}

static void told(struct dacsi_group *g, DACS_ERR_T answer)
{
	g->answered = true;
	g->answer = answer;
	g->seen++;
}

/* False: there is no memory now. */
static bool tell(const struct dacsi_group *g, const struct dacsi_seat *seat,
		 enum dacsi_word_type type, uint32_t value)
{
	/* Who has ended needs no word. */
	return !seat->process || dacsi_pact_tell(seat->process, type, value, seat->theirs,
						 g->pact.is.number) != DACS_ERR_NO_RESOURCE;
}

/* What a member is to know; it is told once more when there is memory. */
static void inform(struct dacsi_group *g, struct dacsi_seat *seat)
{
	if (seat->uninformed)
		seat->uninformed = !tell(g, seat, DACSI_CLOSED, 0);
	if (!seat->uninformed && seat->owed && tell(g, seat, seat->owed, seat->round))
		seat->owed = 0;
	if (seat->uninformed || seat->owed)
		dacsi_pact_due(&g->pact);
}

/* This round is over. What members say meanwhile belongs to the next. */
static void end_round(struct dacsi_group *g, DACS_ERR_T answer)
{
	uint32_t over = g->round++;

	g->failed = false;
	for (struct dacsi_seat *seat = g->pact.seats; seat; seat = seat->next) {
		if (!seat->asks)
			continue;
		seat->asks = 0;
		dacsi.awaited--;
		if (!seat->process) {
			told(g, answer);
			continue;
		}
		seat->owed = answer == DACS_SUCCESS ? DACSI_PASS : DACSI_FAIL;
		seat->round = over;
		inform(g, seat);
	}
}

void dacsi_group_settle(struct dacsi_group *g)
{
	if (!g->pact.owner || !g->closed)
		return;
	for (struct dacsi_seat *seat = g->pact.seats; seat; seat = seat->next)
		inform(g, seat);
	if (g->failed)
		end_round(g, DACS_ERR_DE_TERM);
	else if (all_are_there(g))
		end_round(g, DACS_SUCCESS);
}

static void arrived(struct dacsi_group *g, struct dacsi_seat *seat)
{
	if (seat->asks)
		return;
	seat->asks = 1;
	dacsi.awaited++;
	dacsi_pact_due(&g->pact);
}

uint32_t dacsi_group_word(struct dacsi_group *g, struct dacsi_seat *seat,
			  const struct dacsi_word *word, uint32_t *value)
{
	if (seat) {
		*value = word->value;
		if (word->type == DACSI_ARRIVE && word->value != g->round)
			return DACSI_FAIL;
		if (word->type == DACSI_ARRIVE)
			arrived(g, seat);
	} else if (word->type == DACSI_CLOSED) {
		g->closed = true;
	} else if ((word->type == DACSI_PASS || word->type == DACSI_FAIL) && g->there &&
		   !g->answered && word->value == g->seen) {
		told(g, word->type == DACSI_PASS ? DACS_SUCCESS : DACS_ERR_DE_TERM);
	}
	return 0;
}

/* ---- the barrier, at a member --------------------------------------------------------------- */

/* Says so to the owner. */
static DACS_ERR_T arrive(struct dacsi_group *g)
{
	DACS_ERR_T rc = dacsi_pact_check(&g->pact);

	if (rc != DACS_SUCCESS)
		return rc;
	g->there = true; /* the answer may come at once */
	rc = dacsi_pact_tell(g->pact.process, DACSI_ARRIVE, g->seen, g->pact.theirs,
			     g->pact.is.number);
	g->there = rc == DACS_SUCCESS;
	return rc;
}

/* Comes to the barrier, unless it stands there since a deadline. */
static DACS_ERR_T come(struct dacsi_group *g)
{
	struct dacsi_seat *own = dacsi_pact_seat(&g->pact, NULL);

	if (g->inside)
		return DACS_ERR_RESOURCE_BUSY;
	if (g->pact.owner && !own)
		return DACS_ERR_NO_PERM;
	if (g->there)
		return DACS_SUCCESS;
	if (!g->pact.owner)
		return arrive(g);
	g->there = true;
	if (g->seen == g->round)
		arrived(g, own);
	else
		told(g, DACS_ERR_DE_TERM);
	return DACS_SUCCESS;
}

/* DACS_WID_BUSY: some have not come. */
static DACS_ERR_T look(struct dacsi_group *g)
{
	DACS_ERR_T rc = g->pact.owner ? DACS_SUCCESS : dacsi_pact_check(&g->pact);

	if (!g->answered)
		return rc == DACS_SUCCESS ? DACS_WID_BUSY : rc;
	g->there = g->answered = false;
	return g->answer;
}

static DACS_ERR_T barrier(dacs_group_t group)
{
	struct dacsi_group *g = find(group);
	struct dacsi_pause pause;
	DACS_ERR_T rc;

	if (!g)
		return DACS_ERR_INVALID_HANDLE;
	rc = come(g);
	if (rc != DACS_SUCCESS)
		return rc;
	(void)dacsi_pact_settle();
	g->inside = true;
	dacsi_pause_begin(&pause);
	while ((rc = look(g)) == DACS_WID_BUSY) {
		rc = dacsi_pause(&pause);
		g = find(group);
		if (!g)
			return rc == DACS_SUCCESS ? DACS_ERR_INVALID_HANDLE : rc;
		if (rc != DACS_SUCCESS)
			break;
	}
	g->inside = false;
	return rc;
}

/* ---- members -------------------------------------------------------------------------------- */

static DACS_ERR_T add_self(dacs_group_t group)
{
	struct dacsi_group *g = find(group);
	struct dacsi_seat *seat;

	if (!g)
		return DACS_ERR_INVALID_HANDLE;
	if (!g->pact.owner)
		return DACS_ERR_NOT_OWNER;
	if (g->closed)
		return DACS_ERR_GROUP_CLOSED;
	if (dacsi_pact_seat(&g->pact, NULL))
		return DACS_ERR_GROUP_DUPLICATE;
	seat = dacsi_pact_sit(&g->pact, NULL);
	return seat ? DACS_SUCCESS : DACS_ERR_NO_RESOURCE;
}

static DACS_ERR_T close_group(dacs_group_t group)
{
	struct dacsi_group *g = find(group);

	if (!g)
		return DACS_ERR_INVALID_HANDLE;
	if (!g->pact.owner)
		return DACS_ERR_NOT_OWNER;
	if (g->closed)
		return DACS_ERR_GROUP_CLOSED;
	(void)slmpm_progress(dacsi.ctx); /* who has accepted belongs to it */
	g->closed = true;
	dacsi_pact_withdraw(&g->pact);
	for (struct dacsi_seat *seat = g->pact.seats; seat; seat = seat->next)
		seat->uninformed = seat->process && !seat->left;
	dacsi_pact_due(&g->pact);
	return DACS_SUCCESS;
}

/* DACS_WID_BUSY while the group is open. */
static DACS_ERR_T leave_once(struct dacsi_group *g)
{
	DACS_ERR_T rc;

	if (!g)
		return DACS_ERR_INVALID_HANDLE;
	if (g->pact.owner)
		return DACS_ERR_OWNER;
	if (g->inside)
		return DACS_ERR_RESOURCE_BUSY;
	rc = dacsi_pact_check(&g->pact);
	if (rc == DACS_SUCCESS && !g->closed)
		return DACS_WID_BUSY;
	if (rc == DACS_SUCCESS)
		rc = dacsi_pact_tell(g->pact.process, DACSI_LEAVE, 0, g->pact.theirs,
				     g->pact.is.number);
	if (rc == DACS_ERR_NO_RESOURCE)
		return rc;
	dacsi_pact_free(&g->pact); /* what else went wrong means that the owner is gone */
	return DACS_SUCCESS;
}

static DACS_ERR_T leave(dacs_group_t *group)
{
	struct dacsi_pause pause;
	DACS_ERR_T rc;

	if (!group)
		return DACS_ERR_INVALID_ADDR;
	dacsi_pause_begin(&pause);
	while ((rc = leave_once(find(*group))) == DACS_WID_BUSY) {
		rc = dacsi_pause(&pause);
		if (rc != DACS_SUCCESS)
			return rc;
	}
	if (rc == DACS_SUCCESS)
		*group = DACS_NULL_GROUP;
	return rc;
}

/* ---- the calls ------------------------------------------------------------------------------ */

DACS_ERR_T dacs_group_init(dacs_group_t *group, uint32_t flags)
{
	DACS_ERR_T rc = dacsi_enter();

	if (rc != DACS_SUCCESS)
		return rc;
	if (!group)
		return dacsi_leave_fast(DACS_ERR_INVALID_ADDR);
	if (flags)
		return dacsi_leave_fast(DACS_ERR_INVALID_ATTR);
	return dacsi_leave_fast(
		dacsi_pact_create(calloc(1, sizeof(struct dacsi_group)), DACSI_GROUP, group));
}

DACS_ERR_T dacs_group_add_member(de_id_t de, dacs_process_id_t pid, dacs_group_t group)
{
	DACS_ERR_T rc = dacsi_enter();

	if (rc != DACS_SUCCESS)
		return rc;
	if (de == DACS_DE_SELF && pid == DACS_PID_SELF)
		return dacsi_leave_fast(add_self(group));
	return dacsi_leave(dacsi_pact_share(DACSI_GROUP, de, pid, group));
}

DACS_ERR_T dacs_group_close(dacs_group_t group)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave(close_group(group));
}

DACS_ERR_T dacs_group_accept(de_id_t de, dacs_process_id_t pid, dacs_group_t *group)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ?
		       rc :
		       dacsi_leave(dacsi_pact_accept(DACSI_GROUP, de, pid,
						     sizeof(struct dacsi_group), group));
}

DACS_ERR_T dacs_group_leave(dacs_group_t *group)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave(leave(group));
}

DACS_ERR_T dacs_group_destroy(dacs_group_t *group)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave(dacsi_pact_destroy(DACSI_GROUP, group));
}

DACS_ERR_T dacs_barrier_wait(dacs_group_t group)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave_fast(barrier(group));
}
