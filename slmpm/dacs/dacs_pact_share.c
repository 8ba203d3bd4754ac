/* SPDX-License-Identifier: BSD-3-Clause */
/* How a mutex or group comes to a partner: the owner offers it, the partner accepts. */
#include "slmpm/dacs/dacs_pact.h"
#include "slmpm/dacs/dacs_process.h"
#include "slmpm/dacs/dacs_share.h"
#include "slmpm/dacs/dacs_wait.h"

#include <stdlib.h>

#define INVITES 4096 /* of one partner, unaccepted; more are refused */

struct dacsi_pact_invite { /* an offer, at the partner */
	struct dacsi_pact_invite *next;
	enum dacsi_family family;
	uint64_t theirs; /* the owner's handle */
};

/* ---- at the owner --------------------------------------------------------------------------- */

void dacsi_pact_withdraw(struct dacsi_pact *pact)
{
	for (struct dacsi_seat *seat = pact->seats; seat; seat = seat->next)
		if (seat->process && !seat->theirs) {
			(void)dacsi_pact_tell(seat->process, DACSI_WITHDRAW, 0, 0, pact->is.number);
			dacsi_pact_unseat(pact, seat, false);
		}
}

static DACS_ERR_T offer(struct dacsi_pact *pact, struct dacsi_process *process)
{
	struct dacsi_seat *seat = dacsi_pact_sit(pact, process);
	DACS_ERR_T rc;

	if (!seat)
		return DACS_ERR_NO_RESOURCE;
	rc = dacsi_pact_tell(process, DACSI_OFFER, pact->is.family, 0, pact->is.number);
	if (rc != DACS_SUCCESS)
		dacsi_pact_unseat(pact, seat, false);
	return rc;
}

/* This thread's seat, also when its partner has left again. */
static struct dacsi_seat *watched(const struct dacsi_pact *pact, const struct dacsi_seat *mine)
{
	struct dacsi_seat *seat = pact->seats;

	while (seat && seat != mine)
		seat = seat->next;
	return seat;
}

static DACS_ERR_T begin_share(struct dacsi_pact *pact, struct dacsi_process *process,
			      struct dacsi_seat **mine)
{
	bool group = pact->is.family == DACSI_GROUP;
	DACS_ERR_T rc = dacsi_process_channel(process);

	if (group && ((struct dacsi_group *)pact)->closed)
		return DACS_ERR_GROUP_CLOSED;
	if (rc != DACS_SUCCESS)
		return rc;
	if (dacsi_share_connecting(process))
		return DACS_WID_BUSY;
	if (!dacsi_pact_seat(pact, process))
		rc = offer(pact, process);
	else if (dacsi_pact_seat(pact, process)->theirs)
		rc = group ? DACS_ERR_GROUP_DUPLICATE : DACS_ERR_RESOURCE_BUSY;
	if (rc != DACS_SUCCESS)
		return rc;
	*mine = dacsi_pact_seat(pact, process);
	if (!*mine) /* ended in that moment */
		return DACS_ERR_DE_TERM;
	(*mine)->watchers++;
	return DACS_WID_BUSY;
}

/* What has become of the offer at SEAT. */
static DACS_ERR_T outcome(const struct dacsi_pact *pact, const struct dacsi_seat *seat)
{
	if (seat->theirs)
		return DACS_SUCCESS;
	if (seat->refused)
		return DACS_ERR_NO_RESOURCE;
	if (!seat->left)
		return dacsi_process_channel(seat->process) == DACS_SUCCESS ? DACS_WID_BUSY :
									      DACS_ERR_DE_TERM;
	return pact->is.family == DACSI_GROUP && ((const struct dacsi_group *)pact)->closed ?
		       DACS_ERR_GROUP_CLOSED :
		       DACS_ERR_DE_TERM;
}

static DACS_ERR_T share_once(struct dacsi_pact *pact, struct dacsi_process *process,
			     struct dacsi_seat **mine)
{
	DACS_ERR_T rc;

	if (!pact)
		return DACS_ERR_INVALID_HANDLE;
	if (!pact->owner)
		return DACS_ERR_NOT_OWNER;
	(void)slmpm_progress(dacsi.ctx);
	if (!*mine)
		return begin_share(pact, process, mine);
	*mine = watched(pact, *mine);
	if (!*mine)
		return DACS_ERR_DE_TERM;
	rc = outcome(pact, *mine);
	if (rc == DACS_WID_BUSY)
		return rc;
	if (!(*mine)->theirs && !(*mine)->left)
		dacsi_pact_unseat(pact, *mine, false);
	return rc;
}

DACS_ERR_T dacsi_pact_share(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
			    uint64_t handle)
{
	struct dacsi_process *process;
	struct dacsi_seat *mine = NULL;
	struct dacsi_pause pause;
	struct dacsi_pact *pact;
	DACS_ERR_T rc;

	dacsi_pause_begin(&pause);
	do {
		rc = dacsi_partner(de, pid, &process);
		if (rc == DACS_SUCCESS && family == DACSI_GROUP && process == dacsi.parent)
			return DACS_ERR_INVALID_TARGET;
		if (rc == DACS_SUCCESS)
			rc = share_once(dacsi_handle_find(handle, family), process, &mine);
		if (rc == DACS_WID_BUSY)
			rc = dacsi_pause(&pause);
		else
			break;
	} while (rc == DACS_SUCCESS);
	/* At a deadline the offer stands. */
	pact = mine ? dacsi_handle_find(handle, family) : NULL;
	if (pact && watched(pact, mine)) {
		mine->watchers--;
		dacsi_pact_due(pact);
	}
	return rc;
}

/* ---- at the partner ------------------------------------------------------------------------- */

bool dacsi_pact_offered(struct dacsi_process *process, const struct dacsi_word *word)
{
	struct dacsi_pact_invite **link = &process->pact_invites, *invite = NULL;

	if (process->pact_invite_count < INVITES &&
	    (word->value == DACSI_MUTEX || word->value == DACSI_GROUP))
		invite = calloc(1, sizeof(*invite));
	if (!invite)
		return false;
	invite->family = (enum dacsi_family)word->value;
	invite->theirs = word->from;
	process->pact_invite_count++;
	while (*link)
		link = &(*link)->next;
	*link = invite;
	return true;
}

static void drop(struct dacsi_process *process, struct dacsi_pact_invite **link)
{
	struct dacsi_pact_invite *invite = *link;

	*link = invite->next;
	process->pact_invite_count--;
	free(invite);
}

void dacsi_pact_withdrawn(struct dacsi_process *process, uint64_t theirs)
{
	for (struct dacsi_pact_invite **link = &process->pact_invites; *link; link = &(*link)->next)
		if ((*link)->theirs == theirs) {
			drop(process, link);
			return;
		}
}

void dacsi_pact_drop(struct dacsi_process *process)
{
	while (process->pact_invites)
		drop(process, &process->pact_invites);
}

/* DACS_WID_BUSY: nothing of FAMILY is offered. */
static DACS_ERR_T accept_once(struct dacsi_process *process, enum dacsi_family family, size_t size,
			      uint64_t *handle)
{
	struct dacsi_pact_invite **link = &process->pact_invites;
	struct dacsi_pact *pact;
	DACS_ERR_T rc;

	(void)slmpm_progress(dacsi.ctx);
	while (*link && (*link)->family != family)
		link = &(*link)->next;
	if (!*link) {
		rc = dacsi_process_channel(process);
		return rc == DACS_SUCCESS ? DACS_WID_BUSY : rc;
	}
	pact = calloc(1, size);
	rc = dacsi_pact_create(pact, family, handle);
	if (rc != DACS_SUCCESS)
		return rc;
	pact->owner = false;
	pact->process = process;
	pact->theirs = (*link)->theirs;
	rc = dacsi_pact_tell(process, DACSI_ACCEPT, 0, pact->theirs, pact->is.number);
	if (rc != DACS_ERR_NO_RESOURCE) /* else it stands; a handler may have taken it away */
		dacsi_pact_withdrawn(process, pact->theirs);
	if (rc != DACS_SUCCESS)
		dacsi_pact_free(pact);
	return rc;
}

DACS_ERR_T dacsi_pact_accept(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
			     size_t size, uint64_t *handle)
{
	struct dacsi_process *process;
	struct dacsi_pause pause;
	DACS_ERR_T rc;

	if (!handle)
		return DACS_ERR_INVALID_ADDR;
	dacsi_pause_begin(&pause);
	for (;;) {
		rc = dacsi_partner(de, pid, &process);
		if (rc == DACS_SUCCESS && family == DACSI_GROUP && process != dacsi.parent)
			return DACS_ERR_INVALID_TARGET;
		if (rc == DACS_SUCCESS)
			rc = accept_once(process, family, size, handle);
		if (rc != DACS_WID_BUSY)
			return rc;
		rc = dacsi_pause(&pause);
		if (rc != DACS_SUCCESS)
			return rc;
	}
}
