/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mutexes and groups have in common: an owner shares them with partners, who accept and leave,
 * and both sides agree by words, which are active messages. A word's handler notes what it says and
 * no more; what follows for others is carried out by dacsi_pact_settle, from a call of DaCS.
 */
#include "slmpm/dacs/dacs_pact.h"
#include "slmpm/dacs/dacs_process.h"
#include "slmpm/dacs/dacs_share.h"
#include "slmpm/dacs/dacs_wait.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define WORDS  1  /* the handler of these active messages */
#define ROUNDS 16 /* of settling at once: words may come in meanwhile */

/* ---- words ---------------------------------------------------------------------------------- */

static struct dacsi_word little(struct dacsi_word word)
{
	return (struct dacsi_word){htole32(word.type), htole32(word.value), htole64(word.to),
				   htole64(word.from)};
}

DACS_ERR_T dacsi_pact_tell(struct dacsi_process *process, enum dacsi_word_type type, uint32_t value,
			   uint64_t to, uint64_t from)
{
	const struct dacsi_word word = little((struct dacsi_word){type, value, to, from});
	struct slmpm_how how = {.size = sizeof(how)};
	slmpm_req req = {0};
	int rc = slmpm_am(process->peer, WORDS, &word, sizeof(word), NULL, 0, &how, NULL);

	if (rc != -SLMPM_EAGAIN)
		return dacsi_code(rc);
	rc = slmpm_am(process->peer, WORDS, &word, sizeof(word), NULL, 0, &how, &req);
	return rc < 0 ? dacsi_code(rc) : dacsi_share_keep(process, req);
}

static struct dacsi_pact *find(uint64_t handle)
{
	void *pact = dacsi_handle_find(handle, DACSI_MUTEX);

	return pact ? pact : dacsi_handle_find(handle, DACSI_GROUP);
}

/* To an own pact: the answer's type, or 0. */
static uint32_t to_owner(struct dacsi_pact *pact, struct dacsi_process *process,
			 const struct dacsi_word *word, uint32_t *value)
{
	struct dacsi_seat *seat = pact ? dacsi_pact_seat(pact, process) : NULL;

	if (!seat || !pact->owner || !seat->theirs != (word->type < DACSI_LEAVE))
		return word->type == DACSI_LEAVE || word->type == DACSI_REFUSE ? 0 : DACSI_VOID;
	switch (word->type) {
	case DACSI_ACCEPT:
		seat->theirs = word->from;
		dacsi_pact_due(pact);
		return 0;
	case DACSI_REFUSE: seat->refused = true; return 0;
	case DACSI_LEAVE: dacsi_pact_unseat(pact, seat, false); return 0;
	default: break;
	}
	if (pact->is.family == DACSI_MUTEX)
		return dacsi_mutex_word((struct dacsi_mutex *)pact, seat, word, value);
	return dacsi_group_word((struct dacsi_group *)pact, seat, word, value);
}

/* To one that was accepted from PROCESS. */
static uint32_t to_partner(struct dacsi_pact *pact, const struct dacsi_process *process,
			   const struct dacsi_word *word, uint32_t *value)
{
	if (!pact || pact->owner || pact->process != process || pact->theirs != word->from)
		return 0;
	if (word->type == DACSI_VOID)
		pact->unknown = true;
	else if (pact->is.family == DACSI_MUTEX)
		return dacsi_mutex_word((struct dacsi_mutex *)pact, NULL, word, value);
	else
		return dacsi_group_word((struct dacsi_group *)pact, NULL, word, value);
	return 0;
}

static struct dacsi_process *process_of(slmpm_peer peer)
{
	struct dacsi_process *p = dacsi.children;

	if (dacsi.parent && dacsi.parent->peer.id == peer.id)
		return dacsi.parent;
	while (p && p->peer.id != peer.id)
		p = p->next;
	return p;
}

static void heard(const struct slmpm_am *am, void *arg)
{
	struct dacsi_process *process = process_of(am->peer);
	uint32_t answer = 0, value = 0;
	struct dacsi_word word;

	(void)arg;
	if (!process || am->head_len != sizeof(word) || am->data_len)
		return;
	memcpy(&word, am->head, sizeof(word));
	word = little(word); /* either way the same */
	switch (word.type) {
	case DACSI_OFFER: answer = dacsi_pact_offered(process, &word) ? 0 : DACSI_REFUSE; break;
	case DACSI_WITHDRAW: dacsi_pact_withdrawn(process, word.from); break;
	case DACSI_ACCEPT:
	case DACSI_REFUSE:
	case DACSI_LEAVE:
	case DACSI_LOCK:
	case DACSI_GIVE_UP:
	case DACSI_TRY:
	case DACSI_UNLOCK:
	case DACSI_ARRIVE: answer = to_owner(find(word.to), process, &word, &value); break;
	default: answer = to_partner(find(word.to), process, &word, &value); break;
	}
	if (!answer)
		return;
	word = little((struct dacsi_word){answer, value, word.from, word.to});
	(void)slmpm_am_reply(am, WORDS, &word, sizeof(word), NULL, 0);
}

int dacsi_pact_begin(void)
{
	return slmpm_am_handler(dacsi.ctx, WORDS, heard, NULL);
}

/* ---- seats ---------------------------------------------------------------------------------- */

struct dacsi_seat *dacsi_pact_seat(const struct dacsi_pact *pact,
				   const struct dacsi_process *process)
{
	struct dacsi_seat *seat = pact->seats;

	while (seat && (seat->process != process || seat->left))
		seat = seat->next;
	return seat;
}

struct dacsi_seat *dacsi_pact_sit(struct dacsi_pact *pact, struct dacsi_process *process)
{
	struct dacsi_seat *seat = calloc(1, sizeof(*seat));

	if (!seat)
		return NULL;
	seat->process = process;
	seat->next = pact->seats;
	pact->seats = seat;
	if (process)
		process->seat_count++;
	return seat;
}

void dacsi_pact_due(struct dacsi_pact *pact)
{
	if (pact->due)
		return;
	pact->due = true;
	pact->due_next = dacsi.due;
	dacsi.due = pact;
}

/* It is freed when nobody can be looking at it: in a handler somebody may. */
void dacsi_pact_unseat(struct dacsi_pact *pact, struct dacsi_seat *seat, bool died)
{
	dacsi.awaited -= seat->asks;
	seat->asks = 0;
	seat->left = true;
	if (seat->process)
		seat->process->seat_count--;
	seat->process = NULL;
	if (pact->is.family == DACSI_MUTEX)
		dacsi_mutex_let_go((struct dacsi_mutex *)pact, seat);
	else if (seat->theirs)
		dacsi_group_unseat((struct dacsi_group *)pact, died);
	dacsi_pact_due(pact);
}

static void sweep(struct dacsi_pact *pact)
{
	struct dacsi_seat **link = &pact->seats, *seat;

	while ((seat = *link)) {
		if (!seat->left || seat->watchers) {
			link = &seat->next;
			continue;
		}
		*link = seat->next;
		free(seat);
	}
}

void dacsi_pact_look(struct dacsi_pact *pact)
{
	for (struct dacsi_seat *seat = pact->seats; seat; seat = seat->next)
		if (seat->process && dacsi_process_channel(seat->process) != DACS_SUCCESS)
			dacsi_pact_unseat(pact, seat, true);
}

/* The pact at place I of the table, or NULL. */
static struct dacsi_pact *at(uint32_t i)
{
	struct dacsi_object *object = dacsi.handles[i];

	return object && object->family >= DACSI_MUTEX ? (struct dacsi_pact *)object : NULL;
}

static void unseat_all(const struct dacsi_process *process)
{
	for (uint32_t i = 0; process->seat_count && i < dacsi.handle_places; i++)
		for (struct dacsi_seat *seat = at(i) ? at(i)->seats : NULL; seat; seat = seat->next)
			if (seat->process == process)
				dacsi_pact_unseat(at(i), seat, true);
}

static void unseat_ended(struct dacsi_process *process)
{
	if (process->seat_count && dacsi_process_channel(process) != DACS_SUCCESS)
		unseat_all(process);
}

bool dacsi_pact_settle(void)
{
	bool news;

	if (dacsi.awaited) {
		for (struct dacsi_process *p = dacsi.children; p; p = p->next)
			unseat_ended(p);
		if (dacsi.parent)
			unseat_ended(dacsi.parent);
	}
	news = dacsi.due != NULL;
	for (int i = 0; i < ROUNDS && dacsi.due; i++) {
		struct dacsi_pact *pact = dacsi.due, *next;

		for (dacsi.due = NULL; pact; pact = next) {
			next = pact->due_next;
			pact->due = false;
			sweep(pact);
			if (pact->is.family == DACSI_MUTEX)
				dacsi_mutex_settle((struct dacsi_mutex *)pact);
			else
				dacsi_group_settle((struct dacsi_group *)pact);
		}
	}
	return news;
}

/* ---- begin and end -------------------------------------------------------------------------- */

DACS_ERR_T dacsi_pact_create(struct dacsi_pact *pact, enum dacsi_family family, uint64_t *handle)
{
	if (!pact || !dacsi_handle_give(&pact->is, family)) {
		free(pact);
		return DACS_ERR_NO_RESOURCE;
	}
	pact->owner = true;
	*handle = pact->is.number;
	return DACS_SUCCESS;
}

void dacsi_pact_free(struct dacsi_pact *pact)
{
	struct dacsi_pact **link = &dacsi.due;
	struct dacsi_seat *seat;

	while ((seat = pact->seats)) {
		dacsi.awaited -= seat->asks;
		if (seat->process)
			seat->process->seat_count--;
		pact->seats = seat->next;
		free(seat);
	}
	while (*link && *link != pact)
		link = &(*link)->due_next;
	if (*link)
		*link = pact->due_next;
	dacsi_handle_take(&pact->is);
	free(pact);
}

static bool has_partners(const struct dacsi_pact *pact)
{
	for (const struct dacsi_seat *seat = pact->seats; seat; seat = seat->next)
		if (seat->process)
			return true;
	return false;
}

static DACS_ERR_T destroy_once(struct dacsi_pact *pact)
{
	if (!pact)
		return DACS_ERR_INVALID_HANDLE;
	if (!pact->owner)
		return DACS_ERR_NOT_OWNER;
	if (pact->is.family == DACSI_GROUP && !((struct dacsi_group *)pact)->closed)
		return DACS_ERR_GROUP_OPEN;
	(void)slmpm_progress(dacsi.ctx);
	dacsi_pact_withdraw(pact);
	dacsi_pact_look(pact);
	if (has_partners(pact))
		return DACS_WID_BUSY;
	dacsi_pact_free(pact);
	return DACS_SUCCESS;
}

DACS_ERR_T dacsi_pact_destroy(enum dacsi_family family, uint64_t *handle)
{
	struct dacsi_pause pause;
	uint64_t wanted;
	DACS_ERR_T rc;

	if (!handle)
		return DACS_ERR_INVALID_ADDR;
	wanted = *handle;
	dacsi_pause_begin(&pause);
	while ((rc = destroy_once(dacsi_handle_find(wanted, family))) == DACS_WID_BUSY) {
		rc = dacsi_pause(&pause);
		if (rc != DACS_SUCCESS)
			return rc;
	}
	if (rc == DACS_SUCCESS)
		*handle = 0;
	return rc;
}

void dacsi_pact_forget(struct dacsi_process *process)
{
	unseat_all(process);
	dacsi_pact_drop(process);
	for (uint32_t i = 0; i < dacsi.handle_places; i++)
		if (at(i) && at(i)->process == process)
			at(i)->process = NULL;
}

void dacsi_pact_end(void)
{
	for (uint32_t i = 0; i < dacsi.handle_places; i++)
		if (at(i))
			dacsi_pact_free(at(i));
}

DACS_ERR_T dacsi_pact_check(const struct dacsi_pact *pact)
{
	if (pact->unknown)
		return DACS_ERR_INVALID_HANDLE;
	return pact->process ? dacsi_process_channel(pact->process) : DACS_ERR_DE_TERM;
}
