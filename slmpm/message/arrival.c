/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that arrived: checked, taken apart, and given to the messages they belong to. */
#include "slmpm/message/arrival.h"

#include <string.h>

#include "slmpm/bond/further.h"
#include "slmpm/message/am.h"
#include "slmpm/message/area.h"
#include "slmpm/message/bundle.h"
#include "slmpm/checksum.h"
#include "slmpm/memory/emulate.h"
#include "slmpm/message/fetch.h"
#include "slmpm/message/held.h"
#include "slmpm/landing.h"
#include "slmpm/link.h"
#include "slmpm/message/match.h"
#include "slmpm/memory/memory.h"
#include "slmpm/memory/rma.h"
#include "slmpm/memory/share.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/monitor/means.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/wait.h"

bool arrival_violates(struct endpoint *ep, const char *rule)
{
	endpoint_poison(ep, rule);
	return false;
}

bool arrival_envelope(struct endpoint *ep, const struct head *h, uint64_t charge)
{
	if (PEER_FAULT(h->seq != ep->received + 1))
		return arrival_violates(ep, "sequence number");
	if (PEER_FAULT(h->stream == SLMPM_ANY_STREAM))
		return arrival_violates(ep, "stream");
	ep->received++;
	ep->unmatched_charge += charge;
	if (PEER_FAULT(ep->unmatched_charge > ep->credit))
		return arrival_violates(ep, "credit overrun");
	return true;
}

/* Straight into the buffer of a posted receive. */
static void receive_whole(struct endpoint *ep, const struct head *h, struct request *r)
{
	const struct inbound whole = {
		.ep = ep,
		.total = h->length,
		.stream = h->stream,
		.imm = h->imm,
		.damaged = h->damaged,
	};

	landing_scatter(r, 0, h->data, h->length);
	inbound_describe(&whole, &r->result);
	match_account(ep, h->length);
	inbound_charge(ep, wire_charge(h->length));
	request_finish(r, inbound_verdict(&whole, r));
}

/* A copy, with room even for no byte: what is held has an address. */
static struct inbound *copy_whole(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = inbound_new(ep, h, h->length);

	if (!m)
		return NULL;
	if (!inbound_room(m, h->length ? h->length : 1)) {
		inbound_no_memory(ep);
		inbound_free(m);
		return NULL;
	}
	if (h->length)
		memcpy(m->data, h->data, h->length);
	m->got = h->length;
	m->damaged = h->damaged;
	m->charge = wire_charge(h->length);
	return m;
}

/* For the hold R, or with NULL for who asks later. */
static void keep_whole(struct endpoint *ep, const struct head *h, struct request *r)
{
	struct inbound *m = copy_whole(ep, h);

	if (m && r)
		match_give(m, r);
	else if (m)
		match_keep(m);
	else if (r) /* it is no longer among those that end with the endpoint */
		request_finish(r, -SLMPM_ENOMEM);
}

static bool send_only(struct endpoint *ep, const struct head *h, const struct fabric_arrival *a)
{
	uint64_t charge = wire_charge(h->length);
	uint32_t longest = h->flags & (WIRE_FLAG_ACTIVE | WIRE_FLAG_TAGGED) ? ep->packet_max_in :
									      ep->only_max_in;
	struct request *r;

	if (PEER_FAULT((h->extent & WIRE_LENGTH_MASK) != h->length || h->length > longest ||
		       (h->flags & WIRE_FLAG_ANNOUNCED)))
		return arrival_violates(ep, "length of Only");
	if (h->flags & WIRE_FLAG_ACTIVE) {
		am_only(ep, h);
		return false;
	}
	if (h->flags & WIRE_FLAG_TAGGED) {
		emulate_tagged(ep, h);
		return false;
	}
	if (!arrival_envelope(ep, h, charge))
		return false;
	r = match_posted(ep, h->stream);
	if (r && a && r->kind == REQUEST_HOLD && held_in_place(ep, r, h, a)) {
		match_account(ep, h->length);
		inbound_charge(ep, charge);
		return true;
	}
	if (r && r->kind == REQUEST_RECV)
		receive_whole(ep, h, r);
	else
		keep_whole(ep, h, r);
	return false;
}

/* Whose sender wants to know when it was here. */
static COLD bool send_timed(struct endpoint *ep, const struct head *h,
			    const struct fabric_arrival *a)
{
	bool held;

	if (PEER_FAULT(h->flags & (WIRE_FLAG_ACTIVE | WIRE_FLAG_TAGGED)))
		return arrival_violates(ep, "unknown flag");
	held = send_only(ep, h, a);
	sample_asked(ep, h);
	return held;
}

void arrival_bundled(struct endpoint *ep, uint64_t route, const void *data, uint32_t length)
{
	struct head h = {
		.seq = ep->received + 1,
		.extent = length,
		.stream = (uint32_t)route,
		.imm = (uint32_t)(route >> 32),
		.length = length,
		.data = data,
	};

	ep->ctx->news = true;
	(void)send_only(ep, &h, NULL);
}

static void send_first(struct endpoint *ep, const struct head *h)
{
	uint64_t total = h->extent & WIRE_LENGTH_MASK;
	bool announced = h->flags & WIRE_FLAG_ANNOUNCED;
	uint64_t charge = wire_charge(announced ? h->length : total);
	struct request *r;
	struct inbound *m;

	if (PEER_FAULT(h->length != ep->packet_max_in || total <= h->length ||
		       total > SLMPM_MESSAGE_MAX || h->flags & WIRE_FLAG_TAGGED ||
		       announced != (total > ep->eager_max_in))) {
		arrival_violates(ep, "length of First");
		return;
	}
	if (h->flags & WIRE_FLAG_ACTIVE) {
		am_first(ep, h);
		return;
	}
	if (!arrival_envelope(ep, h, charge))
		return;
	m = inbound_new(ep, h, total);
	if (!m)
		return;
	m->announced = m->waits = announced;
	m->cleared = announced && h->seq == ep->landing.asked;
	m->charge = charge;
	m->damaged = h->damaged;
	list_append(&ep->assembling, &m->parts);
	r = match_posted(ep, h->stream);
	if (r)
		match_give(m, r);
	if (r && r->done)
		return; /* a hold for which memory was short; the message is gone with it */
	if (r && r->kind == REQUEST_RECV)
		landing_scatter(r, 0, h->data, h->length);
	m->got = h->length;
	if (r && r->kind == REQUEST_RECV && total <= r->length)
		return;
	if (!inbound_room(m, announced && (!r || r->kind == REQUEST_RECV) ? h->length : total)) {
		inbound_no_memory(ep);
		return;
	}
	memcpy(m->data, h->data, h->length);
	if (!r)
		match_keep(m);
}

struct inbound *arrival_unfinished(struct endpoint *ep, uint64_t seq)
{
	LIST_EACH(at, &ep->assembling) {
		struct inbound *m = LIST_ENTRY(at, struct inbound, parts);

		if (m->seq == seq)
			return m;
	}
	return NULL;
}

static void send_more(struct endpoint *ep, const struct head *h, bool last)
{
	struct inbound *m = arrival_unfinished(ep, h->seq);
	uint64_t offset = h->extent & WIRE_LENGTH_MASK;

	if (PEER_FAULT(!m || m->area || (m->announced && !m->cleared) || m->stream != h->stream)) {
		arrival_violates(ep, "continuation of no message");
		return;
	}
	if (PEER_FAULT(offset != m->got || !h->length || h->length > m->total - offset ||
		       (last ? h->length != m->total - offset || h->length > ep->packet_max_in :
			       h->length != ep->packet_max_in || h->length == m->total - offset))) {
		arrival_violates(ep, "length or offset of a continuation");
		return;
	}
	/* Else a peer that takes nothing could have us keep a word for each of its messages. One to
	 * be fetched may come by itself, and a clear for it have crossed that. */
	if (last && m->announced && link_disown(ep, WIRE_CLEAR, m->seq) && PEER_FAULT(m->waits)) {
		arrival_violates(ep, "continuation that nobody has asked for");
		return;
	}
	if (m->active) {
		am_more(m, h, last);
		return;
	}
	if (m->receive && m->receive->kind == REQUEST_RECV) {
		landing_scatter(m->receive, offset, h->data, h->length);
		if (offset + h->length <= m->room)
			memcpy(m->data + offset, h->data, h->length);
		else if (m->data)
			inbound_drop_data(m);
	} else if (!m->cut) {
		if (!inbound_room(m, m->total)) {
			inbound_no_memory(ep);
			return;
		}
		landing_copy(m->data + offset, h->data, h->length);
	}
	m->got += h->length;
	m->damaged |= h->damaged;
	if (!last)
		return;
	list_remove(&m->parts);
	if (m->receive)
		inbound_finish(m);
	else if (m->cut)
		inbound_free(m);
}

/* The sender gave up: as if the message had never come, but for its envelope. */
static void withdraw(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = arrival_unfinished(ep, h->seq);
	struct request *r;
	uint64_t total;

	if (fetch_is_asked(ep, h, m))
		return;
	if (!m || m->area) {
		arrival_violates(ep, "withdrawal of no message");
		return;
	}
	r = m->receive;
	total = m->total;
	if (m->charge)
		inbound_charge(ep, m->charge);
	if (m->active)
		ep->am.message = NULL;
	if (m->cleared)
		(void)link_disown(ep, WIRE_CLEAR, m->seq);
	inbound_free(m);
	if (!r)
		return;
	match_discount(ep, total);
	match_again(r);
}

static void credit(struct endpoint *ep, const struct head *h)
{
	uint64_t step = (h->extent - ep->credited) & WIRE_LENGTH_MASK;

	if (PEER_FAULT(step > ep->charged - ep->credited)) {
		arrival_violates(ep, "credit");
		return;
	}
	ep->credited += step;
	(void)link_push(ep);
	wait_changed(ep->ctx);
}

static bool take_head(struct endpoint *ep, const struct fabric_arrival *a, struct head *h)
{
	h->seq = a->head[0];
	h->stream = (uint32_t)a->head[1];
	h->imm = (uint32_t)(a->head[1] >> 32);
	h->extent = a->head[2];
	h->flags = (uint32_t)(a->head[2] >> 48);
	h->length = a->length;
	h->data = a->data;
	h->damaged = false;
	if (PEER_FAULT(h->flags & ~WIRE_FLAGS) &&
	    (h->flags & ~(WIRE_FLAGS | WIRE_FLAG_TIMED) || a->kind != WIRE_SEND_ONLY))
		return arrival_violates(ep, "unknown flag");
	if (h->flags & WIRE_FLAG_CHECK) {
		uint32_t sum;

		if (h->length < CHECKSUM_SIZE)
			return arrival_violates(ep, "length of a checksum");
		h->length -= CHECKSUM_SIZE;
		sum = checksum_head(a->head[0], a->head[1], a->head[2]);
		sum = checksum(sum, h->data, h->length);
		h->damaged = sum != checksum_take((const unsigned char *)h->data + h->length);
		if (h->damaged)
			ep->stats->checksum_errors++;
	}
	return true;
}

bool arrival_take(struct endpoint *ep, const struct fabric_arrival *a)
{
	struct head h;

	ep->ctx->news = true;
	if (a->kind == WIRE_BUNDLE) {
		/* Released by its last message. */
		if (bundle_open(ep, a))
			(void)bundle_unpack(ep, false);
		return true;
	}
	if (!take_head(ep, a, &h))
		return false;
	switch (a->kind) {
	case WIRE_SEND_ONLY:
		return LIKELY(!(h.flags & WIRE_FLAG_TIMED)) ? send_only(ep, &h, a) :
							      send_timed(ep, &h, a);
	case WIRE_SEND_FIRST: send_first(ep, &h); return false;
	case WIRE_SEND_MIDDLE:
	case WIRE_SEND_LAST: send_more(ep, &h, a->kind == WIRE_SEND_LAST); return false;
	case WIRE_CLEAR:
		if (h.extent & WIRE_LENGTH_MASK)
			ep->fetch_min = UINT64_MAX; /* it cannot fetch, after all */
		link_cleared(ep, h.seq);
		return false;
	case WIRE_CREDIT: credit(ep, &h); return false;
	case WIRE_WITHDRAW:
		if ((h.extent & WIRE_LENGTH_MASK) == 1)
			rma_serve_withdrawn(ep, &h);
		else
			withdraw(ep, &h);
		return false;
	case WIRE_LOAN: arrival_loan(ep, &h); return false;
	case WIRE_LOAN_MORE: arrival_loan_more(ep, &h); return false;
	case WIRE_LOAN_AREA: arrival_loan_area(ep, &h); return false;
	case WIRE_LOAN_BYTES: arrival_loan_bytes(ep, &h); return false;
	case WIRE_LOAN_DONE:
		if (!area_returned(ep, h.extent & WIRE_LENGTH_MASK))
			arrival_violates(ep, "return of an area");
		wait_changed(ep->ctx);
		return false;
	case WIRE_WRITE_FIRST:
	case WIRE_WRITE_MIDDLE:
	case WIRE_WRITE_LAST:
	case WIRE_WRITE_ONLY: rma_serve_write(ep, &h, a->kind); return false;
	case WIRE_READ_REQUEST: rma_serve_read(ep, &h); return false;
	case WIRE_FETCH_ADD:
	case WIRE_COMPARE_SWAP:
	case WIRE_SWAP: rma_serve_atomic(ep, &h, a->kind); return false;
	case WIRE_NOTIFY: rma_serve_notify(ep, &h); return false;
	case WIRE_READ_FIRST:
	case WIRE_READ_MIDDLE:
	case WIRE_READ_LAST:
	case WIRE_READ_ONLY: rma_response(ep, &h, a->kind); return false;
	case WIRE_ATOMIC_ACKNOWLEDGE: rma_atomic_acknowledged(ep, &h); return false;
	case WIRE_ACKNOWLEDGE: rma_acknowledged(ep, &h); return false;
	case WIRE_FETCH: fetch_announced(ep, &h); return false;
	case WIRE_FETCH_GIVE: fetch_given(ep, &h); return false;
	case WIRE_FETCH_SEND: fetch_sent_instead(ep, &h); return false;
	case WIRE_FETCH_TAKE: fetch_taken(ep, &h); return false;
	case WIRE_FETCH_DONE: fetch_over(ep, &h); return false;
	case WIRE_SHARE: share_offered(ep, &h); return false;
	case WIRE_SHARE_GIVE: share_given(ep, &h); return false;
	case WIRE_SHARE_TAKE:
	case WIRE_SHARE_OVER: share_taken(ep, &h, a->kind == WIRE_SHARE_OVER); return false;
	case WIRE_REGION_GRANT:
	case WIRE_REGION_OFFER:
	case WIRE_REGION_ACCEPTED:
	case WIRE_REGION_WITHDRAWN:
	case WIRE_REGION_RELEASED:
	case WIRE_REGION_REVOKED:
	case WIRE_REGION_LET_GO: memory_arrival(ep, a->kind, &h); return false;
	case WIRE_MIRROR_ASK:
	case WIRE_MIRROR_END:
	case WIRE_MIRROR_PART:
	case WIRE_MIRROR_LAST:
	case WIRE_MIRROR_LIST:
	case WIRE_MIRROR_LIST_LAST:
	case WIRE_MIRROR_STORED: mirror_arrived(ep, &h, a->kind); return false;
	case WIRE_ECHO: echo_asked(ep, &h); return false;
	case WIRE_ECHO_ANSWER: echo_answered(ep, &h); return false;
	case WIRE_MEANS: means_heard(ep, &h); return false;
	case WIRE_CLOSE:
		ep->end_of_stream = true;
		if (further_speaks(ep)) /* who says it waits for that */
			link_confirm(ep);
		return false;
	case WIRE_BOND_LINK: further_arrival(ep, &h); return false;
	default: return arrival_violates(ep, "opcode");
	}
}
