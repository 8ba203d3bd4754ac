/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutexes: the owner keeps who has it and who asked when (dacs_mutex_owner.c), partners ask by words. It is
 * a process that has a mutex; a thread of it that locks waits for the others of its own, too.
 */
#include "slmpm/dacs/dacs_mutex.h"
#include "slmpm/dacsbase/dacs_wait.h"

static struct dacsi_mutex *find_mutex(dacs_mutex_t mutex)
{
	return dacsi_handle_find(mutex, DACSI_MUTEX);
}

/* ---- words ---------------------------------------------------------------------------------- */

static uint32_t mutex_word(struct dacsi_object *object, struct dacsi_member *member,
			   const struct dacsi_word *word, uint32_t *value)
{
	struct dacsi_mutex *m = (struct dacsi_mutex *)object;

	if (member)
		return dacsi_mutex_asked(m, member, word->type, value);
	if (word->type == DACSI_BUSY) {
		m->trying = false;
	} else if (word->type == DACSI_GRANT) {
		m->trying &= word->value != 1;
		if (!dacsi_mutex_is_wanted(m))
			return DACSI_UNLOCK; /* the thread that asked has given up */
		m->granted = true;
	}
	return 0;
}

static void mutex_member_left(struct dacsi_object *object, struct dacsi_member *member, bool died)
{
	(void)died;
	dacsi_mutex_unlock((struct dacsi_mutex *)object, member);
}

const struct dacsi_kind dacsi_mutex_kind = {
	.size = sizeof(struct dacsi_mutex),
	.reshare = DACS_ERR_RESOURCE_BUSY,
	.withdrawn = DACS_ERR_DE_TERM,
	.leave = dacsi_object_leave,
	.word = mutex_word,
	.settle = dacsi_mutex_settle,
	.left = mutex_member_left,
};

/* ---- locking -------------------------------------------------------------------------------- */

static DACS_ERR_T ask_owner(const struct dacsi_mutex *m, enum dacsi_word_type type)
{
	DACS_ERR_T rc = dacsi_object_check(&m->is);

	return rc == DACS_SUCCESS ? dacsi_word_up(&m->is, type, 0) : rc;
}

static void take_mutex(struct dacsi_mutex *m)
{
	m->granted = false;
	m->held = true;
}

/* DACS_WID_BUSY: not yet. */
static DACS_ERR_T take_if_granted(struct dacsi_mutex *m)
{
	DACS_ERR_T rc = m->is.owner ? DACS_SUCCESS : dacsi_object_check(&m->is);

	if (!m->granted)
		return rc == DACS_SUCCESS ? DACS_WID_BUSY : rc;
	take_mutex(m);
	return DACS_SUCCESS;
}

static DACS_ERR_T lock_mutex(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m = find_mutex(mutex);
	DACS_ERR_T rc = DACS_SUCCESS;
	struct dacsi_pause pause;

	if (!m)
		return DACS_ERR_INVALID_HANDLE;
	m->wanted++;
	if (m->is.owner)
		dacsi_mutex_ask(m, dacsi_mutex_self(m));
	else
		rc = ask_owner(m, DACSI_LOCK);
	if (rc != DACS_SUCCESS) {
		m->wanted--;
		return rc;
	}
	(void)dacsi_object_settle();
	dacsi_pause_begin(&pause);
	while ((rc = take_if_granted(m)) == DACS_WID_BUSY) {
		rc = dacsi_pause(&pause);
		m = find_mutex(mutex);
		if (!m)
			return rc == DACS_SUCCESS ? DACS_ERR_INVALID_HANDLE : rc;
		if (rc != DACS_SUCCESS)
			break;
	}
	if (rc != DACS_SUCCESS && take_if_granted(m) == DACS_SUCCESS)
		rc = DACS_SUCCESS; /* in the last moment */
	else if (rc != DACS_SUCCESS && m->is.owner)
		dacsi_mutex_ask_less(dacsi_mutex_self(m));
	else if (rc != DACS_SUCCESS)
		(void)ask_owner(m, DACSI_GIVE_UP);
	m->wanted--;
	return rc;
}

/* The answer is the owner's; the mutex itself is not waited for, also where another thread has taken
 * what was granted. */
static DACS_ERR_T await_try(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m = find_mutex(mutex);
	struct dacsi_pause pause;
	DACS_ERR_T rc;

	dacsi_pause_begin(&pause);
	while ((rc = take_if_granted(m)) == DACS_WID_BUSY && m->trying) {
		rc = dacsi_pause(&pause);
		m = find_mutex(mutex);
		if (!m)
			return rc == DACS_SUCCESS ? DACS_ERR_INVALID_HANDLE : rc;
		if (rc != DACS_SUCCESS) {
			rc = take_if_granted(m) == DACS_SUCCESS ? DACS_SUCCESS : rc;
			break;
		}
	}
	m->awaits_try = false;
	return rc == DACS_WID_BUSY ? DACS_ERR_MUTEX_BUSY : rc;
}

static DACS_ERR_T try_lock_mutex(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m;
	DACS_ERR_T rc;

	(void)dacsi_progress(); /* an unlock may have come */
	m = find_mutex(mutex);
	if (!m)
		return DACS_ERR_INVALID_HANDLE;
	if (m->held || m->granted || m->wanted || m->trying)
		return DACS_ERR_MUTEX_BUSY;
	if (m->is.owner) {
		if (!dacsi_mutex_is_free(m))
			return DACS_ERR_MUTEX_BUSY;
		m->holder = dacsi_mutex_self(m);
		take_mutex(m);
		return DACS_SUCCESS;
	}
	m->trying = m->awaits_try = true;
	rc = ask_owner(m, DACSI_TRY);
	if (rc == DACS_SUCCESS)
		return await_try(mutex);
	m->trying = m->awaits_try = false;
	return rc;
}

static DACS_ERR_T unlock_mutex(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m = find_mutex(mutex);
	DACS_ERR_T rc = DACS_SUCCESS;

	if (!m)
		return DACS_ERR_INVALID_HANDLE;
	if (!m->held)
		return DACS_ERR_NOT_OWNER;
	if (m->is.owner)
		dacsi_mutex_unlock(m, dacsi_mutex_self(m));
	else
		rc = ask_owner(m, DACSI_UNLOCK);
	m->held = rc == DACS_ERR_NO_RESOURCE;
	return rc;
}

/* ---- the calls ------------------------------------------------------------------------------ */

static DACS_ERR_T create_mutex(dacs_mutex_t *mutex)
{
	struct dacsi_object *object;

	if (!mutex)
		return DACS_ERR_INVALID_ADDR;
	object = dacsi_object_own(DACSI_MUTEX);
	if (object && !dacsi_member_join(object, NULL)) {
		dacsi_object_free(object);
		object = NULL;
	}
	if (!object)
		return DACS_ERR_NO_RESOURCE;
	*mutex = object->number;
	return DACS_SUCCESS;
}

DACS_ERR_T dacs_mutex_init(dacs_mutex_t *mutex)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave_fast(create_mutex(mutex));
}

DACS_ERR_T dacs_mutex_share(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mutex_t mutex)
{
	return dacsi_share(DACSI_MUTEX, dst_de, dst_pid, mutex);
}

DACS_ERR_T dacs_mutex_accept(de_id_t src_de, dacs_process_id_t src_pid, dacs_mutex_t *mutex)
{
	return dacsi_accept(DACSI_MUTEX, src_de, src_pid, mutex);
}

DACS_ERR_T dacs_mutex_lock(dacs_mutex_t mutex)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave_fast(lock_mutex(mutex));
}

DACS_ERR_T dacs_mutex_try_lock(dacs_mutex_t mutex)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave_fast(try_lock_mutex(mutex));
}

DACS_ERR_T dacs_mutex_unlock(dacs_mutex_t mutex)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave_fast(unlock_mutex(mutex));
}

DACS_ERR_T dacs_mutex_release(dacs_mutex_t *mutex)
{
	return dacsi_release(DACSI_MUTEX, mutex);
}

DACS_ERR_T dacs_mutex_destroy(dacs_mutex_t *mutex)
{
	return dacsi_destroy(DACSI_MUTEX, mutex);
}
