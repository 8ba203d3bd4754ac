/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutexes: the owner keeps who has it and who asked when; partners ask by words. A process has a
 * mutex; a thread of it that locks waits for the others of its own, too. */
#include "slmpm/dacs/dacs_object.h"

struct dacsi_mutex {
	struct dacsi_object is;
	struct dacsi_member *holder; /* own: who has it */
	uint64_t tickets;
	uint32_t wanted;    /* threads here that wait for it */
	bool held, granted; /* by this process; and no thread has taken it yet */
	bool trying;        /* a try is not answered; ... */
	bool awaits_try;    /* ... a thread waits for that */
};

/* The owner's answer; returns what is to be answered to that, or 0. */
static uint32_t take_mutex_answer(struct dacsi_mutex *m, uint32_t type, uint32_t value)
{
	if (type == DACSI_BUSY)
		m->trying = false;
	if (type != DACSI_GRANT)
		return 0;
	m->trying &= value != 1;
	if ((!m->wanted && !m->awaits_try) || m->granted)
		return DACSI_UNLOCK; /* the thread that asked has given up */
	m->granted = true;
	return 0;
}

/* ---- at the owner --------------------------------------------------------------------------- */

/* MEMBER asks once more, or less; what it has it gives back. */
static void ask_more(struct dacsi_mutex *m, struct dacsi_member *member)
{
	if (!member->asks++)
		member->ticket = ++m->tickets;
	dacsi.awaited++;
	dacsi_object_due(&m->is);
}

static void ask_less(struct dacsi_member *member)
{
	if (!member->asks)
		return;
	member->asks--;
	dacsi.awaited--;
}

static void mutex_give_back(struct dacsi_mutex *m, const struct dacsi_member *member)
{
	if (m->holder != member)
		return;
	m->holder = NULL;
	dacsi_object_due(&m->is);
}

static struct dacsi_member *first_asker(const struct dacsi_mutex *m)
{
	struct dacsi_member *first = NULL;

	for (struct dacsi_member *member = m->is.members; member; member = member->next)
		if (member->asks && (!first || member->ticket < first->ticket))
			first = member;
	return first;
}

/* To who has asked first: true when that is done, false when the next is to be chosen. */
static bool grant(struct dacsi_mutex *m, struct dacsi_member *member)
{
	DACS_ERR_T rc;

	ask_less(member);
	if (member->asks)
		member->ticket = ++m->tickets;
	m->holder = member;
	if (!member->process) {
		if (take_mutex_answer(m, DACSI_GRANT, 0))
			m->holder = NULL;
		return m->holder;
	}
	rc = dacsi_word_send(member->process, DACSI_GRANT, 0, member->theirs, m->is.number);
	if (rc == DACS_SUCCESS)
		return true;
	if (m->holder != member) /* handlers ran meanwhile: it has left, and another may have it */
		return true;
	m->holder = NULL;
	if (rc != DACS_ERR_NO_RESOURCE || member->left)
		return false; /* it has ended */
	ask_more(m, member);  /* once more, when there is memory */
	return true;
}

static void settle_mutex(struct dacsi_object *object)
{
	struct dacsi_mutex *m = (struct dacsi_mutex *)object;
	struct dacsi_member *member;

	if (!object->owner)
		return;
	while (!m->holder && (member = first_asker(m)))
		if (grant(m, member))
			return;
}

/* By a word of this TYPE; returns what is to be answered, or 0. */
static uint32_t mutex_asked(struct dacsi_mutex *m, struct dacsi_member *member, uint32_t type,
			    uint32_t *value)
{
	switch (type) {
	case DACSI_LOCK: ask_more(m, member); return 0;
	case DACSI_GIVE_UP: ask_less(member); return 0;
	case DACSI_UNLOCK: mutex_give_back(m, member); return 0;
	case DACSI_TRY:
		/* Not settled while no member waits: whether the holder lives is checked here. */
		if (m->holder)
			dacsi_member_check(&m->is);
		if (m->holder || first_asker(m))
			return DACSI_BUSY;
		m->holder = member;
		*value = 1;
		return DACSI_GRANT;
	default: return 0;
	}
}

static uint32_t mutex_word(struct dacsi_object *object, struct dacsi_member *member,
			   const struct dacsi_word *word, uint32_t *value)
{
	struct dacsi_mutex *m = (struct dacsi_mutex *)object;

	return member ? mutex_asked(m, member, word->type, value) :
			take_mutex_answer(m, word->type, word->value);
}

static void mutex_member_left(struct dacsi_object *object, struct dacsi_member *member, bool died)
{
	(void)died;
	mutex_give_back((struct dacsi_mutex *)object, member);
}

const struct dacsi_kind dacsi_mutex_kind = {
	.size = sizeof(struct dacsi_mutex),
	.reshare = DACS_ERR_RESOURCE_BUSY,
	.withdrawn = DACS_ERR_DE_TERM,
	.leave = dacsi_object_leave,
	.word = mutex_word,
	.settle = settle_mutex,
	.left = mutex_member_left,
};

/* ---- locking -------------------------------------------------------------------------------- */

static DACS_ERR_T ask_owner(struct dacsi_mutex *m, enum dacsi_word_type type)
{
	DACS_ERR_T rc = dacsi_object_check(&m->is);
	uint32_t answer, value = 0;

	if (!m->is.owner)
		return rc == DACS_SUCCESS ? dacsi_word_up(&m->is, type, 0) : rc;
	answer = mutex_asked(m, dacsi_member_find(&m->is, NULL), type, &value);
	(void)take_mutex_answer(m, answer, value);
	return DACS_SUCCESS;
}

/* DACS_WID_BUSY: not yet. */
static DACS_ERR_T take_if_granted(struct dacsi_mutex *m)
{
	DACS_ERR_T rc = m ? dacsi_object_check(&m->is) : DACS_ERR_INVALID_HANDLE;

	if (!m || !m->granted)
		return rc == DACS_SUCCESS ? DACS_WID_BUSY : rc;
	m->granted = false;
	m->held = true;
	return DACS_SUCCESS;
}

/* Waits for a grant, a TRY for its answer alone: DACS_WID_BUSY then. *M: it, or NULL by now. */
static DACS_ERR_T await_mutex(dacs_mutex_t mutex, bool try, struct dacsi_mutex **m)
{
	struct dacsi_pause pause;
	DACS_ERR_T rc;

	dacsi_pause_begin(&pause);
	do {
		*m = dacsi_handle_find(mutex, DACSI_MUTEX);
		rc = take_if_granted(*m);
	} while (rc == DACS_WID_BUSY && (!try || (*m)->trying) &&
		 (rc = dacsi_pause(&pause)) == DACS_SUCCESS);
	*m = dacsi_handle_find(mutex, DACSI_MUTEX);
	if (rc != DACS_SUCCESS && take_if_granted(*m) == DACS_SUCCESS)
		rc = DACS_SUCCESS; /* in the last moment */
	return rc;
}

static DACS_ERR_T lock_mutex(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m = dacsi_handle_find(mutex, DACSI_MUTEX);
	DACS_ERR_T rc;

	if (!m)
		return DACS_ERR_INVALID_HANDLE;
	m->wanted++;
	rc = ask_owner(m, DACSI_LOCK);
	if (rc != DACS_SUCCESS) {
		m->wanted--;
		return rc;
	}
	(void)dacsi_object_settle();
	rc = await_mutex(mutex, false, &m);
	if (m && rc != DACS_SUCCESS)
		(void)ask_owner(m, DACSI_GIVE_UP);
	if (m)
		m->wanted--;
	return rc;
}

/* Waits for the owner's answer, not the mutex, also where another thread has taken the grant. */
static DACS_ERR_T try_lock_mutex(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m;
	DACS_ERR_T rc;

	(void)dacsi_progress(); /* an unlock may have come */
	m = dacsi_handle_find(mutex, DACSI_MUTEX);
	if (!m)
		return DACS_ERR_INVALID_HANDLE;
	if (m->held || m->granted || m->wanted || m->trying)
		return DACS_ERR_MUTEX_BUSY;
	m->trying = m->awaits_try = true;
	rc = ask_owner(m, DACSI_TRY);
	if (rc == DACS_SUCCESS)
		rc = await_mutex(mutex, true, &m);
	else
		m->trying = false;
	if (m)
		m->awaits_try = false;
	return rc == DACS_WID_BUSY ? DACS_ERR_MUTEX_BUSY : rc;
}

static DACS_ERR_T unlock_mutex(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m = dacsi_handle_find(mutex, DACSI_MUTEX);
	DACS_ERR_T rc;

	if (!m)
		return DACS_ERR_INVALID_HANDLE;
	if (!m->held)
		return DACS_ERR_NOT_OWNER;
	rc = ask_owner(m, DACSI_UNLOCK);
	m->held = rc == DACS_ERR_NO_RESOURCE;
	return rc;
}

/* ---- the calls ------------------------------------------------------------------------------ */

DACS_ERR_T dacs_mutex_init(dacs_mutex_t *mutex)
{
	struct dacsi_object *object;
	DACS_ERR_T rc = dacsi_enter_with(mutex);

	if (rc != DACS_SUCCESS)
		return rc;
	object = dacsi_object_new(DACSI_MUTEX, NULL);
	if (object && !dacsi_member_join(object, NULL)) {
		dacsi_object_free(object);
		object = NULL;
	}
	if (object)
		*mutex = object->number;
	return dacsi_leave_fast(object ? DACS_SUCCESS : DACS_ERR_NO_RESOURCE);
}

DACSI_SHARED_CALLS(mutex, DACSI_MUTEX)

DACS_ERR_T dacs_mutex_lock(dacs_mutex_t mutex)
{
	return dacsi_enter() ? dacsi_leave_fast(lock_mutex(mutex)) : DACS_ERR_NOT_INITIALIZED;
}

DACS_ERR_T dacs_mutex_try_lock(dacs_mutex_t mutex)
{
	return dacsi_enter() ? dacsi_leave_fast(try_lock_mutex(mutex)) : DACS_ERR_NOT_INITIALIZED;
}

DACS_ERR_T dacs_mutex_unlock(dacs_mutex_t mutex)
{
	return dacsi_enter() ? dacsi_leave_fast(unlock_mutex(mutex)) : DACS_ERR_NOT_INITIALIZED;
}
