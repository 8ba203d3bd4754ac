/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared object at a partner: its offer is kept until an accept takes it up; its release. */
#include "slmpm/dacs/dacs_object.h"

#include <stdlib.h>

#define INVITES 4096 /* of one partner, unaccepted; more are refused */

struct dacsi_invite { /* an offer, in this machine's byte order */
	struct dacsi_invite *next;
	struct dacsi_offer offer;
	struct dacsi_object *opened; /* here, where the owner could not be told so yet; or NULL */
};

/* ---- offers --------------------------------------------------------------------------------- */

bool dacsi_accept_offered(struct dacsi_process *process, const struct dacsi_offer *offer)
{
	struct dacsi_invite **link = &process->invites, *invite = NULL;

	if (process->invite_count < INVITES && offer->word.value <= DACSI_GROUP)
		invite = calloc(1, sizeof(*invite));
	if (!invite)
		return false;
	invite->offer = *offer;
	process->invite_count++;
	while (*link)
		link = &(*link)->next;
	*link = invite;
	return true;
}

static void close_opened(struct dacsi_object *object)
{
	const struct dacsi_kind *kind = dacsi_parts.kinds[object->family];

	if (kind->accept)
		(void)kind->leave(object);
	dacsi_object_free(object);
}

static void drop_invite(struct dacsi_process *process, struct dacsi_invite **link)
{
	struct dacsi_invite *invite = *link;

	*link = invite->next;
	process->invite_count--;
	if (invite->opened)
		close_opened(invite->opened);
	free(invite);
}

static struct dacsi_invite **invite_of(struct dacsi_process *process, uint64_t theirs)
{
	struct dacsi_invite **link = &process->invites;

	while (*link && (*link)->offer.word.from != theirs)
		link = &(*link)->next;
	return link;
}

void dacsi_accept_withdrawn(struct dacsi_process *process, uint64_t theirs)
{
	struct dacsi_invite **link;

	while (*(link = invite_of(process, theirs)))
		drop_invite(process, link);
}

void dacsi_accept_drop(struct dacsi_process *process)
{
	while (process->invites)
		drop_invite(process, &process->invites);
}

/* ---- accept --------------------------------------------------------------------------------- */

/* The object of an offer, of this process now. */
static DACS_ERR_T open_offered(struct dacsi_process *process, const struct dacsi_offer *offer,
			       struct dacsi_object **opened)
{
	enum dacsi_family family = (enum dacsi_family)offer->word.value;
	const struct dacsi_kind *kind = dacsi_parts.kinds[family];
	struct dacsi_object *object = dacsi_object_new(family, process);
	DACS_ERR_T rc;

	if (!object)
		return DACS_ERR_NO_RESOURCE;
	object->theirs = offer->word.from;
	rc = kind->accept ? kind->accept(object, offer) : DACS_SUCCESS;
	if (rc == DACS_SUCCESS)
		*opened = object;
	else
		dacsi_object_free(object);
	return rc;
}

/* DACS_WID_BUSY: the offer is void. Without memory it stands, and what its key opened is kept. */
static DACS_ERR_T take_up(struct dacsi_process *process, struct dacsi_invite *invite,
			  uint64_t *handle)
{
	const struct dacsi_offer offer = invite->offer; /* handlers run meanwhile */
	struct dacsi_object *object = invite->opened;
	struct dacsi_invite **link;
	DACS_ERR_T rc = DACS_SUCCESS;

	invite->opened = NULL;
	if (!object)
		rc = open_offered(process, &offer, &object);
	if (rc == DACS_SUCCESS)
		rc = dacsi_word_up(object, DACSI_ACCEPT, 0);
	link = invite_of(process, offer.word.from);
	if (rc == DACS_SUCCESS)
		*handle = object->number;
	else if (rc == DACS_ERR_NO_RESOURCE && object && *link && !(*link)->opened)
		(*link)->opened = object;
	else if (object)
		close_opened(object);
	if (rc != DACS_ERR_NO_RESOURCE && *link) /* a handler may have taken it away */
		drop_invite(process, link);
	return rc;
}

/* The first offer that holds; DACS_WID_BUSY when there is none. */
static DACS_ERR_T accept_once(struct dacsi_process *process, enum dacsi_family family,
			      uint64_t *handle)
{
	struct dacsi_invite *invite;
	DACS_ERR_T rc;

	(void)slmpm_progress(dacsi.ctx);
	for (;;) {
		invite = process->invites;
		while (invite && invite->offer.word.value != (uint32_t)family)
			invite = invite->next;
		if (!invite)
			break;
		rc = take_up(process, invite, handle);
		if (rc != DACS_WID_BUSY)
			return rc;
	}
	rc = dacsi_process_channel(process);
	return rc == DACS_SUCCESS ? DACS_WID_BUSY : rc;
}

DACS_ERR_T dacsi_accept(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
			uint64_t *handle)
{
	DACS_ERR_T rc = dacsi_enter_with(handle);
	struct dacsi_process *process;
	struct dacsi_pause pause;

	if (rc != DACS_SUCCESS)
		return rc;
	dacsi_pause_begin(&pause);
	do {
		rc = dacsi_partner(de, pid, &process);
		if (rc == DACS_SUCCESS && dacsi_parts.kinds[family]->downward &&
		    process != dacsi.parent)
			rc = DACS_ERR_INVALID_TARGET;
		if (rc == DACS_SUCCESS)
			rc = accept_once(process, family, handle);
	} while (rc == DACS_WID_BUSY && (rc = dacsi_pause(&pause)) == DACS_SUCCESS);
	return dacsi_leave(rc);
}

/* ---- release -------------------------------------------------------------------------------- */

DACS_ERR_T dacsi_object_leave(struct dacsi_object *object)
{
	DACS_ERR_T rc = dacsi_object_check(object);

	if (rc == DACS_SUCCESS)
		rc = dacsi_word_up(object, DACSI_LEAVE, 0);
	/* What else goes wrong means that the owner is gone. */
	return rc == DACS_ERR_NO_RESOURCE ? rc : DACS_SUCCESS;
}

static DACS_ERR_T release_once(struct dacsi_object *object)
{
	DACS_ERR_T rc = dacsi_parts.kinds[object->family]->leave(object);

	if (rc == DACS_SUCCESS)
		dacsi_object_free(object);
	return rc;
}

DACS_ERR_T dacsi_release(enum dacsi_family family, uint64_t *handle)
{
	return dacsi_object_until(family, false, handle, release_once);
}
