/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two ends offer each other before they meet over TCP, in one round: each says its ring's geometry and a
 * token that nobody else knows; the passive one, besides, the port of a socket that listens for this link
 * alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "fabrics/tcp.h"

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

static int tcp_offer_begin(struct tcp_link *l)
{
	const struct fabric_config *c = &l->base.domain->config;
	struct ring_shape shape = {c->segments, c->segment_size};

	if (l->meeting || l->open)
		return -EINVAL;
	if (ring_shape_check(&shape) < 0)
		return -EINVAL;
	l->meeting = calloc(1, sizeof(*l->meeting));
	if (!l->meeting)
		return -ENOMEM;
	if (getrandom(l->meeting->token, TCP_TOKEN, 0) != TCP_TOKEN)
		return -EIO;
	return 0;
}

static int listen_for(struct tcp_link *l, struct offer *offer)
{
	struct tcp_meeting *m = l->meeting;
	uint16_t port;

	m->listener = tcp_listen(&l->base, &port, &offer->family);
	if (m->listener < 0)
		return m->listener;
	m->listens = true;
	m->step = TCP_LISTENS;
	offer->port = LITTLE_16(port);
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

	if (rc == 0 && !link->active)
		rc = listen_for(l, &offer);
	if (rc < 0)
		return rc;
	memcpy(offer.token, l->meeting->token, TCP_TOKEN);
	memcpy(out->bytes, &offer, sizeof(offer));
	out->length = sizeof(offer);
	return 0;
}

static int check_offer(const struct tcp_link *l, const struct offer *o)
{
	struct ring_shape shape = {LITTLE_32(o->segments), LITTLE_32(o->segment_size)};

	if (LITTLE_32(o->version) != VERSION || ring_shape_check(&shape) < 0)
		return -EPROTO;
	if (o->active != !l->base.active)
		return -EPROTO;
	if (o->active)
		return o->port || o->family ? -EPROTO : 0;
	return o->port && (o->family == 4 || o->family == 6) ? 0 : -EPROTO;
}

int tcp_take_offer(struct tcp_link *l, const struct fabric_blob *in)
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
	if (!l->base.active) /* only now does somebody take in who calls */
		return tcp_watch((struct tcp_domain *)l->base.domain, m->listener, NULL, 0,
				 EPOLLIN);
	l->socket = tcp_call(&l->base, LITTLE_16(offer.port), offer.family);
	if (l->socket < 0)
		return l->socket;
	l->open = true;
	m->step = TCP_CALLS;
	return 0;
}
