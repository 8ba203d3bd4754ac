/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutexes, at their owner: who has it, and who asked when (dacs_mutex.h). */
#include "slmpm/dacs/dacs_mutex.h"

struct dacsi_member *dacsi_mutex_self(const struct dacsi_mutex *m)
{
	return dacsi_member_find(&m->is, NULL);
}

void dacsi_mutex_ask(struct dacsi_mutex *m, struct dacsi_member *member)
{
	if (!member->asks++)
		member->ticket = ++m->tickets;
	dacsi.awaited++;
	dacsi_object_due(&m->is);
}

void dacsi_mutex_ask_less(struct dacsi_member *member)
{
	if (!member->asks)
		return;
	member->asks--;
	dacsi.awaited--;
}

static struct dacsi_member *first_asker(const struct dacsi_mutex *m)
{
	struct dacsi_member *first = NULL;

	for (struct dacsi_member *member = m->is.members; member; member = member->next)
		if (member->asks && (!first || member->ticket < first->ticket))
			first = member;
	return first;
}

void dacsi_mutex_unlock(struct dacsi_mutex *m, const struct dacsi_member *member)
{
	if (m->holder != member)
		return;
	m->holder = NULL;
	dacsi_object_due(&m->is);
}

/* It is not settled while no member waits, so whether the holder lives is checked here. */
bool dacsi_mutex_is_free(struct dacsi_mutex *m)
{
	if (m->holder)
		dacsi_member_check(&m->is);
	return !m->holder && !first_asker(m);
}

/* To who has asked first: true when that is done, false when the next is to be chosen. */
static bool grant(struct dacsi_mutex *m, struct dacsi_member *member)
{
	DACS_ERR_T rc;

	dacsi_mutex_ask_less(member);
	if (member->asks)
		member->ticket = ++m->tickets;
	m->holder = member;
	if (!member->process) {
		m->granted = dacsi_mutex_is_wanted(m);
		if (!m->granted)
			m->holder = NULL;
		return m->granted;
	}
	rc = dacsi_word_send(member->process, DACSI_GRANT, 0, member->theirs, m->is.number);
	if (rc == DACS_SUCCESS)
		return true;
	if (m->holder != member) /* handlers ran meanwhile: it has left, and another may have it */
		return true;
	m->holder = NULL;
	if (rc != DACS_ERR_NO_RESOURCE || member->left)
		return false;       /* it has ended */
	dacsi_mutex_ask(m, member); /* once more, when there is memory */
	return true;
}

void dacsi_mutex_settle(struct dacsi_object *object)
{
	struct dacsi_mutex *m = (struct dacsi_mutex *)object;
	struct dacsi_member *member;

	if (!object->owner)
		return;
	while (!m->holder && (member = first_asker(m)))
		if (grant(m, member))
			return;
}

uint32_t dacsi_mutex_asked(struct dacsi_mutex *m, struct dacsi_member *member, uint32_t type,
			   uint32_t *value)
{
	switch (type) {
	case DACSI_LOCK: dacsi_mutex_ask(m, member); return 0;
	case DACSI_GIVE_UP: dacsi_mutex_ask_less(member); return 0;
	case DACSI_UNLOCK: dacsi_mutex_unlock(m, member); return 0;
	case DACSI_TRY:
		if (!dacsi_mutex_is_free(m))
			return DACSI_BUSY;
		m->holder = member;
		*value = 1;
		return DACSI_GRANT;
	default: return 0;
	}
}
