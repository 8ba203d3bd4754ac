/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided operations by request, the side that asks: the packets of puts, gets, atomic operations
 * and flushes, as far as there is room. */
#include <errno.h>

#include "slmpm/message/inbound.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"
#include "slmpm/choice/pick.h"

bool rma_is_long(const struct endpoint *ep, const struct request *r)
{
	if (r->kind != REQUEST_PUT || r->rma.stored)
		return false;
	for (int i = 0; i < r->rma.span_count; i++)
		if (r->rma.spans[i].len > ep->packet_max)
			return true;
	return false;
}

static struct wire_target target_of(const struct request *r, const struct slmpm_span *span)
{
	return rma_target(r->rma.remote, span->offset, span->len);
}

static uint64_t next_seq(const struct endpoint *ep, const struct request *r)
{
	return r->numbered ? r->seq : ep->rma->seq + 1;
}

/* The last packet with an answer to come is out. */
static void rma_packet_await_answer(struct request *r, uint64_t seq)
{
	r->rma.slot->out = true;
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
	r->numbered = true;
	r->rma.open = r->rma.is_long;
	m->open += r->rma.open;
	ep->charged += (r->flags & SLMPM_NOTIFY) ? WIRE_ENVELOPE : 0;
	ep->link.run = 0;
}

static int post_flush(struct endpoint *ep, struct request *r)
{
	struct packet p = {
		.opcode = WIRE_WRITE_ONLY,
		.seq = ep->rma->seq + 1,
		.extent = wire_extent(0, WIRE_FLAG_ANSWER),
	};

	return link_post_request(ep, &p, r);
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

	return link_post_request(ep, &p, r);
}

/* The first packet of a span. */
static int post_write(struct endpoint *ep, struct request *r, const struct slmpm_span *span)
{
	bool last = r->rma.span == r->rma.span_count - 1;
	bool only = span->len <= ep->packet_max;
	uint32_t n = only ? (uint32_t)span->len : ep->packet_max;
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
	if (w->answered && !r->numbered && !rma_take_slot(ep->rma, r))
		return -EAGAIN;
	if (!span)
		rc = post_flush(ep, r);
	else if (w->stored)
		rc = post_notify(ep, r, &w->spans[w->span_count - 1]);
	else
		rc = w->in_span ? post_write_more(ep, r, span) : post_write(ep, r, span);
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
		detach(r);
		ep->rma->holds |= RMA_FENCED;
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
	int rc = link_post_request(ep, &p, r);

	if (rc != 1)
		return rc;
	ep->link.run = 0; /* what follows answers it */
	r->seq = ++ep->rma->seq;
	r->numbered = true;
	s->at = r->offset;
	s->length = span->len;
	r->offset += span->len;
	r->rma.span++;
	rma_packet_await_answer(r, r->seq);
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
		.atomic = rma_operands(r),
	};
	struct packet p = {
		.opcode = opcodes[r->rma.atomic],
		.seq = ep->rma->seq + 1,
		.extent = wire_extent(r->rma.spans->len, 0),
		.data = &data,
		.length = sizeof(data),
	};
	int rc = link_post_request(ep, &p, r);

	if (rc != 1)
		return rc;
	ep->link.run = 0;
	r->seq = ep->rma->wrote = ++ep->rma->seq;
	r->numbered = true;
	r->rma.span++;
	rma_packet_await_answer(r, r->seq);
	return 1;
}

/* All of it is out: done where no answer is to come. */
static void issued(struct request *r)
{
	if (!r->rma.parts)
		request_finish(r, r->rma.status);
}

static int push_part(struct endpoint *ep, struct request *r)
{
	return r->kind == REQUEST_PUT ? push_put(ep, r) :
	       r->kind == REQUEST_GET ? push_get(ep, r) :
					push_atomic(ep, r);
}

int rma_push(struct endpoint *ep, struct request *r, bool *stop)
{
	int n = 0;

	do {
		int rc = push_part(ep, r);

		if (rc == -ENOLINK) {
			link_dequeue(ep, r);
			request_finish(r, rail_refusal(ep, r->hint));
			return n;
		}
		if (rc != 1) {
			*stop = true;
			return n;
		}
		n++;
		link_streams(ep, r);
		if (r->rma.span == r->rma.span_count) {
			link_dequeue(ep, r);
			issued(r);
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
