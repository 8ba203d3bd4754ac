/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two ends meet over TCP, and how they part. In one round each offers its ring's geometry and a
 * token that nobody else knows; the passive one, besides, the port of a socket that listens for
 * this link alone. Then the active one calls and says both tokens, the passive one answers with the
 * active one's, and the streams begin. Other callers are closed: at once where they say something
 * else, else with the listener.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabrics/tcp.h"

#define CALLERS 32 /* accepted in one go */
#define VERSION 2

struct offer { /* little-endian */
	uint32_t version;
	uint32_t segments, segment_size;
	uint16_t port;
	uint8_t family; /* 4 or 6; both 0 from the active side */
	uint8_t active;
	uint64_t start;
	unsigned char token[TCP_TOKEN];
};
_Static_assert(sizeof(struct offer) == 40, "wire layout");
_Static_assert(sizeof(struct tcp_hello) == 40, "wire layout");

static const unsigned char magic[8] = {'S', 'L', 'M', 'P', 'M', 't', 'c', 'p'};

/* In a time that does not tell where they differ. */
static bool is_same_token(const void *a, const void *b, size_t n)
{
	const volatile unsigned char *p = a, *q = b;
	unsigned char differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= p[i] ^ q[i];
	return !differ;
}

/* ---- what each offers ----------------------------------------------------------------------- */

static int tcp_offer_begin(struct tcp_link *l)
{
	const struct fabric_config *c = &l->base.domain->config;
	struct ring_shape shape = {c->segments, c->segment_size};

	if (l->meeting || l->open || ring_shape_check(&shape) < 0)
		return -EINVAL;
	l->meeting = calloc(1, sizeof(*l->meeting));
	if (!l->meeting)
		return -ENOMEM;
	if (getrandom(l->meeting->token, TCP_TOKEN, 0) != TCP_TOKEN)
		return -EIO;
	return 0;
}

int tcp_address(struct fabric_link *link, int round, struct fabric_blob *out)
{
	struct tcp_link *l = (struct tcp_link *)link;
	const struct fabric_config *c = &link->domain->config;
	struct offer offer = {
		.version = LITTLE_32(VERSION),
		.segments = LITTLE_32(c->segments),
		.segment_size = LITTLE_32(c->segment_size),
		.active = link->active,
		.start = LITTLE_64(c->start),
	};
	int rc = round ? -EINVAL : tcp_offer_begin(l);
	uint16_t port = 0;

	if (rc == 0 && !link->active) {
		rc = l->meeting->listener = tcp_listen(link, &port, &offer.family);
		if (rc >= 0)
			l->meeting->step = TCP_LISTENS;
	}
	if (rc < 0)
		return rc;
	offer.port = LITTLE_16(port);
	memcpy(offer.token, l->meeting->token, TCP_TOKEN);
	memcpy(out->bytes, &offer, sizeof(offer));
	out->length = sizeof(offer);
	return 0;
}

static int check_offer(const struct tcp_link *l, const struct offer *o)
{
	struct ring_shape shape = {LITTLE_32(o->segments), LITTLE_32(o->segment_size)};

	if (LITTLE_32(o->version) != VERSION || ring_shape_check(&shape) < 0 ||
	    o->active != !l->base.active)
		return -EPROTO;
	if (o->active)
		return o->port || o->family ? -EPROTO : 0;
	return o->port && (o->family == 4 || o->family == 6) ? 0 : -EPROTO;
}

/* The peer's: a passive link takes in callers from now on, an active one calls. */
static int tcp_take_offer(struct tcp_link *l, const struct fabric_blob *in)
{
	struct tcp_meeting *m = l->meeting;
	struct offer offer;
	int rc;

	if (in->length != sizeof(offer) || in->fd >= 0)
		return -EPROTO;
	memcpy(&offer, in->bytes, sizeof(offer));
	rc = check_offer(l, &offer);
	if (rc < 0)
		return rc;
	l->base.start_in = LITTLE_64(offer.start);
	m->peer_shape.segments = LITTLE_32(offer.segments);
	m->peer_shape.segment_size = LITTLE_32(offer.segment_size);
	memcpy(m->peer_token, offer.token, TCP_TOKEN);
	if (!l->base.active) { /* only now are callers taken in */
		rc = tcp_watch(tcp_domain(l), m->listener, NULL, 0, EPOLLIN);
		return rc < 0 ? rc : 1;
	}
	l->socket = tcp_call(&l->base, LITTLE_16(offer.port), offer.family);
	if (l->socket < 0)
		return l->socket;
	l->open = true;
	m->step = TCP_CALLS;
	return 1;
}

/* ---- both have met -------------------------------------------------------------------------- */

/* A child that was forked meanwhile may have it still: closing alone would leave it in the set. */
static void tcp_connect_forget(struct tcp_link *l, int socket)
{
	if (!l->base.domain->forked)
		(void)tcp_watch(tcp_domain(l), socket, NULL, EPOLLIN, 0);
	close(socket);
}

/* Caller I is none any more: its socket. */
static int take_out(struct tcp_meeting *m, uint32_t i)
{
	struct tcp_unauthenticated *s = &m->unauthenticated[i];
	int socket = s->socket;

	m->count--;
	memmove(s, s + 1, (m->count - i) * sizeof(*s));
	return socket;
}

static void dismiss(struct tcp_link *l, uint32_t i)
{
	tcp_connect_forget(l, take_out(l->meeting, i));
}

static void end_meeting(struct tcp_link *l)
{
	struct tcp_meeting *m = l->meeting;

	if (!m)
		return;
	while (m->count)
		dismiss(l, m->count - 1);
	if (m->step == TCP_LISTENS)
		tcp_connect_forget(l, m->listener);
	free(m);
	l->meeting = NULL;
}

static int start_streams(struct tcp_link *l)
{
	struct tcp_domain *d = tcp_domain(l);
	int rc = tcp_inlet_open(l);

	if (rc == 0)
		rc = tcp_outlet_open(l, &l->meeting->peer_shape);
	if (rc == 0)
		rc = tcp_watch_link(l, EPOLLIN);
	if (rc < 0)
		return rc;
	l->ready = true;
	end_meeting(l);
	LIST_INSERT_HEAD(&d->links, l, entry);
	d->count++;
	return 0;
}

/* ---- the active side ------------------------------------------------------------------------ */

static int watch_call(struct tcp_link *l, uint32_t events)
{
	int rc = tcp_watch_link(l, events);

	return rc < 0 ? rc : 2;
}

static int send_hello(struct tcp_link *l)
{
	struct tcp_meeting *m = l->meeting;
	struct tcp_hello hello;
	ssize_t n;

	memcpy(hello.magic, magic, sizeof(magic));
	memcpy(hello.to, m->peer_token, TCP_TOKEN);
	memcpy(hello.from, m->token, TCP_TOKEN);
	n = send(l->socket, &hello, sizeof(hello), MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return watch_call(l, EPOLLOUT);
	if (n != (ssize_t)sizeof(hello))
		return n < 0 ? -errno : -EIO;
	m->step = TCP_AWAITS;
	n = tcp_tune(l);
	return n < 0 ? (int)n : 1;
}

static int tcp_connect_await_answer(struct tcp_link *l)
{
	struct tcp_meeting *m = l->meeting;
	int n = tcp_read(l->socket, m->answer + m->answered, TCP_TOKEN - m->answered);

	if (n < 0)
		return -ECONNREFUSED; /* it does not know our token */
	m->answered += (uint32_t)n;
	if (m->answered < TCP_TOKEN)
		return watch_call(l, EPOLLIN);
	if (!is_same_token(m->answer, m->token, TCP_TOKEN))
		return -EPROTO;
	return start_streams(l);
}

/* ---- the passive side ----------------------------------------------------------------------- */

static int tcp_connect_adopt(struct tcp_link *l, uint32_t i)
{
	struct tcp_meeting *m = l->meeting;
	int rc;

	l->socket = take_out(m, i);
	l->open = true;
	rc = tcp_watch(tcp_domain(l), l->socket, NULL, EPOLLIN, 0);
	if (rc == 0)
		rc = tcp_tune(l);
	if (rc < 0)
		return rc;
	if (send(l->socket, m->peer_token, TCP_TOKEN, MSG_NOSIGNAL) != TCP_TOKEN)
		return -ECONNRESET;
	return start_streams(l);
}

/* What it has said so far: 1 it is the peer, 0 not all yet, -EPIPE it has ended, -EACCES it does
 * not know the token, -EPROTO the peer's other link. */
static int listen_to(struct tcp_meeting *m, struct tcp_unauthenticated *s)
{
	unsigned char *to = (unsigned char *)&s->hello;
	int n = tcp_read(s->socket, to + s->got, sizeof(s->hello) - s->got);

	if (n < 0)
		return n;
	s->got += (uint32_t)n;
	if (memcmp(s->hello.magic, magic, s->got < sizeof(magic) ? s->got : sizeof(magic)) != 0)
		return -EACCES;
	if (s->got < sizeof(s->hello))
		return 0;
	if (!is_same_token(s->hello.to, m->token, TCP_TOKEN))
		return -EACCES;
	return is_same_token(s->hello.from, m->peer_token, TCP_TOKEN) ? 1 : -EPROTO;
}

/* Caller I's hello, as far as it has come. 2: it is not the peer, or not yet. */
static int receive_hello(struct tcp_link *l, uint32_t i)
{
	int rc = listen_to(l->meeting, &l->meeting->unauthenticated[i]);

	if (rc == 1)
		return tcp_connect_adopt(l, i);
	l->base.unauthenticated += rc == -EACCES;
	if (rc < 0)
		dismiss(l, i);
	return rc == -EPROTO ? rc : 2;
}

static int receive_callers(struct tcp_link *l)
{
	struct tcp_meeting *m = l->meeting;
	int rc = 2;

	for (uint32_t i = m->count; rc == 2 && i-- > 0;)
		rc = receive_hello(l, i);
	for (int calls = 0; rc == 2 && calls < CALLERS; calls++) {
		int s = accept4(m->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (s < 0)
			return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 2 :
											    -errno;
		if (m->count == TCP_UNAUTHENTICATED)
			dismiss(l, 0);
		m->unauthenticated[m->count++] = (struct tcp_unauthenticated){.socket = s};
		rc = tcp_watch(tcp_domain(l), s, NULL, 0, EPOLLIN);
		rc = rc < 0 ? rc : receive_hello(l, m->count - 1);
	}
	return rc;
}

/* ---- the contract's calls ------------------------------------------------------------------- */

int tcp_connect(struct fabric_link *link, int round, struct fabric_blob *in)
{
	struct tcp_link *l = (struct tcp_link *)link;
	int rc = round || !l->meeting ? -EPROTO : 1;

	if (rc == 1 && in)
		rc = tcp_take_offer(l, in);
	while (rc == 1) { /* as far as it goes now */
		switch (l->meeting->step) {
		case TCP_LISTENS: rc = receive_callers(l); break;
		case TCP_CALLS: rc = send_hello(l); break;
		case TCP_AWAITS: rc = tcp_connect_await_answer(l); break;
		default: rc = -EINVAL;
		}
	}
	if (rc == -EPROTO)
		link->violation = in ? "offer of a stream" : "token of a stream";
	return rc;
}

void tcp_disconnect(struct fabric_link *link)
{
	struct tcp_link *l = (struct tcp_link *)link;
	bool met = l->entry.le_prev, forked = link->domain->forked;

	end_meeting(l);
	if (!forked && l->intake.used)
		tcp_uring_drop(l);
	if (met) {
		if (!forked)
			(void)tcp_flush(l);
		LIST_REMOVE(l, entry);
		l->entry.le_prev = NULL;
		tcp_domain(l)->count--;
	}
	if (l->open) {
		if (!forked)
			(void)tcp_watch_link(l, 0);
		if (met && !forked && !l->ended && !l->broken && link->process != FABRIC_ENDED)
			tcp_linger(tcp_domain(l), l->socket);
		else
			close(l->socket);
	}
	l->open = false;
	l->interest = 0;
	tcp_inlet_close(l);
	tcp_outlet_close(l);
}
