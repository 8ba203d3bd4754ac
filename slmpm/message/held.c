/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that the application reads in place: a few in the endpoint, more where needed. */
#include "slmpm/message/held.h"

#include <stdlib.h>

#include "slmpm/link/link.h"

static struct held *add_more(struct endpoint *ep)
{
	struct held_more *more = calloc(1, sizeof(*more));

	if (!more)
		return NULL;
	more->next = ep->held_more;
	ep->held_more = more;
	return &more->held;
}

struct held *held_new(struct endpoint *ep)
{
	for (int i = 0; i < HELD_INLINE; i++)
		if (!ep->held[i].data)
			return &ep->held[i];
	for (struct held_more *more = ep->held_more; more; more = more->next)
		if (!more->held.data)
			return &more->held;
	return add_more(ep);
}

struct held *held_find(struct endpoint *ep, const void *data)
{
	if (!data)
		return NULL;
	for (int i = 0; i < HELD_INLINE; i++)
		if (ep->held[i].data == data)
			return &ep->held[i];
	for (struct held_more *more = ep->held_more; more; more = more->next)
		if (more->held.data == data)
			return &more->held;
	return NULL;
}

void held_release(struct endpoint *ep, struct held *h)
{
	if (h->message) {
		bool growing = h->message->area && !list_empty(&h->message->parts);

		h->message->released = true;
		if (!growing) /* else its last part frees it */
			inbound_free(h->message);
	} else {
		ep->held_segments -= h->arrival.span;
		if (ep->state == SLMPM_PEER_UP)
			ep->link.fabric->release(ep->link.port, &h->arrival);
		else
			ep->ctx->ended = true;
	}
	h->message = NULL;
	h->data = NULL;
}

static bool is_in_ring(const struct held *h)
{
	return h->data && !h->message;
}

bool held_in_ring(const struct endpoint *ep)
{
	for (int i = 0; i < HELD_INLINE; i++)
		if (is_in_ring(&ep->held[i]))
			return true;
	for (const struct held_more *more = ep->held_more; more; more = more->next)
		if (is_in_ring(&more->held))
			return true;
	return false;
}

struct held *held_arrival(struct endpoint *ep, const struct fabric_arrival *a)
{
	struct held *held;

	if (ep->held_segments + a->span > link_ring_in(ep) / 4)
		return NULL;
	held = held_new(ep);
	if (!held)
		return NULL;
	held->data = a->data;
	held->arrival = *a;
	held->message = NULL;
	ep->held_segments += a->span;
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
	for (int i = 0; i < HELD_INLINE; i++)
		if (ep->held[i].data)
			held_release(ep, &ep->held[i]);
	while (ep->held_more) {
		struct held_more *more = ep->held_more;

		if (more->held.data)
			held_release(ep, &more->held);
		ep->held_more = more->next;
		free(more);
	}
}
