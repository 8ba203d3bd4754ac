/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that arrived: checked, taken apart, and given to the messages they belong to. */
#include "slmpm/message/arrival.h"

#include "slmpm/bond/further.h"
#include "slmpm/message/area.h"
#include "slmpm/message/bundle.h"
#include "slmpm/base/checksum.h"
#include "slmpm/doubt.h"
#include "slmpm/message/fetch.h"
#include "slmpm/link/link.h"
#include "slmpm/memory/memory.h"
#include "slmpm/memory/rma.h"
#include "slmpm/memory/share.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/monitor/means.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/wait.h"

static void credit(struct endpoint *ep, const struct head *h)
{
	uint64_t step = (h->extent - ep->credited) & WIRE_LENGTH_MASK;

	if (PEER_FAULT(step > ep->charged - ep->credited)) {
		endpoint_poison(ep, "credit");
		return;
	}
	ep->credited += step;
	ep->doubt.received = h->seq;
	doubt_mark(ep); /* who is always given credit in time comes by here */
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
		return endpoint_poison(ep, "unknown flag");
	if (h->flags & WIRE_FLAG_CHECK) {
		uint32_t sum;

		if (h->length < CHECKSUM_SIZE)
			return endpoint_poison(ep, "length of a checksum");
		h->length -= CHECKSUM_SIZE;
		sum = checksum_head(a->head[0], a->head[1], a->head[2]);
		sum = checksum(sum, h->data, h->length);
		h->damaged = sum != checksum_take((const unsigned char *)h->data + h->length);
		if (h->damaged)
			ep->stats->checksum_errors++;
	}
	return true;
}

/* ---- by opcode: false where it is none of these -------------------------------------------------- */

static bool take_of_message(struct endpoint *ep, const struct head *h, uint8_t kind)
{
	uint64_t word = h->extent & WIRE_LENGTH_MASK;

	switch (kind) {
	case WIRE_SEND_FIRST: arrival_first(ep, h); return true;
	case WIRE_SEND_MIDDLE:
	case WIRE_SEND_LAST: arrival_more(ep, h, kind == WIRE_SEND_LAST); return true;
	case WIRE_CREDIT: credit(ep, h); return true;
	case WIRE_CLEAR:
		if (word)
			ep->fetch_min = UINT64_MAX; /* it cannot fetch, after all */
		link_cleared(ep, h->seq);
		return true;
	case WIRE_WITHDRAW:
		if (word == 1)
			rma_serve_withdrawn(ep, h);
		else
			arrival_withdrawn(ep, h);
		return true;
	case WIRE_LOAN: arrival_loan(ep, h); return true;
	case WIRE_LOAN_MORE: arrival_loan_more(ep, h); return true;
	case WIRE_LOAN_AREA: arrival_loan_area(ep, h); return true;
	case WIRE_LOAN_BYTES: arrival_loan_bytes(ep, h); return true;
	case WIRE_LOAN_DONE:
		if (!area_returned(ep, word))
			endpoint_poison(ep, "return of an area");
		wait_changed(ep->ctx);
		return true;
	default: return false;
	}
}

static bool take_one_sided(struct endpoint *ep, const struct head *h, uint8_t kind)
{
	switch (kind) {
	case WIRE_WRITE_FIRST:
	case WIRE_WRITE_MIDDLE:
	case WIRE_WRITE_LAST:
	case WIRE_WRITE_ONLY: rma_serve_write(ep, h, kind); return true;
	case WIRE_READ_REQUEST: rma_serve_read(ep, h); return true;
	case WIRE_FETCH_ADD:
	case WIRE_COMPARE_SWAP:
	case WIRE_SWAP: rma_serve_atomic(ep, h, kind); return true;
	case WIRE_NOTIFY: rma_serve_notify(ep, h); return true;
	case WIRE_READ_FIRST:
	case WIRE_READ_MIDDLE:
	case WIRE_READ_LAST:
	case WIRE_READ_ONLY: rma_response(ep, h, kind); return true;
	case WIRE_ATOMIC_ACKNOWLEDGE: rma_atomic_acknowledged(ep, h); return true;
	case WIRE_ACKNOWLEDGE: rma_acknowledged(ep, h); return true;
	default: return false;
	}
}

/* Messages that are fetched, puts that both sides copy. */
static bool take_of_two_copiers(struct endpoint *ep, const struct head *h, uint8_t kind)
{
	switch (kind) {
	case WIRE_FETCH: fetch_announced(ep, h); return true;
	case WIRE_FETCH_GIVE: fetch_given(ep, h); return true;
	case WIRE_FETCH_SEND: fetch_sent_instead(ep, h); return true;
	case WIRE_FETCH_TAKE: fetch_taken(ep, h); return true;
	case WIRE_FETCH_DONE: fetch_over(ep, h); return true;
	case WIRE_SHARE: share_offered(ep, h); return true;
	case WIRE_SHARE_GIVE: share_given(ep, h); return true;
	case WIRE_SHARE_TAKE:
	case WIRE_SHARE_OVER: share_taken(ep, h, kind == WIRE_SHARE_OVER); return true;
	default: return false;
	}
}

static bool take_rest(struct endpoint *ep, const struct head *h, uint8_t kind)
{
	switch (kind) {
	case WIRE_REGION_GRANT:
	case WIRE_REGION_OFFER:
	case WIRE_REGION_ACCEPTED:
	case WIRE_REGION_WITHDRAWN:
	case WIRE_REGION_RELEASED:
	case WIRE_REGION_REVOKED:
	case WIRE_REGION_LET_GO: memory_arrival(ep, kind, h); return true;
	case WIRE_MIRROR_ASK:
	case WIRE_MIRROR_END:
	case WIRE_MIRROR_PART:
	case WIRE_MIRROR_LAST:
	case WIRE_MIRROR_LIST:
	case WIRE_MIRROR_LIST_LAST:
	case WIRE_MIRROR_STORED: mirror_arrived(ep, h, kind); return true;
	case WIRE_ECHO: echo_asked(ep, h); return true;
	case WIRE_ECHO_ANSWER: echo_answered(ep, h); return true;
	case WIRE_MEANS: means_heard(ep, h); return true;
	case WIRE_CLOSE:
		ep->end_of_stream = true;
		ep->doubt.received = h->seq;
		if (further_speaks(ep)) /* who says it waits for that */
			link_confirm(ep);
		return true;
	case WIRE_BOND_LINK: further_arrival(ep, h); return true;
	default: return false;
	}
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
	if (a->kind == WIRE_SEND_ONLY)
		return LIKELY(!(h.flags & WIRE_FLAG_TIMED)) ? arrival_only(ep, &h, a) :
							      arrival_timed(ep, &h, a);
	if (!take_of_message(ep, &h, a->kind) && !take_one_sided(ep, &h, a->kind) &&
	    !take_of_two_copiers(ep, &h, a->kind) && !take_rest(ep, &h, a->kind))
		endpoint_poison(ep, "opcode");
	return ep->starved.now;
}
