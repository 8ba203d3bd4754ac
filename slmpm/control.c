/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket: whole packets, their descriptors never leaked. */
#include "slmpm/control.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int control_send(struct control *c, void *packet, size_t length, uint32_t type, int fd)
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

void control_refuse(int fd, int error, const char *why)
{
	struct control alone = {.socket.fd = fd};
	struct wire_bye bye = {.error = LITTLE_32(error)};

	snprintf(bye.reason, sizeof(bye.reason), "%s", why);
	(void)control_send(&alone, &bye, sizeof(bye), WIRE_BYE, -1);
}

void control_text(char *to, size_t size, const char *from, size_t length)
{
	size_t n = 0;

	for (; n < length && n + 1 < size && from[n]; n++)
		to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
	to[n] = 0;
}

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
			if (r->fd_count < CONTROL_FDS)
				r->fds[r->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

void control_drop(struct received *r)
{
	for (int i = 0; i < r->fd_count; i++)
		if (r->fds[i] >= 0)
			close(r->fds[i]);
}

int control_receive(struct control *c, struct received *r)
{
	char space[CMSG_SPACE(CONTROL_FDS * sizeof(int))];
	struct iovec iov = {.iov_base = &r->packet, .iov_len = sizeof(r->packet)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	ssize_t n = recvmsg(c->socket.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

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
		bool excess = r->fd_count == CONTROL_FDS;

		control_drop(r);
		if (excess) { /* or more came than any packet has */
			r->fd_count = 0;
			r->length = 0;
			return 1;
		}
		r->fd_count = 0;
		return -EMFILE;
	}
	return 1;
}
