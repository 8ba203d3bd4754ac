/* SPDX-License-Identifier: BSD-3-Clause */
/* Codes as text, and error handlers: the children that ended badly. */
#include "slmpm/dacsbase/dacs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *dacs_strerror(DACS_ERR_T errcode)
{
	switch ((int)errcode) {
#define STATUS_TEXT(name, number, text)                                                            \
	case number: return "DACS_" #name ": " text;
		DACS_STATUSES(STATUS_TEXT)
#define ERROR_TEXT(name, number, text)                                                             \
	case number: return "DACS_ERR_" #name ": " text;
		DACS_ERRORS(ERROR_TEXT)
	default: return "not a DaCS code";
	}
}

/* Errors that handlers have now. They are few: one for each thread inside a handler. They outlast
 * dacs_exit, which a handler may call. */
static struct dacsi_error *in_handlers;

void dacsi_error_add(const struct dacsi_process *process)
{
	struct dacsi_error *e = calloc(1, sizeof(*e)), **link = &dacsi.errors;

	if (!e)
		return;
	*e = (struct dacsi_error){
		.num = process->outcome,
		.code = (uint32_t)process->code,
		.de = process->de,
		.pid = process->pid,
	};
	if (e->num == DACS_STS_PROC_ABORTED)
		snprintf(e->text, sizeof(e->text),
			 "process %d on element %u was ended by signal %d (%s)", process->os_pid,
			 process->de, process->code, strsignal(process->code));
	else
		snprintf(e->text, sizeof(e->text), "process %d on element %u exited with status %d",
			 process->os_pid, process->de, process->code);
	while (*link)
		link = &(*link)->next;
	*link = e;
}

static void end_handling(const struct dacsi_error *e)
{
	struct dacsi_error **link = &in_handlers;

	pthread_mutex_lock(&dacsi.lock);
	while (*link != e)
		link = &(*link)->next;
	*link = e->next;
	pthread_cond_broadcast(&dacsi.changed);
	pthread_mutex_unlock(&dacsi.lock);
}

static bool is_in_handler(void)
{
	for (const struct dacsi_error *e = in_handlers; e; e = e->next)
		if (pthread_equal(e->handling_thread, pthread_self()))
			return true;
	return false;
}

void dacsi_error_await(void)
{
	pthread_mutex_lock(&dacsi.lock);
	while (in_handlers && !is_in_handler())
		pthread_cond_wait(&dacsi.changed, &dacsi.lock);
	pthread_mutex_unlock(&dacsi.lock);
}

/* The first error that handlers have not had, and the handlers as they are now. */
static struct dacsi_error *next_error(dacs_error_handler_t handlers[DACSI_HANDLERS],
				      uint32_t *count, bool *abort_after)
{
	struct dacsi_error *e;

	if (!dacsi_enter())
		return NULL;
	e = dacsi.errors;
	if (e) {
		dacsi.errors = e->next;
		e->handling_thread = pthread_self();
		e->next = in_handlers;
		in_handlers = e;
	}
	*count = dacsi.handler_count;
	memcpy(handlers, dacsi.handlers, *count * sizeof(*handlers));
	*abort_after = dacsi.set.abort && e && e->num == DACS_STS_PROC_ABORTED;
	dacsi_unlock();
	return e;
}

void dacsi_error_handle(void)
{
	dacs_error_handler_t handlers[DACSI_HANDLERS];
	struct dacsi_error *e;
	bool abort_after;
	uint32_t count;

	while ((e = next_error(handlers, &count, &abort_after))) {
		for (uint32_t i = 0; i < count; i++)
			(void)handlers[i](e);
		end_handling(e);
		if (abort_after) {
			fprintf(stderr, "dacs: %s; SLMPM_DACS_ABORT=y\n", e->text);
			abort();
		}
		free(e);
	}
}

void dacsi_error_reset(void)
{
	struct dacsi_error *e;

	while ((e = dacsi.errors)) {
		dacsi.errors = e->next;
		free(e);
	}
	dacsi.handler_count = 0;
}

DACS_ERR_T dacs_errhandler_reg(dacs_error_handler_t handler, uint32_t flags)
{
	DACS_ERR_T rc = dacsi_enter_with(handler);

	if (rc != DACS_SUCCESS)
		return rc;
	if (flags)
		return dacsi_leave(DACS_ERR_INVALID_ATTR);
	if (dacsi.handler_count == DACSI_HANDLERS)
		return dacsi_leave(DACS_ERR_NO_RESOURCE);
	dacsi.handlers[dacsi.handler_count++] = handler;
	return dacsi_leave(DACS_SUCCESS);
}

/* Copies the error out, so that a handle which is no error at all is noticed. */
static DACS_ERR_T find_handled(dacs_error_t error, struct dacsi_error **found)
{
	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	for (*found = in_handlers; *found && *found != error; *found = (*found)->next)
		;
	dacsi_unlock();
	return *found ? DACS_SUCCESS : DACS_ERR_INVALID_HANDLE;
}

DACS_ERR_T dacs_error_num(dacs_error_t error)
{
	struct dacsi_error *e;
	DACS_ERR_T rc = find_handled(error, &e);

	return rc == DACS_SUCCESS ? e->num : rc;
}

/* The other four differ in the field only. */
#define ERROR_FIELD(name, type, field)                                                             \
	DACS_ERR_T dacs_error_##name(dacs_error_t error, type *out)                                \
	{                                                                                          \
		struct dacsi_error *e;                                                             \
		DACS_ERR_T rc = find_handled(error, &e);                                           \
                                                                                                   \
		if (rc != DACS_SUCCESS)                                                            \
			return rc;                                                                 \
		if (!out)                                                                          \
			return DACS_ERR_INVALID_ADDR;                                              \
		*out = e->field;                                                                   \
		return DACS_SUCCESS;                                                               \
	}

ERROR_FIELD(code, uint32_t, code)
ERROR_FIELD(str, const char *, text)
ERROR_FIELD(de, de_id_t, de)
ERROR_FIELD(pid, dacs_process_id_t, pid)
