/* SPDX-License-Identifier: BSD-3-Clause */
/* How a control connection begins, with the handshake, moves to another socket, and is closed. */
#include "slmpm/connect/bootstrap.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "slmpm/connect/listener.h"
#include "slmpm/connect/secondary.h"
#include "slmpm/connect/control.h"
#include "slmpm/net/net.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* A peer of this machine, by the kernel's word: what its hello says later is its own. */
static void know_process(struct control *c)
{
	struct endpoint *ep = c->ep;
	struct fabric_link *port = ep->link.port;
	int pidfd = c->process.fd;
	socklen_t size = sizeof(pidfd);

	if (!ep->rooms->process && !c->pair)
		ep->life->pid = connect_pid(c->socket.fd);
	endpoint_name(ep);
	/* Before Linux 6.5 by its number: the nonce that returns later shows that it was the peer's
	 * still. */
	if (pidfd < 0 && getsockopt(c->socket.fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) != 0)
		pidfd = ep->life->pid > 0 ? (int)syscall(SYS_pidfd_open, ep->life->pid, 0) : -1;
	c->process.fd = pidfd;
	port->process = pidfd;
	port->pid = ep->life->pid;
	port->active = c->pair ? c->patient : !ep->rooms->process && !ep->rooms->listener;
}

/* FD and PIDFD are closed when there is no memory for it. */
static struct control *new_control(struct endpoint *ep, int fd, int pidfd)
{
	struct control *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		if (pidfd >= 0)
			close(pidfd);
		return NULL;
	}
	ep->rooms->control = c;
	list_init(&c->node);
	list_init(&c->silence.node);
	c->ep = ep;
	c->socket = (struct watch){
		.ready = bootstrap_socket_ready, .fd = fd, .owner = ep, .bell = true};
	c->process = (struct watch){.ready = bootstrap_process_ended, .fd = pidfd, .owner = ep};
	c->rounds.port = ep->link.port;
	c->deadline = UINT64_MAX;
	c->left = -1;
	return c;
}

static int bootstrap_own_start(struct endpoint *ep)
{
	struct control *c = ep->rooms->control;
	int rc = watch_add(ep->ctx, &c->socket);

	if (rc == 0 && c->process.fd >= 0)
		rc = watch_add(ep->ctx, &c->process);
	if (rc < 0)
		return rc;
	list_append(&ep->ctx->deadlines, &c->node);
	context_changed(ep->ctx); /* a sleeper does not know of this deadline */
	ep->link.port->bell = c->socket.fd;
	rc = handshake_begin(c);
	/* It may have ended by now: reported like every other end. */
	return rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
}

int bootstrap_start(struct endpoint *ep, int fd, int pidfd)
{
	struct control *c = new_control(ep, fd, pidfd);

	if (!c)
		return -ENOMEM;
	know_process(c);
	return bootstrap_own_start(ep);
}

int bootstrap_start_stream(struct endpoint *ep, int fd, int pidfd, bool active,
			   const struct secret *secret)
{
	struct control *c = new_control(ep, fd, pidfd);

	if (!c)
		return -ENOMEM;
	c->stream = calloc(1, sizeof(*c->stream));
	if (!c->stream)
		return -ENOMEM;
	c->stream->secret = *secret;
	c->stream->active = ep->link.port->active = active;
	net_peer(fd, ep->life->remote);
	ep->life->beside = net_is_here(fd);
	endpoint_name(ep);
	return bootstrap_own_start(ep);
}

int bootstrap_start_pair(struct endpoint *ep, int fd, int pidfd, int pid, bool active)
{
	struct control *c = new_control(ep, fd, pidfd);

	if (!c)
		return -ENOMEM;
	c->pair = true;
	c->patient = active;
	ep->life->pid = pid;
	know_process(c);
	return bootstrap_own_start(ep);
}

static void forget_left(struct control *c)
{
	if (c->left >= 0) {
		control_leave(c->left);
		close(c->left);
	}
	c->left = -1;
}

/* The stream stays open until the other side has come, too: its end would be this side's. */
int bootstrap_move(struct endpoint *ep, int fd)
{
	struct control *c = ep->rooms->control;
	int rc = endpoint_over(ep, NULL);

	if (rc < 0) {
		close(fd);
		return rc;
	}
	list_remove(&c->node);
	watch_remove(ep->ctx, &c->socket);
	c->left = c->socket.fd;
	if (!c->stream->active)
		forget_left(c);
	free(c->stream);
	c->stream = NULL;
	c->socket.fd = fd;
	c->step = WAIT_HELLO;
	c->rounds = (struct rounds){.port = ep->link.port};
	c->made = 0;
	ep->life->remote[0] = 0;
	know_process(c);
	return bootstrap_own_start(ep);
}

void bootstrap_moved(struct endpoint *ep)
{
	forget_left(ep->rooms->control);
}

/* ---- closing ------------------------------------------------------------------------------ */

void bootstrap_stop(struct endpoint *ep, const char *reason)
{
	struct control *c = ep->rooms->control;

	if (!c)
		return;
	list_remove(&c->node);
	if (reason)
		control_bye(c, ep->life->error, reason);
	if (c->stream && c->socket.fd >= 0)
		control_leave(c->socket.fd);
	forget_left(c);
	if (ep->link.port)
		secondary_left(ep, ep->link.port->process);
	watch_close(ep->ctx, &c->socket);
}

void bootstrap_free(struct endpoint *ep)
{
	struct control *c = ep->rooms->control;

	if (!c)
		return;
	bootstrap_stop(ep, NULL);
	list_remove(&c->silence.node);
	if (ep->link.port)
		secondary_left(ep, bootstrap_all_is_here(c) ? FABRIC_ENDED : -1);
	watch_close(ep->ctx, &c->process);
	free(c->stream);
	free(c);
	ep->rooms->control = NULL;
}

void bootstrap_reclaim(struct endpoint *ep)
{
	if (ep->rooms->process)
		bootstrap_stop(ep, NULL);
	else
		bootstrap_free(ep);
}

void bootstrap_forked(struct endpoint *ep)
{
	const struct control *c = ep->rooms->control;
	const int fds[] = {c ? c->socket.fd : -1, c ? c->process.fd : -1, c ? c->left : -1};

	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* ---- what its socket says -------------------------------------------------------------------- */

bool bootstrap_host(const struct endpoint *ep, bool other, char host[NET_NAME])
{
	const struct control *c = ep->rooms->control;
	struct sockaddr_storage address;

	if (!c || !c->stream || !net_end(c->socket.fd, other, &address))
		return false;
	net_host((const struct sockaddr *)&address, host);
	return true;
}

bool bootstrap_is_here(const struct endpoint *ep)
{
	const struct control *c = ep->rooms->control;

	return c && (!c->stream || net_is_here(c->socket.fd));
}

int32_t bootstrap_said_pid(const struct endpoint *ep)
{
	const struct control_stream *s = ep->rooms->control ? ep->rooms->control->stream : NULL;

	return s ? (int32_t)LITTLE_32((uint32_t)s->theirs.pid) : ep->life->pid;
}

void bootstrap_mask(const struct endpoint *ep, bool own, uint32_t number, uint32_t rank,
		    unsigned char key[SECRET_SIZE])
{
	const struct control_stream *s = ep->rooms->control->stream;
	unsigned char mask[SIPHASH_SIZE];
	uint64_t of[4];

	if (!s)
		return;
	/* The nonces of its hellos: never the same again. */
	of[0] = s->active ? s->ours.nonce : s->theirs.nonce;
	of[1] = s->active ? s->theirs.nonce : s->ours.nonce;
	of[2] = LITTLE_64(UINT64_C(0x70756f7267) << 1 | (own == s->active)); /* "group" */
	of[3] = LITTLE_64((uint64_t)number << 32 | rank);
	siphash(s->secret.bytes, of, sizeof(of), mask);
	for (int i = 0; i < SECRET_SIZE; i++)
		key[i] ^= mask[i];
}
