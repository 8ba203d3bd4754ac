/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the bytes of a message belong that has not been taken apart yet; as arrival_send.c will see it. */
#include "slmpm/am/am.h"
#include "slmpm/loan/area.h"
#include "slmpm/sendrecv/arrival.h"
#include "slmpm/link/link.h"
#include "slmpm/message/match.h"
#include "slmpm/link/landing.h"

#define ASKED_MAX (32u << 20) /* bytes of a message */

/* A receive of any peer is the next one of each: the first to come there keeps the others out. */
static bool place_is_taken(const struct endpoint *ep, const void *place)
{
	for (uint32_t i = 0; i < ep->ctx->live; i++) {
		const struct endpoint *other = ep->ctx->endpoints[i];

		if (other != ep && other->link.landing->state == LANDING_KNOWN &&
		    other->link.landing->place == place)
			return true;
	}
	return false;
}

/* The next message: in the receive that it will have. */
static void *in_posted(struct endpoint *ep, const struct fabric_arrival *a, uint64_t total)
{
	uint32_t stream = (uint32_t)a->head[1];
	const struct request *r;
	void *place;

	if (a->head[0] != ep->received + 1 || stream == SLMPM_ANY_STREAM || a->length > total)
		return NULL;
	r = match_next(ep, stream);
	/* Of one that is longer the whole must be kept, for which there may be no memory when it is here. */
	place = r && r->kind == REQUEST_RECV && total <= r->length ? request_run(r, 0, a->length) :
								     NULL;
	return place && !place_is_taken(ep, place) ? place : NULL;
}

/*
 * The announced message is as good as matched, and who sends it need not stand still while its first
 * packet is read. But only a receive of this very peer cannot go to another's message meanwhile, and
 * if the caller takes it back, the message has to be kept: a very long one does not gain by it.
 */
void arrival_placed(struct endpoint *ep, const struct fabric_arrival *a)
{
	uint64_t total = a->head[2] & WIRE_LENGTH_MASK;
	const struct request *r = match_next(ep, (uint32_t)a->head[1]);

	if (!(a->head[2] >> 48 & WIRE_FLAG_ANNOUNCED) || ep->link.landing->asked == a->head[0] ||
	    !r || r->ep != ep || a->length != ep->packet_max_in ||
	    total <= ep->life->eager_max_in || total > ASKED_MAX)
		return;
	ep->link.landing->asked = a->head[0];
	link_control(ep, WIRE_CLEAR, a->head[0], 0, NULL, 0);
}

/* One that has begun: in its receive, or where it is kept. */
static void *in_message(struct endpoint *ep, const struct fabric_arrival *a, uint64_t offset)
{
	struct inbound *m = inbound_unfinished(ep, a->head[0]);

	if (!m || m->area || (m->announced && !m->cleared) || offset != m->got ||
	    a->length > m->total - offset)
		return NULL;
	if (m->active)
		return am_landing(m, a->length);
	if (m->receive && m->receive->kind == REQUEST_RECV)
		return request_run(m->receive, offset, a->length);
	return !m->cut && inbound_room(m, m->total) ? m->data + offset : NULL;
}

void *arrival_place_first(struct endpoint *ep, const struct fabric_arrival *a)
{
	uint64_t flags = a->head[2] >> 48;

	return flags & ~(WIRE_FLAG_ANNOUNCED | WIRE_FLAG_TIMED) ?
		       NULL :
		       in_posted(ep, a, a->head[2] & WIRE_LENGTH_MASK);
}

void *arrival_place_more(struct endpoint *ep, const struct fabric_arrival *a)
{
	return in_message(ep, a, a->head[2] & WIRE_LENGTH_MASK);
}

void *arrival_place_loan(struct endpoint *ep, const struct fabric_arrival *a)
{
	uint64_t offset = a->head[2] & WIRE_LENGTH_MASK;
	struct area *area = area_next(ep, a->head[0], offset, a->length);

	return area ? area_at(area, offset) : NULL;
}
