/* SPDX-License-Identifier: BSD-3-Clause */
/* The way into and out of every call, SLMPM's codes. */
#include "slmpm/dacsbase/dacs_internal.h"

struct dacsi_runtime dacsi = DACSI_AT_START;

DACS_ERR_T dacsi_code(int64_t error)
{
	switch (error) {
	case 0: return DACS_SUCCESS;
	case -SLMPM_EDEAD:
	case -SLMPM_ECLOSED:
	case -SLMPM_EHANDLE: /* reaped while a transfer was under way */ return DACS_ERR_DE_TERM;
	case -SLMPM_EAGAIN: /* the same, of a deadline of 0 */
	case -SLMPM_ETIMEOUT: return DACS_ERR_DACSD_FAILURE;
	case -SLMPM_EVERSION: return DACS_ERR_VERSION_MISMATCH;
	case -SLMPM_ETRUNC: return DACS_ERR_BUF_OVERFLOW;
	case -SLMPM_ENOMEM:
	case -SLMPM_ENOFILE:
	case -SLMPM_EFBIG:
	case -SLMPM_ELIMIT: return DACS_ERR_NO_RESOURCE;
	case -SLMPM_EACCES: return DACS_ERR_NO_PERM;
	case -SLMPM_ENOENT: return DACS_ERR_NOT_FOUND;
	case -SLMPM_ENOEXEC: return DACS_ERR_INVALID_PROG;
	case -SLMPM_EFORKED: return DACS_ERR_NOT_INITIALIZED;
	case -SLMPM_EBUSY: return DACS_ERR_RESOURCE_BUSY;
	case -SLMPM_ESYSTEM: return DACS_ERR_SYSTEM;
	case -SLMPM_ENOTSUP: return DACS_ERR_NOT_SUPPORTED_YET;
	default: return DACS_ERR_INTERNAL;
	}
}

bool dacsi_enter(void)
{
	dacsi_lock();
	dacsi.entered++;
	if (dacsi.up && !dacsi.leaving)
		return true;
	dacsi_unlock();
	return false;
}

DACS_ERR_T dacsi_enter_with(bool there)
{
	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	return there ? DACS_SUCCESS : dacsi_leave(DACS_ERR_INVALID_ADDR);
}

/* A call that reports a child's end returns when the handlers have run. */
static DACS_ERR_T leave_runtime(DACS_ERR_T rc)
{
	bool has_errors;

	if (rc == DACS_ERR_DE_TERM)
		dacsi_process_term();
	has_errors = dacsi.errors != NULL;
	if (dacsi.idle)
		dacsi_pause_over();
	if (dacsi.due)
		(void)dacsi_parts.settle();
	if (dacsi.threads) {
		if (dacsi.sleeping)
			dacsi_kick();
		if (dacsi.inside)
			pthread_cond_broadcast(&dacsi.changed);
		pthread_mutex_unlock(&dacsi.lock);
	}
	if (has_errors)
		dacsi_error_handle();
	if (rc == DACS_ERR_DE_TERM || rc == DACS_STS_PROC_ABORTED || rc == DACS_STS_PROC_FAILED)
		dacsi_error_await();
	return rc;
}

DACS_ERR_T dacsi_leave(DACS_ERR_T rc)
{
	if (dacsi.up && dacsi.children)
		(void)dacsi_process_watch(true);
	return leave_runtime(rc);
}

DACS_ERR_T dacsi_leave_fast(DACS_ERR_T rc)
{
	if (dacsi.children && ++dacsi.calls % 64 == 0)
		(void)dacsi_process_watch(true);
	return leave_runtime(rc);
}
