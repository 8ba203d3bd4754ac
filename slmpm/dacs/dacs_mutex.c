/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutexes: the owner keeps who has it and who asked when (dacs_mutex_owner.c), partners ask by words. It is
 * a process that has a mutex; a thread of it that locks waits for the others of its own, too.
 */
#include "slmpm/dacs/dacs_pact.h"
#include "slmpm/dacs/dacs_wait.h"

#include <stdlib.h>

static struct dacsi_mutex *find(dacs_mutex_t mutex)
{
	return dacsi_handle_find(mutex, DACSI_MUTEX);
}

/* ---- words ---------------------------------------------------------------------------------- */

uint32_t dacsi_mutex_word(struct dacsi_mutex *m, struct dacsi_seat *seat,
			  const struct dacsi_word *word, uint32_t *value)
{
	if (seat)
		return dacsi_mutex_asked(m, seat, word->type, value);
	if (word->type == DACSI_BUSY) {
		m->trying = false;
	} else if (word->type == DACSI_GRANT) {
		m->trying &= word->value != 1;
		if (!dacsi_mutex_is_wanted(m))
			return DACSI_UNLOCK; /* whoever asked has given up */
		m->granted = true;
	}
	return 0;
}

/* ---- locking -------------------------------------------------------------------------------- */

static DACS_ERR_T tell(const struct dacsi_mutex *m, enum dacsi_word_type type)
{
	DACS_ERR_T rc = dacsi_pact_check(&m->pact);

	return rc == DACS_SUCCESS ? dacsi_pact_tell(m->pact.process, type, 0, m->pact.theirs,
						    m->pact.is.number) :
				    rc;
}

static void take(struct dacsi_mutex *m)
{
	m->granted = false;
	m->held = true;
}

/* DACS_WID_BUSY: not yet. */
static DACS_ERR_T look(struct dacsi_mutex *m)
{
	DACS_ERR_T rc = m->pact.owner ? DACS_SUCCESS : dacsi_pact_check(&m->pact);

	if (!m->granted)
		return rc == DACS_SUCCESS ? DACS_WID_BUSY : rc;
	take(m);
	return DACS_SUCCESS;
}

static DACS_ERR_T lock(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m = find(mutex);
	DACS_ERR_T rc = DACS_SUCCESS;
	struct dacsi_pause pause;

	if (!m)
		return DACS_ERR_INVALID_HANDLE;
	m->wanted++;
	if (m->pact.owner)
		dacsi_mutex_ask(m, dacsi_mutex_seat(m));
	else
		rc = tell(m, DACSI_LOCK);
	if (rc != DACS_SUCCESS) {
		m->wanted--;
		return rc;
	}
	(void)dacsi_pact_settle();
	dacsi_pause_begin(&pause);
	while ((rc = look(m)) == DACS_WID_BUSY) {
		rc = dacsi_pause(&pause);
		m = find(mutex);
		if (!m)
			return rc == DACS_SUCCESS ? DACS_ERR_INVALID_HANDLE : rc;
		if (rc != DACS_SUCCESS)
			break;
	}
	if (rc != DACS_SUCCESS && look(m) == DACS_SUCCESS)
		rc = DACS_SUCCESS; /* in the last moment */
	else if (rc != DACS_SUCCESS && m->pact.owner)
		dacsi_mutex_ask_less(dacsi_mutex_seat(m));
	else if (rc != DACS_SUCCESS)
		(void)tell(m, DACSI_GIVE_UP);
	m->wanted--;
	return rc;
}

/* The answer is the owner's; the mutex itself is not waited for, also where another thread has taken
 * what was granted. */
static DACS_ERR_T await_answer(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m = find(mutex);
	struct dacsi_pause pause;
	DACS_ERR_T rc;

	dacsi_pause_begin(&pause);
	while ((rc = look(m)) == DACS_WID_BUSY && m->trying) {
		rc = dacsi_pause(&pause);
		m = find(mutex);
		if (!m)
			return rc == DACS_SUCCESS ? DACS_ERR_INVALID_HANDLE : rc;
		if (rc != DACS_SUCCESS) {
			rc = look(m) == DACS_SUCCESS ? DACS_SUCCESS : rc;
			break;
		}
	}
	m->awaits_try = false;
	return rc == DACS_WID_BUSY ? DACS_ERR_MUTEX_BUSY : rc;
}

static DACS_ERR_T try_lock(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m;
	DACS_ERR_T rc;

	(void)dacsi_progress(); /* an unlock may have come */
	m = find(mutex);
	if (!m)
		return DACS_ERR_INVALID_HANDLE;
	if (m->held || m->granted || m->wanted || m->trying)
		return DACS_ERR_MUTEX_BUSY;
	if (m->pact.owner) {
		if (!dacsi_mutex_is_free(m))
			return DACS_ERR_MUTEX_BUSY;
		m->holder = dacsi_mutex_seat(m);
		take(m);
		return DACS_SUCCESS;
	}
	m->trying = m->awaits_try = true;
	rc = tell(m, DACSI_TRY);
	if (rc == DACS_SUCCESS)
		return await_answer(mutex);
	m->trying = m->awaits_try = false;
	return rc;
}

static DACS_ERR_T unlock(dacs_mutex_t mutex)
{
	struct dacsi_mutex *m = find(mutex);
	DACS_ERR_T rc = DACS_SUCCESS;

	if (!m)
		return DACS_ERR_INVALID_HANDLE;
	if (!m->held)
		return DACS_ERR_NOT_OWNER;
	if (m->pact.owner)
		dacsi_mutex_let_go(m, dacsi_mutex_seat(m));
	else
		rc = tell(m, DACSI_UNLOCK);
	m->held = rc == DACS_ERR_NO_RESOURCE;
	return rc;
}

/* ---- the calls ------------------------------------------------------------------------------ */

DACS_ERR_T dacs_mutex_init(dacs_mutex_t *mutex)
{
	DACS_ERR_T rc = dacsi_enter();
	struct dacsi_mutex *m;

	if (rc != DACS_SUCCESS)
		return rc;
	if (!mutex)
		return dacsi_leave_fast(DACS_ERR_INVALID_ADDR);
	m = calloc(1, sizeof(*m));
	rc = dacsi_pact_create(m ? &m->pact : NULL, DACSI_MUTEX, mutex);
	if (rc == DACS_SUCCESS && !dacsi_pact_sit(&m->pact, NULL)) {
		dacsi_pact_free(&m->pact);
		rc = DACS_ERR_NO_RESOURCE;
	}
	return dacsi_leave_fast(rc);
}

DACS_ERR_T dacs_mutex_share(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mutex_t mutex)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ?
		       rc :
		       dacsi_leave(dacsi_pact_share(DACSI_MUTEX, dst_de, dst_pid, mutex));
}

DACS_ERR_T dacs_mutex_accept(de_id_t src_de, dacs_process_id_t src_pid, dacs_mutex_t *mutex)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ?
		       rc :
		       dacsi_leave(dacsi_pact_accept(DACSI_MUTEX, src_de, src_pid,
						     sizeof(struct dacsi_mutex), mutex));
}

DACS_ERR_T dacs_mutex_lock(dacs_mutex_t mutex)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave_fast(lock(mutex));
}

DACS_ERR_T dacs_mutex_try_lock(dacs_mutex_t mutex)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave_fast(try_lock(mutex));
}

DACS_ERR_T dacs_mutex_unlock(dacs_mutex_t mutex)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave_fast(unlock(mutex));
}

DACS_ERR_T dacs_mutex_release(dacs_mutex_t *mutex)
{
	DACS_ERR_T rc = dacsi_enter();
	struct dacsi_mutex *m;

	if (rc != DACS_SUCCESS)
		return rc;
	if (!mutex)
		return dacsi_leave_fast(DACS_ERR_INVALID_ADDR);
	m = find(*mutex);
	if (!m)
		return dacsi_leave_fast(DACS_ERR_INVALID_HANDLE);
	if (m->pact.owner)
		return dacsi_leave_fast(DACS_ERR_OWNER);
	rc = tell(m, DACSI_LEAVE);
	if (rc == DACS_ERR_NO_RESOURCE)
		return dacsi_leave_fast(rc);
	dacsi_pact_free(&m->pact); /* what else went wrong means that the owner is gone */
	*mutex = 0;
	return dacsi_leave_fast(DACS_SUCCESS);
}

DACS_ERR_T dacs_mutex_destroy(dacs_mutex_t *mutex)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc : dacsi_leave(dacsi_pact_destroy(DACSI_MUTEX, mutex));
}
