/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes out over an edge: first what is said of the network, then credit, then packets of each
 * channel, as far as the neighbour has buffers for them; those passed on and the own ones by turns.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/wire.h"
#include "slmpm/network/network.h"
#include "slmpm/overlay/overlay.h"
#include "slmpm/request.h"

/* ---- routes ---------------------------------------------------------------------------------- */

uint32_t overlay_next(const struct overlay *n, uint32_t from, uint32_t to)
{
	return n->shape.kind == SLMPM_NETWORK_TREE ? tree_next(from, to) :
						     torus_next(&n->shape, from, to);
}

uint32_t overlay_channel(const struct overlay *n, uint32_t from, uint32_t link, uint32_t target)
{
	return n->shape.kind == SLMPM_NETWORK_TREE ? 0 :
						     torus_channel(&n->shape, from, link, target);
}

uint32_t overlay_back(const struct edge *e)
{
	if (e->net->shape.kind != SLMPM_NETWORK_TREE)
		return e->link ^ 1;
	if (e->link != SLMPM_NETWORK_PARENT)
		return SLMPM_NETWORK_PARENT;
	return e->net->rank % 2 ? SLMPM_NETWORK_LEFT : SLMPM_NETWORK_RIGHT;
}

struct edge *overlay_edge_to(const struct overlay *n, uint32_t target, uint32_t *channel)
{
	const uint32_t link = overlay_next(n, n->rank, target);

	*channel = overlay_channel(n, n->rank, link, target);
	return n->edges[link];
}

/* ---- is there anything ----------------------------------------------------------------------- */

/* So few are kept back that the neighbour has others left. */
static bool owes_credit(const struct edge *e, const struct edge_channel *c)
{
	return c->owed && c->owed >= (e->net->limits.buffers + 1) / 2;
}

static bool has_packets(const struct edge_channel *c)
{
	return c->room && !(list_empty(&c->through) && list_empty(&c->own));
}

static bool edge_has_work(const struct edge *e)
{
	if (e->due)
		return true;
	for (int c = 0; c < OVERLAY_CHANNELS && !e->net->status; c++)
		if (owes_credit(e, &e->channel[c]) || has_packets(&e->channel[c]))
			return true;
	return false;
}

bool overlay_has_work(const struct endpoint *ep)
{
	if (!ep->rooms->overlays)
		return false;
	LIST_EACH_ENTRY(const struct edge, e, &ep->rooms->overlays->edges, of_peer)
		if (edge_has_work(e))
			return true;
	return false;
}

/* ---- packets --------------------------------------------------------------------------------- */

/* 1, -EAGAIN: there is no room, or another negative: the connection ends. */
static int edge_post(struct edge *e, const struct overlay_head *h, const void *data, uint32_t len)
{
	const struct overlay_head wire = {
		.number = LITTLE_32(e->net->number),
		.kind = h->kind,
		.channel = h->channel,
		.source = LITTLE_32(h->source),
		.target = LITTLE_32(h->target),
		.stream = LITTLE_32(h->stream),
		.count = LITTLE_32(h->count),
		.total = LITTLE_64(h->total),
		.offset = LITTLE_64(h->offset),
	};

	return am_post(e->ep, 0, wire_route(am_stream(OVERLAY_ID, sizeof(wire)), 0),
		       WIRE_FLAG_ACTIVE | WIRE_FLAG_UNCHARGED, &wire, sizeof(wire), data, len);
}

static int post_hello(struct edge *e)
{
	const struct overlay *n = e->net;
	const struct overlay_head h = {.kind = OVERLAY_HELLO};
	const struct overlay_hello hello = {
		.kind = LITTLE_32(n->shape.kind),
		.nodes = LITTLE_32(n->shape.nodes),
		.wrap = LITTLE_32(n->shape.wrap),
		.extent = {LITTLE_32(n->shape.extent[0]), LITTLE_32(n->shape.extent[1]),
			   LITTLE_32(n->shape.extent[2])},
		.buffers = LITTLE_32(n->limits.buffers),
		.packet = LITTLE_32(n->limits.packet),
		.message_max = LITTLE_64(n->limits.message_max),
	};

	return edge_post(e, &h, &hello, sizeof(hello));
}

static int edge_post_word(struct edge *e, uint8_t kind)
{
	const struct overlay *n = e->net;
	struct overlay_head h = {.kind = kind};

	if (kind == OVERLAY_HELLO)
		return post_hello(e);
	if (kind == OVERLAY_BREAK) {
		h.source = (uint32_t)n->culprit;
		h.count = wire_error(n->status);
	}
	return edge_post(e, &h, NULL, 0);
}

void edge_bid_farewell(struct edge *e)
{
	const struct overlay *n = e->net;
	const uint32_t words = 1u << OVERLAY_BREAK;
	const struct overlay_head wire = {
		.number = LITTLE_32(n->number),
		.kind = OVERLAY_BREAK,
		.source = LITTLE_32((uint32_t)n->culprit),
		.count = LITTLE_32(wire_error(n->status)),
	};

	/* It has not gone yet, and the neighbour knows of the network. */
	if (!e->ep || e->ep->state != SLMPM_PEER_UP ||
	    (e->due & (words | 1u << OVERLAY_HELLO)) != words)
		return;
	if (am_answer(e->ep, OVERLAY_ID, &wire, sizeof(wire), NULL, 0) < 0)
		endpoint_no_memory(e->ep);
}

static int push_words(struct edge *e)
{
	int n = 0;

	for (uint8_t kind = 1; kind < OVERLAY_KINDS && e->due; kind++) {
		if (!(e->due >> kind & 1))
			continue;
		if (edge_post_word(e, kind) != 1)
			return -EAGAIN;
		e->due &= ~(1u << kind);
		n++;
	}
	return n;
}

static int push_credit(struct edge *e, uint8_t channel)
{
	struct edge_channel *c = &e->channel[channel];
	const struct overlay_head h = {
		.kind = OVERLAY_CREDIT, .channel = channel, .count = c->owed};
	int rc;

	if (!owes_credit(e, c))
		return 0;
	rc = edge_post(e, &h, NULL, 0);
	if (rc == 1)
		c->owed = 0;
	return rc;
}

void packet_release(struct overlay_packet *p)
{
	struct edge *from = p->from;
	struct edge_channel *c = &from->channel[p->head.channel];

	list_remove(&p->node);
	list_append(&c->unused, &p->node);
	c->held--;
	c->owed++;
	edge_changed(from);
}

static int edge_post_through(struct edge *e, uint8_t channel)
{
	struct edge_channel *c = &e->channel[channel];
	struct overlay_packet *p = LIST_ENTRY(c->through.next, struct overlay_packet, node);
	struct overlay_head h = p->head;
	int rc;

	h.channel = channel;
	rc = edge_post(e, &h, p->data, p->len);
	if (rc == 1) {
		c->room--;
		e->net->forwarded++;
		packet_release(p);
	}
	return rc;
}

static int edge_post_own(struct edge *e, uint8_t channel)
{
	struct edge_channel *c = &e->channel[channel];
	struct overlay_send *s = LIST_ENTRY(c->own.next, struct overlay_send, node);
	const uint64_t left = s->len - s->offset, most = e->net->limits.packet;
	const uint32_t len = (uint32_t)(left < most ? left : most);
	const struct overlay_head h = {
		.kind = s->kind,
		.channel = channel,
		.source = e->net->rank,
		.target = s->target,
		.stream = s->stream,
		.total = s->len,
		.offset = s->offset,
	};
	int rc = edge_post(e, &h, len ? s->data + s->offset : NULL, len);

	if (rc != 1)
		return rc;
	c->room--;
	e->net->sent++;
	s->offset += len;
	if (s->offset == s->len)
		overlay_send_end(s, 0);
	return 1;
}

static int push_packets(struct edge *e, uint8_t channel)
{
	struct edge_channel *c = &e->channel[channel];
	int n = 0;

	while (e->ep && !e->net->status && has_packets(c)) {
		const bool own = !list_empty(&c->own) && (c->turn || list_empty(&c->through));

		if ((own ? edge_post_own(e, channel) : edge_post_through(e, channel)) != 1)
			return -EAGAIN;
		c->turn = !own;
		e->over++;
		n++;
	}
	return n;
}

/* How many; negative: no more go now. */
static int edge_push(struct edge *e)
{
	int n = push_words(e), rc = 0;

	for (uint8_t c = 0; c < OVERLAY_CHANNELS && n >= 0 && rc >= 0; c++) {
		if (!e->ep || e->net->status)
			break;
		rc = push_credit(e, c);
		n += rc > 0;
		if (rc >= 0)
			rc = push_packets(e, c);
		n += rc > 0 ? rc : 0;
	}
	return n < 0 ? n : rc < 0 ? rc : n;
}

int overlay_push(struct endpoint *ep)
{
	struct overlays *o = ep->rooms->overlays;
	int n = 0, rc;

	if (!o || o->pushing || ep->state != SLMPM_PEER_UP || ep->life->sent_end)
		return 0;
	o->pushing = true;
	LIST_EACH_ENTRY(struct edge, e, &o->edges, of_peer) {
		rc = edge_push(e);
		n += rc > 0 ? rc : 0;
		if (rc < 0 || ep->state != SLMPM_PEER_UP) /* its edges have gone then */
			break;
	}
	o->pushing = false;
	endpoint_block(ep, BLOCK_OVERLAY, overlay_has_work(ep));
	return n;
}

void edge_changed(struct edge *e)
{
	struct endpoint *ep = e->ep;

	if (!ep)
		return;
	if (edge_has_work(e))
		(void)overlay_push(ep);
	if (e->ep)
		endpoint_block(ep, BLOCK_OVERLAY, overlay_has_work(ep));
}

void edge_due(struct edge *e, enum overlay_kind kind)
{
	if (!e->ep)
		return;
	e->due |= 1u << kind;
	edge_changed(e);
}

/* ---- messages of this node's ----------------------------------------------------------------- */

void overlay_submit(struct overlay *n, struct overlay_send *s)
{
	uint32_t channel;

	s->edge = overlay_edge_to(n, s->target, &channel);
	n->sends++;
	list_append(&s->edge->channel[channel].own, &s->node);
	edge_changed(s->edge);
}

/* Its completion: of an error, which node's doing it was. */
static void finish_request(const struct overlay *n, struct request *r, int status)
{
	if (status < 0) {
		r->result.imm = (uint32_t)n->culprit;
		r->owned = strdup(n->detail); /* the network may be gone when it is wanted */
	}
	request_finish(r, status);
}

void overlay_send_end(struct overlay_send *s, int status)
{
	struct overlay *n = s->edge->net;
	struct request *r = s->request;

	list_remove(&s->node);
	n->sends--;
	if (s->result)
		*s->result = status < 0 ? status : 1;
	free(s->copy);
	free(s);
	if (r)
		finish_request(n, r, status);
	overlay_news(n);
}
