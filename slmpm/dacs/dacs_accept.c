/* SPDX-License-Identifier: BSD-3-Clause */
/* Being offered regions: offers are kept as invites until an accept of their family takes them. */
#include "slmpm/dacs/dacs_message.h"
#include "slmpm/dacs/dacs_process.h"
#include "slmpm/dacs/dacs_share.h"
#include "slmpm/dacs/dacs_wait.h"

#include <stdlib.h>

#define INVITES 4096 /* of one partner, unaccepted; more are refused */

struct dacsi_invite { /* at the partner */
	struct dacsi_invite *next;
	struct dacsi_note note; /* in this machine's byte order */
};

static void invited(struct dacsi_process *process, const struct dacsi_note *note)
{
	struct dacsi_invite **link = &process->invites, *invite = NULL;

	if (process->invite_count < INVITES)
		invite = calloc(1, sizeof(*invite));
	if (!invite) {
		(void)dacsi_share_tell(process, (struct dacsi_note){.type = DACSI_NOTE_REFUSED,
								    .id = note->id});
		return;
	}
	invite->note = *note;
	process->invite_count++;
	while (*link)
		link = &(*link)->next;
	*link = invite;
}

/* Takes an invite off the list. */
static void drop(struct dacsi_process *process, struct dacsi_invite **link)
{
	struct dacsi_invite *invite = *link;

	*link = invite->next;
	process->invite_count--;
	free(invite);
}

static void withdrawn(struct dacsi_process *process, uint32_t id)
{
	for (struct dacsi_invite **link = &process->invites; *link; link = &(*link)->next)
		if ((*link)->note.id == id) {
			drop(process, link);
			return;
		}
}

void dacsi_share_drop(struct dacsi_process *process)
{
	while (process->invites)
		drop(process, &process->invites);
}

int dacsi_share_take(struct dacsi_process *process)
{
	struct slmpm_done done = {0};
	struct dacsi_note note = {0};
	int64_t rc = slmpm_probe(process->peer, DACSI_STREAM_SHARE, &done, 0);

	if (rc > 0)
		rc = slmpm_recv(process->peer, DACSI_STREAM_SHARE, &note, sizeof(note), &done, 0);
	else if (rc == 0)
		return 0;
	if (rc < 0 && rc != -SLMPM_ETRUNC)
		return rc == -SLMPM_EAGAIN ? 0 : (int)rc;
	if (rc != sizeof(note))
		return 1; /* none of ours */
	dacsi_note_convert(&note);
	switch (note.type) {
	case DACSI_NOTE_OFFER: invited(process, &note); break;
	case DACSI_NOTE_ACCEPTED: dacsi_share_answered(process, note.id, DACS_SUCCESS); break;
	case DACSI_NOTE_REFUSED:
		dacsi_share_answered(process, note.id, DACS_ERR_NO_RESOURCE);
		break;
	case DACSI_NOTE_WITHDRAWN: withdrawn(process, note.id); break;
	default: break;
	}
	return 1;
}

/* All that has come; the partner's end only behind it. */
DACS_ERR_T dacsi_share_collect(struct dacsi_process *process)
{
	int rc;

	while ((rc = dacsi_share_take(process)) > 0)
		;
	return dacsi_code(rc);
}

/* ---- the partner's side --------------------------------------------------------------------- */

/* DACS_WID_BUSY: the offer is void, go on. */
static DACS_ERR_T take_up(struct dacsi_process *process, const struct dacsi_note *note,
			  uint64_t *handle)
{
	struct dacsi_region *region = dacsi_region_new((enum dacsi_family)note->family);
	struct slmpm_mem_info info = {.size = sizeof(info)};
	int rc;

	if (!region)
		return DACS_ERR_NO_RESOURCE;
	rc = slmpm_mem_open(process->peer, &note->key, &region->rmem);
	if (rc >= 0)
		rc = slmpm_rmem_query(region->rmem, &info);
	if (rc < 0) {
		dacsi_region_free(region);
		return rc == -SLMPM_EACCES || rc == -SLMPM_EINVAL ? DACS_WID_BUSY : dacsi_code(rc);
	}
	region->process = process;
	region->remote_access = note->remote_access;
	region->local_access = note->local_access;
	region->address = info.address;
	region->size = info.length;
	*handle = region->is.number;
	(void)dacsi_share_tell(process,
			       (struct dacsi_note){.type = DACSI_NOTE_ACCEPTED, .id = note->id});
	return DACS_SUCCESS;
}

/* The first offer that holds; DACS_WID_BUSY when there is none. */
static DACS_ERR_T accept_once(struct dacsi_process *process, enum dacsi_family family,
			      uint64_t *handle)
{
	DACS_ERR_T gone = dacsi_share_collect(process), rc;
	struct dacsi_invite **link = &process->invites;

	while (*link) {
		if ((*link)->note.family != (uint32_t)family) {
			link = &(*link)->next;
			continue;
		}
		rc = take_up(process, &(*link)->note, handle);
		if (rc == DACS_ERR_NO_RESOURCE) /* it stands */
			return rc;
		drop(process, link);
		if (rc != DACS_WID_BUSY)
			return rc;
	}
	return gone == DACS_SUCCESS ? DACS_WID_BUSY : gone;
}

DACS_ERR_T dacsi_accept(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
			uint64_t *handle)
{
	struct dacsi_process *process;
	struct dacsi_pause pause;
	DACS_ERR_T rc;

	if (!handle)
		return DACS_ERR_INVALID_ADDR;
	dacsi_pause_begin(&pause);
	for (;;) {
		rc = dacsi_partner(de, pid, &process);
		if (rc == DACS_SUCCESS)
			rc = accept_once(process, family, handle);
		if (rc != DACS_WID_BUSY)
			return rc;
		rc = dacsi_pause(&pause);
		if (rc != DACS_SUCCESS)
			return rc;
	}
}
