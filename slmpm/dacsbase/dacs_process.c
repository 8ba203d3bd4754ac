/* SPDX-License-Identifier: BSD-3-Clause */
/* Children that run: finding them, how they ended, ending them. */
#include "slmpm/dacsbase/dacs_start.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define ENDING_NS INT64_C(200000000) /* from the end of a process's channel to its own */

/* ---- finding -------------------------------------------------------------------------------- */

struct dacsi_process *dacsi_process_on(de_id_t de)
{
	struct dacsi_process *p = dacsi.children;

	while (p && p->de != de)
		p = p->next;
	return p;
}

static DACS_ERR_T find_child(de_id_t de, dacs_process_id_t pid, struct dacsi_process **process)
{
	DACS_ERR_T rc = dacsi_element_check(de);

	if (rc != DACS_SUCCESS)
		return rc;
	*process = dacsi_process_on(de);
	return *process && (*process)->pid == pid ? DACS_SUCCESS : DACS_ERR_INVALID_PID;
}

DACS_ERR_T dacsi_partner(de_id_t de, dacs_process_id_t pid, struct dacsi_process **process)
{
	if (de == DACS_DE_PARENT) {
		*process = dacsi.parent;
		if (!dacsi.parent)
			return DACS_ERR_INVALID_TARGET;
		return pid == DACS_PID_PARENT ? DACS_SUCCESS : DACS_ERR_INVALID_PID;
	}
	return find_child(de, pid, process);
}

struct dacsi_process *dacsi_process_new(de_id_t de)
{
	struct dacsi_process *p = calloc(1, sizeof(*p));

	if (p)
		*p = (struct dacsi_process){
			.de = de, .credits = DACSI_MAILBOX_SLOTS, .cwd_lock = -1};
	return p;
}

int dacsi_process_state(const struct dacsi_process *process)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	int rc = slmpm_peer_query(process->peer, &info);

	return rc < 0 ? rc : (int)info.state;
}

DACS_ERR_T dacsi_process_channel(const struct dacsi_process *process)
{
	int state = dacsi_process_state(process);

	switch (state) {
	case SLMPM_PEER_CONNECTING:
	case SLMPM_PEER_UP: return DACS_SUCCESS;
	case SLMPM_PEER_POISONED: return DACS_ERR_INTERNAL;
	default: return state < 0 ? dacsi_code(state) : DACS_ERR_DE_TERM;
	}
}

/* ---- how it ended --------------------------------------------------------------------------- */

static void unwatch(struct dacsi_process *p)
{
	dacsi.suspects -= p->suspicious;
	p->suspicious = false;
}

/* Without reaping: its messages can be read until dacs_de_wait or _test has reported it. */
static bool child_ended(struct dacsi_process *p)
{
	siginfo_t info = {0};

	if (p->ended)
		return true;
	if (waitid(P_PID, (id_t)p->os_pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
		if (errno != ECHILD)
			return false;
		info.si_pid = p->os_pid; /* the application reaped it: nothing is known */
		info.si_code = CLD_EXITED;
	}
	if (!info.si_pid)
		return false;
	unwatch(p);
	p->ended = true;
	p->code = info.si_status;
	if (info.si_code != CLD_EXITED)
		p->outcome = p->killed ? DACS_STS_PROC_KILLED : DACS_STS_PROC_ABORTED;
	else
		p->outcome = p->code ? DACS_STS_PROC_FAILED : DACS_STS_PROC_FINISHED;
	if (p->outcome == DACS_STS_PROC_ABORTED || p->outcome == DACS_STS_PROC_FAILED)
		dacsi_error_add(p);
	return true;
}

bool dacsi_process_runs(de_id_t de)
{
	struct dacsi_process *p = dacsi_process_on(de);

	return p && !child_ended(p);
}

/* Has the next watch check those that events concern. */
static void take_events(void)
{
	struct slmpm_event event = {.size = sizeof(event)};

	while (slmpm_next_event(dacsi.ctx, &event, 0) > 0) {
		if (event.type != SLMPM_EVENT_CLOSED && event.type != SLMPM_EVENT_DEAD &&
		    event.type != SLMPM_EVENT_POISONED)
			continue;
		for (struct dacsi_process *p = dacsi.children; p; p = p->next)
			if (p->peer.id == event.peer.id && !p->ended && !p->suspicious) {
				dacsi.suspects++;
				p->suspicious = true;
			}
	}
}

bool dacsi_process_watch(bool closely)
{
	bool news = false;

	if (closely)
		take_events();
	for (struct dacsi_process *p = dacsi.suspects ? dacsi.children : NULL; p; p = p->next)
		if (p->suspicious)
			news |= child_ended(p);
	return news;
}

/* Whether P has ended, waited for until DEADLINE: the system tells so within a moment. */
static bool ends_until(struct dacsi_process *p, int64_t deadline)
{
	while (!child_ended(p) && dacsi_now() < deadline)
		(void)poll(NULL, 0, 1);
	return p->ended;
}

/* Its channel has ended: the system may take a moment to report how. Once, in case it only left. */
static void await_child_end(struct dacsi_process *p)
{
	int state = dacsi_process_state(p);

	if (state < 0 || state == SLMPM_PEER_CONNECTING || state == SLMPM_PEER_UP ||
	    child_ended(p) || state != SLMPM_PEER_DEAD || p->awaited)
		return;
	p->awaited = true;
	(void)ends_until(p, dacsi_now() + ENDING_NS);
}

void dacsi_process_term(void)
{
	for (struct dacsi_process *p = dacsi.children; p; p = p->next)
		await_child_end(p);
}

void dacsi_process_reap(struct dacsi_process *process)
{
	struct dacsi_process **link = &dacsi.children;

	(void)slmpm_progress(dacsi.ctx); /* its last words: that it has left a group, perhaps */
	while (*link != process)
		link = &(*link)->next;
	*link = process->next;
	dacsi_parts.fail(process, DACS_ERR_DE_TERM);
	unwatch(process);
	(void)slmpm_join(process->peer, NULL, dacsi.set.kill_ms + DACSI_EXIT_MS);
	dacsi_parts.gone(process);
	if (process->cwd)
		dacsi_cwd_remove(process->cwd, process->cwd_lock, dacsi.set.keep_cwd);
	free(process);
}

/* ---- asking --------------------------------------------------------------------------------- */

/* Both counts are of an element that this process holds. */
static DACS_ERR_T count_processes(de_id_t de, uint32_t *num, bool running)
{
	DACS_ERR_T rc = dacsi_enter_with(num);

	if (rc != DACS_SUCCESS)
		return rc;
	rc = dacsi_element_check(de);
	if (rc == DACS_SUCCESS)
		*num = running ? dacsi_process_runs(de) : MAX_PROCESSES_PER_DE;
	return dacsi_leave(rc);
}

DACS_ERR_T dacs_num_processes_supported(de_id_t de, uint32_t *num_processes)
{
	return count_processes(de, num_processes, false);
}

DACS_ERR_T dacs_num_processes_running(de_id_t de, uint32_t *num_processes)
{
	return count_processes(de, num_processes, true);
}

/* The final status reaps. */
static DACS_ERR_T reap_status(de_id_t de, dacs_process_id_t pid, int32_t *exit_status)
{
	struct dacsi_process *p;
	DACS_ERR_T rc = find_child(de, pid, &p);

	if (rc != DACS_SUCCESS)
		return rc;
	if (!child_ended(p))
		return DACS_STS_PROC_RUNNING;
	rc = p->outcome;
	*exit_status = p->code;
	dacsi_process_reap(p);
	return rc;
}

DACS_ERR_T dacs_de_test(de_id_t de, dacs_process_id_t pid, int32_t *exit_status)
{
	DACS_ERR_T rc = dacsi_enter_with(exit_status);

	if (rc != DACS_SUCCESS)
		return rc;
	(void)dacsi_progress();
	return dacsi_leave(reap_status(de, pid, exit_status));
}

DACS_ERR_T dacs_de_wait(de_id_t de, dacs_process_id_t pid, int32_t *exit_status)
{
	DACS_ERR_T rc = dacsi_enter_with(exit_status);
	struct dacsi_pause pause;

	if (rc != DACS_SUCCESS)
		return rc;
	dacsi_pause_begin(&pause);
	do
		rc = reap_status(de, pid, exit_status);
	while (rc == DACS_STS_PROC_RUNNING && (rc = dacsi_pause(&pause)) == DACS_SUCCESS);
	return dacsi_leave(rc);
}

DACS_ERR_T dacs_de_kill(de_id_t de, dacs_process_id_t pid, DACS_KILL_TYPE_T type)
{
	struct dacsi_process *p;
	DACS_ERR_T rc;

	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	rc = find_child(de, pid, &p);
	if (rc == DACS_SUCCESS && type != DACS_KILL_TYPE_ASYNC)
		rc = DACS_ERR_INVALID_ATTR;
	if (rc != DACS_SUCCESS || child_ended(p))
		return dacsi_leave(rc);
	rc = dacsi_code(slmpm_kill(p->peer, dacsi.set.kill_ms));
	p->killed |= rc == DACS_SUCCESS;
	return dacsi_leave(rc);
}

/* ---- the end of the runtime ----------------------------------------------------------------- */

void dacsi_process_exit_all(void)
{
	int64_t ms = INT64_C(1000000), now = dacsi_now();

	for (struct dacsi_process *p = dacsi.children; p; p = p->next) {
		int left = (int)((now + DACSI_CLOSE_MS * ms - dacsi_now()) / ms);

		dacsi_parts.fail(p, DACS_ERR_NOT_INITIALIZED);
		(void)slmpm_close(p->peer, left > 0 && !p->ended ? left : 0);
	}
	now = dacsi_now();
	for (struct dacsi_process *p = dacsi.children; p; p = p->next)
		if (!ends_until(p, now + DACSI_EXIT_MS * ms))
			(void)slmpm_kill(p->peer, dacsi.set.kill_ms);
	while (dacsi.children)
		dacsi_process_reap(dacsi.children);
}
