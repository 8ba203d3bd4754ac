/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by request, the side that asks. A put stands in the transmit queue among the
 * messages, so that what is sent after it arrives after it. Gets and atomic operations, which wait
 * for an answer anyway, come to the queue only once they have one of the slots for it.
 */
#include "slmpm/memory/rma.h"

#include <stdlib.h>

#include "slmpm/choice/pick.h"
#include "slmpm/memory/emulate.h"
#include "slmpm/engine/engine.h"
#include "slmpm/memory/ask.h"
#include "slmpm/message/inbound.h"
#include "slmpm/memory/memory.h"
#include "slmpm/monitor/monitor.h"

/* ---- slots, turns --------------------------------------------------------------------------- */

int rma_new(struct endpoint *ep)
{
	ep->rma = calloc(1, sizeof(*ep->rma));
	if (!ep->rma)
		return -SLMPM_ENOMEM;
	ep->rma->seq = ep->rma->wrote = ep->rma->settled = endpoint_start(ep);
	ep->rma->tickets = endpoint_start(ep);
	list_init(&ep->rma->parked);
	return 0;
}

void rma_up(struct endpoint *ep)
{
	ep->rma->heard = endpoint_start_in(ep);
}

void rma_free(struct endpoint *ep)
{
	if (ep->rma)
		free(ep->rma->stage);
	free(ep->rma);
	ep->rma = NULL;
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
	       r->ep->one_sided.live.next != &r->rma.live;
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

/* Is there anything that an engine has, or is to have? */
static bool moves(const struct endpoint *ep)
{
	return ep->one_sided.moving ||
	       (ep->share && (ep->share->asked || !list_empty(&ep->share->asks)));
}

/* Its turn, out of the parked ones. */
static void begin(struct endpoint *ep, struct request *r)
{
	list_remove(&r->node);
	r->rma.parked = false;
	if (r->rma.asked) {
		ask_start(r);
	} else if (r->rma.engine) {
		int rc = rma_move_start(r);

		if (rc < 0)
			request_finish(r, rc);
	} else if (pick_form(ep) == MODE_RMA_RING) {
		link_enqueue(ep, r);
	} else if (r->rma.remote) {
		emulate_start(r);
	} else {
		request_finish(r, 0);
	}
}

void rma_wake(struct endpoint *ep)
{
	struct rma *m = ep->rma;

	while (!list_empty(&m->parked)) {
		struct request *r = LIST_ENTRY(m->parked.next, struct request, node);

		if (is_held_up(m, r) ||
		    (pick_form(ep) == MODE_RMA_RING && !r->rma.engine && !rma_take_slot(m, r)))
			return;
		/* A flush is done when it is the only one. */
		if (!r->rma.remote && ep->one_sided.live.next != &r->rma.live)
			return;
		begin(ep, r);
	}
}

static void place(struct endpoint *ep, struct request *r)
{
	/* A flush behind what the engine moves waits for that. */
	if (r->kind == REQUEST_PUT && pick_form(ep) == MODE_RMA_RING && !r->rma.engine &&
	    (r->rma.remote || !moves(ep)))
		link_enqueue(ep, r);
	else
		rma_park(ep->rma, r);
}

void rma_retry(struct request *r)
{
	if (r->mode.reason == SLMPM_REASON_STRICT) {
		request_finish(r, -SLMPM_ENOTSUP);
		return;
	}
	r->mode = (struct mode){.way = MODE_REQUEST, .reason = SLMPM_REASON_ONLY};
	r->rma.engine = r->rma.asked = false;
	r->rma.parts = 0;
	r->rma.span = 0;
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
	list_append(&ep->one_sided.live, &r->rma.live);
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
