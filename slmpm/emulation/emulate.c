/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by active messages, their progress: who asks has a window of requests, each
 * with a slot that its answer names; whose memory it is has as many entries for what cannot be
 * answered at once. Both go on when there is room, a packet at a time, without memory of their own.
 */
#include "slmpm/emulation/emulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/choice/pick.h"
#include "slmpm/bond/bond.h"

#define TURN 16 /* packets before the transmit queue's turn */

struct emulation *emulate_state(struct endpoint *ep)
{
	if (!ep->rooms->emulation) {
		ep->rooms->emulation = calloc(1, sizeof(*ep->rooms->emulation));
		if (!ep->rooms->emulation)
			return NULL;
		list_init(&ep->rooms->emulation->going);
		for (struct slot *s = ep->rooms->emulation->slots;
		     s < ep->rooms->emulation->slots + EMULATE_WINDOW; s++)
			s->turn = (uint16_t)endpoint_start(ep);
	}
	return ep->rooms->emulation;
}

/* ---- slots ---------------------------------------------------------------------------------- */

static struct slot *take_slot(struct emulation *e, struct emulated *op, uint16_t id)
{
	if (e->taken == EMULATE_WINDOW)
		return NULL;
	for (struct slot *s = e->slots; s < e->slots + EMULATE_WINDOW; s++) {
		if (s->op)
			continue;
		*s = (struct slot){.op = op, .id = id, .turn = (uint16_t)(s->turn + 1)};
		e->taken++;
		op->in_flight++;
		return s;
	}
	return NULL;
}

static void drop_slot(struct emulation *e, struct slot *s)
{
	s->op->in_flight--;
	s->op = NULL;
	e->taken--;
}

uint32_t emulate_tag(const struct emulation *e, const struct slot *s)
{
	return (uint32_t)(s - e->slots) | (uint32_t)s->turn << 16;
}

struct slot *emulate_slot_of(struct emulation *e, uint32_t tag)
{
	struct slot *s = e ? &e->slots[tag % EMULATE_WINDOW] : NULL;

	return s && s->op && emulate_tag(e, s) == tag ? s : NULL;
}

/* ---- operations ----------------------------------------------------------------------------- */

static bool emulate_all_sent(const struct emulated *op)
{
	return list_empty(&op->node);
}

static void op_free(struct emulation *e, struct emulated *op)
{
	list_remove(&op->node);
	e->operations--;
	free(op);
}

/* Nothing of it is under way and nothing goes any more: it is done. */
static void emulate_settle(struct endpoint *ep, struct emulated *op)
{
	struct request *r = op->r;
	uint64_t old = op->old;
	int status = op->status;

	if (!emulate_all_sent(op) || op->in_flight)
		return;
	op_free(ep->rooms->emulation, op);
	if (r)
		rma_part_done(r, status, old);
}

static void stop(struct emulated *op, int status)
{
	if (!op->status)
		op->status = status;
	op->stopped = true;
	if (!op->sends) /* a tagged write is seen through, or given up */
		list_remove(&op->node);
}

void emulate_start(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct emulation *e;
	struct emulated *op;

	if (!r->rma.remote) { /* a flush: all before it is done */
		request_finish(r, 0);
		return;
	}
	e = emulate_state(ep);
	op = e ? calloc(1, sizeof(*op)) : NULL;
	r->rma.span = r->rma.span_count;
	if (!op) {
		request_finish(r, -SLMPM_ENOMEM);
		return;
	}
	r->rma.parts = 1;
	op->r = r;
	op->notify = r->flags & SLMPM_NOTIFY;
	op->span = r->rma.stored ? r->rma.span_count : 0;
	list_append(&e->going, &op->node);
	e->operations++;
	emulate_block(ep);
}

static struct emulated *op_of(struct emulation *e, const struct request *r)
{
	LIST_EACH(at, &e->going)
		if (LIST_ENTRY(at, struct emulated, node)->r == r)
			return LIST_ENTRY(at, struct emulated, node);
	for (struct slot *s = e->slots; s < e->slots + EMULATE_WINDOW; s++)
		if (s->op && s->op->r == r)
			return s->op;
	return NULL;
}

bool emulate_take_back(struct request *r)
{
	struct emulation *e = r->ep->rooms->emulation;
	struct emulated *op = e ? op_of(e, r) : NULL;

	if (!op)
		return true;
	op->r = NULL;
	stop(op, -SLMPM_ECANCELED);
	emulate_settle(r->ep, op);
	emulate_block(r->ep);
	return true;
}

void emulate_end(struct endpoint *ep)
{
	struct emulation *e = ep->rooms->emulation;

	if (!e)
		return;
	for (struct slot *s = e->slots; s < e->slots + EMULATE_WINDOW; s++) {
		struct emulated *op = s->op;

		if (!op)
			continue;
		drop_slot(e, s);
		if (emulate_all_sent(op) && !op->in_flight)
			op_free(e, op);
	}
	LIST_EACH(at, &e->going)
		op_free(e, LIST_ENTRY(at, struct emulated, node));
	memset(e->entries, 0, sizeof(e->entries));
	e->answering = 0;
	ep->stats->rma_queue = 0;
}

void emulate_free(struct endpoint *ep)
{
	free(ep->rooms->emulation);
	ep->rooms->emulation = NULL;
}

/* ---- what goes out -------------------------------------------------------------------------- */

int emulate_post(struct endpoint *ep, const struct emulated *op, uint32_t stream, uint32_t imm,
		 const void *head, uint32_t head_len, const void *data, uint32_t len)
{
	uint16_t by = op && op->r ? request_packet_flags(op->r) : 0;
	uint32_t flags = WIRE_FLAG_UNCHARGED | (head ? WIRE_FLAG_ACTIVE : WIRE_FLAG_TAGGED);
	int rc = am_post(ep, by, wire_route(stream, imm), flags, head, head_len, data, len);

	if (rc == 1)
		monitor_carrier(ep, head_len + len);
	if (rc == 1 && op && op->r && bond_is(ep->link.port))
		op->r->mode.link = (uint8_t)bond_path(ep->link.port);
	return rc;
}

int emulate_ask(struct emulated *op, uint16_t id, void *head, const void *data, uint32_t len)
{
	struct endpoint *ep = op->r->ep;
	struct emulation *e = ep->rooms->emulation;
	struct slot *s = take_slot(e, op, id);
	struct emulate_request *q = head;
	uint32_t n = emulate_head_length(id);
	int rc;

	if (!s)
		return -EBUSY;
	q->tag = LITTLE_32(emulate_tag(e, s));
	s->at = op->at;
	s->length = LITTLE_64(q->target.length);
	rc = emulate_post(ep, op, am_stream(id, n), 0, head, n, data, len);
	if (rc != 1)
		drop_slot(e, s);
	else if (id == EMULATE_TAGGED_WRITE)
		op->sends = s;
	return rc;
}

static bool has_more(const struct emulated *op)
{
	return op->sends || (!op->stopped && (op->span < op->r->rma.span_count || op->notify));
}

/* The first in line; one that waits for a slot or its notification's turn lets others pass. */
static int push_operations(struct endpoint *ep, int most)
{
	struct emulation *e = ep->rooms->emulation;
	int n = 0, rc = 1;

	LIST_EACH_ENTRY(struct emulated, op, &e->going, node) {
		for (rc = 1; n < most && has_more(op); n++) {
			rc = emulate_send(ep, op);
			if (rc == -ENOLINK)
				stop(op, rail_refusal(ep, op->r->hint));
			if (rc != 1)
				break;
			if (op->r)
				op->r->numbered = true; /* it can no longer be taken back */
		}
		if (n == most || (rc != 1 && rc != -EBUSY && rc != -ENOLINK))
			break;
		if (has_more(op))
			continue;
		list_remove(&op->node);
		emulate_settle(ep, op);
	}
	return n;
}

int emulate_push(struct endpoint *ep)
{
	int n;

	/* What ends in here may begin something else; behind the end of stream nothing is read. */
	if (ep->state != SLMPM_PEER_UP || ep->life->sent_end || ep->rooms->emulation->pushing)
		return 0;
	ep->rooms->emulation->pushing = true;
	n = emulate_push_answers(ep, TURN);
	if (ep->state == SLMPM_PEER_UP)
		n += push_operations(ep, TURN);
	ep->rooms->emulation->pushing = false;
	emulate_block(ep);
	return n;
}

int emulate_turn(struct endpoint *ep)
{
	return emulate_has_work(ep->rooms->emulation) ? emulate_push(ep) : 0;
}

/* ---- what comes back ------------------------------------------------------------------------ */

void emulate_answered(struct endpoint *ep, struct slot *s, int status, uint64_t old)
{
	struct emulated *op = s->op;

	if (op->sends == s) { /* refused over there before all of it had gone */
		op->sends = NULL;
		op->in_span = 0;
		op->span++;
	}
	drop_slot(ep->rooms->emulation, s);
	op->old = old;
	if (status < 0)
		stop(op, status);
	if (!has_more(op))
		list_remove(&op->node);
	emulate_block(ep);
	emulate_settle(ep, op);
	(void)emulate_push(ep);
}

void emulate_take_data(struct endpoint *ep, struct slot *s, const void *data, uint64_t len)
{
	bool tagged = s->id == EMULATE_TAGGED_READ;

	if (PEER_FAULT(len > s->length - s->got ||
		       (tagged ? !len && s->length : len != s->length))) {
		endpoint_poison(ep, "length of a read");
		return;
	}
	if (s->op->r && len)
		request_scatter(s->op->r, s->at + s->got, data, len);
	s->got += len;
	if (s->got == s->length)
		emulate_answered(ep, s, 0, 0);
}
