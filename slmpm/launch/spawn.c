/* SPDX-License-Identifier: BSD-3-Clause */
/* slmpm_spawn: a process, a control socket to it, and the beginning of their handshake. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slmpm/connect/bootstrap.h"
#include "slmpm/base/error.h"
#include "slmpm/launch/launch.h"
#include "slmpm/base/log.h"
#include "slmpm/base/sized.h"

/* The system does not tell which of the names it did not like. */
static int not_started(int rc, const char *prog, const struct slmpm_spawn_options *o)
{
	char what[224];

	snprintf(what, sizeof(what), "%.90s cannot be started%s%.50s%s%.50s", prog,
		 o->cwd ? " in " : "", o->cwd ? o->cwd : "", o->wrapper ? " by the wrapper " : "",
		 o->wrapper ? o->wrapper : "");
	return error_system(rc, what);
}

/* By the element's host, or else by the setting. */
static int choose_cpus(struct cpus *cpus, uint32_t element, const char *prog)
{
	const struct place *place = NULL;
	char text[192];
	int rc = topology_find(&element, &place);

	if (rc < 0)
		return rc;
	if (place && place->set[PLACE_CPUS])
		rc = cpus_choose(cpus, "cpus", place->set[PLACE_CPUS]);
	else
		rc = cpus_choose(cpus, "SLMPM_CPUS", config_get()->cpus);
	if (rc < 0)
		return rc;
	cpus_describe(cpus, text, sizeof(text));
	log_line(SLMPM_LOG_DEBUG, "%s is started on processors %s", prog, text);
	return 0;
}

/* The detail is set; what is left of a failed one goes with the endpoint. */
static int spawn_start(struct endpoint *ep, const char *prog, char *const argv[],
		       const struct slmpm_spawn_options *o)
{
	struct cpus cpus;
	struct launch l = {.cpus = &cpus, .element = ep->life->element, .name = prog};
	struct process *p;
	int fds[2], rc = choose_cpus(&cpus, ep->life->element, prog);

	if (rc < 0)
		return rc;
	p = ep->rooms->process = calloc(1, sizeof(*p));
	if (!p)
		return error_set(SLMPM_ENOMEM, "for a process");
	p->pidfd = p->death_pipe = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
		return error_system(-errno, "a control socket cannot be made");
	l.fd = fds[1];
	rc = launch_run(&l, p, prog, argv, o);
	close(fds[1]);
	if (rc < 0) {
		close(fds[0]);
		return not_started(rc, prog, o);
	}
	p->here = true;
	cpus_started(1);
	ep->life->pid = p->pid;
	ep->life->related = true;
	rc = bootstrap_start(ep, fds[0], p->pidfd);
	if (rc < 0) {
		(void)kill(p->pid, SIGKILL);
		(void)waitpid(p->pid, NULL, 0);
		return error_system(rc, "the control connection cannot be set up");
	}
	return 0;
}

static int spawn_here(slmpm_peer *peer, struct context *ctx, const char *prog, char *const argv[],
		      const struct slmpm_spawn_options *o, uint32_t element)
{
	struct endpoint *ep;
	int rc;

	context_lock(ctx);
	ep = endpoint_new(ctx, NULL);
	if (ep)
		ep->life->element = element;
	rc = ep ? spawn_start(ep, prog, argv, o) : -SLMPM_ENOMEM;
	if (rc == 0)
		peer->id = handle_id(ep);
	else if (ep)
		endpoint_free(ep);
	context_unlock(ctx);
	return rc;
}

int slmpm_spawn(slmpm_peer *peer, const char *prog, char *const argv[],
		const struct slmpm_spawn_options *given)
{
	const struct place *place = NULL;
	struct slmpm_spawn_options o = {0};
	struct context *ctx;
	uint32_t element;
	int rc = given ? sized_take("slmpm_spawn", &o, given, sizeof(o)) : 0;

	if (rc < 0)
		return rc;
	if (o.flags & ~(SLMPM_SPAWN_DIE_WITH_HOST | SLMPM_SPAWN_CLEAN_ENV | SLMPM_SPAWN_THERE |
			SLMPM_SPAWN_CARRY_CWD))
		return error_set(SLMPM_EINVAL, "slmpm_spawn: unknown flags 0x%x", o.flags);
	if (o.reserved)
		return error_set(SLMPM_EINVAL, "slmpm_spawn: .reserved is %u, not 0", o.reserved);
	if (!peer || !prog || !*prog)
		return error_set(SLMPM_EINVAL, "slmpm_spawn: no %s", peer ? "program" : "peer");
	ctx = context_get(o.ctx, &rc);
	if (!ctx)
		return rc;
	element = o.element;
	rc = element_find(&element, &place);
	if (rc < 0)
		return rc;
	return rc ? remote_spawn(peer, ctx, prog, argv, &o, element, place) :
		    spawn_here(peer, ctx, prog, argv, &o, element);
}
