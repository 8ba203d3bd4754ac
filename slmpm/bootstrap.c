/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake, the same on both sides:
 *
 *     HELLO  version, limits, nonce          each side, at once
 *     NONCE  the peer's nonce, returned after its pidfd was taken
 *     ROUND  0, 1, ...: the fabric's blobs and descriptors, until it says connected
 *
 * Each step has an exact length, a legal state and a deadline. Afterwards the socket carries
 * doorbells (one byte), offers of loan areas and, at the end, the reason of a refusal.
 */
#include "slmpm/bootstrap.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "slmpm/area.h"
#include "slmpm/error.h"
#include "slmpm/log.h"
#include "slmpm/process.h"
#include "slmpm/progress.h"
#include "slmpm/wait.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define READS_AT_ONCE  256
#define PIDFD_GRACE_MS 20 /* between the socket's end and the process's */

enum step { WAIT_HELLO, WAIT_NONCE, WAIT_ROUND, CONNECTED };

struct control {
	struct list node; /* ctx->deadlines while connecting */
	struct endpoint *ep;
	struct watch socket, process;
	enum step step;
	int round;
	uint64_t nonce;
	uint64_t deadline; /* UINT64_MAX until the peer has spoken */
};

union control_packet {
	struct wire_control_head head;
	struct wire_hello hello;
	struct wire_nonce nonce;
	struct wire_round round;
	struct wire_area area;
	struct wire_bye bye;
};

struct received {
	union control_packet packet;
	size_t length;
	int fds[4], fd_count;
};

/* ---- descriptors ---------------------------------------------------------------------------- */

int watch_add(struct context *ctx, struct watch *w)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = w};

	return epoll_ctl(ctx->epoll, EPOLL_CTL_ADD, w->fd, &event) == 0 ? 0 : -errno;
}

void watch_remove(struct context *ctx, struct watch *w)
{
	if (w->fd >= 0)
		(void)epoll_ctl(ctx->epoll, EPOLL_CTL_DEL, w->fd, NULL);
}

static void close_watch(struct context *ctx, struct watch *w)
{
	watch_remove(ctx, w);
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

/* ---- sending -------------------------------------------------------------------------------- */

static int send_packet(struct control *c, void *packet, size_t length, uint32_t type, int fd)
{
	struct wire_control_head *head = packet;
	char space[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {.iov_base = packet, .iov_len = length};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	head->type = LITTLE_32(type);
	head->length = LITTLE_32(length);
	if (fd >= 0) {
		struct cmsghdr *cmsg;

		msg.msg_control = space;
		msg.msg_controllen = sizeof(space);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	}
	if (c->socket.fd < 0)
		return -EPIPE;
	return sendmsg(c->socket.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int send_hello(struct control *c)
{
	const struct config *config = config_get();
	struct endpoint *ep = c->ep;
	struct wire_hello hello = {
		.magic = LITTLE_64(WIRE_MAGIC),
		.major = LITTLE_16(WIRE_MAJOR),
		.minor = LITTLE_16(WIRE_MINOR),
		.byte_order = LITTLE_32(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 2),
		.nonce = LITTLE_64(c->nonce),
		.pid = (int32_t)LITTLE_32((uint32_t)getpid()),
		.element = LITTLE_32(ep->element),
		.packet_max = LITTLE_64(config->packet_max),
		.eager_max = LITTLE_64(config->eager_max),
		.eager_credit = LITTLE_64(config->eager_credit),
		.loan_max = LITTLE_64(config->loan_max),
	};

	snprintf(hello.version, sizeof(hello.version), "%s", slmpm_version());
	snprintf(hello.fabric, sizeof(hello.fabric), "%s", ep->link.fabric->name);
	return send_packet(c, &hello, sizeof(hello), WIRE_HELLO, -1);
}

static int send_round(struct control *c)
{
	struct fabric_blob blob = {0};
	struct wire_round round = {.round = LITTLE_32(c->round)};
	struct endpoint *ep = c->ep;
	int rc = ep->link.fabric->address(ep->link.port, c->round, &blob);

	if (rc < 0)
		return rc;
	round.blob_length = LITTLE_32(blob.length);
	memcpy(round.blob, blob.bytes, blob.length);
	return send_packet(c, &round, sizeof(round), WIRE_ROUND, blob.fd_count ? blob.fds[0] : -1);
}

int bootstrap_offer_area(struct endpoint *ep, uint32_t id, uint64_t size, int fd)
{
	struct wire_area area = {.area = LITTLE_32(id), .size = LITTLE_64(size)};

	return send_packet(ep->control, &area, sizeof(area), WIRE_AREA, fd);
}

void bootstrap_stop(struct endpoint *ep, const char *reason)
{
	struct control *c = ep->control;
	struct wire_bye bye = {0};

	if (!c)
		return;
	list_remove(&c->node);
	if (reason && c->socket.fd >= 0) {
		snprintf(bye.reason, sizeof(bye.reason), "%s", reason);
		(void)send_packet(c, &bye, sizeof(bye), WIRE_BYE, -1);
	}
	if (ep->link.port)
		ep->link.port->bell = -1;
	close_watch(ep->ctx, &c->socket);
}

void bootstrap_free(struct endpoint *ep)
{
	struct control *c = ep->control;

	if (!c)
		return;
	bootstrap_stop(ep, NULL);
	close_watch(ep->ctx, &c->process);
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

/* ---- the steps ------------------------------------------------------------------------------ */

static int refuse(struct endpoint *ep, int error, const char *why)
{
	endpoint_refused(ep, error, why);
	return -EPROTO;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What both sides keep to: the smaller of each pair. */
static int agree(struct endpoint *ep, const struct wire_hello *hello)
{
	const struct config *config = config_get();
	uint64_t packet = lower((uint64_t)config->packet_max, LITTLE_64(hello->packet_max));
	uint64_t eager = lower((uint64_t)config->eager_max, LITTLE_64(hello->eager_max));
	uint64_t credit = lower((uint64_t)config->eager_credit, LITTLE_64(hello->eager_credit));

	if (packet < 256 || credit < 65536)
		return refuse(ep, SLMPM_EPROTO, "impossible limits in its hello");
	ep->packet_max = (uint32_t)packet;
	ep->eager_max = lower(eager, credit / 2);
	ep->credit = credit;
	ep->loan_max = lower((uint64_t)config->loan_max, LITTLE_64(hello->loan_max));
	return 0;
}

static int take_hello(struct control *c, const struct received *r)
{
	const struct wire_hello *hello = &r->packet.hello;
	struct endpoint *ep = c->ep;
	struct wire_nonce nonce = {.nonce = hello->nonce};
	char why[112];
	int rc;

	if (r->length != sizeof(*hello) || r->fd_count)
		return refuse(ep, SLMPM_EPROTO, "its hello has the wrong length");
	if (LITTLE_64(hello->magic) != WIRE_MAGIC)
		return refuse(ep, SLMPM_EPROTO, "it does not speak SLMPM");
	if (LITTLE_16(hello->major) != WIRE_MAJOR || hello->required) {
		snprintf(why, sizeof(why),
			 "it speaks wire version %d.%d (library %.15s), this is %d.%d (%s)",
			 LITTLE_16(hello->major), LITTLE_16(hello->minor), hello->version,
			 WIRE_MAJOR, WIRE_MINOR, slmpm_version());
		return refuse(ep, SLMPM_EVERSION, why);
	}
	if (strncmp(hello->fabric, ep->link.fabric->name, sizeof(hello->fabric)) != 0)
		return refuse(ep, SLMPM_EVERSION, "it wants another fabric");
	ep->big_endian = LITTLE_32(hello->byte_order) == 2;
	if (agree(ep, hello) < 0)
		return -EPROTO;
	if (!ep->pid)
		ep->pid = (int32_t)LITTLE_32((uint32_t)hello->pid);
	endpoint_name(ep);
	rc = send_packet(c, &nonce, sizeof(nonce), WIRE_NONCE, -1);
	if (rc < 0)
		return rc;
	c->step = WAIT_NONCE;
	return 0;
}

static int take_nonce(struct control *c, const struct received *r)
{
	int rc;

	if (r->length != sizeof(r->packet.nonce) || r->fd_count ||
	    LITTLE_64(r->packet.nonce.nonce) != c->nonce)
		return refuse(c->ep, SLMPM_EPROTO, "it does not return the nonce");
	c->step = WAIT_ROUND;
	rc = send_round(c);
	return rc < 0 ? rc : 0;
}

static int take_round(struct control *c, struct received *r)
{
	const struct wire_round *round = &r->packet.round;
	struct endpoint *ep = c->ep;
	struct fabric_blob blob = {.fds = {-1, -1}};
	int rc;

	if (r->length != sizeof(*round) || LITTLE_32(round->round) != (uint32_t)c->round ||
	    LITTLE_32(round->blob_length) > sizeof(blob.bytes) || r->fd_count > 2)
		return refuse(ep, SLMPM_EPROTO, "a step of the handshake is malformed");
	blob.length = LITTLE_32(round->blob_length);
	memcpy(blob.bytes, round->blob, blob.length);
	blob.fd_count = r->fd_count;
	for (int i = 0; i < r->fd_count; i++)
		blob.fds[i] = r->fds[i];
	rc = ep->link.fabric->connect(ep->link.port, c->round, &blob);
	for (int i = 0; i < r->fd_count; i++)
		r->fds[i] = blob.fds[i]; /* what the fabric took is -1 now */
	if (rc < 0)
		return rc;
	c->round++;
	if (rc == 1)
		return send_round(c);
	c->step = CONNECTED;
	c->deadline = UINT64_MAX;
	list_remove(&c->node);
	endpoint_up(ep);
	return 0;
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

static int take_bye(struct control *c, struct received *r)
{
	char why[160];

	if (r->length != sizeof(r->packet.bye))
		return -EPROTO;
	r->packet.bye.reason[sizeof(r->packet.bye.reason) - 1] = 0;
	snprintf(why, sizeof(why), "it says: %s", r->packet.bye.reason);
	for (char *at = why; *at; at++)
		if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
			*at = '?';
	if (c->step != CONNECTED)
		endpoint_refused(c->ep, strstr(why, "version") ? SLMPM_EVERSION : SLMPM_EPROTO,
				 why);
	else
		endpoint_lost(c->ep, why);
	return -EPROTO;
}

static void limit_step(struct control *c)
{
	if (c->deadline == UINT64_MAX && c->step != CONNECTED)
		c->deadline = wait_now() + (uint64_t)config_get()->handshake_ms * 1000000;
}

static int handle(struct control *c, struct received *r)
{
	uint32_t type = LITTLE_32(r->packet.head.type);

	if (r->length < sizeof(r->packet.head) || LITTLE_32(r->packet.head.length) != r->length) {
		endpoint_poison(c->ep, "control packet");
		return -EPROTO;
	}
	limit_step(c);
	if (type == WIRE_HELLO && c->step == WAIT_HELLO)
		return take_hello(c, r);
	if (type == WIRE_NONCE && c->step == WAIT_NONCE)
		return take_nonce(c, r);
	if (type == WIRE_ROUND && c->step == WAIT_ROUND)
		return take_round(c, r);
	if (type == WIRE_AREA)
		return take_area(c, r);
	if (type == WIRE_BYE)
		return take_bye(c, r);
	endpoint_poison(c->ep, "control packet out of turn");
	return -EPROTO;
}

/* ---- receiving ------------------------------------------------------------------------------ */

static void take_descriptors(struct msghdr *msg, struct received *r)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (r->fd_count < 4)
				r->fds[r->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

static void close_descriptors(struct received *r)
{
	for (int i = 0; i < r->fd_count; i++)
		if (r->fds[i] >= 0)
			close(r->fds[i]);
}

/* 1 one more packet, 0 nothing there, -EPIPE the end, -EMFILE descriptors lost. */
static int receive(int fd, struct received *r)
{
	char space[CMSG_SPACE(4 * sizeof(int))];
	struct iovec iov = {.iov_base = &r->packet, .iov_len = sizeof(r->packet)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	r->fd_count = 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno == ECONNRESET)
		return 2; /* it closed with bells unread; what it sent is still to come */
	if (n <= 0)
		return -EPIPE;
	r->length = (size_t)n;
	take_descriptors(&msg, r);
	if (msg.msg_flags & MSG_TRUNC)
		r->length = 0;
	if (msg.msg_flags & MSG_CTRUNC) { /* at the descriptor limit the kernel drops them */
		close_descriptors(r);
		r->fd_count = 0;
		return -EMFILE;
	}
	return 1;
}

static void hung_up(struct endpoint *ep);

void bootstrap_socket_ready(struct endpoint *ep)
{
	struct control *c = ep->control;
	struct received r;

	for (int i = 0; i < READS_AT_ONCE && c && c->socket.fd >= 0; i++) {
		int rc = receive(c->socket.fd, &r);

		if (rc == 0)
			return;
		if (rc == 2)
			continue;
		if (rc == -EPIPE) {
			hung_up(ep);
			return;
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
		close_descriptors(&r);
		if (rc < 0 && ep->state == SLMPM_PEER_CONNECTING) {
			error_system(rc, "handshake");
			endpoint_refused(ep,
					 rc == -EMFILE ? SLMPM_ENOFILE :
					 rc == -ENOMEM ? SLMPM_ENOMEM :
					 rc == -EFBIG  ? SLMPM_EFBIG :
					 rc == -EPERM  ? SLMPM_EACCES :
							 SLMPM_EPROTO,
					 slmpm_error_detail());
		}
		if (rc < 0)
			return;
	}
}

/*
 * In the middle of a packet: only what it needs, the areas offered before it. An end that shows
 * up meanwhile is seen again at the next look.
 */
void bootstrap_read_areas(struct endpoint *ep)
{
	struct control *c = ep->control;
	struct received r;

	for (int i = 0; i < READS_AT_ONCE && c->socket.fd >= 0; i++) {
		int rc = receive(c->socket.fd, &r);

		if (rc == 2)
			continue;
		if (rc != 1)
			return;
		if (r.length == sizeof(r.packet.area) && r.fd_count == 1 &&
		    LITTLE_32(r.packet.head.type) == WIRE_AREA)
			(void)area_offered(ep, LITTLE_32(r.packet.area.area),
					   LITTLE_64(r.packet.area.size), r.fds[0]);
		close_descriptors(&r);
	}
}

/* ---- the end -------------------------------------------------------------------------------- */

/* The process that HUP announced usually ends within a millisecond: then its status tells more. */
static void await_process(struct control *c)
{
	struct pollfd p = {.fd = c->process.fd, .events = POLLIN};

	if (p.fd >= 0)
		(void)poll(&p, 1, PIDFD_GRACE_MS);
}

static void ended(struct endpoint *ep)
{
	char why[96] = "its process ended";
	bool normal = false;

	if (ep->process)
		normal = process_describe(ep, why, sizeof(why));
	if (ep->state == SLMPM_PEER_CONNECTING) {
		char text[128];

		snprintf(text, sizeof(text), "%.90s before it connected", why);
		endpoint_refused(ep, SLMPM_EDEAD, text);
		return;
	}
	progress_drain(ep);
	if (ep->state != SLMPM_PEER_UP)
		return;
	if (ep->end_of_stream || normal)
		endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, why);
	else
		endpoint_lost(ep, why);
}

static void hung_up(struct endpoint *ep)
{
	struct control *c = ep->control;

	if (!ep->end_of_stream)
		await_process(c);
	close_watch(ep->ctx, &c->socket);
	if (ep->link.port)
		ep->link.port->bell = -1;
	ended(ep);
}

void bootstrap_process_ended(struct endpoint *ep)
{
	struct control *c = ep->control;

	watch_remove(ep->ctx, &c->process); /* it stays readable for ever */
	if (ep->state == SLMPM_PEER_CONNECTING || ep->state == SLMPM_PEER_UP)
		ended(ep);
}

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

	if (!c)
		return -ENOMEM;
	ep->control = c;
	list_init(&c->node);
	c->ep = ep;
	c->socket = (struct watch){WATCH_SOCKET, fd, ep};
	c->process = (struct watch){WATCH_PROCESS, -1, ep};
	c->deadline = ep->process ? UINT64_MAX :
				    wait_now() + (uint64_t)config_get()->handshake_ms * 1000000;
	if (getrandom(&c->nonce, sizeof(c->nonce), 0) != sizeof(c->nonce))
		return -EIO;
	(void)take_pidfd(c, pidfd);
	rc = watch_add(ep->ctx, &c->socket);
	if (rc == 0 && c->process.fd >= 0)
		rc = watch_add(ep->ctx, &c->process);
	if (rc < 0)
		return rc;
	list_append(&ep->ctx->deadlines, &c->node);
	ep->link.port->bell = fd;
	rc = send_hello(c);
	/* A child may have ended by now: told like every other end, when somebody looks. */
	return ep->process && (rc == -EPIPE || rc == -ECONNRESET) ? 0 : rc;
}

uint64_t bootstrap_deadlines(struct context *ctx, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	LIST_EACH(at, &ctx->deadlines) {
		struct control *c = LIST_ENTRY(at, struct control, node);

		if (now_ns < c->deadline)
			next = lower(next, c->deadline);
		else
			endpoint_refused(c->ep, SLMPM_ETIMEOUT, "handshake not finished in time");
	}
	return next;
}
