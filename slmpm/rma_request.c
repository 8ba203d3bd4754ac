/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by request, the side that asks. A put stands in the transmit queue among the
 * messages, so that what is sent after it arrives after it. Gets and atomic operations, which wait
 * for an answer anyway, come to the queue only once they have one of the slots for it.
 */
#include "slmpm/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/emulate.h"
#include "slmpm/engine.h"
#include "slmpm/error.h"
#include "slmpm/inbound.h"
#include "slmpm/memory.h"

/* ---- slots, turns --------------------------------------------------------------------------- */

int rma_new(struct endpoint *ep)
{
	ep->rma = calloc(1, sizeof(*ep->rma));
	if (!ep->rma)
		return -SLMPM_ENOMEM;
	list_init(&ep->rma->live);
	list_init(&ep->rma->parked);
	return 0;
}

void rma_free(struct endpoint *ep)
{
	if (ep->rma)
		free(ep->rma->stage);
	free(ep->rma);
	ep->rma = NULL;
}

static bool take_slot(struct rma *m, struct request *r)
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
	if (m->barrier && m->barrier < r->rma.ticket)
		return true;
	return r->flags & (SLMPM_FENCE | SLMPM_BARRIER) && m->live.next != &r->rma.live;
}

static uint32_t first_room(const struct endpoint *ep)
{
	return ep->packet_max - (uint32_t)sizeof(struct wire_target);
}

static bool is_long(const struct endpoint *ep, const struct request *r)
{
	if (r->kind != REQUEST_PUT || r->rma.stored)
		return false;
	for (int i = 0; i < r->rma.span_count; i++)
		if (r->rma.spans[i].len > first_room(ep))
			return true;
	return false;
}

bool rma_ready(struct endpoint *ep, const struct request *r)
{
	const struct rma *m = ep->rma;

	if (r->kind != REQUEST_PUT) /* it has its slot */
		return true;
	return !is_held_up(m, r) && (!r->rma.answered || m->taken < RMA_WINDOW) &&
	       (!r->rma.is_long || m->open < RMA_WINDOW) &&
	       (!(r->flags & SLMPM_NOTIFY) ||
		ep->charged - ep->credited + WIRE_ENVELOPE <= ep->credit);
}

static void park(struct rma *m, struct request *r)
{
	struct list *before = &m->parked;

	while (before->prev != &m->parked &&
	       LIST_ENTRY(before->prev, struct request, node)->rma.ticket > r->rma.ticket)
		before = before->prev;
	list_insert(before, &r->node);
	r->rma.parked = true;
}

static void to_queue(struct endpoint *ep, struct request *r)
{
	ep->rma->queued++;
	link_enqueue(ep, r);
}

void rma_from_queue(struct endpoint *ep, struct request *r)
{
	ep->rma->queued--;
	link_dequeue(ep, r);
}

/* Its turn, out of the parked ones. */
static void begin(struct endpoint *ep, struct request *r)
{
	list_remove(&r->node);
	r->rma.parked = false;
	if (r->rma.engine) {
		int rc = engine_start(r);

		if (rc < 0)
			request_finish(r, rc);
	} else if (!emulate_wanted()) {
		to_queue(ep, r);
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

		if (is_held_up(m, r) || (!emulate_wanted() && !r->rma.engine && !take_slot(m, r)))
			return;
		/* A flush is done when it is the only one. */
		if (!r->rma.remote && m->live.next != &r->rma.live)
			return;
		begin(ep, r);
	}
}

static void place(struct endpoint *ep, struct request *r)
{
	/* A flush behind what the engine moves waits for that. */
	if (r->kind == REQUEST_PUT && !emulate_wanted() && !r->rma.engine &&
	    (r->rma.remote || !ep->rma->moving))
		to_queue(ep, r);
	else
		park(ep->rma, r);
}

void rma_retry(struct request *r)
{
	r->rma.engine = false;
	r->rma.parts = 0;
	r->rma.span = 0;
	place(r->ep, r);
	rma_wake(r->ep);
	(void)link_push(r->ep);
}

void rma_submit(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct rma *m = ep->rma;

	r->rma.ticket = ++m->tickets;
	r->rma.is_long = is_long(ep, r);
	list_append(&m->live, &r->rma.live);
	if (r->rma.remote)
		r->rma.remote->active++;
	place(ep, r);
	if (r->flags & SLMPM_BARRIER && !m->barrier)
		m->barrier = r->rma.ticket;
	rma_wake(ep);
	(void)link_push(ep);
}

/* ---- packets -------------------------------------------------------------------------------- */

static struct wire_target target_of(const struct request *r, const struct slmpm_span *span)
{
	const struct remote *remote = r->rma.remote;
	struct wire_target t = {
		.offset = LITTLE_64(span->offset),
		.length = LITTLE_64(span->len),
		.grant = LITTLE_32(remote->grant),
	};

	memcpy(t.secret, remote->secret, sizeof(t.secret));
	return t;
}

static uint64_t next_seq(const struct endpoint *ep, const struct request *r)
{
	return r->seq ? r->seq : ep->rma->seq + 1;
}

/* The last packet with an answer to come is out. */
static void await_answer(struct request *r, uint64_t seq)
{
	r->rma.slot->seq = seq;
	r->rma.slot = NULL;
	r->rma.parts++;
}

static void detach(struct request *r)
{
	struct rma *m = r->ep->rma;

	for (struct rma_slot *s = m->slots; s < m->slots + RMA_WINDOW; s++)
		if (s->request == r)
			s->request = NULL;
	r->rma.parts = 0;
}

/* What a put's first packet settles: its number, the Write that it opens, the slot, the credit. */
static void put_begun(struct endpoint *ep, struct request *r)
{
	struct rma *m = ep->rma;

	r->seq = m->wrote = ++m->seq;
	r->rma.open = r->rma.is_long;
	m->open += r->rma.open;
	ep->charged += (r->flags & SLMPM_NOTIFY) ? WIRE_ENVELOPE : 0;
	ep->link.run = 0;
}

static int post_flush(struct endpoint *ep)
{
	struct packet p = {
		.opcode = WIRE_WRITE_ONLY,
		.seq = ep->rma->seq + 1,
		.extent = wire_extent(0, WIRE_FLAG_ANSWER),
	};

	return link_post_request(ep, &p, NULL);
}

static int post_notify(struct endpoint *ep, struct request *r, const struct slmpm_span *span)
{
	struct wire_target t = target_of(r, span);
	struct packet p = {
		.opcode = WIRE_NOTIFY,
		.seq = ep->rma->seq + 1,
		.route = wire_route(0, r->result.imm),
		.extent = wire_extent(span->len, r->rma.answered ? WIRE_FLAG_ANSWER : 0),
		.data = &t,
		.length = sizeof(t),
	};

	return link_post_request(ep, &p, NULL);
}

/* The first packet of a span. */
static int post_write(struct endpoint *ep, struct request *r, const struct slmpm_span *span)
{
	bool last = r->rma.span == r->rma.span_count - 1;
	bool only = span->len <= first_room(ep);
	uint32_t n = only ? (uint32_t)span->len : first_room(ep);
	struct wire_target t = target_of(r, span);
	struct packet p = {
		.opcode = only ? WIRE_WRITE_ONLY : WIRE_WRITE_FIRST,
		.flags = r->flags & SLMPM_MORE ? FABRIC_MORE : 0,
		.length = n,
		.seq = next_seq(ep, r),
		.route = wire_route(0, r->result.imm),
		.extent = wire_extent(span->len, (last && r->rma.answered ? WIRE_FLAG_ANSWER : 0) |
							 (last && (r->flags & SLMPM_NOTIFY) ?
								  WIRE_FLAG_NOTIFY :
								  0)),
	};
	int rc = link_post_led(ep, &p, &t, sizeof(t), r);

	if (rc != 1)
		return rc;
	r->offset += n;
	r->rma.in_span = n;
	return 1;
}

static int post_write_more(struct endpoint *ep, struct request *r, const struct slmpm_span *span)
{
	uint64_t left = span->len - r->rma.in_span;
	uint32_t n = left <= ep->packet_max ? (uint32_t)left : ep->packet_max;
	struct packet p = {
		.opcode = left <= ep->packet_max ? WIRE_WRITE_LAST : WIRE_WRITE_MIDDLE,
		.length = n,
		.seq = r->seq,
		.extent = wire_extent(r->rma.in_span, 0),
	};
	int rc = link_post_request(ep, &p, r);

	if (rc != 1)
		return rc;
	r->offset += n;
	r->rma.in_span += n;
	return 1;
}

static int push_put(struct endpoint *ep, struct request *r)
{
	struct rma_work *w = &r->rma;
	const struct slmpm_span *span = w->remote ? &w->spans[w->span] : NULL;
	int rc;

	/* A put that has begun has its slot. */
	if (w->answered && !r->seq && !take_slot(ep->rma, r))
		return -EAGAIN;
	if (!span)
		rc = post_flush(ep);
	else if (w->stored)
		rc = post_notify(ep, r, &w->spans[w->span_count - 1]);
	else
		rc = w->in_span ? post_write_more(ep, r, span) : post_write(ep, r, span);
	if (rc != 1)
		return rc;
	if (!r->seq)
		put_begun(ep, r);
	if (!span || w->stored) {
		w->span = w->span_count;
	} else if (w->in_span == span->len) {
		w->span++;
		w->in_span = 0;
	}
	if (w->span == w->span_count && w->answered)
		await_answer(r, r->seq);
	if (w->span == w->span_count && w->answered && !w->remotely) {
		/* Nobody waits for it; what goes another way waits until it is settled. */
		detach(r);
		ep->rma->fenced = r->seq;
	}
	return 1;
}

static int push_get(struct endpoint *ep, struct request *r)
{
	const struct slmpm_span *span = &r->rma.spans[r->rma.span];
	struct wire_target t = target_of(r, span);
	struct packet p = {
		.opcode = WIRE_READ_REQUEST,
		.seq = ep->rma->seq + 1,
		.extent = wire_extent(span->len, 0),
		.data = &t,
		.length = sizeof(t),
	};
	struct rma_slot *s = r->rma.slot;
	int rc = link_post_request(ep, &p, NULL);

	if (rc != 1)
		return rc;
	r->seq = ++ep->rma->seq;
	s->at = r->offset;
	s->length = span->len;
	r->offset += span->len;
	r->rma.span++;
	await_answer(r, r->seq);
	return 1;
}

static int push_atomic(struct endpoint *ep, struct request *r)
{
	static const uint8_t opcodes[] = {
		[SLMPM_FETCH_ADD] = WIRE_FETCH_ADD,
		[SLMPM_COMPARE_SWAP] = WIRE_COMPARE_SWAP,
		[SLMPM_SWAP] = WIRE_SWAP,
	};
	struct {
		struct wire_target target;
		struct wire_atomic atomic;
	} data = {
		.target = target_of(r, r->rma.spans),
		.atomic = {LITTLE_64(r->rma.operand), LITTLE_64(r->rma.compare),
			   LITTLE_32(r->rma.bits), 0},
	};
	struct packet p = {
		.opcode = opcodes[r->rma.atomic],
		.seq = ep->rma->seq + 1,
		.extent = wire_extent(r->rma.spans->len, 0),
		.data = &data,
		.length = sizeof(data),
	};
	int rc = link_post_request(ep, &p, NULL);

	if (rc != 1)
		return rc;
	r->seq = ep->rma->wrote = ++ep->rma->seq;
	r->rma.span++;
	await_answer(r, r->seq);
	return 1;
}

/* All of it is out: done where no answer is to come. */
static void issued(struct request *r)
{
	if (!r->rma.parts)
		request_finish(r, r->rma.status);
}

int rma_push(struct endpoint *ep, struct request *r, bool *stop)
{
	int n = 0;

	do {
		int rc = r->kind == REQUEST_PUT ? push_put(ep, r) :
			 r->kind == REQUEST_GET ? push_get(ep, r) :
						  push_atomic(ep, r);

		if (rc != 1) {
			*stop = true;
			return n;
		}
		n++;
		link_streams(ep, r);
		if (r->rma.span == r->rma.span_count) {
			rma_from_queue(ep, r);
			issued(r);
			return n;
		}
		if (r->kind != REQUEST_PUT && !take_slot(ep->rma, r)) {
			rma_from_queue(ep, r);
			park(ep->rma, r);
			return n;
		}
	} while (n < LINK_TURN || r->node.next == &ep->link.queue);
	link_rotate(ep, r);
	return n;
}
