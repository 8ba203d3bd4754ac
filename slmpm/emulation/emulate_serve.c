/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Emulated operations, what arrives, each field of which is checked here; and the side whose memory
 * it is. A request with its bytes is done where it lies in the ring, and its answer is sent when
 * they can be seen; what takes longer has an entry: a tagged write until its bytes have come, and
 * reads, whose bytes are taken from the region when there is room for them, never kept. Key and
 * range are checked for each packet.
 */
#include "slmpm/emulation/emulate.h"

#include <string.h>

#include "slmpm/message/match.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/region/memory.h"

static void emulate_entry_free(struct endpoint *ep, struct entry *entry)
{
	entry->id = 0;
	ep->stats->rma_queue--;
}

static struct entry *emulate_entry(struct endpoint *ep, uint16_t id,
				   const struct emulate_request *q)
{
	struct emulation *e = emulate_state(ep);

	if (!e) {
		endpoint_no_memory(ep);
		return NULL;
	}
	for (struct entry *entry = e->entries; entry < e->entries + EMULATE_WINDOW; entry++) {
		if (entry->id)
			continue;
		*entry = (struct entry){.id = id, .tag = q->tag, .target = q->target};
		if (++ep->stats->rma_queue > ep->stats->rma_queue_peak)
			ep->stats->rma_queue_peak = ep->stats->rma_queue;
		return entry;
	}
	endpoint_poison(ep, "number of requests under way");
	return NULL;
}

static void emulate_reply(struct endpoint *ep, uint32_t tag, int status, uint64_t old)
{
	struct emulate_answer a = {
		.old = LITTLE_64(status ? wire_error(status) : old),
		.tag = LITTLE_32(tag),
	};
	int rc = am_answer(ep, status ? EMULATE_FAILED : EMULATE_DONE, &a, sizeof(a), NULL, 0);

	if (rc == -SLMPM_ENOMEM)
		endpoint_no_memory(ep);
	else if (rc < 0)
		endpoint_poison(ep, "number of requests under way");
	else
		monitor_carrier(ep, sizeof(a));
}

/* ---- writes ------------------------------------------------------------------------------ */

static void emulate_serve_write(struct endpoint *ep, const struct emulate_request *q,
				const void *data, uint64_t len)
{
	int status = 0;

	if (endpoint_broke(ep, "range of a request", q->target.length != len))
		return;
	(void)rma_store(ep, &q->target, 0, data, (uint32_t)len, &status);
	ep->stats->am_served++;
	ep->stats->served += !status;
	emulate_reply(ep, q->tag, status, 0);
}

static struct entry *emulate_write_entry_of(struct endpoint *ep, uint32_t tag)
{
	struct emulation *e = ep->rooms->emulation;

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

static void emulate_serve_tagged_write(struct endpoint *ep, const struct emulate_request *q)
{
	struct entry *entry;

	if (endpoint_broke(ep, "tag of a request", emulate_write_entry_of(ep, q->tag)))
		return;
	entry = emulate_entry(ep, EMULATE_TAGGED_WRITE, q);
	if (!entry)
		return;
	ep->stats->tag_served++;
	/* Refused or not: its bytes are on their way, and the answer comes behind them. */
	(void)rma_find(ep, &q->target, SLMPM_WRITE, &entry->status);
	if (!q->target.length)
		emulate_write_done(ep, entry);
}

static void emulate_take_tagged(struct endpoint *ep, uint32_t tag, const void *data, uint32_t len)
{
	struct entry *entry = emulate_write_entry_of(ep, tag);

	if (endpoint_broke(ep, "tag of a message",
			   !entry || !len || len > entry->target.length - entry->got))
		return;
	(void)rma_store(ep, &entry->target, entry->got, data, len, &entry->status);
	entry->got += len;
	if (entry->got == entry->target.length)
		emulate_write_done(ep, entry);
}

static void emulate_serve_give_up(struct endpoint *ep, uint32_t tag)
{
	struct entry *entry = emulate_write_entry_of(ep, tag);

	if (endpoint_broke(ep, "tag of a request", !entry))
		return;
	if (!entry->status)
		entry->status = -SLMPM_ECANCELED;
	emulate_write_done(ep, entry);
}

/* ---- reads ------------------------------------------------------------------------------- */

static void emulate_serve_read(struct endpoint *ep, uint16_t id, const struct emulate_request *q)
{
	struct entry *entry;
	int status = 0;

	if (endpoint_broke(ep, "range of a request",
			   id == EMULATE_READ &&
				   q->target.length >
					   ep->packet_max - sizeof(struct emulate_answer)))
		return;
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
	ep->rooms->emulation->answering++;
	emulate_block(ep);
	(void)emulate_push(ep);
}

static void emulate_read_answered(struct endpoint *ep, struct entry *entry)
{
	emulate_entry_free(ep, entry);
	ep->rooms->emulation->answering--;
	emulate_block(ep);
}

/* The next packet of an answer with bytes; after the last its entry is free. */
static int send_data(struct endpoint *ep, struct entry *entry)
{
	uint64_t left = entry->target.length - entry->got;
	uint32_t n = left < ep->packet_max ? (uint32_t)left : ep->packet_max;
	struct region *region = rma_find(ep, &entry->target, SLMPM_READ, &entry->status);
	struct emulate_answer a = {.tag = LITTLE_32(entry->tag)};
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
	if (entry->id == EMULATE_TAGGED_READ)
		rc = emulate_post(ep, NULL, entry->tag, EMULATE_BACK, NULL, 0, data, n);
	else
		rc = emulate_post(ep, NULL, am_stream(EMULATE_DATA, sizeof(a)), 0, &a, sizeof(a),
				  data, n);
	if (rc != 1)
		return rc;
	entry->got += n;
	if (entry->got == entry->target.length)
		emulate_read_answered(ep, entry);
	return 1;
}

int emulate_push_answers(struct endpoint *ep, int most)
{
	struct emulation *e = ep->rooms->emulation;
	int n = 0;

	for (int i = 0; i < EMULATE_WINDOW && e->answering && n < most; i++) {
		struct entry *entry = &e->entries[e->next];

		while ((entry->id == EMULATE_READ || entry->id == EMULATE_TAGGED_READ) &&
		       n < most) {
			if (send_data(ep, entry) != 1)
				return n;
			n++;
		}
		e->next = (e->next + 1) % EMULATE_WINDOW;
	}
	return n;
}

static void emulate_serve_notify(struct endpoint *ep, const struct emulate_request *q)
{
	struct region *region;
	int status = 0;

	if (!rma_charge(ep))
		return;
	ep->stats->am_served++;
	region = rma_find(ep, &q->target, SLMPM_WRITE, &status);
	rma_notified(ep, region, &q->target, q->imm,
		     q->target.zero ? SLMPM_BY_PUT : SLMPM_BY_REQUEST);
	emulate_reply(ep, q->tag, status, 0);
}

static void emulate_serve_atomic(struct endpoint *ep, const struct emulate_request *q,
				 const void *operands)
{
	struct wire_atomic a;
	bool sound = rma_operands_in(&a, operands, q->target.length);
	struct counter *counter = NULL;
	uint64_t old = 0;
	int status = 0;
	void *at;

	if (endpoint_broke(ep, "width of an atomic operation",
			   !sound || q->imm < SLMPM_FETCH_ADD || q->imm > SLMPM_SWAP))
		return;
	ep->stats->am_served++;
	at = rma_word(ep, &q->target, &counter, &status);
	if (at)
		old = rma_change(ep, at, counter, (int)q->imm, &a);
	emulate_reply(ep, q->tag, status, old);
}

static void emulate_serve(struct endpoint *ep, const struct slmpm_am *am,
			  const struct emulate_request *q)
{
	switch (am->id) {
	case EMULATE_WRITE: emulate_serve_write(ep, q, am->data, am->data_len); break;
	case EMULATE_TAGGED_WRITE: emulate_serve_tagged_write(ep, q); break;
	case EMULATE_NOTIFY: emulate_serve_notify(ep, q); break;
	case EMULATE_ATOMIC:
		emulate_serve_atomic(ep, q, (const unsigned char *)am->head + sizeof(*q));
		break;
	default: emulate_serve_read(ep, am->id, q);
	}
}

/* ---- what arrives ------------------------------------------------------------------------ */

static void take_answer(struct endpoint *ep, const struct slmpm_am *am)
{
	struct emulate_answer a;

	if (endpoint_broke(ep, "length of an answer",
			   am->head_len != sizeof(a) || (am->data_len && am->id != EMULATE_DATA)))
		return;
	memcpy(&a, am->head, sizeof(a));
	a.old = LITTLE_64(a.old);
	a.tag = LITTLE_32(a.tag);
	if (am->id == EMULATE_GIVE_UP)
		emulate_serve_give_up(ep, a.tag);
	else
		emulate_take_answer(ep, am, &a);
}

static bool take_request(struct endpoint *ep, const struct slmpm_am *am, struct emulate_request *q)
{
	if (PEER_FAULT(am->head_len != emulate_head_length(am->id) ||
		       (am->data_len && am->id != EMULATE_WRITE)))
		return endpoint_poison(ep, "length of a request");
	memcpy(q, am->head, sizeof(*q));
	rma_target_in(&q->target);
	q->tag = LITTLE_32(q->tag);
	q->imm = LITTLE_32(q->imm);
	if (PEER_FAULT(q->target.length > SLMPM_MESSAGE_MAX ||
		       q->target.zero > (am->id == EMULATE_NOTIFY)))
		return endpoint_poison(ep, "range of a request");
	return true;
}

void emulate_handle(struct endpoint *ep, const struct slmpm_am *am)
{
	struct emulate_request q;

	if (ep->closing) /* what is under way ends with the connection */
		return;
	if (endpoint_broke(ep, "number of a handler", am->id >= EMULATE_END))
		return;
	if (am->id >= EMULATE_GIVE_UP) {
		take_answer(ep, am);
		return;
	}
	if (take_request(ep, am, &q))
		emulate_serve(ep, am, &q);
}

void emulate_tagged(struct endpoint *ep, const struct head *h)
{
	if (!inbound_envelope(ep, h, 0) || ep->closing)
		return;
	match_account(ep, h->length);
	if (h->damaged)
		emulate_damaged(ep, EMULATE_DATA);
	else if (h->imm == EMULATE_OUT)
		emulate_take_tagged(ep, h->stream, h->data, h->length);
	else
		emulate_tagged_answer(ep, h);
}

void emulate_damaged(struct endpoint *ep, uint16_t id)
{
	if (id <= SLMPM_AM_ID_MAX)
		ep->stats->am_unhandled++;
	else /* nobody knows whose answer or request it was */
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ECHECKSUM, "a request came damaged");
}
