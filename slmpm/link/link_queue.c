/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fabric cannot take yet waits here in order; whose turn it is when there is room. */
#include "slmpm/link/link.h"

#include <string.h>

#include "slmpm/link/bundle.h"
#include "slmpm/part.h"

/* May it begin although others stand before it? One-sided operations are in no order with sends. */
static bool is_early(const struct request *r)
{
	return r->kind >= REQUEST_PUT || (!r->numbered && r->wire & WIRE_FLAG_UNCHARGED);
}

void link_enqueue(struct endpoint *ep, struct request *r)
{
	if (list_empty(&ep->link.queue)) /* what has gone before has gone whole */
		watermark_mark(ep);
	list_append(&ep->link.queue, &r->node);
	link_changed(ep);
	ep->link.depth++;
	r->early = is_early(r);
	ep->link.early += r->early;
	endpoint_block(ep, BLOCK_QUEUE, true);
}

void link_dequeue(struct endpoint *ep, struct request *r)
{
	list_remove(&r->node);
	link_changed(ep);
	ep->link.depth--;
	ep->link.streaming -= r->streaming;
	ep->link.early -= r->early;
	r->streaming = r->early = false;
	endpoint_block(ep, BLOCK_QUEUE, !list_empty(&ep->link.queue));
}

void link_streams(struct endpoint *ep, struct request *r)
{
	ep->link.streaming += !r->streaming;
	ep->link.early -= r->early;
	link_changed(ep);
	r->streaming = true;
	r->early = false;
}

void link_rotate(struct endpoint *ep, struct request *r)
{
	list_remove(&r->node);
	list_append(&ep->link.queue, &r->node);
}

/* Not the first. Many may wait here for a peer that has stopped, while each pass scans them. */
static struct request *find_ready(struct endpoint *ep)
{
	const struct link_walk now = {
		.changes = ep->link.changes,
		.credit = ep->charged - ep->credited,
		.active = ep->link.active,
	};

	if (!memcmp(&now, &ep->link.vain, sizeof(now)))
		return NULL;
	LIST_EACH_ENTRY(struct request, r, &ep->link.queue, node)
		if (r->streaming || request_ops[r->kind].ready(ep, r, false))
			return r;
	ep->link.vain = now;
	return NULL;
}

/*
 * The first in line. One that may not begin holds up those behind it, but neither those under way,
 * whose end the peer may need before it takes anything else, nor those that may begin early.
 */
static struct request *next_request(struct endpoint *ep)
{
	struct request *first = LIST_ENTRY(ep->link.queue.next, struct request, node);
	struct request *active = ep->link.active;

	if (list_empty(&ep->link.queue))
		return NULL;
	if (active && active->streaming)
		return active;
	if (first->numbered || request_ops[first->kind].ready(ep, first, true))
		return first;
	if (ep->link.streaming || ep->link.early)
		return find_ready(ep);
	return NULL;
}

int link_push_queue(struct endpoint *ep)
{
	struct request *r;
	bool stop = false;
	int n = 0;

	while (!stop && ep->state == SLMPM_PEER_UP && (r = next_request(ep)))
		n += request_ops[r->kind].push(ep, r, &stop);
	return n;
}

/* Each room that sends, in another order each time: none always finds room first. */
static int push_all(struct endpoint *ep)
{
	uint32_t turn = ep->link.turn++;
	int n = 0;

	for (uint32_t i = 0; i < PART_PUSHES && ep->state == SLMPM_PEER_UP; i++) {
		uint32_t at = ((turn & 1 ? PART_PUSHES - 1 - i : i) + turn / 2) % PART_PUSHES;

		if (ep->blocked & parts.pushes[at].block)
			n += parts.pushes[at].push(ep);
	}
	return n;
}

int link_push(struct endpoint *ep)
{
	int n = 0;

	if (ep->state != SLMPM_PEER_UP || ep->lent == LENT_PACKET)
		return 0;
	if (UNLIKELY(endpoint_is_blocked(ep, BLOCK_LAGS)) && !link_lags(ep))
		n++; /* calls that wait for that go on */
	if (ep->bundle.count && !bundle_flush(ep))
		return n;
	if (!list_empty(&ep->link.deferred)) {
		n += link_push_deferred(ep);
		if (!list_empty(&ep->link.deferred))
			return n;
	}
	if (ep->life->sent_end) /* nobody reads what stands behind that */
		return n;
	return n + push_all(ep);
}

static void fail_all(struct list *list, int error)
{
	LIST_EACH_ENTRY(struct request, r, list, node) {
		list_remove(&r->node);
		request_finish(r, -error);
	}
}

void link_queue_end(struct endpoint *ep)
{
	fail_all(&ep->link.queue, ep->life->error);
	fail_all(&ep->link.announced, ep->life->error);
}
