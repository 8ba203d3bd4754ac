/* SPDX-License-Identifier: BSD-3-Clause */
/* A message on its way out: First, Middle..., Last, or Only; beyond the eager limit only its First
 * goes, or as much as that limit, and the rest when the peer has a receive for it. */
#include <errno.h>

#include "slmpm/bond/bond.h"
#include "slmpm/link/link.h"
#include "slmpm/choice/pick.h"
#include "slmpm/message/fetch.h"
#include "slmpm/loan/area.h"
#include "slmpm/message/message.h"
#include "slmpm/monitor/monitor.h"

/* What is long may leave an overloaded link for another. */
static bool may_change_link(const struct endpoint *ep, const struct request *r)
{
	return r->length > ep->packet_max && bond_is(ep->link.port) &&
	       r->length >= mode_limits()->bulk;
}

static COLD void choose_next(struct endpoint *ep, struct request *r)
{
	r->mode = fetch_mode(ep, r);
	r->by = rail_flags(ep, r->mode, r->hint);
	if (mode_hint_link(r->hint) < 0)
		rail_follow(ep, r->mode);
}

/* In packets or fetched, and by which link: again whenever it may begin. */
static void choose_route(struct endpoint *ep, struct request *r)
{
	if (LIKELY(r->length < ep->fetch_min && !r->hint && !may_change_link(ep, r)))
		r->mode = (struct mode){.way = MODE_PACKETS, .reason = SLMPM_REASON_CALL};
	else
		choose_next(ep, r);
}

/* What it takes of the credit: its bytes, of an announced one those of its first packet. */
static uint64_t charge_of(const struct endpoint *ep, const struct request *r)
{
	if (r->wire & WIRE_FLAG_UNCHARGED)
		return 0;
	if (r->mode.way == MODE_FETCHED)
		return WIRE_ENVELOPE;
	return wire_charge(r->length > ep->life->eager_max ? ep->packet_max : r->length);
}

static bool message_may_begin(struct endpoint *ep, struct request *r)
{
	choose_route(ep, r);
	if (UNLIKELY(r->length >= ep->fetch_min) && r->mode.way == MODE_PACKETS && !r->wire &&
	    fetch_is_awaited(ep))
		return false; /* its packets would be read before those are fetched */
	return r->mode.way == MODE_NONE ||
	       ep->charged - ep->credited + charge_of(ep, r) <= ep->credit;
}

static bool is_uncharged(const struct request *r)
{
	return r->wire & WIRE_FLAG_UNCHARGED;
}

/* An active message comes whole before anything else begins: handlers run in the order of sending.
 * Behind one that lacks credit only those begin that need none. */
bool message_ready(struct endpoint *ep, struct request *r, bool first)
{
	return !ep->link.active && (first ? message_may_begin(ep, r) : is_uncharged(r));
}

/* One of a stream: the last long message has gone, and nothing has come since. Its reader is busy
 * with those, and gains by what each packet costs; a lone one's would gain by beginning sooner. */
static bool goes_whole(const struct endpoint *ep, const struct request *r)
{
	return r->length <= ep->life->whole_max && !r->wire && ep->received == ep->life->answered;
}

/* The first packet: the whole message, or as much as one carries. message_ready has seen to the
 * credit and chosen the way, but for those that need none. */
static int begin_message(struct endpoint *ep, struct request *r)
{
	bool announce = r->length > ep->life->eager_max;
	bool only = r->length <= (r->wire ? ep->packet_max : ep->only_max) || goes_whole(ep, r);
	uint32_t first = only ? (uint32_t)r->length : ep->packet_max;
	struct packet p = {
		.opcode = only ? WIRE_SEND_ONLY : WIRE_SEND_FIRST,
		.flags = r->flags & SLMPM_MORE ? FABRIC_MORE : 0,
		.length = first,
		.seq = ep->sent + 1,
		.route = wire_route(r->stream, r->result.imm),
		.extent = wire_extent(r->length, r->wire | (announce ? WIRE_FLAG_ANNOUNCED : 0)),
	};
	uint64_t began = 0;
	bool timed;
	int rc;

	if (is_uncharged(r))
		choose_route(ep, r);
	if (UNLIKELY(r->mode.way != MODE_PACKETS))
		return r->mode.way == MODE_FETCHED ? fetch_announce(ep, r) : -ENOLINK;
	timed = UNLIKELY(endpoint_is_blocked(ep, BLOCK_SAMPLE)) && r->length <= ep->only_max &&
		!announce && !r->wire;
	if (timed || r->length >= MONITOR_LONG || r->length >= ep->fetch_min)
		began = clock_ticks();
	if (timed)
		p.extent |= wire_extent(0, WIRE_FLAG_TIMED);
	rc = link_post_request(ep, &p, r);
	if (rc != 1)
		return rc;
	link_begun(ep, r->length);
	if (r->length > ep->packet_max)
		ep->life->answered = ep->received;
	endpoint_block(ep, BLOCK_SAMPLE, false);
	r->began = timed ? 0 : began;
	ep->charged += charge_of(ep, r);
	r->seq = ep->sent;
	r->numbered = true;
	r->offset = first;
	r->announced = announce;
	if (UNLIKELY(r->length >= ep->fetch_min))
		fetch_packets(ep, r, began);
	if (timed)
		sample_sent(ep, r, began);
	if (r->wire & WIRE_FLAG_ACTIVE && !only)
		message_set_active(ep, r);
	return 1;
}

/* MORE: once it is taken, the next one follows at once; not so one that goes unasked. */
static int continue_with(struct endpoint *ep, struct request *r, bool more)
{
	uint64_t left = r->length - r->offset;
	bool last = left <= ep->packet_max;
	struct packet p = {
		.opcode = last ? WIRE_SEND_LAST : WIRE_SEND_MIDDLE,
		.flags = more && !last && (r->cleared || !r->announced) ? FABRIC_STAYS : 0,
		.length = last ? (uint32_t)left : ep->packet_max,
		.seq = r->seq,
		.route = wire_route(r->stream, r->result.imm),
		.extent = wire_extent(r->offset, 0),
	};
	uint32_t length = p.length;
	int rc;

	rc = link_post_request(ep, &p, r);
	if (rc == 1)
		r->offset += length;
	return rc;
}

bool message_is_out(const struct request *r)
{
	return r->kind == REQUEST_SEND && r->numbered && r->offset == r->length && !r->fifo.out;
}

void message_sent(struct endpoint *ep, struct request *r)
{
	link_dequeue(ep, r);
	request_finish(r, 0);
}

/*
 * Of an announced message as much goes at once as of one that needs no asking, so that its reader
 * finds it when it is through with what came before. Of one at a time: it costs no credit, and the
 * peer may have to keep it.
 */
static bool claim_unasked(struct endpoint *ep, struct request *r)
{
	struct request **unasked = &ep->messages->unasked_out;

	if (!ep->life->unasked || (*unasked && *unasked != r) || r->fetch || r->wire ||
	    r->offset + ep->packet_max > ep->life->eager_max)
		return false;
	*unasked = r;
	return true;
}

/* A packet of R's has gone: may the next? Else R is out, awaits its clear, or the link lags. */
static bool message_goes_on(struct endpoint *ep, struct request *r, bool *stop)
{
	if (r->offset == r->length) {
		if (ep->link.active == r)
			message_set_active(ep, NULL);
		if (UNLIKELY(r->length >= ep->fetch_min))
			fetch_sent(ep, r);
		*stop = endpoint_is_blocked(ep, BLOCK_LAGS);
		if (!*stop)
			message_sent(ep, r);
		return false;
	}
	if (r->announced && !r->cleared && !claim_unasked(ep, r)) {
		link_dequeue(ep, r);
		list_append(&ep->link.announced, &r->node);
		return false;
	}
	*stop = endpoint_is_blocked(ep, BLOCK_LAGS);
	return !*stop;
}

int message_push(struct endpoint *ep, struct request *r, bool *stop)
{
	int n = 0;

	*stop = link_lags(ep);
	if (*stop)
		return n;
	if (UNLIKELY(message_is_out(r))) {
		message_sent(ep, r);
		return 1;
	}
	if (r->lent)
		return loan_copy_push(ep, r, stop);
	do {
		bool more = n + 1 < LINK_TURN || r->node.next == &ep->link.queue;
		int rc = r->numbered ? continue_with(ep, r, more) : begin_message(ep, r);

		if (rc != 1) {
			*stop = !rail_ends(ep, r, rc);
			return n;
		}
		n++;
		link_streams(ep, r);
		if (!message_goes_on(ep, r, stop))
			return n;
	} while (n < LINK_TURN || r->node.next == &ep->link.queue);
	link_rotate(ep, r);
	return n;
}

struct request *message_announced(struct endpoint *ep, uint64_t seq)
{
	if (ep->messages->unasked_out && ep->messages->unasked_out->seq == seq)
		return ep->messages->unasked_out;
	LIST_EACH_ENTRY(struct request, r, &ep->link.announced, node)
		if (r->seq == seq)
			return r;
	return NULL;
}

void message_clear(struct request *r)
{
	r->cleared = true;
	if (r->ep->messages->unasked_out == r)
		r->ep->messages->unasked_out = NULL;
	if (r->streaming)
		return; /* it has not stopped */
	list_remove(&r->node);
	link_enqueue(r->ep, r);
	link_streams(r->ep, r);
	(void)link_push(r->ep);
}

void message_cleared(struct endpoint *ep, const struct head *h)
{
	struct request *r = message_announced(ep, h->seq);

	if (h->extent & WIRE_LENGTH_MASK)
		ep->fetch_min = UINT64_MAX; /* it cannot fetch, after all */
	/* One that has been withdrawn meanwhile is no offence; one that never was, is. */
	if (PEER_FAULT(!r && !wire_is_given(h->seq, endpoint_start(ep), ep->sent)))
		endpoint_poison(ep, "clear to send");
	else if (r && !(r->fetch && fetch_refused(r)))
		message_clear(r);
}
