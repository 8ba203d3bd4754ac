/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sharing a region with a partner: the owner offers it with a key, the partner's accept opens the
 * key and says so. Offers and answers are messages on a stream of their own; an offer whose share
 * ran into its deadline stands, and the next share of that region there waits for its answer.
 */
#include "slmpm/dacs/dacs_share.h"
#include "slmpm/dacs/dacs_message.h"
#include "slmpm/dacs/dacs_process.h"
#include "slmpm/dacs/dacs_wait.h"

#include <endian.h>
#include <stdlib.h>

struct dacsi_offer { /* at the owner */
	struct dacsi_offer *next;
	const struct dacsi_region *region;
	struct dacsi_process *process; /* NULL once it was reaped */
	uint32_t id;
	bool awaited;      /* a dacs_mem_share waits for it */
	DACS_ERR_T answer; /* DACS_WID_BUSY: none yet */
};

struct dacsi_letter { /* a note that found no room in the ring */
	struct dacsi_letter *next;
	slmpm_req req;
	struct dacsi_note note;
};

void dacsi_note_convert(struct dacsi_note *note)
{
	note->type = le32toh(note->type);
	note->id = le32toh(note->id);
	note->family = le32toh(note->family);
	note->remote_access = le32toh(note->remote_access);
	note->local_access = le32toh(note->local_access);
}

/* ---- sending -------------------------------------------------------------------------------- */

static void append(struct dacsi_process *process, struct dacsi_letter *letter)
{
	if (process->letters)
		process->last_letter->next = letter;
	else
		process->letters = letter;
	process->last_letter = letter;
}

DACS_ERR_T dacsi_share_keep(struct dacsi_process *process, slmpm_req req)
{
	struct dacsi_letter *letter;

	if (slmpm_test(&req, NULL) != 0)
		return DACS_SUCCESS;
	letter = calloc(1, sizeof(*letter));
	if (!letter) {
		(void)slmpm_cancel(req);
		(void)slmpm_test(&req, NULL);
		return DACS_ERR_NO_RESOURCE;
	}
	letter->req = req;
	append(process, letter);
	return DACS_SUCCESS;
}

/* They go in order: behind one that has not gone nothing is to be asked, however many a partner lets lie. */
void dacsi_share_settle(struct dacsi_process *process)
{
	struct dacsi_letter *letter;

	while ((letter = process->letters) && slmpm_test(&letter->req, NULL) != 0) {
		process->letters = letter->next;
		free(letter);
	}
}

/* Never blocks; a request only where the ring has no room at once. */
DACS_ERR_T dacsi_share_tell(struct dacsi_process *process, struct dacsi_note note)
{
	struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_iov iov = {.base = &note, .len = sizeof(note)};
	struct dacsi_letter *letter;
	int rc;

	dacsi_note_convert(&note);
	rc = slmpm_sendv(process->peer, DACSI_STREAM_SHARE, &iov, 1, &how, NULL);
	if (rc != -SLMPM_EAGAIN)
		return dacsi_code(rc);
	letter = calloc(1, sizeof(*letter));
	if (!letter)
		return DACS_ERR_NO_RESOURCE;
	letter->note = note;
	iov.base = &letter->note;
	rc = slmpm_sendv(process->peer, DACSI_STREAM_SHARE, &iov, 1, &how, &letter->req);
	if (rc < 0) {
		free(letter);
		return dacsi_code(rc);
	}
	append(process, letter);
	return DACS_SUCCESS;
}

/* ---- the owner's side ----------------------------------------------------------------------- */

static struct dacsi_offer *find_offer(uint32_t id)
{
	struct dacsi_offer *offer = dacsi.offers;

	while (offer && offer->id != id)
		offer = offer->next;
	return offer;
}

void dacsi_share_answered(const struct dacsi_process *process, uint32_t id, DACS_ERR_T answer)
{
	struct dacsi_offer *offer = find_offer(id);

	if (offer && offer->process == process && offer->answer == DACS_WID_BUSY)
		offer->answer = answer;
}

static void forget_offer(struct dacsi_offer *offer)
{
	struct dacsi_offer **link = &dacsi.offers;

	while (*link != offer)
		link = &(*link)->next;
	*link = offer->next;
	free(offer);
}

void dacsi_share_withdraw(const struct dacsi_region *region)
{
	struct dacsi_offer *offer = dacsi.offers, *next;

	for (; offer; offer = next) {
		next = offer->next;
		if (offer->region != region)
			continue;
		if (offer->process && offer->answer == DACS_WID_BUSY)
			(void)dacsi_share_tell(offer->process,
					       (struct dacsi_note){.type = DACSI_NOTE_WITHDRAWN,
								   .id = offer->id});
		forget_offer(offer);
	}
}

/* A child that has not called dacs_init yet cannot be given a key. */
bool dacsi_share_connecting(const struct dacsi_process *process)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};

	return slmpm_peer_query(process->peer, &info) == 0 && info.state == SLMPM_PEER_CONNECTING;
}

/* A new offer, or one that stands since a deadline. */
static DACS_ERR_T offer_to(struct dacsi_process *process, const struct dacsi_region *region,
			   uint32_t *id)
{
	struct dacsi_note note = {.type = DACSI_NOTE_OFFER,
				  .family = region->is.family,
				  .remote_access = region->remote_access,
				  .local_access = region->local_access};
	struct dacsi_offer *offer = dacsi.offers;
	int made;
	DACS_ERR_T rc;

	while (offer && (offer->region != region || offer->process != process || offer->awaited))
		offer = offer->next;
	if (offer) {
		offer->awaited = true;
		*id = offer->id;
		return DACS_SUCCESS;
	}
	if (dacsi_share_connecting(process))
		return DACS_WID_BUSY;
	made = slmpm_mem_key(region->mem, process->peer, dacsi_region_rights(region->remote_access),
			     &note.key);
	if (made < 0)
		return made == -SLMPM_EAGAIN ? DACS_WID_BUSY : dacsi_code(made);
	offer = calloc(1, sizeof(*offer));
	if (!offer)
		return DACS_ERR_NO_RESOURCE;
	note.id = ++dacsi.offer_ids;
	rc = dacsi_share_tell(process, note);
	if (rc != DACS_SUCCESS) {
		free(offer);
		return rc;
	}
	*offer = (struct dacsi_offer){dacsi.offers, region, process, note.id, true, DACS_WID_BUSY};
	dacsi.offers = offer;
	*id = note.id;
	return DACS_SUCCESS;
}

/* One look: DACS_WID_BUSY while there is no answer. */
static DACS_ERR_T share_once(struct dacsi_process *process, const struct dacsi_region *region,
			     uint32_t *id)
{
	struct dacsi_offer *offer;
	DACS_ERR_T rc = DACS_SUCCESS, gone;

	if (!region)
		return DACS_ERR_INVALID_HANDLE;
	if (!region->owner)
		return DACS_ERR_NOT_OWNER;
	if (!region->mem.id)
		return DACS_ERR_NO_PERM;
	if (!*id)
		rc = offer_to(process, region, id);
	gone = dacsi_share_collect(process);
	if (rc != DACS_SUCCESS)
		return rc == DACS_WID_BUSY && gone != DACS_SUCCESS ? gone : rc;
	offer = find_offer(*id);
	rc = offer ? offer->answer : DACS_ERR_INVALID_HANDLE;
	if (rc == DACS_WID_BUSY && gone != DACS_SUCCESS)
		rc = gone;
	if (offer && rc != DACS_WID_BUSY)
		forget_offer(offer);
	return rc;
}

DACS_ERR_T dacsi_share(enum dacsi_family family, de_id_t de, dacs_process_id_t pid, uint64_t handle)
{
	struct dacsi_process *process;
	struct dacsi_pause pause;
	struct dacsi_offer *offer;
	uint32_t id = 0;
	DACS_ERR_T rc;

	dacsi_pause_begin(&pause);
	for (;;) {
		rc = dacsi_partner(de, pid, &process);
		if (rc == DACS_SUCCESS)
			rc = share_once(process, dacsi_region_find(handle, family), &id);
		if (rc != DACS_WID_BUSY)
			return rc;
		rc = dacsi_pause(&pause);
		if (rc == DACS_SUCCESS)
			continue;
		offer = rc == DACS_ERR_DACSD_FAILURE ? find_offer(id) : NULL;
		if (offer)
			offer->awaited = false;
		return rc;
	}
}

/* ---- the end -------------------------------------------------------------------------------- */

void dacsi_share_forget(struct dacsi_process *process)
{
	struct dacsi_letter *letter;

	dacsi_share_drop(process);
	while ((letter = process->letters)) {
		process->letters = letter->next;
		free(letter);
	}
	for (struct dacsi_offer *offer = dacsi.offers; offer; offer = offer->next)
		if (offer->process == process) {
			offer->process = NULL;
			offer->answer = DACS_ERR_DE_TERM;
		}
}

void dacsi_share_end(void)
{
	while (dacsi.offers)
		forget_offer(dacsi.offers);
}
