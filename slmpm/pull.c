/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages, the receiving side: from the announcement to the last byte (bulk.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/arrival.h"
#include "slmpm/bulk.h"
#include "slmpm/link.h"
#include "slmpm/match.h"

#define BUDGET ((uint64_t)8 << 20) /* bytes of one message before others have their turn */
#define PAGE   4096

/* ---- the announcement ----------------------------------------------------------------------- */

/* Copies it, and looks at the copy. */
static bool take_ranges(const struct head *h, struct pull *p)
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

static uint32_t said_of(const struct pull *p)
{
	return (uint32_t)(sizeof(struct wire_fetch) + p->count * sizeof(*p->ranges));
}

void pull_announced(struct endpoint *ep, const struct head *h)
{
	struct pull *p = bulk_of(ep) ? calloc(1, sizeof(*p)) : NULL;
	struct inbound *m;
	struct request *r;

	if (!p) {
		inbound_no_memory(ep);
		return;
	}
	if (PEER_FAULT(!take_ranges(h, p) || !bulk_introduced(ep, h, said_of(p)))) {
		free(p);
		arrival_violates(ep, "announcement");
		return;
	}
	m = arrival_envelope(ep, h, WIRE_ENVELOPE) ?
		    inbound_new(ep, h, h->extent & WIRE_LENGTH_MASK) :
		    NULL;
	if (!m) {
		free(p);
		return;
	}
	list_init(&p->node);
	p->m = m;
	m->pull = p;
	m->announced = true;
	m->charge = WIRE_ENVELOPE;
	list_append(&ep->assembling, &m->parts);
	r = match_posted(ep, h->stream);
	if (r)
		match_give(m, r);
	else
		match_keep(m);
}

static void unlist(struct endpoint *ep, struct pull *p)
{
	ep->ctx->pulls -= !list_empty(&p->node);
	list_remove(&p->node);
}

void pull_forget(struct inbound *m)
{
	struct endpoint *ep = m->ep;

	if (ep->bulk->pulling == m->pull)
		ep->bulk->pulling = NULL;
	unlist(ep, m->pull);
	free(m->pull);
	m->pull = NULL;
	endpoint_refresh(ep);
}

/* ---- pulling -------------------------------------------------------------------------------- */

/* Where the sender may write; 0: nowhere. */
static uint64_t address_of(const struct pull *p)
{
	const struct inbound *m = p->m;

	if (m->receive->kind == REQUEST_HOLD)
		return (uint64_t)(uintptr_t)m->data;
	return p->limit ? (uint64_t)(uintptr_t)request_run(m->receive, 0, p->limit) : 0;
}

/* NOW: at once or not at all. */
static bool say_take(struct endpoint *ep, struct pull *p, uint64_t upto, bool reading, bool now)
{
	struct wire_take take = {
		.address = LITTLE_64(address_of(p)),
		.limit = LITTLE_64(p->limit),
		.upto = LITTLE_64(upto),
		.turn = LITTLE_32(p->turn),
		.reading = LITTLE_32(reading),
	};

	if (!bulk_say(ep, WIRE_FETCH_TAKE, p->m->seq, 0, 0, &take, sizeof(take))) {
		if (now)
			return false;
		link_control(ep, WIRE_FETCH_TAKE, p->m->seq, 0, &take, sizeof(take));
	}
	p->told = true;
	p->reading = reading;
	p->upto = upto;
	p->sure = false;
	return true;
}

/* The sender is to send it in packets: it cannot be read. */
static void refuse(struct inbound *m, uint64_t why)
{
	pull_forget(m);
	m->cleared = true;
	link_control(m->ep, WIRE_CLEAR, m->seq, why, NULL, 0);
}

void pull_begin(struct inbound *m)
{
	struct request *r = m->receive;
	struct pull *p = m->pull;
	struct bulk *b = m->ep->bulk;

	if (!(b->peer.ops & 1u << FABRIC_READ)) {
		refuse(m, 1);
		return;
	}
	p->limit = r->kind == REQUEST_RECV && r->length < m->total ? r->length : m->total;
	p->at = p->upto = 0;
	p->claim = p->done = p->limit;
	p->told = p->failed = p->reading = p->sure = false;
	p->turn++;
	list_append(&b->pulls, &p->node);
	m->ep->ctx->pulls++;
	endpoint_refresh(m->ep);
}

/* The place of the message's byte OFFSET in the receive, *N bytes in one run. */
static void *place(const struct inbound *m, uint64_t offset, uint64_t *n)
{
	struct request_walk walk = {m->receive, 0, offset};

	if (m->receive->kind == REQUEST_HOLD)
		return m->data + offset;
	return request_walk_on(&walk, *n, n);
}

/* Reads what lies between AT and TO. */
static int read_to(struct endpoint *ep, struct pull *p, uint64_t to)
{
	uint64_t begin = 0;

	for (uint32_t i = 0; i < p->count && p->at < to; i++) {
		const struct wire_range *range = &p->ranges[i];

		while (p->at < to && p->at < begin + range->length) {
			uint64_t in = p->at - begin, n = range->length - in;
			void *at;
			int rc;

			n = n < to - p->at ? n : to - p->at;
			at = place(p->m, p->at, &n);
			rc = link_reach(ep, FABRIC_READ, &ep->bulk->peer, range->address + in, at,
					n);
			if (rc != 1)
				return rc;
			p->at += n;
		}
		begin += range->length;
	}
	return 0;
}

/* How far this side goes next, when it has the stretch up to UPTO: all the way where it might not
 * have a say again. */
static uint64_t choose_upto(struct endpoint *ep, const struct pull *p)
{
	uint64_t left = p->claim > p->upto ? p->claim - p->upto : 0, share = left / 2;

	if (bulk_is_scarce(ep))
		return p->limit;
	if (!p->upto && left <= 2 * BULK_SHARE_MAX)
		share += PAGE; /* the sender begins a little later */
	if (share > BULK_SHARE_MAX)
		share = BULK_SHARE_MAX;
	if (share < BULK_SHARE_MIN)
		share = BULK_SHARE_MIN;
	share = (share + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	return p->upto + (share < left ? share : left);
}

/* Every byte is there, those from CLAIM on by the sender, and it knows that it is not to take the
 * message back any more. */
static bool is_whole(const struct pull *p)
{
	return p->reading && p->sure && p->at >= p->claim && p->claim == p->done;
}

/* All that this side is to read, it has read. */
static bool is_through(const struct pull *p)
{
	return p->told && p->at >= p->claim && p->upto >= p->claim;
}

static void finish(struct endpoint *ep, struct inbound *m)
{
	pull_forget(m);
	m->got = m->total;
	list_remove(&m->parts);
	link_control(ep, WIRE_FETCH_DONE, m->seq, 0, NULL, 0);
	inbound_finish(m);
}

/* False: not now, or P has gone. */
static bool make_sure(struct endpoint *ep, struct pull *p)
{
	struct bulk *b = ep->bulk;

	b->pulling = p;
	if (!bulk_heard(ep) || b->pulling != p || p->asked)
		return false;
	p->sure = true;
	return true;
}

enum { SCARCE = -2, REFUSED, LATER, ONWARD, AGAIN }; /* AGAIN: P may have gone */

/* The next stretch. */
static int read_on(struct endpoint *ep, struct pull *p)
{
	bool out = p->at >= (p->upto < p->claim ? p->upto : p->claim);
	int rc;

	if (p->failed)
		return REFUSED;
	if (!p->told && bulk_is_scarce(ep))
		return SCARCE;
	if (p->asked)
		return LATER; /* the sender is about to say whether it takes it back */
	if (is_through(p) && p->claim < p->done)
		return LATER; /* it is to say what has become of its share */
	if ((!p->told || !p->reading || (out && !is_through(p))) &&
	    !say_take(ep, p, out ? choose_upto(ep, p) : p->upto, true, true))
		return LATER;
	if (!p->sure && !make_sure(ep, p))
		return AGAIN;
	rc = read_to(ep, p, p->upto < p->claim ? p->upto : p->claim);
	if (rc == -ESRCH)
		return LATER; /* its end will be heard of */
	p->failed = rc < 0;
	return rc < 0 ? REFUSED : ONWARD;
}

/* Who leaves without waiting for the end says so before it uses the memory again: what was read of
 * it is then no message. Looks at all that has come by now. */
static bool sender_stayed(struct endpoint *ep, struct pull *p)
{
	uint64_t most = ep->link.port->counts.in_segments;

	ep->bulk->pulling = p;
	for (uint64_t i = 0; i < most && !bulk_heard(ep) && ep->bulk->pulling == p; i++)
		if (ep->state != SLMPM_PEER_UP)
			return false;
	return ep->bulk->pulling == p && !ep->end_of_stream;
}

int pull_step(struct endpoint *ep, struct pull *p)
{
	uint64_t from = p->at;
	int n = 0;

	while (!is_whole(p) && p->at - from < BUDGET) {
		int rc = read_on(ep, p);

		if (rc == LATER)
			return n;
		n++;
		if (rc == SCARCE)
			refuse(p->m, 0);
		if (rc == REFUSED && pull_take_back(p->m))
			refuse(p->m, 1); /* not while the sender writes */
		if (rc != ONWARD)
			return n;
	}
	if (is_whole(p) && sender_stayed(ep, p))
		finish(ep, p->m);
	return n;
}

void pull_rest(struct endpoint *ep, struct pull *p)
{
	if (p->reading)
		(void)say_take(ep, p, p->upto, false, true);
}

bool pull_take_back(struct inbound *m)
{
	struct endpoint *ep = m->ep;
	struct pull *p = m->pull;

	if (ep->ctx->handling)
		return false;
	if (p->told) {
		/* Without a share to be had, that nothing is read may be heard later. */
		if ((p->upto < p->limit || p->reading) &&
		    !say_take(ep, p, p->limit, false, p->upto < p->limit))
			return false;
		ep->bulk->pulling = p;
		if (!bulk_heard(ep) || ep->bulk->pulling != p || p->claim < p->done)
			return false;
	}
	unlist(ep, p);
	endpoint_refresh(ep);
	return true;
}

/* ---- what the sender says ------------------------------------------------------------------- */

static bool was_received(const struct endpoint *ep, const struct head *h)
{
	return ep->bulk && h->seq && h->seq <= ep->received;
}

void pull_given(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = arrival_unfinished(ep, h->seq);
	struct pull *p = m ? m->pull : NULL;
	struct wire_give give;

	if (PEER_FAULT(!was_received(ep, h) || h->length != sizeof(give))) {
		arrival_violates(ep, "share of a message");
		return;
	}
	memcpy(&give, h->data, sizeof(give));
	give.claim = LITTLE_64(give.claim);
	give.done = LITTLE_64(give.done);
	give.turn = LITTLE_32(give.turn);
	if (!p || !m->receive || give.turn != p->turn)
		return; /* of what has had its end */
	if (PEER_FAULT(!p->told || give.claim > give.done || give.done > p->done)) {
		arrival_violates(ep, "share of a message");
		return;
	}
	p->claim = give.claim;
	p->done = give.done;
}

bool pull_is_asked(struct endpoint *ep, const struct head *h, struct inbound *m)
{
	uint64_t what = h->extent & WIRE_LENGTH_MASK;

	if (what != WIRE_WITHDRAW_ASK && what != WIRE_WITHDRAW_NOT)
		return false;
	if (PEER_FAULT(!was_received(ep, h)))
		return false;
	if (m && m->pull)
		m->pull->asked = what == WIRE_WITHDRAW_ASK;
	return true;
}

void pull_sent(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = arrival_unfinished(ep, h->seq);
	struct pull *p = m ? m->pull : NULL;
	uint64_t length = h->extent & WIRE_LENGTH_MASK;

	if (PEER_FAULT(!was_received(ep, h) || h->length || length > ep->eager_max_in ||
		       (p && length != m->total))) {
		arrival_violates(ep, "sending of an announced message");
		return;
	}
	ep->unmatched_charge += length;
	if (PEER_FAULT(ep->unmatched_charge > ep->credit)) {
		arrival_violates(ep, "credit overrun");
		return;
	}
	if (p && !m->receive) {
		bool told = p->turn; /* of an earlier receive: then the sender waits for a word */

		m->charge += length;
		m->cleared = true;
		pull_forget(m);
		if (told)
			link_control(ep, WIRE_CLEAR, m->seq, 0, NULL, 0);
		return;
	}
	inbound_charge(ep, length);
	if (p && !p->sure)
		refuse(m, 0);
}
