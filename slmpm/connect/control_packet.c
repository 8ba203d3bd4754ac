/* SPDX-License-Identifier: BSD-3-Clause */
/* Control packets on a packet socket: whole ones, their descriptors never leaked. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "slmpm/connect/control.h"
#include "slmpm/connect/foreign.h"

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

int control_packet_receive(struct control *c, struct received *r)
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
