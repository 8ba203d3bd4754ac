/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets without message: they go out at once, or wait here in order for room, before what is
 * queued. What a peer can make us owe is bounded by who calls (link_deferred).
 */
#include <stdlib.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/link/inspect.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/stats.h"

struct deferred { /* a control packet that found no room */
	struct list node;
	struct packet packet;
	unsigned char data[WIRE_CONTROL_MAX];
};

/* By value: a checksum changes what is posted. */
static int post_deferred(struct endpoint *ep, struct packet p)
{
	return link_post_request(ep, &p, NULL);
}

static void deferred_free(struct endpoint *ep, struct deferred *o)
{
	list_remove(&o->node);
	free(o);
	endpoint_block(ep, BLOCK_DEFERRED, !list_empty(&ep->link.deferred));
}

static void defer(struct endpoint *ep, const struct packet *p)
{
	struct deferred *o;

	if (ep->state != SLMPM_PEER_UP || ep->life->sent_end) /* behind which nothing is read */
		return;
	/* A loan that lies open in the ring must be committed before anything else goes in. */
	if (list_empty(&ep->link.deferred) && !ep->bundle.count && ep->lent != LENT_PACKET &&
	    post_deferred(ep, *p) == 1)
		return;
	o = malloc(sizeof(*o));
	if (!o) {
		endpoint_break_no_memory(ep);
		return;
	}
	o->packet = *p;
	o->packet.flags = 0; /* it waits for no other any more */
	o->packet.data = o->data;
	if (p->length)
		memcpy(o->data, p->data, p->length);
	list_append(&ep->link.deferred, &o->node);
	endpoint_block(ep, BLOCK_DEFERRED, true);
}

void link_control_whole(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t route,
			uint64_t extent, const void *data, uint32_t length)
{
	defer(ep, &(struct packet){
			  .opcode = opcode,
			  .length = length,
			  .data = data,
			  .seq = seq,
			  .route = route,
			  .extent = extent,
		  });
}

void link_control(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t extent,
		  const void *data, uint32_t length)
{
	link_control_whole(ep, opcode, seq, 0, extent, data, length);
}

/* The newest. */
static struct packet *find_deferred(struct endpoint *ep, uint8_t opcode, uint64_t route)
{
	struct packet *found = NULL;

	LIST_EACH_ENTRY(struct deferred, o, &ep->link.deferred, node)
		if (o->packet.opcode == opcode && o->packet.route == route)
			found = &o->packet;
	return found;
}

void link_control_latest(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t route,
			 uint64_t extent)
{
	struct packet *waits = find_deferred(ep, opcode, route);

	if (waits && waits->extent == extent)
		waits->seq = seq;
	else
		link_control_whole(ep, opcode, seq, route, extent, NULL, 0);
}

bool link_defers(struct endpoint *ep, uint8_t opcode, uint64_t route, uint64_t extent)
{
	LIST_EACH_ENTRY(struct deferred, o, &ep->link.deferred, node)
		if (o->packet.opcode == opcode && o->packet.route == route &&
		    o->packet.extent == extent)
			return true;
	return false;
}

/* Where a packet is a system call, credit that a peer cannot be short of yet goes with the next
 * one, or with the next inspection. */
static bool may_ride(const struct endpoint *ep)
{
	return ep->link.port->domain->fd >= 0 &&
	       ep->matched_charge - ep->returned_charge + ep->unmatched_charge <= ep->credit / 2;
}

void link_return_credit(struct endpoint *ep)
{
	struct packet now = {.opcode = WIRE_CREDIT, .flags = may_ride(ep) ? FABRIC_MORE : 0};
	struct packet *waits;

	inspect_tick_amid(ep->ctx); /* the only one of calls that never wait */
	progress_turn(ep);
	ep->returned_charge = ep->matched_charge;
	now.seq = ep->stats->received_messages;
	now.extent = ep->matched_charge & WIRE_LENGTH_MASK;
	waits = find_deferred(ep, WIRE_CREDIT, 0);
	if (waits) {
		waits->seq = now.seq;
		waits->extent = now.extent;
	} else {
		defer(ep, &now);
	}
}

void link_credited(struct endpoint *ep, const struct head *h)
{
	uint64_t step = (h->extent - ep->credited) & WIRE_LENGTH_MASK;

	if (PEER_FAULT(step > ep->charged - ep->credited)) {
		endpoint_poison(ep, "credit");
		return;
	}
	ep->credited += step;
	ep->rooms->figures->received = h->seq;
	watermark_mark(ep); /* the only mark where credit is always there in time */
	(void)link_push(ep);
	context_changed(ep->ctx);
}

int link_push_deferred(struct endpoint *ep)
{
	int n = 0;

	LIST_EACH_ENTRY(struct deferred, o, &ep->link.deferred, node) {
		if (post_deferred(ep, o->packet) != 1)
			return n;
		deferred_free(ep, o);
		n++;
	}
	return n;
}

uint32_t link_deferred(const struct endpoint *ep, uint8_t opcode)
{
	uint32_t n = 0;

	LIST_EACH(at, &ep->link.deferred)
		n += LIST_ENTRY(at, struct deferred, node)->packet.opcode == opcode;
	return n;
}

bool link_disown(struct endpoint *ep, uint8_t opcode, uint64_t seq)
{
	LIST_EACH_ENTRY(struct deferred, o, &ep->link.deferred, node) {
		if (o->packet.opcode != opcode || o->packet.seq != seq)
			continue;
		deferred_free(ep, o);
		return true;
	}
	return false;
}

void link_drop_route(struct endpoint *ep, uint8_t opcode, uint64_t route)
{
	LIST_EACH_ENTRY(struct deferred, o, &ep->link.deferred, node)
		if (o->packet.opcode == opcode && o->packet.route == route)
			deferred_free(ep, o);
}

void link_drop_deferred(struct endpoint *ep)
{
	LIST_EACH(at, &ep->link.deferred)
		deferred_free(ep, LIST_ENTRY(at, struct deferred, node));
}
