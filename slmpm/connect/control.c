/* SPDX-License-Identifier: BSD-3-Clause */
/* What control connections of both kinds have in common. */
#include "slmpm/connect/control.h"
#include "slmpm/connect/foreign.h"
#include "slmpm/net/net.h"

#include <errno.h>
#include <stdio.h>
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

int control_receive(struct control *c, struct received *r)
{
	return c->stream ? control_stream_receive(c, r) : control_packet_receive(c, r);
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

void control_drop(struct received *r)
{
	for (int i = 0; i < r->fd_count; i++)
		if (r->fds[i] >= 0)
			foreign_close(r->fds[i], r->sender);
}
