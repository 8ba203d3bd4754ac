/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by active messages, the side that asks: it has a window of requests, each
 * with a slot that its answer names. They go on when there is room, a packet at a time, without
 * memory of their own.
 *
 * By active messages each piece of a write or read is a request, and its bytes come along or with
 * the answer; by tag one request opens a queue's entry over there, and the bytes follow as tagged
 * messages, or come back as such. Atomic operations and notifications are requests with one answer
 * each.
 */
#include "slmpm/emulation/emulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/bond/bond.h"
#include "slmpm/choice/pick.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/rma/direct.h"

#define TURN 16 /* packets before the transmit queue's turn */

struct emulation *emulate_state(struct endpoint *ep)
{
	struct emulation *e = ep->rooms->emulation;

	if (e)
		return e;
	e = ep->rooms->emulation = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	list_init(&e->going);
	for (struct rma_slot *s = e->slots; s < e->slots + EMULATE_WINDOW; s++)
		s->seq = endpoint_start(ep) << 16;
	return e;
}

/* ---- slots ------------------------------------------------------------------------------- */

/* Its tag: which one, and how often it was taken, so that a late answer finds another. */
static struct rma_slot *emulate_take_slot(struct emulation *e, struct request *r, uint16_t id)
{
	if (e->taken == EMULATE_WINDOW)
		return NULL;
	for (struct rma_slot *s = e->slots; s < e->slots + EMULATE_WINDOW; s++) {
		if (s->taken)
			continue;
		*s = (struct rma_slot){
			.taken = true,
			.out = true,
			.kind = id,
			.seq = (uint32_t)((s->seq >> 16) + 1) << 16 | (uint32_t)(s - e->slots),
			.request = r,
		};
		e->taken++;
		r->rma.parts++;
		return s;
	}
	return NULL;
}

static void drop_slot(struct emulation *e, struct rma_slot *s)
{
	if (s->request)
		s->request->rma.parts--;
	s->taken = false;
	e->taken--;
}

/* The slot that TAG names, if one waits under it. */
static struct rma_slot *emulate_slot_of(struct emulation *e, uint32_t tag)
{
	struct rma_slot *s = e ? &e->slots[tag % EMULATE_WINDOW] : NULL;

	return s && s->taken && s->seq == tag ? s : NULL;
}

/* ---- operations -------------------------------------------------------------------------- */

/* The notification goes behind the last span. */
static bool has_more(const struct request *r)
{
	return r->rma.slot || r->rma.span < r->rma.span_count + !!(r->flags & SLMPM_NOTIFY);
}

/* Where nothing of it is under way and nothing goes any more, it is done. */
static void emulate_settle(struct request *r)
{
	if (has_more(r))
		return;
	list_remove(&r->node);
	emulate_block(r->ep);
	if (!r->rma.parts)
		request_finish(r, r->rma.status);
}

/* What has not been sent is not any more; but a tagged write is seen through. */
static void stop(struct request *r, int status)
{
	if (!r->rma.status)
		r->rma.status = status;
	r->rma.span = r->rma.span_count + 1;
}

void emulate_start(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct emulation *e = r->rma.remote ? emulate_state(ep) : NULL;

	if (!e) { /* a flush: all before it is done */
		request_finish(r, r->rma.remote ? -SLMPM_ENOMEM : 0);
		return;
	}
	if (r->rma.stored)
		r->rma.span = r->rma.span_count;
	list_append(&e->going, &r->node);
	emulate_block(ep);
}

bool emulate_take_back(struct request *r)
{
	struct emulation *e = r->ep->rooms->emulation;

	if (!e)
		return true;
	for (struct rma_slot *s = e->slots; s < e->slots + EMULATE_WINDOW; s++)
		if (s->request == r)
			s->request = NULL;
	list_remove(&r->node);
	e->giving_up += r->rma.slot != NULL;
	r->rma.slot = NULL;
	emulate_block(r->ep);
	return true;
}

void emulate_end(struct endpoint *ep)
{
	struct emulation *e = ep->rooms->emulation;

	if (!e)
		return;
	LIST_EACH_ENTRY(struct request, r, &e->going, node) {
		r->rma.slot = NULL;
		list_remove(&r->node);
	}
	memset(e->slots, 0, sizeof(e->slots));
	memset(e->entries, 0, sizeof(e->entries));
	e->taken = e->giving_up = e->answering = 0;
	ep->stats->rma_queue = 0;
}

void emulate_free(struct endpoint *ep)
{
	free(ep->rooms->emulation);
	ep->rooms->emulation = NULL;
}

/* ---- its packets ------------------------------------------------------------------------- */

int emulate_post(struct endpoint *ep, struct request *r, uint32_t stream, uint32_t imm,
		 const void *head, uint32_t head_len, const void *data, uint32_t len)
{
	uint16_t by = r ? request_packet_flags(r) : 0;
	uint32_t flags = WIRE_FLAG_UNCHARGED | (head ? WIRE_FLAG_ACTIVE : WIRE_FLAG_TAGGED);
	int rc = am_post(ep, by, wire_route(stream, imm), flags, head, head_len, data, len);

	if (rc == 1)
		monitor_carrier(ep, head_len + len);
	if (rc == 1 && r && bond_is(ep->link.port))
		r->mode.link = (uint8_t)bond_path(ep->link.port);
	return rc;
}

/* The request HEAD with LEN bytes of DATA: 1, -EBUSY no slot is free, or as am_post. */
static int emulate_ask(struct request *r, uint16_t id, void *head, const void *data, uint32_t len)
{
	struct emulation *e = r->ep->rooms->emulation;
	struct rma_slot *s = emulate_take_slot(e, r, id);
	struct emulate_request *q = head;
	uint32_t n = emulate_head_length(id);
	int rc;

	if (!s)
		return -EBUSY;
	q->tag = LITTLE_32((uint32_t)s->seq);
	s->at = r->offset;
	s->length = LITTLE_64(q->target.length);
	rc = emulate_post(r->ep, r, am_stream(id, n), 0, head, n, data, len);
	if (rc != 1) {
		drop_slot(e, s);
	} else if (id == EMULATE_TAGGED_WRITE && s->length) {
		s->out = false;
		r->rma.slot = s;
	}
	return rc;
}

/* The head of a request for R's next LENGTH bytes, which lie in the current span. */
static struct emulate_request emulate_head(const struct request *r, uint64_t length, uint32_t imm)
{
	const struct rma_work *w = &r->rma;
	const struct slmpm_span *span =
		&w->spans[w->span < w->span_count ? w->span : w->span_count - 1];

	return (struct emulate_request){
		.target = rma_target(w->remote, span->offset + w->in_span, length),
		.imm = LITTLE_32(imm),
	};
}

static void count_request(struct slmpm_stats *s, uint16_t id)
{
	s->am_writes += id == EMULATE_WRITE;
	s->am_reads += id == EMULATE_READ;
	s->tag_writes += id == EMULATE_TAGGED_WRITE;
	s->tag_reads += id == EMULATE_TAGGED_READ;
}

/* A piece; or, by tag, the rest of the span, whose bytes follow if they are a write's. */
static int send_bytes(struct endpoint *ep, struct request *r)
{
	struct rma_work *w = &r->rma;
	bool tagged = pick_form(ep) == MODE_RMA_TAG, put = r->kind == REQUEST_PUT;
	uint16_t id = put ? (tagged ? EMULATE_TAGGED_WRITE : EMULATE_WRITE) :
			    (tagged ? EMULATE_TAGGED_READ : EMULATE_READ);
	uint64_t n = w->spans[w->span].len - w->in_span;
	uint64_t room = ep->packet_max_in - sizeof(struct emulate_answer);
	uint64_t most = ep->packet_max - sizeof(struct emulate_request);
	struct emulate_request q;
	const void *run = NULL;
	int rc;

	if (id == EMULATE_WRITE)
		run = request_run_on(r, r->offset, n < most ? n : most, &n);
	else if (id == EMULATE_READ && n > room)
		n = room;
	q = emulate_head(r, n, 0);
	rc = emulate_ask(r, id, &q, run, id == EMULATE_WRITE ? (uint32_t)n : 0);
	if (rc != 1)
		return rc;
	count_request(ep->stats, id);
	w->in_span += n;
	if (!w->slot)
		r->offset += n;
	if (w->in_span == w->spans[w->span].len) {
		w->span++;
		w->in_span = 0;
	}
	return 1;
}

static int send_tagged(struct endpoint *ep, struct request *r)
{
	struct rma_slot *s = r->rma.slot;
	uint64_t n = s->length - s->got;
	const void *run = request_run_on(r, r->offset, n < ep->packet_max ? n : ep->packet_max, &n);
	int rc = emulate_post(ep, r, (uint32_t)s->seq, EMULATE_OUT, NULL, 0, run, (uint32_t)n);

	if (rc != 1)
		return rc;
	r->offset += n;
	s->got += n;
	s->out = s->got == s->length;
	if (s->out)
		r->rma.slot = NULL;
	return 1;
}

static int send_atomic(struct endpoint *ep, struct request *r)
{
	struct rma_work *w = &r->rma;
	struct {
		struct emulate_request request;
		struct wire_atomic atomic;
	} head = {
		.request = emulate_head(r, w->spans->len, w->atomic),
		.atomic = rma_operands(r),
	};
	int rc = emulate_ask(r, EMULATE_ATOMIC, &head, NULL, 0);

	ep->stats->am_atomics += rc == 1;
	w->span += rc == 1;
	return rc;
}

/* Behind the answers to all of the put: only what is there is told. */
static int send_notify(struct endpoint *ep, struct request *r)
{
	struct rma_work *w = &r->rma;
	struct emulate_request q = emulate_head(r, w->spans[w->span_count - 1].len, r->result.imm);
	int rc;

	if (w->parts || ep->charged - ep->credited + WIRE_ENVELOPE > ep->credit)
		return -EBUSY;
	q.target.zero = LITTLE_32(w->stored);
	rc = emulate_ask(r, EMULATE_NOTIFY, &q, NULL, 0);
	if (rc != 1)
		return rc;
	ep->charged += WIRE_ENVELOPE;
	w->span++;
	return 1;
}

/* Of R the next packet: 1, -EAGAIN no room, -EBUSY not yet its turn, or another negative. */
static int emulate_send(struct endpoint *ep, struct request *r)
{
	if (r->rma.slot)
		return send_tagged(ep, r);
	if (r->rma.span == r->rma.span_count)
		return send_notify(ep, r);
	return r->kind == REQUEST_ATOMIC ? send_atomic(ep, r) : send_bytes(ep, r);
}

/* Nobody has the bytes of these any more. */
static int push_give_ups(struct endpoint *ep, int most)
{
	struct emulation *e = ep->rooms->emulation;
	int n = 0;

	if (!e->giving_up)
		return 0;
	for (struct rma_slot *s = e->slots; s < e->slots + EMULATE_WINDOW && n < most; s++) {
		struct emulate_answer a = {.tag = LITTLE_32((uint32_t)s->seq)};

		if (!s->taken || s->request || s->out)
			continue;
		if (emulate_post(ep, NULL, am_stream(EMULATE_GIVE_UP, sizeof(a)), 0, &a, sizeof(a),
				 NULL, 0) != 1)
			break;
		s->out = true;
		e->giving_up--;
		n++;
	}
	return n;
}

/* The first in line; one that waits for a slot or its notification's turn lets others pass. */
static int push_operations(struct endpoint *ep, int most)
{
	int n = 0, rc = 1;

	LIST_EACH_ENTRY(struct request, r, &ep->rooms->emulation->going, node) {
		for (rc = 1; n < most && has_more(r); n++) {
			rc = emulate_send(ep, r);
			if (rc == -ENOLINK)
				stop(r, rail_refusal(ep, r->hint));
			if (rc != 1)
				break;
			r->numbered = true; /* it can no longer be taken back */
		}
		if (n == most || (rc != 1 && rc != -EBUSY && rc != -ENOLINK))
			break;
		emulate_settle(r);
	}
	return n;
}

int emulate_push(struct endpoint *ep)
{
	struct emulation *e = ep->rooms->emulation;
	int n;

	/* What ends in here may begin something else; behind the end of stream nothing is read. */
	if (ep->state != SLMPM_PEER_UP || ep->life->sent_end || !emulate_has_work(e) || e->pushing)
		return 0;
	e->pushing = true;
	n = emulate_push_answers(ep, TURN);
	if (ep->state == SLMPM_PEER_UP)
		n += push_give_ups(ep, TURN);
	if (ep->state == SLMPM_PEER_UP)
		n += push_operations(ep, TURN);
	e->pushing = false;
	emulate_block(ep);
	return n;
}

/* ---- what comes back --------------------------------------------------------------------- */

static void emulate_answered(struct endpoint *ep, struct rma_slot *s, int status, uint64_t old)
{
	struct emulation *e = ep->rooms->emulation;
	struct request *r = s->request;

	/* Refused over there before all of it had gone. */
	if (!s->out && r)
		r->rma.slot = NULL;
	e->giving_up -= !s->out && !r;
	drop_slot(e, s);
	if (r && status < 0)
		stop(r, status);
	else if (r && r->kind == REQUEST_ATOMIC)
		direct_give_old(r->rma.old, r->rma.bits, old);
	if (r)
		emulate_settle(r);
	emulate_block(ep);
	(void)emulate_push(ep);
}

static void emulate_take_data(struct endpoint *ep, struct rma_slot *s, const void *data,
			      uint64_t len)
{
	bool tagged = s->kind == EMULATE_TAGGED_READ;

	if (endpoint_broke(ep, "length of a read",
			   len > s->length - s->got ||
				   (tagged ? !len && s->length : len != s->length)))
		return;
	if (s->request && len)
		request_scatter(s->request, s->at + s->got, data, len);
	s->got += len;
	if (s->got == s->length)
		emulate_answered(ep, s, 0, 0);
}

void emulate_take_answer(struct endpoint *ep, const struct slmpm_am *am,
			 const struct emulate_answer *a)
{
	struct rma_slot *s = emulate_slot_of(ep->rooms->emulation, a->tag);

	if (endpoint_broke(ep, "answer to no request",
			   !s || (am->id == EMULATE_DATA && s->kind != EMULATE_READ) ||
				   (am->id == EMULATE_DONE &&
				    (s->kind == EMULATE_READ || s->kind == EMULATE_TAGGED_READ ||
				     !s->out)) ||
				   (am->id == EMULATE_FAILED &&
				    (!a->old || a->old > WIRE_ERROR_LAST))))
		return;
	if (am->id == EMULATE_DATA)
		emulate_take_data(ep, s, am->data, am->data_len);
	else
		emulate_answered(ep, s,
				 am->id == EMULATE_FAILED ? wire_status((uint32_t)a->old) : 0,
				 a->old);
}

void emulate_tagged_answer(struct endpoint *ep, const struct head *h)
{
	struct rma_slot *s = emulate_slot_of(ep->rooms->emulation, h->stream);

	if (PEER_FAULT(h->imm != EMULATE_BACK || !s || s->kind != EMULATE_TAGGED_READ))
		endpoint_poison(ep, "tag of a message");
	else
		emulate_take_data(ep, s, h->data, h->length);
}
