/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by request, the side that asks. A put stands in the transmit queue among the
 * messages, so that what is sent after it arrives after it. Gets and atomic operations, which wait
 * for an answer anyway, come to the queue only once they have one of the slots for it.
 */
#include "slmpm/rma/rma.h"

#include <stdlib.h>

#include "slmpm/choice/pick.h"
#include "slmpm/message/inbound.h"
#include "slmpm/region/memory.h"
#include "slmpm/monitor/monitor.h"

/* ---- slots, turns --------------------------------------------------------------------------- */

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

bool rma_take_slot(struct rma *m, struct request *r)
{
	if (r->rma.slot || m->taken == RMA_WINDOW)
		return r->rma.slot;
	for (struct rma_slot *s = m->slots; s < m->slots + RMA_WINDOW; s++) {
		if (s->taken)
			continue;
		*s = (struct rma_slot){.taken = true, .kind = (uint8_t)r->kind, .request = r};
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

void rma_park(struct rma *m, struct request *r)
{
	struct list *before = &m->parked;

	while (before->prev != &m->parked &&
	       wire_is_before(r->rma.ticket,
			      LIST_ENTRY(before->prev, struct request, node)->rma.ticket))
		before = before->prev;
	list_insert(before, &r->node);
	r->rma.parked = true;
}

/* ---- who carries them ----------------------------------------------------------------------- */

enum rma_by rma_carrier_of(const struct request *r)
{
	if (r->rma.asked)
		return RMA_BY_PEER;
	if (r->rma.posted)
		return RMA_BY_FABRIC;
	if (r->rma.engine)
		return RMA_BY_ENGINE;
	return pick_form(r->ep) == MODE_RMA_RING ? RMA_BY_RING : RMA_BY_AM;
}

/* Is there anything that an engine has, or is to have? */
static bool engine_has_any(const struct endpoint *ep)
{
	if (ep->moving || ep->ask_min == UINT64_MAX)
		return ep->moving;
	LIST_EACH_ENTRY(const struct rma_work, w, &ep->one_sided, live)
		if (w->asked && !w->parked)
			return true;
	return false;
}

void rma_ring_start(struct request *r)
{
	link_enqueue(r->ep, r);
}

bool rma_ring_take_back(struct request *r)
{
	if (r->rma.span < r->rma.span_count || !r->numbered)
		link_dequeue(r->ep, r);
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
	r->rma.engine = r->rma.asked = r->rma.posted = false;
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

int rma_submit(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct rma *m = ep->rma;

	monitor_requested(r);
	r->rma.ticket = wire_next(&m->tickets);
	r->rma.is_long = rma_is_long(ep, r);
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
