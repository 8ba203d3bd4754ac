/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages, the receiving side: announcements, receives that come and go, the sender's words
 * (fetch.h). */
#include <stdlib.h>
#include <string.h>

#include "slmpm/message/fetch.h"
#include "slmpm/link/link.h"
#include "slmpm/message/match.h"

/* ---- the announcement ----------------------------------------------------------------------- */

/* Copies it, and looks at the copy. */
static bool take_ranges(const struct head *h, struct fetch_in *p)
{
	const unsigned char *at = h->data;
	struct wire_fetch fetch;
	uint64_t total = 0;

	if (h->length < sizeof(fetch))
		return false;
	memcpy(&fetch, at, sizeof(fetch));
	p->count = LITTLE_32(fetch.count);
	if (!p->count || p->count > WIRE_RANGES || fetch.zero ||
	    h->length < sizeof(fetch) + p->count * sizeof(*p->ranges))
		return false;
	memcpy(p->ranges, at + sizeof(fetch), p->count * sizeof(*p->ranges));
	for (uint32_t i = 0; i < p->count; i++) {
		struct wire_range *range = &p->ranges[i];

		range->address = LITTLE_64(range->address);
		range->length = LITTLE_64(range->length);
		if (!range->length || range->length > SLMPM_MESSAGE_MAX ||
		    range->address > UINT64_MAX - range->length)
			return false;
		total += range->length;
	}
	return total == (h->extent & WIRE_LENGTH_MASK) && total <= SLMPM_MESSAGE_MAX;
}

static uint32_t said_of(const struct fetch_in *p)
{
	return (uint32_t)(sizeof(struct wire_fetch) + p->count * sizeof(*p->ranges));
}

void fetch_announced(struct endpoint *ep, const struct head *h)
{
	struct fetch_in *p = fetch_of(ep) ? calloc(1, sizeof(*p)) : NULL;
	struct inbound *m;

	if (!p) {
		endpoint_no_memory(ep);
		return;
	}
	if (PEER_FAULT(!take_ranges(h, p) || !fetch_introduced(ep, h, said_of(p)))) {
		free(p);
		endpoint_poison(ep, "announcement");
		return;
	}
	m = inbound_envelope(ep, h, WIRE_ENVELOPE) ?
		    inbound_new(ep, h, h->extent & WIRE_LENGTH_MASK) :
		    NULL;
	if (!m) {
		free(p);
		return;
	}
	list_init(&p->node);
	p->m = m;
	p->turn = (uint32_t)endpoint_start(ep);
	m->fetch = p;
	m->announced = true;
	m->charge = WIRE_ENVELOPE;
	list_append(&ep->messages->assembling, &m->parts);
	match_arrived(m);
}

/* ---- its receive ---------------------------------------------------------------------------- */

/* Nothing of it is under way any more. */
static void rest(struct endpoint *ep, struct fetch_in *p)
{
	struct fetch *f = ep->rooms->fetch;

	if (f->in_hand == p)
		f->in_hand = NULL;
	(void)split_hold(ep, &f->room_in, &p->held, -(int)p->held);
	list_remove(&p->node);
	fetch_block(ep);
}

void fetch_drop(struct inbound *m)
{
	m->ep->rooms->fetch->stranded -= m->fetch->stranded;
	rest(m->ep, m->fetch);
	free(m->fetch);
	m->fetch = NULL;
}

void fetch_complete(struct inbound *m)
{
	fetch_drop(m);
	m->fetched = true;
	m->got = m->total;
	list_remove(&m->parts);
	inbound_finish(m);
}

void fetch_refuse(struct inbound *m, uint64_t why)
{
	fetch_drop(m);
	m->cleared = true;
	link_control(m->ep, WIRE_CLEAR, m->seq, why, NULL, 0);
}

void fetch_begin(struct inbound *m)
{
	struct request *r = m->receive;
	struct fetch_in *p = m->fetch;
	struct fetch *f = m->ep->rooms->fetch;

	/* With checksums the words that have room held back would not fit it. */
	if (m->ep->link.check || !(f->peer.ops & 1u << FABRIC_READ)) {
		fetch_refuse(m, 1);
		return;
	}
	p->limit = r->kind == REQUEST_RECV && r->length < m->total ? r->length : m->total;
	p->at = p->upto = 0;
	p->claim = p->done = p->limit;
	p->notified = p->sure = p->begun = p->failed = false;
	p->turn++;
	list_append(&f->in, &p->node);
	fetch_block(m->ep);
}

bool fetch_undo(struct inbound *m)
{
	struct endpoint *ep = m->ep;
	struct fetch *f = ep->rooms->fetch;
	struct fetch_in *p = m->fetch;

	if (ep->ctx->handling || p->over) /* is it the receive's? The sender says so in a moment */
		return false;
	if (p->notified) {
		/* All of it is ours, and nothing the sender's to write. */
		if (p->upto < p->limit && !fetch_take(ep, p, p->limit, true))
			return false;
		f->in_hand = p;
		if (!split_catch_up(ep) || f->in_hand != p || p->claim < p->done)
			return false;
	}
	rest(ep, p);
	return true;
}

bool fetch_abandon(struct inbound *m)
{
	struct endpoint *ep = m->ep;
	struct fetch_in *p = m->fetch;

	if (!p->notified || p->over || p->upto < p->limit || p->claim == p->done)
		return false;
	rest(ep, p);
	p->stranded = true;
	ep->rooms->fetch->stranded++;
	return true;
}

/* ---- what the sender says ------------------------------------------------------------------- */

static bool was_received(const struct endpoint *ep, const struct head *h)
{
	return ep->rooms->fetch && wire_is_given(h->seq, endpoint_start_in(ep), ep->received);
}

void fetch_given(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = inbound_unfinished(ep, h->seq);
	struct fetch_in *p = m ? m->fetch : NULL;
	struct wire_give give;

	if (PEER_FAULT(!was_received(ep, h) || h->length != sizeof(give))) {
		endpoint_poison(ep, "share of a message");
		return;
	}
	memcpy(&give, h->data, sizeof(give));
	give.claim = LITTLE_64(give.claim);
	give.done = LITTLE_64(give.done);
	give.turn = LITTLE_32(give.turn);
	if (!p || !(m->receive || p->stranded) || give.turn != p->turn)
		return; /* of what has had its end */
	if (PEER_FAULT(!p->notified || give.claim > give.done || give.done > p->done)) {
		endpoint_poison(ep, "share of a message");
		return;
	}
	p->claim = give.claim;
	p->done = give.done;
	if (p->stranded && p->claim == p->done) {
		p->stranded = false;
		ep->rooms->fetch->stranded--;
		match_put_back(m);
	}
}

bool fetch_is_asked(struct endpoint *ep, const struct head *h, struct inbound *m)
{
	uint64_t what = h->extent & WIRE_LENGTH_MASK;

	if (what != WIRE_WITHDRAW_ASK && what != WIRE_WITHDRAW_NOT)
		return false;
	if (PEER_FAULT(!was_received(ep, h)))
		return false;
	if (m && m->fetch) {
		m->fetch->asked = what == WIRE_WITHDRAW_ASK;
		if (m->fetch->over && !m->fetch->asked)
			fetch_complete(m);
	}
	return true;
}

void fetch_sent_instead(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = inbound_unfinished(ep, h->seq);
	struct fetch_in *p = m ? m->fetch : NULL;
	uint64_t length = h->extent & WIRE_LENGTH_MASK;

	if (PEER_FAULT(!was_received(ep, h) || h->length || length > ep->life->eager_max_in ||
		       (p && (length != m->total || p->stranded)))) {
		endpoint_poison(ep, "sending of an announced message");
		return;
	}
	ep->unmatched_charge += length;
	if (PEER_FAULT(ep->unmatched_charge > ep->credit)) {
		endpoint_poison(ep, "credit overrun");
		return;
	}
	if (p && !m->receive) {
		/* Of an earlier receive: then the sender waits for a word. */
		bool notified = p->turn != (uint32_t)endpoint_start(ep);

		m->charge += length;
		m->cleared = true;
		fetch_drop(m);
		if (notified)
			link_control(ep, WIRE_CLEAR, m->seq, 0, NULL, 0);
		return;
	}
	link_discharge(ep, length);
	if (p && !p->begun)
		fetch_refuse(m, 0);
}
