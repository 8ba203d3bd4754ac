/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Emulated operations, the packets of who asks. By active messages each piece of a write or read is a request, and its
 * bytes come along or with the answer; by tag one request opens a queue's entry over there, and the bytes follow as
 * tagged messages, or come back as such. Atomic operations and notifications are requests with one answer each.
 */
#include <errno.h>

#include "slmpm/choice/pick.h"
#include "slmpm/emulation/emulate.h"
#include "slmpm/rma/rma.h"

/* The head of a request for OP's next LENGTH bytes, which lie in the current span. */
static struct emulate_request emulate_head(const struct emulated *op, uint64_t length, uint32_t imm)
{
	const struct rma_work *w = &op->r->rma;
	const struct slmpm_span *span =
		&w->spans[op->span < w->span_count ? op->span : w->span_count - 1];

	return (struct emulate_request){
		.target = rma_target(w->remote, span->offset + op->in_span, length),
		.imm = LITTLE_32(imm),
	};
}

/* At most ROOM bytes of the span, which here are one run. */
static void *next_run(const struct emulated *op, uint64_t left, uint64_t room, uint64_t *n)
{
	struct request_walk walk = {op->r, 0, op->at};

	*n = 0;
	return request_walk_on(&walk, left < room ? left : room, n);
}

static void emulate_advance(struct emulated *op, uint64_t n)
{
	op->at += n;
	op->in_span += n;
	if (op->in_span < op->r->rma.spans[op->span].len)
		return;
	op->in_span = 0;
	op->span++;
	op->sends = NULL;
}

static void count_request(struct slmpm_stats *s, uint16_t id)
{
	s->am_writes += id == EMULATE_WRITE;
	s->am_reads += id == EMULATE_READ;
	s->tag_writes += id == EMULATE_TAGGED_WRITE;
	s->tag_reads += id == EMULATE_TAGGED_READ;
}

/* A piece; or, by tag, the rest of the span, whose bytes follow if they are a write's. */
static int send_bytes(struct endpoint *ep, struct emulated *op)
{
	bool tagged = pick_form(ep) == MODE_RMA_TAG, put = op->r->kind == REQUEST_PUT;
	uint16_t id = put ? (tagged ? EMULATE_TAGGED_WRITE : EMULATE_WRITE) :
			    (tagged ? EMULATE_TAGGED_READ : EMULATE_READ);
	uint64_t n = op->r->rma.spans[op->span].len - op->in_span;
	uint64_t room = ep->packet_max_in - sizeof(struct emulate_answer);
	struct emulate_request q;
	const void *run = NULL;
	int rc;

	if (id == EMULATE_WRITE)
		run = next_run(op, n, ep->packet_max - sizeof(q), &n);
	else if (id == EMULATE_READ && n > room)
		n = room;
	q = emulate_head(op, n, 0);
	rc = emulate_ask(op, id, &q, run, id == EMULATE_WRITE ? (uint32_t)n : 0);
	if (rc != 1)
		return rc;
	count_request(ep->stats, id);
	emulate_advance(op, id == EMULATE_TAGGED_WRITE ? 0 : n);
	return 1;
}

/* Nobody has its bytes any more. */
static int send_give_up(struct endpoint *ep, struct emulated *op)
{
	struct emulate_answer a = {.tag = LITTLE_32(emulate_tag(ep->rooms->emulation, op->sends))};
	int rc = emulate_post(ep, op, am_stream(EMULATE_GIVE_UP, sizeof(a)), 0, &a, sizeof(a), NULL,
			      0);

	if (rc == 1)
		op->sends = NULL;
	return rc;
}

static int send_tagged(struct endpoint *ep, struct emulated *op)
{
	const struct slot *s = op->sends;
	uint64_t n;
	const void *run;
	int rc;

	if (!op->r)
		return send_give_up(ep, op);
	run = next_run(op, s->length - op->in_span, ep->packet_max, &n);
	rc = emulate_post(ep, op, emulate_tag(ep->rooms->emulation, s), EMULATE_OUT, NULL, 0, run,
			  (uint32_t)n);
	if (rc == 1)
		emulate_advance(op, n);
	return rc;
}

static int send_atomic(struct endpoint *ep, struct emulated *op)
{
	const struct rma_work *w = &op->r->rma;
	struct {
		struct emulate_request request;
		struct wire_atomic atomic;
	} head = {
		.request = emulate_head(op, w->spans->len, w->atomic),
		.atomic = rma_operands(op->r),
	};
	int rc = emulate_ask(op, EMULATE_ATOMIC, &head, NULL, 0);

	if (rc != 1)
		return rc;
	ep->stats->am_atomics++;
	op->span++;
	return 1;
}

/* Behind the answers to all of the put: only what is there is told. */
static int send_notify(struct endpoint *ep, struct emulated *op)
{
	const struct rma_work *w = &op->r->rma;
	struct emulate_request q =
		emulate_head(op, w->spans[w->span_count - 1].len, op->r->result.imm);
	int rc;

	if (op->in_flight || ep->charged - ep->credited + WIRE_ENVELOPE > ep->credit)
		return -EBUSY;
	q.target.zero = LITTLE_32(w->stored);
	rc = emulate_ask(op, EMULATE_NOTIFY, &q, NULL, 0);
	if (rc != 1)
		return rc;
	ep->charged += WIRE_ENVELOPE;
	op->notify = false;
	return 1;
}

int emulate_send(struct endpoint *ep, struct emulated *op)
{
	if (op->sends)
		return send_tagged(ep, op);
	if (op->span == op->r->rma.span_count)
		return send_notify(ep, op);
	return op->r->kind == REQUEST_ATOMIC ? send_atomic(ep, op) : send_bytes(ep, op);
}
