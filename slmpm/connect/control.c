/* SPDX-License-Identifier: BSD-3-Clause */
/* Control packets, and those on a packet socket. */
#include "slmpm/connect/control.h"
#include "slmpm/connect/foreign.h"
#include "slmpm/net/net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEFT_UNREAD 65536 /* bytes that are read from who is left, at most */

int control_send(struct control *c, void *packet, size_t length, uint32_t type, int fd)
{
	struct wire_control_head *head = packet;

	head->type = LITTLE_32(type);
	head->length = LITTLE_32(length);
	if (c->socket.fd < 0)
		return -EPIPE;
	if (!c->stream)
		return net_send(c->socket.fd, packet, length, &fd, fd >= 0);
	return fd < 0 ? control_stream_send(c, packet, length) : -ENOTSUP;
}

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

static int receive_packet(struct control *c, struct received *r)
{
	char space[CMSG_SPACE(CONTROL_FDS * sizeof(int))];
	struct iovec iov = {.iov_base = &r->packet, .iov_len = sizeof(r->packet)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t n;

	/* Where none is wanted the kernel gives them up. */
	if (c->step != WAIT_HELLO && foreign_has_room(CONTROL_FDS, c->ep->link.port->pid)) {
		msg.msg_control = space;
		msg.msg_controllen = sizeof(space);
	}
	n = recvmsg(c->socket.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	r->fd_count = 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno == ECONNRESET)
		return 2; /* it closed with bells unread; what it sent is still to come */
	if (n < 0)
		return -EPIPE;
	r->length = (size_t)n;
	r->sender = c->ep->link.port->pid;
	take_descriptors(&msg, r, r->sender);
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

int control_receive(struct control *c, struct received *r)
{
	return c->stream ? control_stream_receive(c, r) : receive_packet(c, r);
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

/* A TCP socket that is closed with something unread resets the connection, and what was said last
 * may be lost with it. */
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
