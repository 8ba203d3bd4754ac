/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages, what both sides need: whether each reaches the other's memory, words, turns. */
#include "slmpm/message/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/link/bundle.h"
#include "slmpm/link/link.h"
#include "slmpm/link/addressee.h"
#include "slmpm/link/progress.h"

/* All of a process's memory, as far as the kernel lets one reach it. */
static const struct fabric_memory all = {.size = UINT64_MAX, .writable = true};

/* Of the segments that may be held back in the ring out: one side's share. */
static uint32_t held_max(const struct endpoint *ep)
{
	return addressee_hold_max(ep, link_ring_out(ep)) / 2;
}

static uint64_t shortest(const struct mode_limits *limits)
{
	uint64_t least = limits->fetch < limits->bulk ? limits->fetch : limits->bulk;

	return least ? least : 1;
}

void fetch_open(struct endpoint *ep)
{
	const struct config *config = config_get();

	link_flush(ep); /* not later: a loan may lie open then */
	if (held_max(ep) < FETCH_SENDER_WORDS ||
	    addressee_hold_max(ep, link_ring_in(ep)) / 2 < FETCH_SENDER_WORDS)
		return;
	if (ep->attach && config->fetch != WHEN_NEVER && ep->link.fabric->reg && !ep->check)
		ep->fetch_min = shortest(mode_limits());
}

struct fetch *fetch_of(struct endpoint *ep)
{
	struct fetch *f = ep->fetch;

	if (f)
		return f;
	f = ep->fetch = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->peer = all;
	f->held_max = held_max(ep);
	list_init(&f->in);
	list_init(&f->out);
	return f;
}

void fetch_end(struct endpoint *ep)
{
	struct fetch *f = ep->fetch;

	if (!f)
		return;
	/* The messages go with the endpoint's lists. */
	LIST_EACH(at, &f->in)
		list_remove(at);
	LIST_EACH(at, &ep->announced) {
		struct request *r = LIST_ENTRY(at, struct request, node);

		if (r->fetch)
			fetch_forget(r);
	}
	f->in_hand = NULL;
}

bool fetch_release(struct endpoint *ep)
{
	struct fetch *f = ep->fetch;

	while (f && !list_empty(&f->in))
		if (!fetch_undo(LIST_ENTRY(f->in.next, struct fetch_in, node)->m))
			return false;
	return !f || !f->stranded;
}

void fetch_free(struct endpoint *ep)
{
	if (!ep->fetch)
		return;
	ep->link.fabric->dereg(ep->link.port->domain, &ep->fetch->peer);
	free(ep->fetch);
	ep->fetch = NULL;
}

/* The first of a list; the others have their turn behind it. */
static struct list *next_of(struct list *list)
{
	struct list *first = list->next;

	list_remove(first);
	list_append(list, first);
	return first;
}

bool fetch_is_out(const struct endpoint *ep)
{
	return !list_empty(&ep->fetch->out);
}

int fetch_step(struct endpoint *ep)
{
	struct fetch *f = ep->fetch;
	int n = 0;

	if (!fetch_busy(ep))
		return 0;
	if (!list_empty(&f->in))
		n += fetch_read_step(ep, LIST_ENTRY(next_of(&f->in), struct fetch_in, node));
	if (!list_empty(&f->out) && ep->state == SLMPM_PEER_UP)
		n += fetch_send_step(ep, LIST_ENTRY(next_of(&f->out), struct fetch_out, node));
	return n;
}

/* ---- what is said --------------------------------------------------------------------------- */

/* A loan lies open in the ring, behind what was said before: nothing goes there now. */
static bool in_the_way(const struct endpoint *ep)
{
	return ep->loan.data && !ep->loan.area;
}

uint32_t fetch_introduce(struct endpoint *ep, unsigned char *to)
{
	struct fetch *f = fetch_of(ep);
	struct fabric_memory own = all;
	struct fabric_blob blob = {.length = 0};

	if (!f || f->introduced || ep->link.fabric->reg(ep->link.port, &own, true, true, &blob) < 0)
		return 0;
	memcpy(to, blob.bytes, blob.length);
	return blob.length;
}

bool fetch_notify(struct endpoint *ep, struct request *r, uint8_t opcode, uint64_t seq,
		  uint64_t route, uint64_t extent, const void *data, uint32_t length)
{
	unsigned char payload[sizeof(struct wire_fetch) + WIRE_RANGES * sizeof(struct wire_range) +
			      FETCH_INTRODUCTION];
	struct packet p = {
		.opcode = opcode,
		.seq = seq,
		.route = route,
		.extent = extent,
		.data = payload,
		.length = length,
	};
	struct fetch *f = ep->fetch;
	uint32_t introduction = 0;

	if (ep->bundle.count && !bundle_flush(ep))
		return false; /* it was promised its share of the credit */
	if (!list_empty(&ep->deferred) || in_the_way(ep))
		return false;
	if (length)
		memcpy(payload, data, length);
	if (opcode == WIRE_FETCH || opcode == WIRE_FETCH_TAKE)
		introduction = fetch_introduce(ep, payload + length);
	p.length += introduction;
	if (link_post_request(ep, &p, r) != 1)
		return false;
	f->introduced |= introduction > 0;
	ep->link.run = 0;
	return true;
}

bool fetch_hold(struct endpoint *ep, uint32_t *share, uint32_t *held, int n)
{
	struct fetch *f = ep->fetch;

	if (!n)
		return true;
	if (n > 0 && *share + (uint32_t)n > f->held_max)
		return false;
	if (!link_hold_back(ep, n))
		return false;
	*share += (uint32_t)n;
	*held += (uint32_t)n;
	return true;
}

/* What waits for room, and a burst that is staged, are overtaken: none of it is about this message. */
bool fetch_notify_held(struct endpoint *ep, uint32_t *held, uint8_t opcode, uint64_t seq,
		       uint64_t extent, const void *data, uint32_t length)
{
	struct fetch *f = ep->fetch;
	bool in = opcode == WIRE_FETCH_TAKE || opcode == WIRE_FETCH_DONE;
	uint32_t *share = in ? &f->held_in : &f->held_out;
	struct packet p = {
		.opcode = opcode,
		.seq = seq,
		.extent = extent,
		.data = data,
		.length = length,
	};

	if (!*held || in_the_way(ep))
		return false;
	(void)fetch_hold(ep, share, held, -1);
	if (link_post_request(ep, &p, NULL) == 1) {
		ep->link.run = 0;
		return true;
	}
	(void)fetch_hold(ep, share, held, 1); /* the link is broken */
	return false;
}

bool fetch_introduced(struct endpoint *ep, const struct head *h, uint32_t length)
{
	struct fetch *f = ep->fetch;
	struct fabric_blob blob = {.length = h->length - length};

	if (!blob.length)
		return true;
	if (blob.length > sizeof(blob.bytes) || f->peer.ops || !ep->link.fabric->reg)
		return false;
	memcpy(blob.bytes, (const unsigned char *)h->data + length, blob.length);
	return ep->link.fabric->reg(ep->link.port, &f->peer, false, true, &blob) == 0;
}

bool fetch_caught_up(struct endpoint *ep)
{
	/* Pairs with the same fence of the peer, between its word and its look (fetch.h). */
	atomic_thread_fence(memory_order_seq_cst);
	return progress_inspect(ep) && ep->state == SLMPM_PEER_UP;
}

void fetch_catch_up(struct endpoint *ep)
{
	/* What was said before the fence lies in the ring; more may come as fast as it is taken. */
	uint64_t most = ep->link.port->counts.in_segments;

	for (uint64_t i = 0; i < most && ep->state == SLMPM_PEER_UP && !fetch_caught_up(ep); i++)
		;
}
