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
#include "slmpm/link/watermark.h"
#include "slmpm/stats.h"

struct deferred { /* a control packet that found no room */
	struct list node;
	uint64_t seq, route, extent;
	uint32_t length;
	uint8_t opcode;
	bool rides; /* may wait for the next packet */
	unsigned char data[WIRE_CONTROL_MAX];
};

static int post_deferred(struct endpoint *ep, const struct deferred *o)
{
	struct packet p = {
		.opcode = o->opcode,
		.flags = o->rides ? FABRIC_MORE : 0,
		.seq = o->seq,
		.route = o->route,
		.extent = o->extent,
		.data = o->data,
		.length = o->length,
	};

	return link_post_request(ep, &p, NULL);
}

static void deferred_free(struct endpoint *ep, struct deferred *o)
{
	list_remove(&o->node);
	free(o);
	endpoint_block(ep, BLOCK_DEFERRED, !list_empty(&ep->link.deferred));
}

static void defer(struct endpoint *ep, const struct deferred *o)
{
	struct deferred *later;

	if (ep->state != SLMPM_PEER_UP || ep->life->sent_end) /* behind which nothing is read */
		return;
	/* A loan that lies open in the ring must be committed before anything else goes in. */
	if (list_empty(&ep->link.deferred) && !ep->bundle.count && ep->lent != LENT_PACKET &&
	    post_deferred(ep, o) == 1)
		return;
	later = malloc(sizeof(*later));
	if (!later) {
		endpoint_break(ep, "state: no memory for a control packet");
		return;
	}
	*later = *o;
	later->rides = false;
	list_append(&ep->link.deferred, &later->node);
	endpoint_block(ep, BLOCK_DEFERRED, true);
}

void link_control_whole(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t route,
			uint64_t extent, const void *data, uint32_t length)
{
	struct deferred o = {
		.opcode = opcode,
		.seq = seq,
		.route = route,
		.extent = extent,
		.length = length,
	};

	if (length)
		memcpy(o.data, data, length);
	defer(ep, &o);
}

void link_control(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t extent,
		  const void *data, uint32_t length)
{
	link_control_whole(ep, opcode, seq, 0, extent, data, length);
}

/* Where a packet is a call of the kernel, credit that a peer cannot be short of yet goes along with the
 * next one, or when somebody looks around. */
static bool may_ride(const struct endpoint *ep)
{
	return ep->link.port->domain->fd >= 0 &&
	       ep->matched_charge - ep->returned_charge + ep->unmatched_charge <= ep->credit / 2;
}

void link_return_credit(struct endpoint *ep)
{
	struct deferred now = {.opcode = WIRE_CREDIT, .rides = may_ride(ep)};

	inspect_tick_amid(ep->ctx); /* who never waits comes by here */
	progress_turn(ep);
	ep->returned_charge = ep->matched_charge;
	LIST_EACH_ENTRY(struct deferred, o, &ep->link.deferred, node) {
		if (o->opcode == WIRE_CREDIT) {
			o->seq = ep->stats->received_messages;
			o->extent = ep->matched_charge & WIRE_LENGTH_MASK;
			return;
		}
	}
	now.seq = ep->stats->received_messages;
	now.extent = ep->matched_charge & WIRE_LENGTH_MASK;
	defer(ep, &now);
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
	watermark_mark(ep); /* who is always given credit in time comes by here */
	(void)link_push(ep);
	context_changed(ep->ctx);
}

int link_push_deferred(struct endpoint *ep)
{
	int n = 0;

	LIST_EACH_ENTRY(struct deferred, o, &ep->link.deferred, node) {
		if (post_deferred(ep, o) != 1)
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
		n += LIST_ENTRY(at, struct deferred, node)->opcode == opcode;
	return n;
}

bool link_disown(struct endpoint *ep, uint8_t opcode, uint64_t seq)
{
	LIST_EACH_ENTRY(struct deferred, o, &ep->link.deferred, node) {
		if (o->opcode != opcode || o->seq != seq)
			continue;
		deferred_free(ep, o);
		return true;
	}
	return false;
}

void link_drop_deferred(struct endpoint *ep)
{
	LIST_EACH(at, &ep->link.deferred)
		deferred_free(ep, LIST_ENTRY(at, struct deferred, node));
}
