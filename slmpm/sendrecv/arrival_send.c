/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages as their packets come: whole, in parts, withdrawn; and where their bytes are to land. */
#include "slmpm/sendrecv/sendrecv.h"

#include <string.h>

#include "shm/copy.h"
#include "slmpm/link/landing.h"
#include "slmpm/link/link.h"
#include "slmpm/part.h"
#include "slmpm/am/am.h"
#include "slmpm/loan/area.h"
#include "slmpm/message/fetch.h"
#include "slmpm/message/held.h"
#include "slmpm/message/match.h"
#include "slmpm/monitor/monitor.h"

#define ASKED_MAX (32u << 20) /* bytes of a message that is cleared while its first packet lands */

/* It comes again: inbound_defer. What has landed cannot: its receive may be taken back since. */
static void defer_arrival(struct endpoint *ep, const struct head *h, uint64_t charge)
{
	ep->received--;
	ep->unmatched_charge -= charge;
	if (UNLIKELY(h->data && h->data == ep->link.landing->place))
		endpoint_no_memory(ep);
	else
		inbound_defer(ep, h->seq, 0);
}

/* Straight into the buffer of a posted receive. */
static void receive_whole(struct endpoint *ep, const struct head *h, struct request *r)
{
	landing_scatter(r, 0, h->data, h->length);
	inbound_describe_whole(&r->result, ep, h->length, h->stream, h->imm);
	match_account(ep, h->length);
	link_discharge(ep, wire_charge(h->length));
	request_finish(r, inbound_verdict(h->damaged, r));
}

/* For the hold R, or with NULL for who asks later. */
static void keep_whole(struct endpoint *ep, const struct head *h, struct request *r)
{
	struct inbound *m = inbound_whole(ep, h);

	if (!m && r)
		match_again(r);
	if (!m)
		defer_arrival(ep, h, wire_charge(h->length));
	else if (r)
		match_give(m, r);
	else
		match_keep(m);
}

static void take_only(struct endpoint *ep, const struct head *h)
{
	uint64_t charge = wire_charge(h->length);
	uint32_t longest = h->flags & (WIRE_FLAG_ACTIVE | WIRE_FLAG_TAGGED) ? ep->packet_max_in :
									      ep->only_max_in;
	struct request *r;

	if (PEER_FAULT((h->extent & WIRE_LENGTH_MASK) != h->length || h->length > longest ||
		       (h->flags & WIRE_FLAG_ANNOUNCED))) {
		endpoint_poison(ep, "length of Only");
		return;
	}
	if (h->flags & WIRE_FLAG_ACTIVE) {
		am_only(ep, h);
		return;
	}
	if (h->flags & WIRE_FLAG_TAGGED) {
		parts.emulated_tagged(ep, h);
		return;
	}
	if (UNLIKELY(ep->link.full) && !match_next(ep, h->stream) && inbound_waits(ep, h))
		return;
	if (!inbound_envelope(ep, h, charge))
		return;
	r = match_posted(ep, h->stream);
	if (r && h->arrival && r->kind == REQUEST_HOLD && held_in_place(ep, r, h)) {
		match_account(ep, h->length);
		link_discharge(ep, charge);
	} else if (r && r->kind == REQUEST_RECV) {
		receive_whole(ep, h, r);
	} else {
		keep_whole(ep, h, r);
	}
}

bool arrival_usual(struct endpoint *ep, const struct fabric_arrival *a)
{
	uint32_t stream = (uint32_t)a->head[1];
	struct request *r;

	if (UNLIKELY(!message_is_plain(ep, a, stream)) ||
	    PEER_FAULT(ep->unmatched_charge + wire_charge(a->length) > ep->credit))
		return false;
	r = match_first(ep, stream);
	if (UNLIKELY(!r || r->kind != REQUEST_RECV || a->length > r->length))
		return false;
	match_unpost_first(ep, r);
	landing_scatter(r, 0, a->data, a->length);
	inbound_describe_whole(&r->result, ep, a->length, stream, (uint32_t)(a->head[1] >> 32));
	message_take_plain(ep, a);
	request_received(r);
	return true;
}

/* Its sender wants to know when it was here. */
static COLD void take_timed(struct endpoint *ep, const struct head *h)
{
	if (PEER_FAULT(h->flags & (WIRE_FLAG_ACTIVE | WIRE_FLAG_TAGGED))) {
		endpoint_poison(ep, "unknown flag");
		return;
	}
	take_only(ep, h);
	if (LIKELY(!ep->link.enomem))
		sample_asked(ep, h);
}

void arrival_only(struct endpoint *ep, const struct head *h)
{
	if (LIKELY(!(h->flags & WIRE_FLAG_TIMED)))
		take_only(ep, h);
	else
		take_timed(ep, h);
}

/* Bytes to be kept here until its receive takes them, unless one has room for all of it already. */
static uint64_t room_of_first(const struct head *h, const struct request *r, uint64_t total)
{
	bool receives = r && r->kind == REQUEST_RECV;

	if (receives && total <= r->length)
		return 0;
	return h->flags & WIRE_FLAG_ANNOUNCED && (!r || receives) ? h->length : total;
}

void arrival_first(struct endpoint *ep, const struct head *h)
{
	uint64_t total = h->extent & WIRE_LENGTH_MASK;
	bool announced = h->flags & WIRE_FLAG_ANNOUNCED;
	uint64_t charge = wire_charge(announced ? h->length : total);
	struct request *r;
	struct inbound *m;
	uint64_t room;

	if (PEER_FAULT(h->length != ep->packet_max_in || total <= h->length ||
		       total > SLMPM_MESSAGE_MAX || h->flags & WIRE_FLAG_TAGGED ||
		       announced != (total > ep->life->eager_max_in))) {
		endpoint_poison(ep, "length of First");
		return;
	}
	if (h->flags & WIRE_FLAG_ACTIVE) {
		am_first(ep, h);
		return;
	}
	r = match_next(ep, h->stream);
	if (UNLIKELY(ep->link.full) && !r && inbound_waits(ep, h))
		return;
	if (!inbound_envelope(ep, h, charge))
		return;
	room = room_of_first(h, r, total);
	m = inbound_try(ep, h, total, room);
	if (!m) {
		defer_arrival(ep, h, charge);
		return;
	}
	m->announced = m->waits = announced;
	m->cleared = announced && h->seq == ep->link.landing->asked;
	m->charge = charge;
	m->damaged = h->damaged;
	list_append(&ep->messages->assembling, &m->parts);
	if (r) {
		match_unpost(r);
		match_give(m, r);
	}
	if (r && r->done)
		return; /* the endpoint has ended, and the message with it */
	if (r && r->kind == REQUEST_RECV)
		landing_scatter(r, 0, h->data, h->length);
	m->got = h->length;
	if (room)
		copy_bytes(m->data, h->data, h->length);
	if (!r)
		match_keep(m);
}

static bool awaits_clear(const struct inbound *m)
{
	return m->announced && !m->cleared;
}

/* Bytes of M up to END: asked for, or within what comes without, of one message at a time. */
static bool admit_bytes(struct inbound *m, uint64_t end)
{
	struct inbound **unasked = &m->ep->messages->unasked_in;

	if (!awaits_clear(m))
		return true;
	if (!m->ep->life->unasked || m->fetch || m->active || end > m->ep->life->eager_max_in ||
	    (*unasked && *unasked != m && awaits_clear(*unasked)))
		return false;
	*unasked = m;
	return true;
}

void arrival_more(struct endpoint *ep, const struct head *h)
{
	bool last = h->opcode == WIRE_SEND_LAST;
	struct inbound *m = inbound_unfinished(ep, h->seq);
	uint64_t offset = h->extent & WIRE_LENGTH_MASK;

	if (PEER_FAULT(!m || m->area || m->stream != h->stream ||
		       !admit_bytes(m, offset + h->length))) {
		endpoint_poison(ep, "continuation of no message");
		return;
	}
	if (PEER_FAULT(offset != m->got || !h->length || h->length > m->total - offset ||
		       (last ? h->length != m->total - offset || h->length > ep->packet_max_in :
			       h->length != ep->packet_max_in || h->length == m->total - offset))) {
		endpoint_poison(ep, "length or offset of a continuation");
		return;
	}
	/* Else a peer that takes nothing could have us keep a word for each of its messages. One to
	 * be fetched may come by itself, and a clear for it have crossed that. */
	if (last && m->announced && link_disown(ep, WIRE_CLEAR, m->seq) && PEER_FAULT(m->waits)) {
		endpoint_poison(ep, "continuation that nobody has asked for");
		return;
	}
	if (m->active) {
		am_more(m, h, last);
		return;
	}
	if (m->receive && m->receive->kind == REQUEST_RECV) {
		landing_scatter(m->receive, offset, h->data, h->length);
		if (offset + h->length <= m->room)
			copy_bytes(m->data + offset, h->data, h->length);
		else if (m->data)
			inbound_drop_data(m);
	} else if (!m->cut) {
		if (!inbound_room(m, awaits_clear(m) ? ep->life->eager_max_in : m->total)) {
			inbound_defer(ep, h->seq, offset);
			return;
		}
		landing_copy(m->data + offset, h->data, h->length);
	}
	m->got += h->length;
	m->damaged |= h->damaged;
	if (!last)
		return;
	list_remove(&m->parts);
	if (m->receive)
		inbound_finish(m);
	else if (m->cut)
		inbound_free(m);
}

void arrival_withdrawn(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = inbound_unfinished(ep, h->seq);
	struct request *r;
	uint64_t total;

	if (fetch_is_asked(ep, h, m))
		return;
	if (!m || m->area) {
		endpoint_poison(ep, "withdrawal of no message");
		return;
	}
	r = m->receive;
	total = m->total;
	if (m->charge)
		link_discharge(ep, m->charge);
	if (m->active)
		ep->rooms->am->message = NULL;
	if (m->cleared)
		(void)link_disown(ep, WIRE_CLEAR, m->seq);
	inbound_free(m);
	if (!r)
		return;
	match_discount(ep, total);
	match_again(r);
}

/* ---- where the bytes of a message belong that has not been taken yet ------------------------ */

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
	/* A longer one must be kept whole, for which there may be no memory when it is here. */
	place = r && r->kind == REQUEST_RECV && total <= r->length ? request_run(r, 0, a->length) :
								     NULL;
	return place && !place_is_taken(ep, place) ? place : NULL;
}

/*
 * The announced message is as good as matched, and its sender need not stand still while its first
 * packet is read. But only a receive of this very peer cannot go to another's message meanwhile,
 * and if the caller takes it back, the message has to be kept: a very long one does not gain by it.
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

	if (!m || m->area || awaits_clear(m) || offset != m->got || a->length > m->total - offset)
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
