/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared object at its owner: offered to partners, destroyed when all have left. An offer whose
 * share ran into its deadline stands, and the next share there waits for its answer. */
#include "slmpm/dacs/dacs_object.h"

/* ---- share ---------------------------------------------------------------------------------- */

static DACS_ERR_T make_offer(struct dacsi_object *object, const struct dacsi_kind *kind,
			     struct dacsi_process *process, struct dacsi_member **member)
{
	struct dacsi_offer offer = {.word = {DACSI_OFFER, object->family, 0, object->number}};
	DACS_ERR_T rc = kind->key ? kind->key(object, process->peer, &offer) : DACS_SUCCESS;

	if (rc != DACS_SUCCESS)
		return rc;
	*member = dacsi_member_join(object, process);
	if (!*member)
		return DACS_ERR_NO_RESOURCE;
	rc = dacsi_offer_send(process, &offer);
	if (rc != DACS_SUCCESS)
		dacsi_member_leave(object, *member, rc);
	return rc;
}

/* The offer that this thread may wait for, or NULL. */
static struct dacsi_member *standing_offer(const struct dacsi_object *object,
					   const struct dacsi_kind *kind,
					   const struct dacsi_process *process)
{
	struct dacsi_member *member = object->members;

	if (kind->reshare != DACS_SUCCESS)
		return dacsi_member_find(object, process);
	while (member && (member->process != process || member->left || member->watchers))
		member = member->next;
	return member;
}

static DACS_ERR_T begin_share(struct dacsi_object *object, const struct dacsi_kind *kind,
			      struct dacsi_process *process, struct dacsi_member **mine)
{
	struct dacsi_member *member = standing_offer(object, kind, process);
	DACS_ERR_T rc = dacsi_process_channel(process);

	/* A child that has not called dacs_init yet cannot be offered anything. */
	if (rc == DACS_SUCCESS && dacsi_process_state(process) == SLMPM_PEER_CONNECTING)
		rc = DACS_WID_BUSY;
	if (member && kind->reshare == DACS_SUCCESS)
		rc = DACS_SUCCESS; /* its answer may have come before the end */
	else if (rc == DACS_SUCCESS && member && member->theirs)
		rc = kind->reshare;
	else if (rc == DACS_SUCCESS && !member)
		rc = make_offer(object, kind, process, &member);
	if (rc != DACS_SUCCESS)
		return rc;
	member->watchers++;
	*mine = member;
	return DACS_SUCCESS;
}

/* What has become of the offer. */
static DACS_ERR_T offer_outcome(struct dacsi_object *object, const struct dacsi_kind *kind,
				struct dacsi_member *member)
{
	DACS_ERR_T rc = member->outcome;

	if (rc == DACS_WID_BUSY && dacsi_process_channel(member->process) == DACS_SUCCESS)
		return rc;
	if (rc == DACS_WID_BUSY)
		rc = DACS_ERR_DE_TERM; /* whatever became of the channel */
	if (!member->left && (rc != DACS_SUCCESS || kind->reshare == DACS_SUCCESS))
		dacsi_member_leave(object, member, rc);
	return rc;
}

static DACS_ERR_T share_once(struct dacsi_object *object, struct dacsi_process *process,
			     struct dacsi_member **mine)
{
	const struct dacsi_kind *kind = dacsi_parts.kinds[object->family];
	DACS_ERR_T rc = kind->shareable && !*mine ? kind->shareable(object) : DACS_SUCCESS;

	(void)slmpm_progress(dacsi.ctx);
	if (rc == DACS_SUCCESS && !*mine)
		rc = begin_share(object, kind, process, mine);
	return rc == DACS_SUCCESS ? offer_outcome(object, kind, *mine) : rc;
}

DACS_ERR_T dacsi_share(enum dacsi_family family, de_id_t de, dacs_process_id_t pid, uint64_t handle)
{
	struct dacsi_process *process;
	struct dacsi_member *mine = NULL;
	struct dacsi_object *object;
	struct dacsi_pause pause;
	DACS_ERR_T rc;

	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	dacsi_pause_begin(&pause);
	do {
		rc = dacsi_partner(de, pid, &process);
		if (rc == DACS_SUCCESS && dacsi_parts.kinds[family]->downward &&
		    process == dacsi.parent)
			rc = DACS_ERR_INVALID_TARGET;
		object =
			rc == DACS_SUCCESS ? dacsi_handle_find_as(handle, family, true, &rc) : NULL;
		if (object)
			rc = share_once(object, process, &mine);
	} while (rc == DACS_WID_BUSY && (rc = dacsi_pause(&pause)) == DACS_SUCCESS);
	/* At a deadline the offer stands. A member that is watched lasts as long as the object. */
	object = mine ? dacsi_handle_find(handle, family) : NULL;
	if (object) {
		mine->watchers--;
		dacsi_object_due(object);
	}
	return dacsi_leave(rc);
}

/* Not that of a partner that has accepted, where it is a member then. */
static bool is_withdrawable(const struct dacsi_kind *kind, const struct dacsi_member *member)
{
	return member->process && (!member->theirs || kind->reshare == DACS_SUCCESS);
}

void dacsi_share_withdraw(struct dacsi_object *object)
{
	const struct dacsi_kind *kind = dacsi_parts.kinds[object->family];

	for (struct dacsi_member *member = object->members; member; member = member->next) {
		if (is_withdrawable(kind, member) && !member->theirs)
			(void)dacsi_word_send(member->process, DACSI_WITHDRAW, 0, 0,
					      object->number);
		/* Its ACCEPT may have come while that was sent. */
		if (is_withdrawable(kind, member))
			dacsi_member_leave(object, member, kind->withdrawn);
	}
}

/* ---- destroy -------------------------------------------------------------------------------- */

static bool has_partners(const struct dacsi_object *object)
{
	for (const struct dacsi_member *member = object->members; member; member = member->next)
		if (member->process)
			return true;
	return false;
}

static DACS_ERR_T destroy_once(struct dacsi_object *object)
{
	const struct dacsi_kind *kind = dacsi_parts.kinds[object->family];
	DACS_ERR_T rc = kind->destroyable ? kind->destroyable(object) : DACS_SUCCESS;

	if (rc != DACS_SUCCESS)
		return rc;
	(void)slmpm_progress(dacsi.ctx);
	dacsi_share_withdraw(object);
	dacsi_member_check(object);
	if (has_partners(object))
		return DACS_WID_BUSY;
	rc = kind->destroy ? kind->destroy(object) : DACS_SUCCESS;
	if (rc == DACS_SUCCESS)
		dacsi_object_free(object);
	return rc;
}

DACS_ERR_T dacsi_destroy(enum dacsi_family family, uint64_t *handle)
{
	return dacsi_object_until(family, true, handle, destroy_once);
}
