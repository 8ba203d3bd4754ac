/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fabric cannot take yet waits here in order. A message goes out as First, Middle..., Last, or
 * Only; beyond the eager limit only its First goes, and the rest when the peer has a receive for it.
 */
#include <errno.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/memory/emulate.h"
#include "slmpm/message/bundle.h"
#include "slmpm/message/fetch.h"
#include "slmpm/message/loan_copy.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/link/rail.h"
#include "slmpm/bond/bond.h"

/* What is long may leave a crowded link for another. */
static bool may_change_link(const struct endpoint *ep, const struct request *r)
{
	return r->length > ep->packet_max && bond_is(ep->link.port) &&
	       r->length >= mode_limits()->bulk;
}

static COLD void choose_anew(struct endpoint *ep, struct request *r)
{
	r->mode = fetch_mode(ep, r);
	r->by = rail_flags(ep, r->mode, r->wish);
	if (mode_wish_link(r->wish) < 0)
		rail_follow(ep, r->mode);
}

/* In packets or fetched, and by which link: anew whenever it may begin. */
static void choose(struct endpoint *ep, struct request *r)
{
	if (LIKELY(r->length < ep->fetch_min && !r->wish && !may_change_link(ep, r)))
		r->mode = (struct mode){.way = MODE_PACKETS, .reason = SLMPM_REASON_CALL};
	else
		choose_anew(ep, r);
}

/* What it takes of the credit: its bytes, of an announced one those of its first packet. */
static uint64_t charge_of(const struct endpoint *ep, const struct request *r)
{
	if (r->wire & WIRE_FLAG_UNCHARGED)
		return 0;
	if (r->mode.way == MODE_FETCHED)
		return WIRE_ENVELOPE;
	return wire_charge(r->length > ep->eager_max ? ep->packet_max : r->length);
}

static bool has_credit(struct endpoint *ep, struct request *r)
{
	choose(ep, r);
	return r->mode.way == MODE_NONE ||
	       ep->charged - ep->credited + charge_of(ep, r) <= ep->credit;
}

static bool is_uncharged(const struct request *r)
{
	return r->wire & WIRE_FLAG_UNCHARGED;
}

/* The first packet: the whole message, or as much as one carries. next_request has seen to the credit
 * and chosen the way, but for those that need none. */
static int begin(struct endpoint *ep, struct request *r)
{
	bool announce = r->length > ep->eager_max;
	bool only = r->length <= (r->wire ? ep->packet_max : ep->only_max);
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
		choose(ep, r);
	if (UNLIKELY(r->mode.way != MODE_PACKETS))
		return r->mode.way == MODE_FETCHED ? fetch_announce(ep, r) : -ENOLINK;
	timed = UNLIKELY(ep->sampling) && only && !announce && !r->wire;
	if (timed || r->length >= MONITOR_LONG)
		began = clock_ticks();
	if (timed)
		p.extent |= wire_extent(0, WIRE_FLAG_TIMED);
	rc = link_post_request(ep, &p, r);
	if (rc != 1)
		return rc;
	ep->link.run = 0;
	ep->sent++;
	ep->sampling = false;
	r->began = timed ? 0 : began;
	ep->charged += charge_of(ep, r);
	ep->stats->sent_messages++;
	ep->stats->sent_bytes += r->length;
	r->seq = ep->sent;
	r->numbered = true;
	r->offset = first;
	r->announced = announce;
	if (UNLIKELY(r->length >= ep->fetch_min))
		fetch_packets(ep, r);
	ep->link.uncharged -= is_uncharged(r);
	if (timed)
		sample_sent(ep, r, began);
	if (r->wire & WIRE_FLAG_ACTIVE && !only)
		ep->link.active = r;
	return 1;
}

/* MORE: once it is taken, the next one follows at once. */
static int continue_with(struct endpoint *ep, struct request *r, bool more)
{
	uint64_t left = r->length - r->offset;
	bool last = left <= ep->packet_max;
	struct packet p = {
		.opcode = last ? WIRE_SEND_LAST : WIRE_SEND_MIDDLE,
		.flags = more && !last ? FABRIC_STAYS : 0,
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

void link_enqueue(struct endpoint *ep, struct request *r)
{
	if (list_empty(&ep->link.queue)) /* what has gone before has gone whole */
		doubt_mark(ep);
	list_append(&ep->link.queue, &r->node);
	ep->link.changes++;
	ep->link.depth++;
	if (!r->numbered)
		ep->link.uncharged += is_uncharged(r);
	endpoint_refresh(ep);
}

void link_dequeue(struct endpoint *ep, struct request *r)
{
	list_remove(&r->node);
	ep->link.changes++;
	ep->link.depth--;
	ep->link.streaming -= r->streaming;
	r->streaming = false;
	if (!r->numbered)
		ep->link.uncharged -= is_uncharged(r);
	endpoint_refresh(ep);
}

void link_streams(struct endpoint *ep, struct request *r)
{
	ep->link.streaming += !r->streaming;
	ep->link.changes++;
	r->streaming = true;
}

void link_rotate(struct endpoint *ep, struct request *r)
{
	list_remove(&r->node);
	list_append(&ep->link.queue, &r->node);
}

static bool is_one_sided(const struct request *r)
{
	return r->kind >= REQUEST_PUT;
}

/* Not the first. Many may wait here for a peer that has stopped, while this side looks on each pass. */
static struct request *find_ready(struct endpoint *ep)
{
	const struct rma *m = ep->rma;
	const struct link_walk now = {
		.changes = ep->link.changes,
		.credit = ep->charged - ep->credited,
		.barrier = m->barrier,
		.live = m->live.next,
		.active = ep->link.active,
		.taken = m->taken,
		.open = m->open,
	};

	if (!memcmp(&now, &ep->link.vain, sizeof(now)))
		return NULL;
	LIST_EACH(at, &ep->link.queue) {
		struct request *r = LIST_ENTRY(at, struct request, node);

		if (r->streaming ||
		    (is_one_sided(r) ? rma_ready(ep, r) : !ep->link.active && is_uncharged(r)))
			return r;
	}
	ep->link.vain = now;
	return NULL;
}

/*
 * The first in line. One that lacks credit holds up those behind it, but neither those that are
 * under way, the peer may need their end before it takes anything else, nor those that need none.
 * An active message comes whole before anything else begins: the order of handlers is the order
 * of sending. One-sided operations are in no order with what was sent before them.
 */
static struct request *next_request(struct endpoint *ep)
{
	struct request *first = LIST_ENTRY(ep->link.queue.next, struct request, node);
	struct request *active = ep->link.active;

	if (list_empty(&ep->link.queue))
		return NULL;
	if (active && active->streaming)
		return active;
	if (first->numbered || (!active && !is_one_sided(first) && has_credit(ep, first)))
		return first;
	if (ep->link.streaming || ep->rma->queued || (ep->link.uncharged && !active))
		return find_ready(ep);
	return NULL;
}

bool link_is_out(const struct request *r)
{
	return r->kind == REQUEST_SEND && r->numbered && r->offset == r->length && !r->fifo.out;
}

void link_sent(struct endpoint *ep, struct request *r)
{
	link_dequeue(ep, r);
	request_finish(r, 0);
}

/* A packet of R's has gone: may the next? Else R is out, awaits its clear, or the link lags. */
static bool goes_on(struct endpoint *ep, struct request *r, bool *stop)
{
	if (r->offset == r->length) {
		if (ep->link.active == r)
			ep->link.active = NULL;
		if (UNLIKELY(r->length >= ep->fetch_min))
			fetch_sent(ep, r);
		*stop = ep->link.lags;
		if (!*stop)
			link_sent(ep, r);
		return false;
	}
	if (r->announced && !r->cleared) {
		link_dequeue(ep, r);
		list_append(&ep->announced, &r->node);
		return false;
	}
	*stop = ep->link.lags;
	return !*stop;
}

/* One request as far as it goes: packets posted; *STOP when the link takes no more. */
static int push_request(struct endpoint *ep, struct request *r, bool *stop)
{
	int n = 0;

	if (is_one_sided(r))
		return rma_push(ep, r, stop);
	*stop = link_lags(ep);
	if (*stop)
		return n;
	if (UNLIKELY(link_is_out(r))) {
		link_sent(ep, r);
		return 1;
	}
	if (r->lent)
		return loan_copy_push(ep, r, stop);
	do {
		bool more = n + 1 < LINK_TURN || r->node.next == &ep->link.queue;
		int rc = r->numbered ? continue_with(ep, r, more) : begin(ep, r);

		if (rc == -ENOLINK) { /* nor otherwise: a strict one */
			link_dequeue(ep, r);
			request_finish(r, rail_refusal(ep, r->wish));
			return n;
		}
		if (rc != 1) {
			*stop = true;
			return n;
		}
		n++;
		link_streams(ep, r);
		if (!goes_on(ep, r, stop))
			return n;
	} while (n < LINK_TURN || r->node.next == &ep->link.queue);
	link_rotate(ep, r);
	return n;
}

/* The queue, and answers to the peer's one-sided operations: who goes first changes whenever room
 * ran out. */
static int push_turns(struct endpoint *ep)
{
	struct rma *m = ep->rma;
	struct request *r;
	bool stop = false;
	int n = 0;

	if (m->job_count && !m->queue_first)
		n += rma_serve(ep, &stop);
	while (!stop && ep->state == SLMPM_PEER_UP && (r = next_request(ep)))
		n += push_request(ep, r, &stop);
	if (m->job_count && m->queue_first && !stop)
		n += rma_serve(ep, &stop);
	m->queue_first ^= stop;
	return n;
}

static int push_emulated(struct endpoint *ep, bool first)
{
	struct emulation *e = ep->emulation;

	return emulate_has_work(e) && e->first == first ? emulate_push(ep) : 0;
}

static int push_mirrors(struct endpoint *ep, bool first)
{
	return mirror_waits(ep) && ep->mirrors->last != first ? mirror_push(ep) : 0;
}

int link_push(struct endpoint *ep)
{
	int n = 0;

	if (ep->state != SLMPM_PEER_UP || (ep->loan.data && !ep->loan.area))
		return 0;
	if (UNLIKELY(ep->link.lags) && !link_lags(ep))
		n++; /* who waits for that hears of it */
	if (ep->bundle.count && !bundle_flush(ep))
		return n;
	if (!list_empty(&ep->owed)) {
		n += link_push_owed(ep);
		endpoint_refresh(ep);
		if (!list_empty(&ep->owed))
			return n;
	}
	if (ep->said_end) /* nobody reads what stands behind that */
		return n;
	n += push_mirrors(ep, true);
	n += push_emulated(ep, true);
	n += push_turns(ep);
	n += push_emulated(ep, false);
	n += push_mirrors(ep, false);
	if (ep->emulation)
		ep->emulation->first ^= true;
	if (ep->mirrors)
		ep->mirrors->last ^= true;
	return n;
}

void link_cleared(struct endpoint *ep, uint64_t seq)
{
	LIST_EACH(at, &ep->announced) {
		struct request *r = LIST_ENTRY(at, struct request, node);

		if (r->seq != seq)
			continue;
		if (r->fetch && fetch_refused(r))
			return;
		list_remove(at);
		r->cleared = true;
		link_enqueue(ep, r);
		link_streams(ep, r);
		(void)link_push(ep);
		return;
	}
	/* One that has been withdrawn meanwhile is no offence; one that never was, is. */
	if (PEER_FAULT(!wire_is_given(seq, endpoint_start(ep), ep->sent)))
		endpoint_poison(ep, "clear to send");
}

static void fail_all(struct list *list, int error)
{
	LIST_EACH(at, list) {
		struct request *r = LIST_ENTRY(at, struct request, node);

		list_remove(at);
		request_finish(r, -error);
	}
}

void link_queue_end(struct endpoint *ep)
{
	fail_all(&ep->link.queue, ep->error);
	fail_all(&ep->announced, ep->error);
}
