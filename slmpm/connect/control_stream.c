/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control packets on a stream of bytes. A packet's head says its type, and the type its length:
 * nothing else is ever waited for, so a stranger takes no more memory than the longest of them.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "slmpm/connect/control.h"

/* Of those that have a descriptor, and of the nonce that speaks of one, none comes here: 0. */
static uint32_t control_stream_length_of(uint32_t type)
{
	switch (type) {
	case WIRE_HELLO: return sizeof(struct wire_hello);
	case WIRE_PROOF: return sizeof(struct wire_proof);
	case WIRE_ROUND: return sizeof(struct wire_round);
	case WIRE_BYE: return sizeof(struct wire_bye);
	default: return 0;
	}
}

static void await_room(struct control *c, bool on)
{
	watch_for_room(c->ep->ctx, &c->socket, on);
}

/* A reset that a send is told of no receive is told of any more: it would see an orderly end. EPIPE is
 * told again and again, and also of one that has been orderly. */
static void control_stream_failed(struct control_stream *s, int error)
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
		control_stream_failed(s, errno);
	s->waiting = n < 0 ? 0 : s->waiting - (uint32_t)n;
	if (n > 0)
		memmove(s->out, s->out + n, s->waiting);
	if (!s->waiting)
		await_room(c, false);
}

int control_stream_send(struct control *c, const void *packet, size_t length)
{
	struct control_stream *s = c->stream;
	ssize_t n = 0;

	if (s->waiting + length > sizeof(s->out))
		return -EAGAIN;
	if (!s->waiting)
		n = send(c->socket.fd, packet, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		control_stream_failed(s, errno);
		return -errno;
	}
	n = n < 0 ? 0 : n;
	if ((size_t)n == length)
		return 0;
	if (!s->waiting)
		await_room(c, true);
	memcpy(s->out + s->waiting, (const char *)packet + n, length - (size_t)n);
	s->waiting += (uint32_t)length - (uint32_t)n;
	return 0;
}

/* Bytes of the packet that is coming in, as far as known; 0: nobody sends such. */
static uint32_t wanted(const struct control_stream *s)
{
	uint32_t length;

	if (s->have < sizeof(s->in.head))
		return sizeof(s->in.head);
	length = control_stream_length_of(LITTLE_32(s->in.head.type));
	return LITTLE_32(s->in.head.length) == length ? length : 0;
}

int control_stream_receive(struct control *c, struct received *r)
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
