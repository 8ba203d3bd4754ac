/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls whose turn has not come: groups and mutexes. */
#include "slmpm/dacs_internal.h"

static DACS_ERR_T later(void)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc == DACS_SUCCESS ? dacsi_leave(DACS_ERR_NOT_SUPPORTED_YET) : rc;
}

/* ---- Groups ---- */

DACS_ERR_T dacs_group_init(dacs_group_t *group, uint32_t flags)
{
	(void)group;
	(void)flags;
	return later();
}

DACS_ERR_T dacs_group_add_member(de_id_t de, dacs_process_id_t pid, dacs_group_t group)
{
	(void)de;
	(void)pid;
	(void)group;
	return later();
}

DACS_ERR_T dacs_group_close(dacs_group_t group)
{
	(void)group;
	return later();
}

DACS_ERR_T dacs_group_accept(de_id_t de, dacs_process_id_t pid, dacs_group_t *group)
{
	(void)de;
	(void)pid;
	(void)group;
	return later();
}

DACS_ERR_T dacs_group_leave(dacs_group_t *group)
{
	(void)group;
	return later();
}

DACS_ERR_T dacs_group_destroy(dacs_group_t *group)
{
	(void)group;
	return later();
}

DACS_ERR_T dacs_barrier_wait(dacs_group_t group)
{
	(void)group;
	return later();
}

/* ---- Mutexes ---- */

DACS_ERR_T dacs_mutex_init(dacs_mutex_t *mutex)
{
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_share(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mutex_t mutex)
{
	(void)dst_de;
	(void)dst_pid;
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_accept(de_id_t src_de, dacs_process_id_t src_pid, dacs_mutex_t *mutex)
{
	(void)src_de;
	(void)src_pid;
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_lock(dacs_mutex_t mutex)
{
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_try_lock(dacs_mutex_t mutex)
{
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_unlock(dacs_mutex_t mutex)
{
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_release(dacs_mutex_t *mutex)
{
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_destroy(dacs_mutex_t *mutex)
{
	(void)mutex;
	return later();
}
