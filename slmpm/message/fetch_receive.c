/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages, the receiving side (fetch.h): announcements, receives and their share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/message/fetch.h"
#include "slmpm/link/link.h"
#include "slmpm/message/match.h"
#include "slmpm/stats.h"

#define PAGE 4096

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

/* ---- which share is this side's -------------------------------------------------------------- */

/* Where the sender may write; 0: nowhere. */
static uint64_t fetch_address(const struct fetch_in *p)
{
	const struct inbound *m = p->m;

	if (p->stranded) /* it has said so before */
		return 0;
	if (m->receive->kind == REQUEST_HOLD)
		return (uint64_t)(uintptr_t)m->data;
	return p->limit ? (uint64_t)(uintptr_t)request_run(m->receive, 0, p->limit) : 0;
}

/* All up to UPTO is this side's: by a held segment (LAST), or as there is room. */
static bool fetch_take(struct endpoint *ep, struct fetch_in *p, uint64_t upto, bool last)
{
	struct wire_take take = {
		.address = LITTLE_64(fetch_address(p)),
		.limit = LITTLE_64(p->limit),
		.upto = LITTLE_64(upto),
		.turn = LITTLE_32(p->turn),
	};
	struct packet packet = {
		.opcode = WIRE_FETCH_TAKE,
		.seq = p->m->seq,
		.data = &take,
		.length = sizeof(take),
	};

	if (last ? !split_notify_held(ep, &ep->rooms->fetch->room_in, &p->held, &packet) :
		   !fetch_notify(ep, &packet, NULL))
		return false;
	/* Before the first one of a turn the sender has nothing to claim. */
	p->sure = !p->notified;
	p->notified = true;
	p->upto = upto;
	return true;
}

/* How far this side goes next, when it has the stretch up to UPTO. */
static uint64_t choose_upto(const struct fetch_in *p)
{
	uint64_t left = p->claim > p->upto ? p->claim - p->upto : 0, share = left / 2;

	if (!p->upto && left <= 2 * FETCH_SHARE_MAX)
		share += PAGE; /* the sender begins a little later */
	if (share > FETCH_SHARE_MAX)
		share = FETCH_SHARE_MAX;
	if (share < FETCH_SHARE_MIN)
		share = FETCH_SHARE_MIN;
	share = (share + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	return p->upto + (share < left ? share : left);
}

static bool take_first(struct endpoint *ep, struct fetch_in *p)
{
	struct fetch *f = ep->rooms->fetch;

	/* Else others are through soon. What is held meanwhile keeps the link (bond_is_read_next). */
	return split_hold(ep, &f->room_in, &p->held, FETCH_RECEIVER_WORDS - (int)p->held) &&
	       fetch_take(ep, p, choose_upto(p), false);
}

/* Where it might not have a say again, this side takes all that is left. */
static bool fetch_take_next(struct endpoint *ep, struct fetch_in *p)
{
	if (!p->notified)
		return take_first(ep, p);
	return fetch_take(ep, p, choose_upto(p), false) || fetch_take(ep, p, p->limit, true);
}

/* ---- its receive ---------------------------------------------------------------------------- */

/* Nothing of it is under way any more. */
static void rest(struct endpoint *ep, struct fetch_in *p)
{
	struct fetch *f = ep->rooms->fetch;

	if (f->in_hand == p)
		f->in_hand = NULL;
	(void)split_hold(ep, &f->room_in, &p->held, -(int)p->held);
	p->stranded = false;
	list_remove(&p->node);
	fetch_block(ep);
}

void fetch_drop(struct inbound *m)
{
	rest(m->ep, m->fetch);
	free(m->fetch);
	m->fetch = NULL;
}

/* All of it is there, and the sender knows. */
static void fetch_complete(struct inbound *m)
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
	/* Where a pair has several links it takes room held back to come to this one (take_first). */
	p->alone = p->limit == m->total && p->limit <= FETCH_ALONE && !m->ep->rooms->secondary;
	p->at = 0;
	p->upto = p->alone ? p->limit : 0;
	p->claim = p->done = p->limit;
	p->notified = p->failed = false;
	p->sure = p->alone;
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
	struct fetch_in *p = m->fetch;
	bool writes = p->upto < p->limit ? !link_is_read_next(m->ep) : p->claim < p->done;

	p->stranded = p->notified && !p->over && writes;
	return p->stranded;
}

/* ---- copying -------------------------------------------------------------------------------- */

/* The place of the message's byte OFFSET in the receive, *N bytes in one run. */
static void *fetch_place(const struct inbound *m, uint64_t offset, uint64_t *n)
{
	struct request_walk walk = {m->receive, 0, offset};

	if (m->receive->kind == REQUEST_HOLD)
		return m->data + offset;
	return request_walk_on(&walk, *n, n);
}

/* Reads what is this side's, or a share of that: it may be all, for want of room for words. */
static int read_share(struct endpoint *ep, struct fetch_in *p)
{
	uint64_t to = p->upto < p->claim ? p->upto : p->claim, begin = 0;

	if (to > p->at + FETCH_SHARE_MAX)
		to = p->at + FETCH_SHARE_MAX;

	for (uint32_t i = 0; i < p->count && p->at < to; i++) {
		const struct wire_range *range = &p->ranges[i];

		while (p->at < to && p->at < begin + range->length) {
			uint64_t in = p->at - begin, n = range->length - in;
			void *at;
			int rc;

			n = n < to - p->at ? n : to - p->at;
			at = fetch_place(p->m, p->at, &n);
			rc = link_reach(ep, FABRIC_READ, &ep->rooms->fetch->peer,
					range->address + in, at, n);
			if (rc != 1)
				return rc;
			ep->rooms->figures->pieces_read++;
			p->at += n;
		}
		begin += range->length;
	}
	return 0;
}

/* All that this side is to read, it has read. */
static bool is_through(const struct fetch_in *p)
{
	return p->at >= p->claim && p->upto >= p->claim;
}

/* Every byte is there, those from CLAIM on by the sender. */
static bool fetch_is_whole(const struct fetch_in *p)
{
	return p->sure && is_through(p) && p->claim == p->done;
}

/* Takes in what the sender has said; false: not all of it yet, or P has gone. */
static bool fetch_inspect(struct endpoint *ep, struct fetch_in *p)
{
	ep->rooms->fetch->in_hand = p;
	return split_catch_up(ep) && ep->rooms->fetch->in_hand == p;
}

/* The same of what it had said before now. */
static bool fetch_look(struct endpoint *ep, struct fetch_in *p)
{
	ep->rooms->fetch->in_hand = p;
	return split_look(ep) && ep->rooms->fetch->in_hand == p;
}

enum { REFUSED, LATER, ONWARD, AGAIN }; /* AGAIN: P may have gone */

/* The next stretch. */
static int read_on(struct endpoint *ep, struct fetch_in *p)
{
	bool out = p->at >= (p->upto < p->claim ? p->upto : p->claim);
	int rc;

	if (p->failed)
		return REFUSED;
	/* The sender may have claimed the rest meanwhile: then there is nothing to take. */
	if (p->notified && out && !is_through(p) && !fetch_inspect(ep, p))
		return AGAIN;
	if (p->asked)
		return LATER; /* the sender is about to say that it has taken it back */
	if (is_through(p) && p->claim < p->done)
		return LATER; /* it is to say what has become of its share */
	if (((!p->sure && !p->notified) || (out && !is_through(p))) && !fetch_take_next(ep, p))
		return LATER;
	if (!p->sure) {
		if (!fetch_inspect(ep, p))
			return AGAIN;
		p->sure = true;
		return ONWARD;
	}
	rc = read_share(ep, p);
	if (rc == -ESRCH)
		return LATER; /* its end comes in time */
	p->failed = rc < 0;
	return rc < 0 ? REFUSED : ONWARD;
}

/* Its memory may have been another's when it was read: whoever takes the message back, or leaves
 * without waiting for its end, says so before. */
static bool give_up_reading(struct endpoint *ep, struct fetch_in *p)
{
	if (!fetch_inspect(ep, p) || p->asked)
		return false;
	if (fetch_undo(p->m)) /* not while the sender writes */
		fetch_refuse(p->m, 1);
	else
		fetch_last(&ep->rooms->fetch->in, &p->node);
	return true;
}

/*
 * All of it is there. A sender that leaves without waiting has said so before it used the memory
 * again, or that it goes by another link, behind which it has; one that takes it back either sees
 * DONE, or its question is seen here, and its answer, which follows at once, decides.
 */
static void fetch_finish(struct endpoint *ep, struct fetch_in *p)
{
	struct inbound *m = p->m;
	struct packet done = {.opcode = WIRE_FETCH_DONE, .seq = m->seq};

	if (!p->over) {
		if (!fetch_look(ep, p) || p->asked || ep->link.ended || !link_reads_stored(ep))
			return;
		p->over = p->alone ? split_notify(ep, &done, NULL) :
				     split_notify_held(ep, &ep->rooms->fetch->room_in, &p->held,
						       &done);
	}
	if (p->over && fetch_inspect(ep, p) && !p->asked)
		fetch_complete(m);
}

/* Its sender writes no more of it: it is for the next receive. */
static int put_back(struct inbound *m)
{
	if (!fetch_undo(m))
		return 0;
	match_put_back(m);
	return 1;
}

int fetch_read_step(struct endpoint *ep, struct fetch_in *p)
{
	struct list *in = &ep->rooms->fetch->in;
	uint64_t from = p->at;
	int n = 0;

	if (p->stranded) {
		fetch_last(in, &p->node);
		return put_back(p->m);
	}
	while (!fetch_is_whole(p) && p->at - from < FETCH_BUDGET) {
		int rc = read_on(ep, p);

		if (rc == LATER) {
			if (p->asked)
				fetch_last(in, &p->node);
			return n;
		}
		n++;
		if (rc == REFUSED)
			return give_up_reading(ep, p) ? n : 0;
		if (rc == AGAIN)
			return n;
	}
	if (p->asked || !fetch_is_whole(p))
		fetch_last(in, &p->node);
	if (fetch_is_whole(p))
		fetch_finish(ep, p);
	return n;
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
}

bool fetch_is_asked(struct endpoint *ep, const struct head *h, struct inbound *m)
{
	uint64_t what = h->extent & WIRE_LENGTH_MASK;

	if (what != WIRE_WITHDRAW_ASK && what != WIRE_WITHDRAW_NOT &&
	    (what != WIRE_WITHDRAW_END || m))
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
	bool stranded;

	if (PEER_FAULT(!was_received(ep, h) || h->length || length > ep->life->eager_max_in ||
		       (p && (length != m->total || p->claim < p->done)))) {
		endpoint_poison(ep, "sending of an announced message");
		return;
	}
	ep->unmatched_charge += length;
	if (PEER_FAULT(ep->unmatched_charge > ep->credit)) {
		endpoint_poison(ep, "credit overrun");
		return;
	}
	if (p && !m->receive)
		m->charge += length;
	else
		link_discharge(ep, length);
	if (!p)
		return;
	stranded = p->stranded;
	m->cleared = true;
	fetch_drop(m);
	if (stranded)
		match_put_back(m);
}
