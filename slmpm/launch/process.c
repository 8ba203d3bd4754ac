/* SPDX-License-Identifier: BSD-3-Clause */
/* Accelerator processes: signals to them, and how they ended. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slmpm/launch/arrive.h"
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/launch/launch.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

/* By the descriptor, not the number: that may be another process's by now. */
static int send_signal(const struct process *p, int signal)
{
	if (p->pidfd >= 0)
		return (int)syscall(SYS_pidfd_send_signal, p->pidfd, signal, NULL, 0);
	return kill(p->pid, signal);
}

static int wait_id(const struct process *p, siginfo_t *info, int options)
{
	int rc = -1;

	if (p->pidfd >= 0)
		rc = waitid(P_PIDFD, (id_t)p->pidfd, info, options);
	if (p->pidfd < 0 || (rc != 0 && errno == EINVAL)) /* a kernel before 5.4 */
		rc = waitid(P_PID, (id_t)p->pid, info, options);
	return rc;
}

static int status_word(const struct process *p)
{
	if (p->end.si_code == CLD_EXITED)
		return p->end.si_status << 8;
	return p->end.si_status | (p->end.si_code == CLD_DUMPED ? 0x80 : 0);
}

/* Has it ended? */
static bool process_inspect(struct process *p, int options)
{
	siginfo_t info = {0};

	if (p->reaped)
		return true;
	if (wait_id(p, &info, WEXITED | options) != 0) {
		p->reaped = p->unknown = true; /* by the application's own waitpid */
		return true;
	}
	if (!info.si_pid)
		return false;
	p->end = info;
	p->reaped = !(options & WNOWAIT);
	if (p->reaped)
		job_ended(p->pid, status_word(p));
	return true;
}

bool process_describe(struct endpoint *ep, char *text, size_t size)
{
	struct process *p = ep->rooms->process;

	if (!process_inspect(p, WNOHANG | WNOWAIT)) {
		snprintf(text, size, "it left the connection");
		return false;
	}
	if (p->unknown) {
		snprintf(text, size, "its process ended, and somebody else waited for it");
		return false;
	}
	if (p->end.si_code == CLD_EXITED) {
		snprintf(text, size, "it exited with status %d", p->end.si_status);
		return p->end.si_status == 0;
	}
	snprintf(text, size, "it was killed by signal %d (%s)", p->end.si_status,
		 strsignal(p->end.si_status));
	return false;
}

struct joining {
	struct endpoint *ep;
	slmpm_peer peer; /* another thread may be first to reap it */
};

static bool process_own_has_ended(void *arg)
{
	struct joining *j = arg;

	return endpoint_of(j->peer) != j->ep || process_inspect(j->ep->rooms->process, WNOHANG);
}

/* Others go on meanwhile: peers of this context, and threads in it. */
static int await_end(struct endpoint *ep, slmpm_peer peer, uint64_t deadline, int timeout_ms)
{
	struct joining j = {ep, peer};
	/* Without a pidfd (a kernel before 5.3) look again soon. With one, now and then: the end of
	 * a traced process is its tracer's first, and comes to us without another word. */
	int rc, longest = ep->rooms->process->pidfd < 0 ? 2 : 100;

	do
		rc = wait_until(ep->ctx, process_own_has_ended, &j,
				clock_ms(clock_now(), deadline, longest));
	while (rc < 0 && clock_now() < deadline);
	if (endpoint_of(peer) != ep)
		return endpoint_bad_handle(peer);
	return rc < 0 ? late_error(ep->ctx, ep, timeout_ms, "%s still runs", ep->life->name) : 0;
}

/* Not before it has connected, or ended without: it would find nobody there and fail. */
static int close_first(struct endpoint *ep, slmpm_peer peer, uint64_t deadline, int timeout_ms)
{
	int rc;

	(void)wait_inspect(ep->ctx);
	rc = wait_connected(ep, clock_ms(clock_now(), deadline, -1));
	if (endpoint_of(peer) == ep) {
		if (rc < 0 && !process_inspect(ep->rooms->process, WNOHANG | WNOWAIT))
			return late_error(ep->ctx, ep, timeout_ms,
					  "%s still runs and has not connected", ep->life->name);
		(void)parts.close(ep, clock_ms(clock_now(), deadline, -1));
	}
	return endpoint_of(peer) == ep ? 0 : endpoint_bad_handle(peer);
}

static int process_conclude(struct endpoint *ep, int *status)
{
	int word = status_word(ep->rooms->process), rc = 0;

	if (ep->rooms->process->unknown)
		rc = error_set(SLMPM_ESTATE,
			       "how %s ended is not known: somebody else waited for it",
			       ep->life->name);
	else if (status)
		*status = word;
	else
		rc = WIFEXITED(word) ? WEXITSTATUS(word) : 128 + WTERMSIG(word);
	endpoint_free(ep);
	return rc;
}

/* Its context is locked; NULL: nothing is, the detail is set and *RC. */
static struct endpoint *process_lock(slmpm_peer peer, int *rc)
{
	struct endpoint *ep = endpoint_of(peer);

	if (!ep || !endpoint_lock(ep, peer)) {
		*rc = endpoint_bad_handle(peer);
		return NULL;
	}
	if (ep->rooms->process)
		return ep;
	*rc = error_set(SLMPM_ESTATE, "%s was not started by slmpm_spawn", ep->life->name);
	context_unlock(ep->ctx);
	return NULL;
}

int slmpm_join(slmpm_peer peer, int *status, int timeout_ms)
{
	uint64_t deadline = clock_deadline(timeout_ms);
	struct context *ctx;
	int rc = 0;
	struct endpoint *ep = process_lock(peer, &rc);

	if (!ep)
		return rc;
	ctx = ep->ctx;
	rc = context_forbids(ctx, "slmpm_join");
	if (rc == 0)
		rc = close_first(ep, peer, deadline, timeout_ms);
	if (rc == 0)
		rc = await_end(ep, peer, deadline, timeout_ms);
	if (rc == 0)
		rc = process_conclude(ep, status);
	context_unlock(ctx);
	return rc;
}

int slmpm_kill(slmpm_peer peer, int grace_ms)
{
	uint64_t until = clock_now() + (uint64_t)grace_ms * 1000000;
	int rc = 0;
	struct endpoint *ep = process_lock(peer, &rc);
	struct process *p = ep ? ep->rooms->process : NULL;

	if (!ep)
		return rc;
	if (grace_ms < 0)
		rc = error_set(SLMPM_EINVAL, "slmpm_kill: a grace of %d ms", grace_ms);
	else if (process_inspect(p, WNOHANG | WNOWAIT))
		rc = 0;
	else if (send_signal(p, grace_ms ? SIGTERM : SIGKILL) != 0)
		rc = error_system(-errno, ep->life->name);
	else if (grace_ms && (!p->kill_at || until < p->kill_at)) {
		p->kill_at = until;
		ep->ctx->kills = true;
		context_changed(ep->ctx); /* who sleeps has a nearer end now */
	}
	context_unlock(ep->ctx);
	return rc;
}

uint64_t process_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (!ctx->kills)
		return next;
	for (uint32_t i = 0; i < ctx->count; i++) {
		struct process *p = ctx->endpoints[i]->rooms->process;

		if (!p || !p->kill_at)
			continue;
		if (process_inspect(p, WNOHANG | WNOWAIT)) {
			p->kill_at = 0; /* it ended by itself */
		} else if (now >= p->kill_at) {
			(void)send_signal(p, SIGKILL);
			p->kill_at = 0;
		} else if (p->kill_at < next) {
			next = p->kill_at;
		}
	}
	ctx->kills = next != UINT64_MAX;
	return next;
}

static void process_release(struct process *p)
{
	if (p->here)
		cpus_started(-1);
	p->here = false;
	if (p->death_pipe >= 0)
		close(p->death_pipe);
}

void process_free(struct endpoint *ep)
{
	struct process *p = ep->rooms->process;

	if (!p)
		return;
	process_release(p);
	arrive_free(p->arrive);
	free(p);
	ep->rooms->process = NULL;
}

void process_forked(struct endpoint *ep)
{
	struct process *p = ep->rooms->process;

	if (!p)
		return;
	process_release(p);
	if (p->arrive)
		arrive_forked(p->arrive);
}
