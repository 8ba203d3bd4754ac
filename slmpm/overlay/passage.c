/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes in over an edge: packets for this node become messages, others wait in their buffers
 * until the next node has one. A neighbour that breaks the rules ends its connection, and with that
 * the network.
 */
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/wire.h"
#include "slmpm/network/network.h"
#include "slmpm/overlay/overlay.h"

/* ---- messages that come ---------------------------------------------------------------------- */

struct overlay_arrival *arrival_new(struct overlay *n, const struct overlay_head *h,
				    struct edge *from)
{
	struct overlay_arrival *a = malloc(sizeof(*a) + h->total);

	if (!a)
		return NULL;
	*a = (struct overlay_arrival){.source = h->source,
				      .stream = h->stream,
				      .total = h->total,
				      .exchanged = h->kind == OVERLAY_EXCHANGE,
				      .from = from};
	list_init(&a->node);
	n->unread += overlay_weight(a->total);
	if (a->exchanged)
		from->ahead++;
	return a;
}

void arrival_free(struct overlay *n, struct overlay_arrival *a)
{
	n->unread -= overlay_weight(a->total);
	if (a->exchanged)
		a->from->ahead--;
	list_remove(&a->node);
	free(a);
}

void arrival_whole(struct overlay *n, struct overlay_arrival *a)
{
	list_append(a->exchanged ? &a->from->exchanged : &n->arrivals, &a->node);
	overlay_news(n);
}

/* What an exchange needs is never kept out by messages. */
bool overlay_has_room(const struct overlay *n, const struct overlay_head *h)
{
	return n->takers || h->kind == OVERLAY_EXCHANGE || !n->unread ||
	       n->unread + overlay_weight(h->total) <= n->limits.unread_max;
}

/* The next packet for this node is not to wait. */
static bool is_admitted(const struct overlay *n, const struct overlay_head *h)
{
	return n->partial[h->source] || overlay_has_room(n, h);
}

/* Does a packet with head H go on with A? */
static bool arrival_goes_on(const struct overlay_arrival *a, const struct overlay_head *h)
{
	return a->got == h->offset && a->total == h->total && a->stream == h->stream &&
	       a->exchanged == (h->kind == OVERLAY_EXCHANGE);
}

/* Of a neighbour that has not had this node's last part, no third one comes. */
static bool is_ahead(const struct edge *from, const struct overlay_head *h)
{
	return h->kind == OVERLAY_EXCHANGE && from->ahead == 2;
}

/* False: it does not go on with what has come from there. */
static bool packet_deliver(struct edge *from, const struct overlay_head *h, const void *data,
			   uint32_t len)
{
	struct overlay *n = from->net;
	struct overlay_arrival *a = n->partial[h->source];

	if (a ? !arrival_goes_on(a, h) : h->offset || is_ahead(from, h))
		return false;
	if (!a)
		a = n->partial[h->source] = arrival_new(n, h, from);
	if (!a) {
		overlay_break(n, -SLMPM_ENOMEM, (int32_t)n->rank, "has no memory for a message");
		return true;
	}
	if (len)
		memcpy(a->data + a->got, data, len);
	a->got += len;
	n->delivered++;
	if (a->got < a->total)
		return true;
	n->partial[h->source] = NULL;
	arrival_whole(n, a);
	return true;
}

void overlay_admit(struct overlay *n)
{
	LIST_EACH_ENTRY(struct overlay_packet, p, &n->waiting, node) {
		struct edge *from = p->from;

		if (n->status || !is_admitted(n, &p->head))
			break;
		if (!packet_deliver(from, &p->head, p->data, p->len) && from->ep)
			endpoint_break(from->ep, "packet of a network out of order");
		packet_release(p);
	}
}

/* ---- packets --------------------------------------------------------------------------------- */

static uint32_t hops(const struct overlay *n, uint32_t from, uint32_t to)
{
	return n->shape.kind == SLMPM_NETWORK_TREE ? tree_hops(from, to) :
						     torus_hops(&n->shape, from, to);
}

/* Has H come to the neighbour by a route, and from there by the same? */
static bool is_on_route(const struct edge *e, const struct overlay_head *h)
{
	const struct overlay *n = e->net;
	const uint32_t back = overlay_back(e);

	if (h->source >= n->shape.nodes || h->target >= n->shape.nodes || h->source == n->rank ||
	    h->target == e->rank)
		return false;
	if (h->kind == OVERLAY_EXCHANGE && (h->source != e->rank || h->target != n->rank))
		return false;
	return overlay_next(n, e->rank, h->target) == back &&
	       overlay_channel(n, e->rank, back, h->target) == h->channel &&
	       hops(n, h->source, e->rank) + 1 + hops(n, n->rank, h->target) ==
		       hops(n, h->source, h->target);
}

/* Is it as long as its message says? */
static bool is_cut_right(const struct overlay *n, const struct overlay_head *h, uint64_t len)
{
	const uint64_t left = h->total - h->offset;

	if (h->total > n->limits.message_max || h->offset > h->total || (!left && h->total))
		return false;
	return len == (left < n->limits.packet ? left : n->limits.packet);
}

static void packet_keep(struct edge *e, const struct overlay_head *h, const void *data,
			uint32_t len)
{
	struct overlay *n = e->net;
	struct edge_channel *c = &e->channel[h->channel];
	struct overlay_packet *p = LIST_ENTRY(c->unused.next, struct overlay_packet, node);
	uint32_t channel;
	struct edge *out;

	list_remove(&p->node);
	c->held++;
	p->head = *h;
	p->len = len;
	if (len)
		memcpy(p->data, data, len);
	if (h->target == n->rank) {
		list_append(&n->waiting, &p->node);
		return;
	}
	out = overlay_edge_to(n, h->target, &channel);
	list_append(&out->channel[channel].through, &p->node);
	edge_changed(out);
}

static void edge_take_packet(struct edge *e, const struct overlay_head *h,
			     const struct slmpm_am *am)
{
	struct overlay *n = e->net;
	struct endpoint *ep = e->ep;
	const uint32_t len = (uint32_t)am->data_len;

	if (endpoint_broke(ep, "packet of a network: its route", !is_on_route(e, h)) ||
	    endpoint_broke(ep, "packet of a network: its length",
			   !is_cut_right(n, h, am->data_len)) ||
	    endpoint_broke(ep, "packet of a network beyond its credit",
			   e->channel[h->channel].held + e->channel[h->channel].owed >=
				   n->limits.buffers))
		return;
	if (h->target != n->rank || !is_admitted(n, h) ||
	    (!n->partial[h->source] && !list_empty(&n->waiting))) {
		packet_keep(e, h, am->data, len);
		return;
	}
	if (endpoint_broke(ep, "packet of a network out of order",
			   !packet_deliver(e, h, am->data, len)))
		return;
	e->channel[h->channel].owed++;
	edge_changed(e);
}

/* ---- words ----------------------------------------------------------------------------------- */

static void edge_take_credit(struct edge *e, const struct overlay_head *h)
{
	struct edge_channel *c = &e->channel[h->channel];

	if (endpoint_broke(e->ep, "credit of a network",
			   !h->count || h->count > e->net->limits.buffers - c->room))
		return;
	c->room += h->count;
	edge_changed(e);
}

/* Of HEAD, from EP, in a network of NODES: false, it is none. */
static bool is_break(struct endpoint *ep, const struct overlay_head *h, uint32_t nodes)
{
	return !endpoint_broke(ep, "end of a network",
			       !h->count || h->count > WIRE_ERROR_LAST ||
				       (h->source >= nodes && h->source != UINT32_MAX));
}

static void take_break(struct edge *e, const struct overlay_head *h)
{
	if (is_break(e->ep, h, e->net->shape.nodes))
		overlay_break(e->net, wire_status(h->count), (int32_t)h->source,
			      slmpm_strerror(wire_status(h->count)));
}

static void take_came(struct edge *e)
{
	struct overlay *n = e->net;
	const uint32_t bit = 1u << e->link;

	if (endpoint_broke(e->ep, "closing of a network", !(n->children & ~n->came & bit)))
		return;
	n->came |= bit;
	overlay_came(n);
}

static void take_over(struct edge *e)
{
	struct overlay *n = e->net;

	if (endpoint_broke(e->ep, "closing of a network",
			   !n->reported || n->over || !n->rank ||
				   e->link != overlay_next(n, n->rank, 0)))
		return;
	overlay_is_over(n);
}

/* ---- hellos ---------------------------------------------------------------------------------- */

static struct overlay_hello hello_in(const void *data)
{
	struct overlay_hello h;

	memcpy(&h, data, sizeof(h));
	return (struct overlay_hello){
		.kind = LITTLE_32(h.kind),
		.nodes = LITTLE_32(h.nodes),
		.wrap = LITTLE_32(h.wrap),
		.extent = {LITTLE_32(h.extent[0]), LITTLE_32(h.extent[1]), LITTLE_32(h.extent[2])},
		.buffers = LITTLE_32(h.buffers),
		.packet = LITTLE_32(h.packet),
		.message_max = LITTLE_64(h.message_max),
	};
}

static struct overlay_early *early_of(struct overlays *o, uint32_t number)
{
	for (uint32_t i = 0; o && i < o->early; i++)
		if (o->hellos[i].number == number)
			return &o->hellos[i];
	return NULL;
}

/* For one more: each number comes once, so that SLMPM_OVERLAY_MAX are the most. */
static bool early_has_room(struct overlays *o)
{
	const uint32_t room = o->early_room ? 2 * o->early_room : 4;
	void *more;

	if (o->early < o->early_room)
		return true;
	more = realloc(o->hellos, room * sizeof(*o->hellos));
	if (!more)
		return false;
	o->hellos = more;
	o->early_room = room;
	return true;
}

/* Of a network that has not been laid here yet. */
static void hello_keep(struct endpoint *ep, uint32_t number, const struct overlay_hello *hello)
{
	struct overlays *o = overlays_of(ep);

	if (!o) {
		endpoint_no_memory(ep);
		return;
	}
	if (endpoint_broke(ep, "second hello of a network", early_of(o, number)))
		return;
	if (!early_has_room(o)) {
		endpoint_no_memory(ep);
		return;
	}
	o->hellos[o->early++] = (struct overlay_early){.number = number, .hello = *hello};
}

static void edge_take_hello(struct endpoint *ep, struct edge *e, uint32_t number,
			    const struct slmpm_am *am)
{
	struct overlay_hello hello;

	if (endpoint_broke(ep, "hello of a network",
			   am->data_len != sizeof(hello) || (e && e->ready)))
		return;
	hello = hello_in(am->data);
	if (e)
		overlay_met(e, &hello);
	else if (!ep->rooms->overlays || number > ep->rooms->overlays->last)
		hello_keep(ep, number, &hello);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static struct overlay_head head_in(const void *head)
{
	struct overlay_head h;

	memcpy(&h, head, sizeof(h));
	h.number = LITTLE_32(h.number);
	h.source = LITTLE_32(h.source);
	h.target = LITTLE_32(h.target);
	h.stream = LITTLE_32(h.stream);
	h.count = LITTLE_32(h.count);
	h.total = LITTLE_64(h.total);
	h.offset = LITTLE_64(h.offset);
	return h;
}

static struct edge *edge_of(const struct endpoint *ep, uint32_t number)
{
	if (!ep->rooms->overlays)
		return NULL;
	LIST_EACH_ENTRY(struct edge, e, &ep->rooms->overlays->edges, of_peer)
		if (e->net->number == number)
			return e;
	return NULL;
}

/* Of a network that has not been laid here yet. False: nor there. */
static bool take_early_break(struct endpoint *ep, const struct overlay_head *h)
{
	struct overlay_early *early = early_of(ep->rooms->overlays, h->number);

	if (!early || early->status)
		return false;
	if (is_break(ep, h, early->hello.nodes)) {
		early->status = wire_status(h->count);
		early->culprit = (int32_t)h->source;
	}
	return true;
}

static void edge_take_word(struct edge *e, const struct overlay_head *h, const struct slmpm_am *am)
{
	if (h->kind == OVERLAY_MESSAGE || h->kind == OVERLAY_EXCHANGE)
		edge_take_packet(e, h, am);
	else if (endpoint_broke(e->ep, "data of a network's word", am->data_len))
		return;
	else if (h->kind == OVERLAY_CREDIT)
		edge_take_credit(e, h);
	else if (h->kind == OVERLAY_BREAK)
		take_break(e, h);
	else if (h->kind == OVERLAY_CAME)
		take_came(e);
	else
		take_over(e);
}

void overlay_arrived(struct endpoint *ep, const struct slmpm_am *am)
{
	struct overlay_head h;
	struct edge *e;

	if (ep->closing || endpoint_broke(ep, "head of a network's packet",
					  am->head_len != sizeof(struct overlay_head)))
		return;
	h = head_in(am->head);
	if (endpoint_broke(ep, "kind of a network's packet",
			   !h.kind || h.kind >= OVERLAY_KINDS || h.channel >= OVERLAY_CHANNELS ||
				   h.zero || !h.number || h.number > SLMPM_OVERLAY_MAX))
		return;
	e = edge_of(ep, h.number);
	if (h.kind == OVERLAY_HELLO) {
		edge_take_hello(ep, e, h.number, am);
		return;
	}
	/* One that is closed here may still be spoken of. */
	if (!e && ep->rooms->overlays && h.number <= ep->rooms->overlays->last)
		return;
	if (!e && h.kind == OVERLAY_BREAK && take_early_break(ep, &h))
		return;
	if (endpoint_broke(ep, "packet of no network", !e || !e->ready))
		return;
	if (!e->net->status && !e->net->over)
		edge_take_word(e, &h, am);
}
