/* SPDX-License-Identifier: BSD-3-Clause */
/* Control packets: on a packet socket, on a stream, and rounds of a link among them. */
#include "slmpm/connect/control.h"
#include "slmpm/connect/foreign.h"
#include "slmpm/link/link.h"
#include "slmpm/net/net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(FOREIGN_EACH >= CONTROL_FDS, "room for a packet's");

#define LEFT_UNREAD 65536 /* bytes that are read from who is left, at most */

/* ---- on a packet socket ---- */

void control_drop(struct received *r)
{
	for (int i = 0; i < r->fd_count; i++)
		if (r->fds[i] >= 0)
			foreign_close(r->fds[i], r->sender);
}

/* Of a packet socket: whole ones, their descriptors never leaked. */
static void take_descriptors(struct msghdr *msg, struct received *r, pid_t sender)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (r->fd_count < CONTROL_FDS)
				r->fds[r->fd_count++] = fd;
			else
				foreign_close(fd, sender);
		}
	}
}

/* As foreign.h has them: in another namespace its process has no number here. */
static pid_t control_sender(const struct endpoint *ep)
{
	pid_t pid = ep->link.port->pid;

	return pid > 0 ? pid : -1 - (pid_t)(handle_id(ep) & 0x3fffffff);
}

/* The next packet has a descriptor for which others leave no room: it stays there until they do. */
static bool has_to_stay(const struct control *c, pid_t sender)
{
	struct msghdr msg = {.msg_iov = NULL};

	return c->step != WAIT_HELLO && foreign_has_none(sender) &&
	       recvmsg(c->socket.fd, &msg, MSG_DONTWAIT | MSG_PEEK) >= 0 &&
	       msg.msg_flags & MSG_CTRUNC;
}

static int receive_packet(struct control *c, struct received *r)
{
	char space[CMSG_SPACE(CONTROL_FDS * sizeof(int))];
	pid_t sender = control_sender(c->ep);
	struct iovec iov = {.iov_base = &r->packet, .iov_len = sizeof(r->packet)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t n;

	r->fd_count = 0;
	/* Where none is wanted the kernel gives them up. */
	if (c->step != WAIT_HELLO && foreign_has_room(CONTROL_FDS, sender)) {
		msg.msg_control = space;
		msg.msg_controllen = sizeof(space);
	} else if (has_to_stay(c, sender)) {
		return 0;
	}
	n = recvmsg(c->socket.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno == ECONNRESET)
		return 2; /* it closed with bells unread; what it sent is still to come */
	if (n < 0)
		return -EPIPE;
	r->length = (size_t)n;
	r->sender = sender;
	take_descriptors(&msg, r, sender);
	if (n == 0) { /* the end, or an empty packet: that may have some, too */
		control_drop(r);
		r->fd_count = 0;
		return -EPIPE;
	}
	if (msg.msg_flags & MSG_TRUNC)
		r->length = 0;
	if (msg.msg_flags & MSG_CTRUNC) { /* at the descriptor limit the kernel drops them */
		bool excess = r->fd_count == CONTROL_FDS;

		control_drop(r);
		if (excess) { /* or more came than any packet has */
			r->fd_count = 0;
			r->length = 0;
			return 1;
		}
		r->fd_count = c->step == WAIT_HELLO; /* some, and none of them here */
		r->fds[0] = -1;
		return r->fd_count ? 1 : -EMFILE;
	}
	return 1;
}

/* ---- on a stream ---- */

/* A reset that a send is told of no receive is told of: it would see an orderly end. EPIPE is told
 * again and again, of an orderly end, too. */
static void stream_failed(struct control_stream *s, int error)
{
	if (error != EPIPE)
		s->error = error;
}

void control_stream_flush(struct control *c)
{
	struct control_stream *s = c->stream;
	ssize_t n;

	if (!s->waiting || c->socket.fd < 0)
		return;
	n = send(c->socket.fd, s->out, s->waiting, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) /* an end, which is found out by reading */
		stream_failed(s, errno);
	s->waiting = n < 0 ? 0 : s->waiting - (uint32_t)n;
	if (n > 0)
		memmove(s->out, s->out + n, s->waiting);
	if (!s->waiting)
		watch_for_room(c->ep->ctx, &c->socket, false);
}

static int stream_send(struct control *c, const void *packet, size_t length)
{
	struct control_stream *s = c->stream;
	ssize_t n = 0;

	if (s->waiting + length > sizeof(s->out))
		return -EAGAIN;
	if (!s->waiting)
		n = send(c->socket.fd, packet, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		stream_failed(s, errno);
		return -errno;
	}
	n = n < 0 ? 0 : n;
	if ((size_t)n == length)
		return 0;
	if (!s->waiting)
		watch_for_room(c->ep->ctx, &c->socket, true);
	memcpy(s->out + s->waiting, (const char *)packet + n, length - (size_t)n);
	s->waiting += (uint32_t)length - (uint32_t)n;
	return 0;
}

/* Bytes of the packet that is coming in, as far as known. 0: nobody sends such; none that has a
 * descriptor, nor the nonce, comes here. Nothing longer is ever waited for. */
static uint32_t wanted(const struct control_stream *s)
{
	static const uint32_t lengths[] = {
		[WIRE_HELLO] = sizeof(struct wire_hello), [WIRE_PROOF] = sizeof(struct wire_proof),
		[WIRE_ROUND] = sizeof(struct wire_round), [WIRE_BYE] = sizeof(struct wire_bye),
		[WIRE_GROUP] = sizeof(struct wire_group),
	};
	uint32_t type = LITTLE_32(s->in.head.type);

	if (s->have < sizeof(s->in.head))
		return sizeof(s->in.head);
	if (type >= sizeof(lengths) / sizeof(*lengths) ||
	    LITTLE_32(s->in.head.length) != lengths[type])
		return 0;
	return lengths[type];
}

static int stream_receive(struct control *c, struct received *r)
{
	struct control_stream *s = c->stream;
	uint32_t all;

	r->fd_count = 0;
	r->length = 0;
	while ((all = wanted(s)) > s->have) {
		ssize_t n =
			recv(c->socket.fd, (char *)&s->in + s->have, all - s->have, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0) {
			s->error = n < 0 ? errno : s->error;
			return -EPIPE;
		}
		s->have += (uint32_t)n;
	}
	memcpy(&r->packet, &s->in, s->have);
	r->length = all;
	s->have = 0;
	return 1;
}

/* ---- on either ---- */

int control_pass(struct control *c, void *packet, size_t length, uint32_t type, const int *fds,
		 size_t count)
{
	struct wire_control_head *head = packet;

	head->type = LITTLE_32(type);
	head->length = LITTLE_32(length);
	if (c->socket.fd < 0)
		return -EPIPE;
	if (!c->stream)
		return net_send(c->socket.fd, packet, length, fds, count);
	return count ? -ENOTSUP : stream_send(c, packet, length);
}

int control_send(struct control *c, void *packet, size_t length, uint32_t type, int fd)
{
	return control_pass(c, packet, length, type, &fd, fd >= 0);
}

int control_receive(struct control *c, struct received *r)
{
	return c->stream ? stream_receive(c, r) : receive_packet(c, r);
}

void control_bye(struct control *c, int error, const char *why)
{
	struct wire_bye bye = {.error = LITTLE_32(wire_error(-error))};

	snprintf(bye.reason, sizeof(bye.reason), "%s", why);
	(void)control_send(c, &bye, sizeof(bye), WIRE_BYE, -1);
}

void control_refuse(int fd, int error, const char *why)
{
	struct control alone = {.socket.fd = fd};

	control_bye(&alone, error, why);
}

/* A TCP socket that is closed with something unread resets: what was sent last may be lost with
 * it. */
void control_leave(int fd)
{
	char nobody[4096];
	ssize_t n;

	(void)shutdown(fd, SHUT_WR);
	for (size_t all = 0; all < LEFT_UNREAD; all += (size_t)n) {
		n = recv(fd, nobody, sizeof(nobody), MSG_DONTWAIT);
		if (n <= 0)
			break;
	}
}

void control_text(char *to, size_t size, const char *from, size_t length)
{
	size_t n = 0;

	for (; n < length && n + 1 < size && from[n]; n++)
		to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
	to[n] = 0;
}

/* ---- rounds of a link, the first or a secondary one ---- */

int rounds_write(const struct rounds *t, struct wire_round *packet, int *fd)
{
	struct fabric_blob blob = {.fd = -1};
	int rc = t->port->domain->fabric->address(t->port, t->round, &blob);

	*packet = (struct wire_round){.round = LITTLE_32((uint32_t)t->round),
				      .link = LITTLE_16((uint16_t)t->link),
				      .life = LITTLE_16((uint16_t)t->life),
				      .blob_length = LITTLE_32(blob.length)};
	memcpy(packet->blob, blob.bytes, sizeof(blob.bytes));
	*fd = blob.fd;
	return rc < 0 ? rc : 0;
}

bool rounds_is_sound(const struct received *r)
{
	const struct wire_round *packet = &r->packet.round;

	return r->length == sizeof(*packet) && r->fd_count <= 1 &&
	       LITTLE_32(packet->blob_length) <= sizeof(packet->blob);
}

/* What somebody else called it for is counted, whatever became of it. */
static int rounds_answer(struct endpoint *ep, struct rounds *t, int rc)
{
	link_unauthenticated(ep, t->port);
	t->pending = rc == 2;
	t->round += rc == 0 || rc == 1;
	return rc;
}

int rounds_take(struct endpoint *ep, struct rounds *t, struct received *r)
{
	const struct wire_round *packet = &r->packet.round;
	struct fabric_blob blob = {.length = LITTLE_32(packet->blob_length),
				   .fd = r->fd_count ? r->fds[0] : -1};
	int rc;

	memcpy(blob.bytes, packet->blob, sizeof(blob.bytes));
	rc = t->port->domain->fabric->connect(t->port, t->round, &blob);
	r->fds[0] = blob.fd; /* what the fabric took is -1 now */
	return rounds_answer(ep, t, rc);
}

int rounds_ask(struct endpoint *ep, struct rounds *t)
{
	if (!t->pending)
		return 2;
	return rounds_answer(ep, t, t->port->domain->fabric->connect(t->port, t->round, NULL));
}
