/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by request, the side that asks: turns and packets. A put stands in the
 * transmit queue among the messages, so that what is sent after it arrives after it. Gets and
 * atomic operations, which wait for an answer anyway, come there only once they have a slot for it.
 */
#include "slmpm/rma/rma.h"

#include <errno.h>
#include <stdlib.h>

#include "slmpm/choice/pick.h"
#include "slmpm/message/inbound.h"
#include "slmpm/region/memory.h"
#include "slmpm/monitor/monitor.h"

/* ---- slots, turns ------------------------------------------------------------------------ */

void rma_begin(struct endpoint *ep)
{
	ep->rma->seq = ep->rma->wrote = ep->rma->settled = endpoint_start(ep);
	ep->rma->tickets = endpoint_start(ep);
	list_init(&ep->rma->parked);
}

void rma_up(struct endpoint *ep)
{
	ep->rma->received = endpoint_start_in(ep);
}

void rma_free(struct endpoint *ep)
{
	free(ep->rma->stage);
	free(ep->rma->posts);
}

/* A slot for its next request, if there is one. */
static bool rma_take_slot(struct rma *m, struct request *r)
{
	if (r->rma.slot || m->taken == RMA_WINDOW)
		return r->rma.slot;
	for (struct rma_slot *s = m->slots; s < m->slots + RMA_WINDOW; s++) {
		if (s->taken)
			continue;
		*s = (struct rma_slot){.taken = true, .kind = (uint16_t)r->kind, .request = r};
		m->taken++;
		r->rma.slot = s;
		return true;
	}
	return false;
}

/* Does one asked for earlier hold R up? Those that have no answer to come are done, as far as what
 * follows them through the ring can tell. */
static bool is_held_up(const struct rma *m, const struct request *r)
{
	if (m->barrier && wire_is_before(m->barrier, r->rma.ticket))
		return true;
	return r->flags & (SLMPM_FENCE | SLMPM_BARRIER) &&
	       (r->ep->one_sided.next != &r->rma.live || m->holds & RMA_LEFT);
}

bool rma_ready(struct endpoint *ep, struct request *r, bool first)
{
	const struct rma *m = ep->rma;

	(void)first;                /* they are in no order with what else goes */
	if (r->kind != REQUEST_PUT) /* it has its slot */
		return true;
	return !is_held_up(m, r) && (!r->rma.answered || m->taken < RMA_WINDOW) &&
	       (!r->rma.is_long || m->open < RMA_WINDOW) &&
	       (!(r->flags & SLMPM_NOTIFY) ||
		ep->charged - ep->credited + WIRE_ENVELOPE <= ep->credit);
}

/* Waits for one outside of the queue, by its ticket. */
static void rma_park(struct rma *m, struct request *r)
{
	struct list *before = &m->parked;

	while (before->prev != &m->parked &&
	       wire_is_before(r->rma.ticket,
			      LIST_ENTRY(before->prev, struct request, node)->rma.ticket))
		before = before->prev;
	list_insert(before, &r->node);
	r->rma.parked = true;
}

/* ---- who carries them -------------------------------------------------------------------- */

enum rma_by rma_carrier_of(const struct request *r)
{
	if (r->rma.carrier != RMA_BY_RING)
		return (enum rma_by)r->rma.carrier;
	return pick_form(r->ep) == MODE_RMA_RING ? RMA_BY_RING : RMA_BY_AM;
}

/* Is there anything that an engine has, or is to have? */
static bool engine_has_any(const struct endpoint *ep)
{
	if (ep->moving || ep->ask_min == UINT64_MAX)
		return ep->moving;
	LIST_EACH_ENTRY(const struct rma_work, w, &ep->one_sided, live)
		if (w->carrier == RMA_BY_PEER && !w->parked)
			return true;
	return false;
}

void rma_ring_start(struct request *r)
{
	link_enqueue(r->ep, r);
}

bool rma_ring_take_back(struct request *r)
{
	const struct rma_work *w = &r->rma;
	struct endpoint *ep = r->ep;

	if (w->span == w->span_count && r->numbered)
		return true;
	link_dequeue(ep, r);
	if (r->kind != REQUEST_PUT || !r->numbered)
		return true;
	/* Of a put to several spans those before are done; part of this may be on its way. */
	ep->rma->wrote = ep->rma->seq + 1;
	if (w->in_span)
		link_control(ep, WIRE_WITHDRAW, r->seq, 1, NULL, 0);
	if (r->flags & SLMPM_NOTIFY && !(w->in_span && w->span == w->span_count - 1))
		ep->charged -= WIRE_ENVELOPE; /* the peer has not received it */
	return true;
}

/* By packets, where it was to go another way. False: it must not, and has ended. */
static bool turn_to_packets(struct request *r)
{
	if (r->mode.reason == SLMPM_REASON_STRICT) {
		request_finish(r, -SLMPM_ENOTSUP);
		return false;
	}
	r->mode = (struct mode){.way = MODE_REQUEST, .reason = SLMPM_REASON_ONLY};
	r->rma.carrier = RMA_BY_RING;
	r->rma.parts = 0;
	r->rma.span = 0;
	return true;
}

static void place(struct endpoint *ep, struct request *r)
{
	/* A flush behind what the engine moves waits for that. */
	if (r->kind == REQUEST_PUT && rma_carrier_of(r) == RMA_BY_RING &&
	    (r->rma.remote || !engine_has_any(ep)))
		link_enqueue(ep, r);
	else
		rma_park(ep->rma, r);
}

void rma_wake(struct endpoint *ep)
{
	struct rma *m = ep->rma;

	while (!list_empty(&m->parked)) {
		struct request *r = LIST_ENTRY(m->parked.next, struct request, node);

		enum rma_by by = rma_carrier_of(r);

		if (is_held_up(m, r) || (by == RMA_BY_RING && !rma_take_slot(m, r)))
			return;
		/* A flush is done when it is the only one. */
		if (!r->rma.remote && ep->one_sided.next != &r->rma.live)
			return;
		list_remove(&r->node);
		r->rma.parked = false;
		if (by != RMA_BY_FABRIC || !rma_overtakes(m, r->flags))
			rma_carriers[by].start(r);
		else if (turn_to_packets(r))
			place(ep, r);
	}
}

void rma_retry(struct request *r)
{
	if (!turn_to_packets(r))
		return;
	place(r->ep, r);
	rma_wake(r->ep);
	(void)link_push(r->ep);
}

/* Is it a put of which a span takes several packets? */
static bool is_long(const struct endpoint *ep, const struct request *r)
{
	if (r->kind != REQUEST_PUT || r->rma.stored)
		return false;
	for (int i = 0; i < r->rma.span_count; i++)
		if (r->rma.spans[i].len > ep->packet_max)
			return true;
	return false;
}

int rma_submit(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct rma *m = ep->rma;

	monitor_requested(r);
	r->rma.ticket = wire_next(&m->tickets);
	r->rma.is_long = is_long(ep, r);
	list_append(&ep->one_sided, &r->rma.live);
	if (r->rma.remote)
		r->rma.remote->active++;
	place(ep, r);
	if (r->flags & SLMPM_BARRIER && !m->barrier) {
		m->barrier = r->rma.ticket;
		m->holds |= RMA_BARRIER;
	}
	rma_wake(ep);
	(void)link_push(ep);
	return 0;
}

/* ---- packets ----------------------------------------------------------------------------- */

static struct wire_target target_of(const struct request *r, const struct slmpm_span *span)
{
	return rma_target(r->rma.remote, span->offset, span->len);
}

/* The last packet with an answer to come is out. */
static void rma_packet_await_answer(struct request *r, uint64_t seq)
{
	r->rma.slot->out = true;
	r->rma.slot->seq = seq;
	r->rma.slot = NULL;
	r->rma.parts++;
}

/* What a put's first packet settles: its number, the Write that it opens, the slot, the credit. */
static void put_begun(struct endpoint *ep, struct request *r)
{
	struct rma *m = ep->rma;

	r->seq = m->wrote = ++m->seq;
	r->numbered = true;
	r->rma.open = r->rma.is_long;
	m->open += r->rma.open;
	ep->charged += (r->flags & SLMPM_NOTIFY) ? WIRE_ENVELOPE : 0;
	ep->link.run = 0;
}

/* For what SPAN has, which is stored; or, NULL, a flush. */
static int post_notify(struct endpoint *ep, struct request *r, const struct slmpm_span *span)
{
	struct wire_target t;
	struct packet p = {
		.opcode = WIRE_WRITE_ONLY,
		.seq = ep->rma->seq + 1,
		.extent = wire_extent(span ? span->len : 0, r->rma.answered ? WIRE_FLAG_ANSWER : 0),
	};

	if (span) {
		t = target_of(r, span);
		p.opcode = WIRE_NOTIFY;
		p.route = wire_route(0, r->result.imm);
		p.data = &t;
		p.length = sizeof(t);
	}
	return link_post_request(ep, &p, r);
}

/* The next packet of a span. */
static int post_write(struct endpoint *ep, struct request *r, const struct slmpm_span *span)
{
	struct rma_work *w = &r->rma;
	uint64_t at = w->in_span, left = span->len - at;
	bool ends = left <= ep->packet_max;
	struct packet p = {
		.opcode = ends ? (at ? WIRE_WRITE_LAST : WIRE_WRITE_ONLY) :
				 (at ? WIRE_WRITE_MIDDLE : WIRE_WRITE_FIRST),
		.length = ends ? (uint32_t)left : ep->packet_max,
		.seq = r->numbered ? r->seq : ep->rma->seq + 1,
		.extent = wire_extent(at, 0),
	};
	uint32_t n = p.length;
	int rc;

	if (at) {
		rc = link_post_request(ep, &p, r);
	} else {
		struct wire_target t = target_of(r, span);
		uint32_t flags = (w->answered ? WIRE_FLAG_ANSWER : 0) |
				 (r->flags & SLMPM_NOTIFY ? WIRE_FLAG_NOTIFY : 0);

		p.flags = r->flags & SLMPM_MORE ? FABRIC_MORE : 0;
		p.route = wire_route(0, r->result.imm);
		p.extent = wire_extent(span->len, w->span == w->span_count - 1 ? flags : 0);
		rc = link_post_led(ep, &p, &t, sizeof(t), r);
	}
	if (rc != 1)
		return rc;
	r->offset += n;
	w->in_span += n;
	return 1;
}

static int push_put(struct endpoint *ep, struct request *r)
{
	struct rma_work *w = &r->rma;
	const struct slmpm_span *span = w->remote ? &w->spans[w->span] : NULL;
	int rc;

	/* A put that has begun has its slot. */
	if (w->answered && !r->numbered && !rma_take_slot(ep->rma, r))
		return -EAGAIN;
	if (!span || w->stored)
		rc = post_notify(ep, r, span ? &w->spans[w->span_count - 1] : NULL);
	else
		rc = post_write(ep, r, span);
	if (rc != 1)
		return rc;
	if (!r->numbered)
		put_begun(ep, r);
	if (!span || w->stored) {
		w->span = w->span_count;
	} else if (w->in_span == span->len) {
		w->span++;
		w->in_span = 0;
	}
	/* The answer to a request that went out amidst this put does not speak of its end. */
	if (w->span == w->span_count && ep->rma->seq != r->seq)
		ep->rma->wrote = ep->rma->seq + 1;
	if (w->span == w->span_count && w->answered)
		rma_packet_await_answer(r, r->seq);
	if (w->span == w->span_count && w->answered && !w->remotely) {
		/* Nobody waits for it; what goes another way waits until it is settled. */
		rma_detach(r);
		w->parts = 0;
		ep->rma->holds |= RMA_FENCED;
		ep->rma->fenced = r->seq;
	}
	return 1;
}

/* A get's next span, or an atomic operation. */
static int push_question(struct endpoint *ep, struct request *r)
{
	static const uint8_t opcodes[] = {
		[0] = WIRE_READ_REQUEST,
		[SLMPM_FETCH_ADD] = WIRE_FETCH_ADD,
		[SLMPM_COMPARE_SWAP] = WIRE_COMPARE_SWAP,
		[SLMPM_SWAP] = WIRE_SWAP,
	};
	const struct slmpm_span *span = &r->rma.spans[r->rma.span];
	struct {
		struct wire_target target;
		struct wire_atomic atomic;
	} data = {
		.target = target_of(r, span),
		.atomic = rma_operands(r),
	};
	struct packet p = {
		.opcode = opcodes[r->rma.atomic],
		.seq = ep->rma->seq + 1,
		.extent = wire_extent(span->len, 0),
		.data = &data,
		.length = r->kind == REQUEST_GET ? sizeof(data.target) : sizeof(data),
	};
	struct rma_slot *s = r->rma.slot;
	int rc = link_post_request(ep, &p, r);

	if (rc != 1)
		return rc;
	ep->link.run = 0; /* what follows answers it */
	r->seq = ++ep->rma->seq;
	if (r->kind == REQUEST_ATOMIC)
		ep->rma->wrote = r->seq;
	r->numbered = true;
	s->at = r->offset;
	s->length = span->len;
	r->offset += span->len;
	r->rma.span++;
	rma_packet_await_answer(r, r->seq);
	return 1;
}

int rma_push(struct endpoint *ep, struct request *r, bool *stop)
{
	int n = 0;

	do {
		int rc = r->kind == REQUEST_PUT ? push_put(ep, r) : push_question(ep, r);

		if (rc != 1) {
			*stop = !rail_ends(ep, r, rc);
			return n;
		}
		n++;
		link_streams(ep, r);
		if (r->rma.span == r->rma.span_count) {
			link_dequeue(ep, r);
			if (!r->rma.parts) /* no answer is to come */
				request_finish(r, r->rma.status);
			return n;
		}
		if (r->kind != REQUEST_PUT && !rma_take_slot(ep->rma, r)) {
			link_dequeue(ep, r);
			rma_park(ep->rma, r);
			return n;
		}
	} while (n < LINK_TURN || r->node.next == &ep->link.queue);
	link_rotate(ep, r);
	return n;
}
