/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a control connection: it starts with the handshake, carries doorbells (one byte),
 * offers of loan areas and the reason of a refusal, and its end is the peer's.
 */
#include "slmpm/bootstrap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "slmpm/area.h"
#include "slmpm/error.h"
#include "slmpm/handshake.h"
#include "slmpm/memory.h"
#include "slmpm/process.h"
#include "slmpm/progress.h"
#include "slmpm/wait.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define READS_AT_ONCE  256
#define READ_AHEAD     4096 /* more than a socket holds: what was sent before is among them */
#define PIDFD_GRACE_MS 20   /* between the socket's end and the process's */

/* ---- the start ------------------------------------------------------------------------------ */

static int take_pidfd(struct control *c, int pidfd)
{
	socklen_t size = sizeof(pidfd);

	if (pidfd < 0 && getsockopt(c->socket.fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) != 0) {
		struct ucred peer;

		/* Before Linux 6.5. The nonce that returns afterwards shows that the process with
		 * this number still was the peer. */
		size = sizeof(peer);
		pidfd = -1;
		if (getsockopt(c->socket.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
		    peer.pid > 0)
			pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	}
	c->process.fd = pidfd;
	return pidfd;
}

int bootstrap_start(struct endpoint *ep, int fd, int pidfd)
{
	struct control *c = calloc(1, sizeof(*c));
	int rc;

	if (!c) {
		close(fd);
		if (pidfd >= 0)
			close(pidfd);
		return -ENOMEM;
	}
	ep->control = c;
	list_init(&c->node);
	c->ep = ep;
	c->socket = (struct watch){WATCH_SOCKET, fd, ep};
	c->process = (struct watch){WATCH_PROCESS, -1, ep};
	c->deadline = UINT64_MAX;
	(void)take_pidfd(c, pidfd);
	rc = watch_add(ep->ctx, &c->socket);
	if (rc == 0 && c->process.fd >= 0)
		rc = watch_add(ep->ctx, &c->process);
	if (rc < 0)
		return rc;
	list_append(&ep->ctx->deadlines, &c->node);
	wait_changed(ep->ctx); /* a sleeper does not know of this deadline */
	ep->link.port->bell = fd;
	ep->link.port->process = c->process.fd;
	ep->link.port->pid = ep->pid; /* the kernel's word: what its hello says later is its own */
	rc = handshake_begin(c);
	/* It may have ended by now: told like every other end, when somebody looks. */
	return rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
}

/* ---- the end -------------------------------------------------------------------------------- */

void bootstrap_stop(struct endpoint *ep, const char *reason)
{
	struct control *c = ep->control;

	if (!c)
		return;
	list_remove(&c->node);
	if (reason && c->socket.fd >= 0)
		control_refuse(c->socket.fd, ep->error, reason);
	if (ep->link.port)
		ep->link.port->bell = -1;
	watch_close(ep->ctx, &c->socket);
}

void bootstrap_free(struct endpoint *ep)
{
	struct control *c = ep->control;

	if (!c)
		return;
	bootstrap_stop(ep, NULL);
	if (ep->link.port)
		ep->link.port->process = -1;
	watch_close(ep->ctx, &c->process);
	free(c);
	ep->control = NULL;
}

void bootstrap_forked(struct endpoint *ep)
{
	struct control *c = ep->control;

	if (c && c->socket.fd >= 0)
		close(c->socket.fd);
	if (c && c->process.fd >= 0)
		close(c->process.fd);
}

/* GONE: its process has ended; else it has only left. */
static void ended(struct endpoint *ep, bool gone)
{
	char why[96];
	bool normal = false;

	snprintf(why, sizeof(why), gone ? "its process ended" : "it left the connection");
	list_remove(&ep->control->node);
	if (ep->process)
		normal = process_describe(ep, why, sizeof(why));
	if (ep->state == SLMPM_PEER_CONNECTING) {
		char text[128];

		snprintf(text, sizeof(text), "%.90s before it connected", why);
		endpoint_refused(ep, gone ? SLMPM_EDEAD : SLMPM_ECLOSED, text);
		return;
	}
	progress_drain(ep);
	if (ep->state != SLMPM_PEER_UP)
		return;
	if (ep->end_of_stream) /* how its process ended is no concern of the connection's */
		endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, "it closed the connection");
	else if (normal)
		endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, why);
	else
		endpoint_lost(ep, why);
}

static int take_bye(struct control *c, const struct received *r);

/*
 * The process of a socket that hung up usually ends within a millisecond, and its status then tells
 * more. Nobody waits for that: its descriptor or a deadline comes back to it.
 */
static void hung_up(struct endpoint *ep)
{
	struct control *c = ep->control;

	watch_close(ep->ctx, &c->socket);
	ep->link.port->bell = -1;
	if (c->said_bye) {
		struct received r = {.packet.bye = c->bye, .length = sizeof(c->bye)};

		(void)take_bye(c, &r);
		return;
	}
	progress_drain(ep); /* an orderly end lies in the ring */
	if (ep->end_of_stream || c->process.fd < 0) {
		ended(ep, c->process.fd < 0);
		return;
	}
	c->step = HUNG_UP;
	c->deadline = wait_now() + PIDFD_GRACE_MS * UINT64_C(1000000);
	list_remove(&c->node);
	list_append(&ep->ctx->deadlines, &c->node);
}

void bootstrap_process_ended(struct endpoint *ep)
{
	struct control *c = ep->control;

	watch_remove(ep->ctx, &c->process); /* it stays readable for ever */
	/* What it said last still lies in the socket: perhaps the end of the handshake. */
	if (ep->state == SLMPM_PEER_CONNECTING && c->step != HUNG_UP)
		bootstrap_socket_ready(ep);
	if (ep->state == SLMPM_PEER_CONNECTING || ep->state == SLMPM_PEER_UP)
		ended(ep, true);
}

uint64_t bootstrap_deadlines(struct context *ctx, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	LIST_EACH(at, &ctx->deadlines) {
		struct control *c = LIST_ENTRY(at, struct control, node);

		if (now_ns < c->deadline) {
			next = c->deadline < next ? c->deadline : next;
			continue;
		}
		if (c->step == HUNG_UP)
			ended(c->ep, false);
		else
			endpoint_refused(c->ep, SLMPM_ETIMEOUT, "handshake not finished in time");
		next = 0;
	}
	return next;
}

bool bootstrap_hung_up(const struct context *ctx)
{
	LIST_EACH(at, &ctx->deadlines)
		if (LIST_ENTRY(at, struct control, node)->step == HUNG_UP)
			return true;
	return false;
}

/* ---- what it carries ------------------------------------------------------------------------ */

int bootstrap_offer_area(struct endpoint *ep, uint32_t id, uint64_t size, int fd)
{
	struct wire_area area = {.area = LITTLE_32(id), .size = LITTLE_64(size)};

	return control_send(ep->control, &area, sizeof(area), WIRE_AREA, fd);
}

int bootstrap_offer_region(struct endpoint *ep, struct wire_grant *grant, int fd)
{
	return control_send(ep->control, grant, sizeof(*grant), WIRE_GRANT, fd);
}

static bool is_grant(const struct received *r)
{
	return r->length >= sizeof(r->packet.head) && LITTLE_32(r->packet.head.type) == WIRE_GRANT;
}

/* LOST: its descriptor, at the limit of them. */
static int take_grant(struct control *c, struct received *r, bool lost)
{
	int rc = c->step == CONNECTED ? memory_granted(c->ep, r, lost) : -SLMPM_EPROTO;

	if (rc == -SLMPM_ENOMEM)
		endpoint_end(c->ep, SLMPM_PEER_DEAD, SLMPM_ENOMEM, "no memory for its regions");
	else if (rc < 0)
		endpoint_poison(c->ep, "granted region");
	return rc < 0 ? -EPROTO : 0;
}

static int take_area(struct control *c, struct received *r)
{
	const struct wire_area *area = &r->packet.area;

	if (c->step != CONNECTED || r->length != sizeof(*area) || r->fd_count != 1) {
		endpoint_poison(c->ep, "offer of an area");
		return -EPROTO;
	}
	if (area_offered(c->ep, LITTLE_32(area->area), LITTLE_64(area->size), r->fds[0]) < 0) {
		endpoint_poison(c->ep, "offered area");
		return -EPROTO;
	}
	return 0;
}

/* Why it refuses us; anything else than these is its way of breaking the protocol. */
static int refusal(uint32_t error)
{
	switch (error) {
	case SLMPM_EVERSION:
	case SLMPM_ENOFILE:
	case SLMPM_ENOMEM:
	case SLMPM_EFBIG:
	case SLMPM_EACCES:
	case SLMPM_ELIMIT:
	case SLMPM_ETIMEOUT: return (int)error;
	default: return SLMPM_EPROTO;
	}
}

static int take_bye(struct control *c, const struct received *r)
{
	const struct wire_bye *bye = &r->packet.bye;
	char said[sizeof(bye->reason)], why[160];

	if (r->length != sizeof(*bye) || r->fd_count) {
		endpoint_poison(c->ep, "control packet");
		return -EPROTO;
	}
	control_text(said, sizeof(said), bye->reason, sizeof(bye->reason));
	snprintf(why, sizeof(why), "it says: %s", said);
	if (c->step != CONNECTED) {
		endpoint_refused(c->ep, refusal(LITTLE_32(bye->error)), why);
	} else {
		progress_drain(c->ep); /* what it had sent before can still be received */
		endpoint_lost(c->ep, why);
	}
	return -EPROTO;
}

static int handle(struct control *c, struct received *r)
{
	if (r->length < sizeof(r->packet.head) || LITTLE_32(r->packet.head.length) != r->length) {
		endpoint_poison(c->ep, "control packet");
		return -EPROTO;
	}
	switch (LITTLE_32(r->packet.head.type)) {
	case WIRE_AREA: return take_area(c, r);
	case WIRE_GRANT: return take_grant(c, r, false);
	case WIRE_BYE: return take_bye(c, r);
	default: return handshake_packet(c, r);
	}
}

void bootstrap_socket_ready(struct endpoint *ep)
{
	struct control *c = ep->control;
	struct received r;

	for (int i = 0; i < READS_AT_ONCE && c && c->socket.fd >= 0; i++) {
		int rc = control_receive(c, &r);

		if (rc == 0)
			return;
		if (rc == 2)
			continue;
		if (rc == -EPIPE) {
			hung_up(ep);
			return;
		}
		if (rc == -EMFILE && c->step == CONNECTED && is_grant(&r)) {
			if (take_grant(c, &r, true) < 0)
				return;
			continue;
		}
		if (rc == -EMFILE) {
			endpoint_refused(
				ep, SLMPM_ENOFILE,
				"its memory could not be received: out of file descriptors");
			return;
		}
		if (r.length == 1 && !r.fd_count) {
			ep->stats->wakeups++;
			continue; /* a doorbell: that we are awake is all it wanted */
		}
		rc = handle(c, &r);
		control_drop(&r);
		if ((rc == -EPIPE || rc == -ECONNRESET) && ep->state == SLMPM_PEER_CONNECTING)
			continue; /* it has left, which is what we read next */
		if (rc < 0 && ep->state == SLMPM_PEER_CONNECTING) {
			int error = error_system(rc, "handshake");

			endpoint_refused(ep, -error, slmpm_error_detail());
		}
		if (rc < 0)
			return;
	}
}

/* What breaks the rules ends the endpoint later, at the top of progress. */
static void read_ahead(struct endpoint *ep, struct received *r, bool lost)
{
	const struct wire_area *area = &r->packet.area;

	if (r->length < sizeof(r->packet.head) || LITTLE_32(r->packet.head.length) != r->length)
		return;
	if (is_grant(r)) {
		if (memory_granted(ep, r, lost) < 0) {
			ep->broken = "granted region";
			ep->direct = false;
		}
	} else if (r->length == sizeof(*area) && r->fd_count == 1 &&
		   LITTLE_32(area->head.type) == WIRE_AREA) {
		(void)area_offered(ep, LITTLE_32(area->area), LITTLE_64(area->size), r->fds[0]);
	} else if (r->length == sizeof(r->packet.bye) && !r->fd_count &&
		   LITTLE_32(r->packet.head.type) == WIRE_BYE) {
		ep->control->said_bye = true; /* the end follows, and is where it is looked at */
		ep->control->bye = r->packet.bye;
	}
}

/*
 * In the middle of a packet: only what it needs, the areas and regions offered before it. An end
 * that shows up meanwhile is seen again at the next look.
 */
void bootstrap_read_ahead(struct endpoint *ep)
{
	struct control *c = ep->control;
	struct received r;

	for (int i = 0; i < READ_AHEAD && c->socket.fd >= 0; i++) {
		int rc = control_receive(c, &r);

		if (rc == 2)
			continue;
		if (rc != 1 && rc != -EMFILE)
			return;
		read_ahead(ep, &r, rc == -EMFILE);
		control_drop(&r);
		if (r.length == 1) /* a bell that another thread sleeps for */
			wait_changed(ep->ctx);
	}
}
