/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages, what both sides need: whether each reaches the other's memory, words, turns. */
#include "slmpm/message/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/link/addressee.h"

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

	(void)link_flush(ep); /* not later: a loan may lie open then */
	if (held_max(ep) < FETCH_SENDER_WORDS ||
	    addressee_hold_max(ep, link_ring_in(ep)) / 2 < FETCH_SENDER_WORDS)
		return;
	if (ep->life->attach && config->fetch != WHEN_NEVER && ep->link.fabric->reg &&
	    !ep->link.check)
		ep->fetch_min = shortest(mode_limits());
}

struct fetch *fetch_of(struct endpoint *ep)
{
	struct fetch *f = ep->rooms->fetch;

	if (f)
		return f;
	f = ep->rooms->fetch = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->peer = all;
	f->room_in.max = f->room_out.max = held_max(ep);
	list_init(&f->in);
	list_init(&f->out);
	return f;
}

void fetch_end(struct endpoint *ep)
{
	struct fetch *f = ep->rooms->fetch;

	if (!f)
		return;
	/* The messages go with the endpoint's lists. */
	LIST_EACH(at, &f->in)
		list_remove(at);
	LIST_EACH_ENTRY(struct request, r, &ep->link.announced, node)
		if (r->fetch)
			fetch_forget(r);
	f->in_hand = NULL;
}

bool fetch_release(struct endpoint *ep)
{
	struct fetch *f = ep->rooms->fetch;

	while (f && !list_empty(&f->in))
		if (!fetch_undo(LIST_ENTRY(f->in.next, struct fetch_in, node)->m))
			return false;
	return !f || !f->stranded;
}

void fetch_free(struct endpoint *ep)
{
	if (!ep->rooms->fetch)
		return;
	ep->link.fabric->dereg(ep->link.port->domain, &ep->rooms->fetch->peer);
	free(ep->rooms->fetch);
	ep->rooms->fetch = NULL;
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
	return !list_empty(&ep->rooms->fetch->out);
}

int fetch_step(struct endpoint *ep)
{
	struct fetch *f = ep->rooms->fetch;
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

bool fetch_notify(struct endpoint *ep, struct packet *p, struct request *r)
{
	struct fetch *f = fetch_of(ep);
	struct fabric_memory own = all;
	struct fabric_blob blob = {.fd = -1};
	unsigned char payload[sizeof(struct wire_fetch) + WIRE_RANGES * sizeof(struct wire_range) +
			      sizeof(blob.bytes)];

	if (f && !f->introduced && ep->link.fabric->reg(ep->link.port, &own, true, true, &blob) < 0)
		blob.length = 0;
	memcpy(payload, p->data, p->length);
	memcpy(payload + p->length, blob.bytes, blob.length);
	p->data = payload;
	p->length += blob.length;
	if (!split_notify(ep, p, r))
		return false;
	if (blob.length)
		f->introduced = true;
	return true;
}

bool fetch_introduced(struct endpoint *ep, const struct head *h, uint32_t length)
{
	struct fetch *f = ep->rooms->fetch;
	struct fabric_blob blob = {.length = h->length - length, .fd = -1};

	if (!blob.length)
		return true;
	if (blob.length > sizeof(blob.bytes) || f->peer.ops || !ep->link.fabric->reg)
		return false;
	memcpy(blob.bytes, (const unsigned char *)h->data + length, blob.length);
	return ep->link.fabric->reg(ep->link.port, &f->peer, false, true, &blob) == 0;
}
