/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages, what both sides need: whether each reaches the other's memory, and turns. */
#include "slmpm/bulk.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/bundle.h"
#include "slmpm/link.h"
#include "slmpm/progress.h"

/* All of a process's memory, as far as the kernel lets one reach it. */
static const struct fabric_memory all = {.size = UINT64_MAX, .writable = true};

void bulk_open(struct endpoint *ep)
{
	const struct config *config = config_get();
	const struct fabric_counts *c = &ep->link.port->counts;

	link_flush(ep);
	if (c->in_segments < 4 * BULK_ROOM || c->out_segments < 4 * BULK_ROOM)
		return;
	if (config->attach && config->fetch != 2 && ep->link.fabric->reg && !ep->check)
		ep->fetch_min = (uint64_t)config->fetch_min;
}

struct bulk *bulk_of(struct endpoint *ep)
{
	struct bulk *b = ep->bulk;

	if (b)
		return b;
	b = ep->bulk = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->peer = all;
	list_init(&b->pulls);
	list_init(&b->pushes);
	return b;
}

void bulk_end(struct endpoint *ep)
{
	struct bulk *b = ep->bulk;

	if (!b)
		return;
	/* The messages go with the endpoint's lists. */
	LIST_EACH(at, &b->pulls) {
		list_remove(at);
		ep->ctx->pulls--;
	}
	LIST_EACH(at, &ep->announced) {
		struct request *r = LIST_ENTRY(at, struct request, node);

		if (r->push)
			push_forget(r);
	}
	b->pulling = NULL;
}

bool bulk_let_go(struct endpoint *ep)
{
	struct bulk *b = ep->bulk;

	while (b && !list_empty(&b->pulls))
		if (!pull_take_back(LIST_ENTRY(b->pulls.next, struct pull, node)->m))
			return false;
	return true;
}

void bulk_free(struct endpoint *ep)
{
	if (!ep->bulk)
		return;
	ep->link.fabric->dereg(ep->ctx->domain, &ep->bulk->peer);
	free(ep->bulk);
	ep->bulk = NULL;
}

int bulk_step(struct endpoint *ep)
{
	struct bulk *b = ep->bulk;
	int n = 0;

	if (!list_empty(&b->pulls)) {
		struct list *first = b->pulls.next;

		list_remove(first); /* the others have their turn behind it */
		list_append(&b->pulls, first);
		n += pull_step(ep, LIST_ENTRY(first, struct pull, node));
	}
	if (!list_empty(&b->pushes)) {
		struct list *first = b->pushes.next;

		list_remove(first);
		list_append(&b->pushes, first);
		n += push_step(ep, LIST_ENTRY(first, struct push, node));
	}
	if (!ep->ctx->polling)
		bulk_rest(ep);
	return n;
}

void bulk_rest(struct endpoint *ep)
{
	LIST_EACH(at, &ep->bulk->pulls)
		pull_rest(ep, LIST_ENTRY(at, struct pull, node));
}

void bulk_rest_all(struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count; i++)
		if (bulk_busy(ctx->endpoints[i]) && ctx->endpoints[i]->state == SLMPM_PEER_UP)
			bulk_rest(ctx->endpoints[i]);
}

/* ---- what is said --------------------------------------------------------------------------- */

bool bulk_say(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t route, uint64_t extent,
	      const void *data, uint32_t length)
{
	unsigned char payload[sizeof(struct wire_fetch) + WIRE_RANGES * sizeof(struct wire_range) +
			      sizeof(((struct fabric_blob *)0)->bytes)];
	struct packet p = {
		.opcode = opcode,
		.seq = seq,
		.route = route,
		.extent = extent,
		.data = payload,
		.length = length,
	};
	struct bulk *b = ep->bulk;
	bool introduce = !b->introduced && (opcode == WIRE_FETCH || opcode == WIRE_FETCH_TAKE);
	struct fabric_memory own = all;
	struct fabric_blob blob = {.length = 0};

	if (ep->bundle.count && !bundle_flush(ep))
		return false; /* it was promised its share of the credit */
	/* Not before what waits, nor into a loan that lies open in the ring. */
	if (!list_empty(&ep->owed) || (ep->loan.data && !ep->loan.area))
		return false;
	if (length)
		memcpy(payload, data, length);
	if (introduce && ep->link.fabric->reg(ep->link.port, &own, true, true, &blob) == 0) {
		memcpy(payload + length, blob.bytes, blob.length);
		p.length += blob.length;
	}
	if (link_post_request(ep, &p, NULL) != 1)
		return false;
	b->introduced |= introduce;
	ep->link.run = 0;
	return true;
}

bool bulk_is_scarce(struct endpoint *ep)
{
	const struct fabric_counts *c = &ep->link.port->counts;

	if (ep->loan.data && !ep->loan.area)
		return false; /* nothing can be said anyway, and a flush would undo the loan */
	link_flush(ep);
	return c->out_segments - (c->produced - c->consumed_seen) < BULK_ROOM;
}

bool bulk_introduced(struct endpoint *ep, const struct head *h, uint32_t length)
{
	struct bulk *b = ep->bulk;
	struct fabric_blob blob = {.length = h->length - length};

	if (!blob.length)
		return true;
	if (blob.length > sizeof(blob.bytes) || b->peer.ops || !ep->link.fabric->reg)
		return false;
	memcpy(blob.bytes, (const unsigned char *)h->data + length, blob.length);
	return ep->link.fabric->reg(ep->link.port, &b->peer, false, true, &blob) == 0;
}

bool bulk_heard(struct endpoint *ep)
{
	/* Pairs with the same fence of the peer, between its word and its look (bulk.h). */
	atomic_thread_fence(memory_order_seq_cst);
	return progress_look(ep) && ep->state == SLMPM_PEER_UP;
}
