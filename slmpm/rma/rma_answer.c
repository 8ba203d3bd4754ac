/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by request, the side that asks: what comes back, and the ends of requests.
 * Who gives up waiting leaves the slot to the answer: what it brings then is dropped.
 */
#include <string.h>

#include "slmpm/rma/direct.h"
#include "slmpm/message/inbound.h"
#include "slmpm/link/landing.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"

static void rma_answer_free_slot(struct rma *m, struct rma_slot *s)
{
	*s = (struct rma_slot){.taken = false};
	m->taken--;
}

/* ---- answers ----------------------------------------------------------------------------- */

static struct rma_slot *slot_of(struct rma *m, uint64_t seq)
{
	for (struct rma_slot *s = m->slots; s < m->slots + RMA_WINDOW; s++)
		if (s->out && s->seq == seq)
			return s;
	return NULL;
}

void rma_part_done(struct request *r, int status, uint64_t old)
{
	struct rma_work *w = &r->rma;

	w->parts--;
	if (status < 0 && !w->status)
		w->status = status;
	if (status == 0 && r->kind == REQUEST_ATOMIC)
		direct_give_old(w->old, w->bits, old);
	if (w->parts)
		return;
	if (w->span == w->span_count) {
		request_finish(r, w->status);
	} else if (w->status && w->parked) { /* the rest is not asked for */
		list_remove(&r->node);
		w->parked = false;
		request_finish(r, w->status);
	}
}

/* An answer is complete; what was asked before it and changes memory has been done. */
static void slot_done(struct endpoint *ep, struct rma_slot *s, int status, uint64_t old)
{
	struct request *r = s->request;
	struct rma *m = ep->rma;
	bool refused = s->refused;

	if (wire_is_before(m->settled, s->seq))
		m->settled = s->seq;
	if (!wire_is_before(m->settled, m->fenced))
		m->holds &= (uint8_t)~RMA_FENCED;
	rma_answer_free_slot(m, s);
	link_changed(ep);
	if (r && !r->rma.remote && !status) { /* a flush: what nobody has been told */
		status = m->lost;
		m->lost = 0;
	}
	if (r)
		rma_part_done(r, status, old);
	else if (status && !m->lost && !refused)
		m->lost = status;
	if (ep->state == SLMPM_PEER_UP)
		rma_wake(ep);
}

static bool is_sound_part(const struct endpoint *ep, const struct rma_slot *s, const struct head *h)
{
	bool first = h->opcode == WIRE_READ_ONLY || h->opcode == WIRE_READ_FIRST;
	bool last = h->opcode == WIRE_READ_ONLY || h->opcode == WIRE_READ_LAST;

	return (h->extent & WIRE_LENGTH_MASK) == (first ? s->length : s->got) && first == !s->got &&
	       rma_is_part(ep, last, h->length, s->length - s->got);
}

void *rma_place_response(struct endpoint *ep, const struct fabric_arrival *a)
{
	const struct rma_slot *s = slot_of(ep->rma, a->head[0]);

	if (!s || s->kind != REQUEST_GET || !s->request || a->length > s->length - s->got)
		return NULL;
	return request_run(s->request, s->at + s->got, a->length);
}

void rma_response(struct endpoint *ep, const struct head *h)
{
	struct rma_slot *s = slot_of(ep->rma, h->seq);

	if (endpoint_broke(ep, "response to no read", !s || s->kind != REQUEST_GET) ||
	    endpoint_broke(ep, "length or offset of a read's response", !is_sound_part(ep, s, h)))
		return;
	if (s->request && h->length)
		landing_scatter(s->request, s->at + s->got, h->data, h->length);
	s->got += h->length;
	s->damaged |= h->damaged;
	if (s->got == s->length)
		slot_done(ep, s, s->damaged ? -SLMPM_ECHECKSUM : 0, 0);
}

void rma_acknowledged(struct endpoint *ep, const struct head *h)
{
	struct rma_slot *s = slot_of(ep->rma, h->seq);
	uint64_t error = h->extent & WIRE_LENGTH_MASK;

	if (endpoint_broke(ep, "acknowledgement",
			   !s || h->length || error > WIRE_ERROR_LAST ||
				   (!error && s->kind != REQUEST_PUT)))
		return;
	slot_done(ep, s, h->damaged ? -SLMPM_ECHECKSUM : wire_status((uint32_t)error), 0);
}

void rma_atomic_acknowledged(struct endpoint *ep, const struct head *h)
{
	struct rma_slot *s = slot_of(ep->rma, h->seq);
	uint64_t old;

	if (endpoint_broke(ep, "acknowledgement of an atomic operation",
			   !s || s->kind != REQUEST_ATOMIC || h->length != sizeof(old)))
		return;
	memcpy(&old, h->data, sizeof(old));
	slot_done(ep, s, h->damaged ? -SLMPM_ECHECKSUM : 0, LITTLE_64(old));
}

/* Its owner need not call for that: it may have turned to something else with these unread. */
void rma_refused(struct remote *remote, uint64_t received)
{
	struct rma *m = remote->ep->rma;

	for (struct rma_slot *s = m->slots; s < m->slots + RMA_WINDOW; s++) {
		struct request *r = s->request;

		if (!s->out || !r || r->rma.remote != remote || r->rma.in_span ||
		    !wire_is_before(received, s->seq))
			continue;
		s->request = NULL;
		s->refused = true;
		rma_part_done(r, -SLMPM_EACCES, 0);
	}
}

/* ---- ends -------------------------------------------------------------------------------- */

/* The slots stay until their answers come: the peer is at work on them. */
void rma_detach(const struct request *r)
{
	struct rma *m = r->ep->rma;

	for (struct rma_slot *s = m->slots; s < m->slots + RMA_WINDOW; s++)
		if (s->request == r && s->out)
			s->request = NULL;
}

static void rma_answer_forget(struct rma *m, struct request *r)
{
	rma_detach(r);
	if (r->rma.slot)
		rma_answer_free_slot(m, r->rma.slot);
	r->rma.slot = NULL;
	landing_moved(r->ep);
}

static void next_barrier(struct endpoint *ep)
{
	struct rma *m = ep->rma;

	m->barrier = 0;
	m->holds &= (uint8_t)~RMA_BARRIER;
	LIST_EACH_ENTRY(const struct rma_work, w, &ep->one_sided, live) {
		const struct request *r = LIST_ENTRY(w, struct request, rma);

		if (r->flags & SLMPM_BARRIER) {
			m->barrier = w->ticket;
			m->holds |= RMA_BARRIER;
			return;
		}
	}
}

void rma_finished(struct request *r)
{
	struct rma_work *w = &r->rma;
	struct rma *m;

	if (r->kind < REQUEST_PUT || !w->ticket)
		return;
	m = r->ep->rma;
	list_remove(&w->live);
	rma_answer_forget(m, r);
	m->open -= w->open;
	w->open = false;
	if (w->remote)
		w->remote->active--;
	if (m->barrier == w->ticket)
		next_barrier(r->ep);
	w->ticket = 0;
	link_changed(r->ep);
	if (r->ep->state == SLMPM_PEER_UP)
		rma_wake(r->ep);
}

bool rma_take_back(struct request *r)
{
	if (r->rma.parked) {
		list_remove(&r->node);
		r->rma.parked = false;
	} else if (!rma_carriers[rma_carrier_of(r)].take_back(r)) {
		return false;
	}
	rma_finished(r);
	return true;
}

struct endpoint *rma_abandon(struct request *r)
{
	const struct rma_carrier *by = &rma_carriers[rma_carrier_of(r)];

	return by->abandon ? by->abandon(r) : NULL;
}

void rma_end(struct endpoint *ep)
{
	struct rma *m = ep->rma;

	/* Each once, and none is added any more: the endpoint is not UP. */
	while (!list_empty(&ep->one_sided)) {
		struct rma_work *w = LIST_ENTRY(ep->one_sided.next, struct rma_work, live);
		struct request *r = LIST_ENTRY(w, struct request, rma);

		list_remove(&r->node);
		w->parked = false;
		request_finish(r, -ep->life->error);
	}
	memset(m->slots, 0, sizeof(m->slots));
	memset(m->writes, 0, sizeof(m->writes));
	memset(m->jobs, 0, sizeof(m->jobs));
	m->taken = m->open = m->job_count = 0;
	endpoint_block(ep, BLOCK_ANSWERS, false);
}
