/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Emulated reads. By active messages each piece is a request and its bytes come with the answer; by
 * tag one request makes the other side queue a send, whose tagged messages are put where the slot of
 * that tag says. Bytes are read from the region when there is room for them, never kept.
 */
#include <errno.h>

#include "slmpm/choice/pick.h"
#include "slmpm/emulation/emulate.h"
#include "slmpm/region/memory.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/rma/rma.h"

/* ---- the side that asks --------------------------------------------------------------------- */

int emulate_send_read(struct endpoint *ep, struct emulated *op)
{
	bool tagged = pick_form(ep) == MODE_RMA_TAG;
	const struct slmpm_span *span = &op->r->rma.spans[op->span];
	uint64_t room = ep->packet_max_in - sizeof(struct emulate_answer);
	uint64_t n = span->len - op->in_span;
	uint16_t id = tagged ? EMULATE_TAGGED_READ : EMULATE_READ;
	struct emulate_request q;
	int rc;

	if (!tagged && n > room)
		n = room;
	q = emulate_head(op, n, 0);
	rc = emulate_ask(op, id, &q, NULL, 0);
	if (rc != 1)
		return rc;
	ep->stats->tag_reads += tagged;
	ep->stats->am_reads += !tagged;
	op->at += n;
	op->in_span += n;
	if (op->in_span == span->len) {
		op->in_span = 0;
		op->span++;
	}
	return 1;
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

/* ---- the side whose memory it is ------------------------------------------------------------ */

void emulate_serve_read(struct endpoint *ep, uint16_t id, const struct emulate_request *q)
{
	struct entry *entry;
	int status = 0;

	if (PEER_FAULT(id == EMULATE_READ &&
		       q->target.length > ep->packet_max - sizeof(struct emulate_answer))) {
		endpoint_poison(ep, "range of a request");
		return;
	}
	ep->stats->am_served += id == EMULATE_READ;
	ep->stats->tag_served += id == EMULATE_TAGGED_READ;
	if (!rma_find(ep, &q->target, SLMPM_READ, &status)) {
		emulate_reply(ep, q->tag, status, 0);
		return;
	}
	ep->stats->served++;
	entry = emulate_entry(ep, id, q);
	if (!entry)
		return;
	ep->emulation->answering++;
	(void)emulate_push(ep);
}

static int post_data(struct endpoint *ep, const struct entry *entry, const void *data, uint32_t n)
{
	struct emulate_answer a = {.tag = LITTLE_32(entry->tag)};
	int rc;

	if (entry->id == EMULATE_TAGGED_READ) {
		rc = am_post(ep, 0, wire_route(entry->tag, EMULATE_BACK),
			     WIRE_FLAG_TAGGED | WIRE_FLAG_UNCHARGED, NULL, 0, data, n);
		if (rc == 1)
			monitor_carrier(ep, n);
		return rc;
	}
	return emulate_post(ep, NULL, EMULATE_DATA, &a, sizeof(a), data, n);
}

static void emulate_read_answered(struct endpoint *ep, struct entry *entry)
{
	emulate_entry_free(ep, entry);
	ep->emulation->answering--;
}

int emulate_send_data(struct endpoint *ep, struct entry *entry)
{
	uint64_t left = entry->target.length - entry->got;
	uint32_t n = left < ep->packet_max ? (uint32_t)left : ep->packet_max;
	struct region *region = rma_find(ep, &entry->target, SLMPM_READ, &entry->status);
	const void *data;
	int rc;

	if (!region) { /* taken back meanwhile */
		emulate_read_answered(ep, entry);
		emulate_reply(ep, entry->tag, entry->status, 0);
		return 1;
	}
	data = rma_staged(ep, region_at(region, entry->target.offset + entry->got), n);
	if (!data) {
		endpoint_no_memory(ep);
		return -SLMPM_ENOMEM;
	}
	rc = post_data(ep, entry, data, n);
	if (rc != 1)
		return rc;
	entry->got += n;
	if (entry->got == entry->target.length)
		emulate_read_answered(ep, entry);
	return 1;
}
