/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Emulated writes. By active messages each piece is a request with its bytes, written by the handler
 * where it lies in the ring; by tag one request opens an entry over there, and the bytes follow as
 * tagged messages that go straight to where the entry says. Key and range are looked at for each
 * packet. The answer is sent when the bytes can be seen.
 */
#include <errno.h>
#include <string.h>

#include "slmpm/choice/pick.h"
#include "slmpm/emulation/emulate.h"
#include "slmpm/part.h"
#include "slmpm/region/memory.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/rma/rma.h"

/* ---- the side that asks --------------------------------------------------------------------- */

/* At most ROOM bytes of the span, which here are one run. */
static void *next_run(const struct emulated *op, uint64_t left, uint32_t room, uint32_t *n)
{
	struct request_walk walk = {op->r, 0, op->at};
	uint64_t length = 0;
	void *run = request_walk_on(&walk, left < room ? left : room, &length);

	*n = (uint32_t)length;
	return run;
}

static void emulate_write_advance(struct emulated *op, uint64_t n, uint64_t span)
{
	op->at += n;
	op->in_span += n;
	if (op->in_span < span)
		return;
	op->in_span = 0;
	op->span++;
	op->sends = NULL;
}

/* A request that brings its bytes along. */
static int send_piece(struct endpoint *ep, struct emulated *op, const struct slmpm_span *span)
{
	uint32_t room = ep->packet_max - (uint32_t)sizeof(struct emulate_request), n;
	void *run = next_run(op, span->len - op->in_span, room, &n);
	struct emulate_request q = emulate_head(op, n, 0);
	int rc = emulate_ask(op, EMULATE_WRITE, &q, run, n);

	if (rc != 1)
		return rc;
	ep->stats->am_writes++;
	emulate_write_advance(op, n, span->len);
	return 1;
}

/* The request of a tagged write. */
static int send_opening(struct endpoint *ep, struct emulated *op, const struct slmpm_span *span)
{
	struct emulate_request q = emulate_head(op, span->len, 0);
	int rc = emulate_ask(op, EMULATE_TAGGED_WRITE, &q, NULL, 0);

	if (rc != 1)
		return rc;
	ep->stats->tag_writes++;
	emulate_write_advance(op, 0, span->len);
	return 1;
}

/* Nobody has its bytes any more. */
static int send_give_up(struct endpoint *ep, struct emulated *op)
{
	struct emulate_answer a = {.tag = LITTLE_32(emulate_tag(ep->emulation, op->sends))};
	int rc = emulate_post(ep, op, EMULATE_GIVE_UP, &a, sizeof(a), NULL, 0);

	if (rc == 1)
		op->sends = NULL;
	return rc;
}

static int send_tagged(struct endpoint *ep, struct emulated *op)
{
	struct slot *s = op->sends;
	uint32_t n;
	void *run;
	int rc;

	if (!op->r)
		return send_give_up(ep, op);
	run = next_run(op, s->length - op->in_span, ep->packet_max, &n);
	rc = am_post(ep, request_packet_flags(op->r),
		     wire_route(emulate_tag(ep->emulation, s), EMULATE_OUT),
		     WIRE_FLAG_TAGGED | WIRE_FLAG_UNCHARGED, NULL, 0, run, n);
	if (rc != 1)
		return rc;
	monitor_carrier(ep, n);
	emulate_write_advance(op, n, s->length);
	return rc;
}

int emulate_send_write(struct endpoint *ep, struct emulated *op)
{
	const struct slmpm_span *span;

	if (op->sends)
		return send_tagged(ep, op);
	span = &op->r->rma.spans[op->span];
	return pick_form(ep) == MODE_RMA_TAG ? send_opening(ep, op, span) :
					       send_piece(ep, op, span);
}

/* ---- the side whose memory it is ------------------------------------------------------------ */

void emulate_serve_write(struct endpoint *ep, const struct emulate_request *q, const void *data,
			 uint64_t len)
{
	struct region *region;
	int status = 0;

	if (PEER_FAULT(q->target.length != len)) {
		endpoint_poison(ep, "range of a request");
		return;
	}
	region = rma_find(ep, &q->target, SLMPM_WRITE, &status);
	if (region && len) {
		memcpy(region_at(region, q->target.offset), data, len);
		part_landed(ep->ctx, region_at(region, q->target.offset), len);
	}
	ep->stats->am_served++;
	ep->stats->served += !status;
	emulate_reply(ep, q->tag, status, 0);
}

static struct entry *emulate_write_entry_of(struct endpoint *ep, uint32_t tag)
{
	struct emulation *e = ep->emulation;

	for (struct entry *entry = e ? e->entries : NULL; e && entry < e->entries + EMULATE_WINDOW;
	     entry++)
		if (entry->id == EMULATE_TAGGED_WRITE && entry->tag == tag)
			return entry;
	return NULL;
}

static void emulate_write_done(struct endpoint *ep, struct entry *entry)
{
	uint32_t tag = entry->tag;
	int status = entry->status;

	emulate_entry_free(ep, entry);
	ep->stats->served += !status;
	emulate_reply(ep, tag, status, 0);
}

void emulate_serve_tagged_write(struct endpoint *ep, const struct emulate_request *q)
{
	struct entry *entry;

	if (PEER_FAULT(emulate_write_entry_of(ep, q->tag))) {
		endpoint_poison(ep, "tag of a request");
		return;
	}
	entry = emulate_entry(ep, EMULATE_TAGGED_WRITE, q);
	if (!entry)
		return;
	ep->stats->tag_served++;
	/* Refused or not: its bytes are on their way, and the answer comes behind them. */
	(void)rma_find(ep, &q->target, SLMPM_WRITE, &entry->status);
	if (!q->target.length)
		emulate_write_done(ep, entry);
}

void emulate_take_tagged(struct endpoint *ep, uint32_t tag, const void *data, uint32_t len)
{
	struct entry *entry = emulate_write_entry_of(ep, tag);
	struct region *region;

	if (PEER_FAULT(!entry || !len || len > entry->target.length - entry->got)) {
		endpoint_poison(ep, "tag of a message");
		return;
	}
	if (!entry->status) {
		region = rma_find(ep, &entry->target, SLMPM_WRITE, &entry->status);
		if (region) {
			memcpy(region_at(region, entry->target.offset + entry->got), data, len);
			part_landed(ep->ctx, region_at(region, entry->target.offset + entry->got),
				    len);
		}
	}
	entry->got += len;
	if (entry->got == entry->target.length)
		emulate_write_done(ep, entry);
}

void emulate_serve_give_up(struct endpoint *ep, uint32_t tag)
{
	struct entry *entry = emulate_write_entry_of(ep, tag);

	if (PEER_FAULT(!entry)) {
		endpoint_poison(ep, "tag of a request");
		return;
	}
	if (!entry->status)
		entry->status = -SLMPM_ECANCELED;
	emulate_write_done(ep, entry);
}
