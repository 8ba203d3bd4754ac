/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that the application reads in place. */
#include "slmpm/message/held.h"

#include <stdlib.h>

#include "slmpm/link/link.h"

struct held_block {
	struct held held[HELD_BLOCK];
	struct held_block *next;
};

/* The one of DATA, or with NULL a free one; or NULL. */
static struct held *held_at(const struct endpoint *ep, const void *data)
{
	for (struct held_block *b = ep->messages->held; b; b = b->next)
		for (int i = 0; i < HELD_BLOCK; i++)
			if (b->held[i].data == data)
				return &b->held[i];
	return NULL;
}

struct held *held_new(struct endpoint *ep)
{
	struct held *h = held_at(ep, NULL);
	struct held_block *more = h ? NULL : calloc(1, sizeof(*more));

	if (!more)
		return h;
	more->next = ep->messages->held;
	ep->messages->held = more;
	return more->held;
}

struct held *held_find(struct endpoint *ep, const void *data)
{
	return data ? held_at(ep, data) : NULL;
}

void held_release(struct endpoint *ep, struct held *h)
{
	if (h->message) {
		bool growing = h->message->area && !list_empty(&h->message->parts);

		h->message->released = true;
		if (!growing) /* else its last part frees it */
			inbound_free(h->message);
	} else {
		ep->messages->held_segments -= h->arrival.span;
		if (ep->state == SLMPM_PEER_UP)
			ep->link.fabric->release(ep->link.port, &h->arrival);
		else
			ep->ctx->ended = true;
	}
	h->message = NULL;
	h->data = NULL;
}

bool held_in_ring(const struct endpoint *ep)
{
	for (const struct held_block *b = ep->messages->held; b; b = b->next)
		for (int i = 0; i < HELD_BLOCK; i++)
			if (b->held[i].data && !b->held[i].message)
				return true;
	return false;
}

bool held_any(const struct endpoint *ep)
{
	for (const struct held_block *b = ep->messages->held; b; b = b->next)
		for (int i = 0; i < HELD_BLOCK; i++)
			if (b->held[i].data)
				return true;
	return false;
}

struct held *held_arrival(struct endpoint *ep, const struct fabric_arrival *a)
{
	struct held *held = NULL;

	if (ep->messages->held_segments + a->span <= link_ring_in(ep) / 4)
		held = held_new(ep);
	if (!held)
		return NULL;
	held->data = a->data;
	held->arrival = *a;
	held->message = NULL;
	ep->messages->held_segments += a->span;
	return held;
}

bool held_in_place(struct endpoint *ep, struct request *r, const struct head *h)
{
	struct held *held = held_arrival(ep, h->arrival);

	if (!held)
		return false;
	held->data = h->data;
	r->result.len = h->length;
	r->result.stream = h->stream;
	r->result.imm = h->imm;
	r->result.peer.id = handle_id(ep);
	r->held = held;
	ep->link.kept = true;
	request_finish(r, h->damaged ? -SLMPM_ECHECKSUM : 0);
	return true;
}

void held_forget(struct endpoint *ep)
{
	while (ep->messages->held) {
		struct held_block *b = ep->messages->held;

		for (int i = 0; i < HELD_BLOCK; i++)
			if (b->held[i].data)
				held_release(ep, &b->held[i]);
		ep->messages->held = b->next;
		free(b);
	}
}
