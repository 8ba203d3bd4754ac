/* SPDX-License-Identifier: BSD-3-Clause */
/* The fast path of an active message: from where it lies in the ring to its handler. */
#ifndef SLMPM_AM_TAKE_H
#define SLMPM_AM_TAKE_H

#include "slmpm/part.h"
#include "slmpm/am/am.h"
#include "slmpm/link/progress.h"
#include "slmpm/message/match.h"

#define AM_PAGE 256 /* handlers of a page: tables grow by what is used */

#define AM_ACTIVE    ((uint64_t)WIRE_FLAG_ACTIVE << 48)
#define AM_UNCHARGED ((uint64_t)WIRE_FLAG_UNCHARGED << 48)
#define AM_PLAIN     (AM_ACTIVE | AM_UNCHARGED)

struct am_handler {
	slmpm_am_fn *fn;
	void *arg;
};

struct am_page {
	struct am_handler handlers[AM_PAGE];
};

static inline const struct am_handler *am_find(const struct context *ctx, uint16_t id)
{
	const struct am_page *page = ctx->handlers ? ctx->handlers[id / AM_PAGE] : NULL;

	return page && page->handlers[id % AM_PAGE].fn ? &page->handlers[id % AM_PAGE] : NULL;
}

/* ---- running one ---------------------------------------------------------------------------- */

static inline void am_call(struct endpoint *ep, const struct am_handler *h,
			   const struct slmpm_am *am)
{
	struct context *ctx = ep->ctx;

	ep->stats->ams++;
	ctx->handling = true;
	ctx->posted_count++; /* no receive takes the fast path past what is being handled */
	h->fn(am, h->arg);
	ctx->posted_count--;
	ctx->handling = false;
}

/* TOTAL bytes at DATA, the head in front. */
static inline void am_run(struct endpoint *ep, const struct am_handler *h, uint32_t stream,
			  const void *data, uint64_t total)
{
	size_t head_len = stream >> 16;
	const struct slmpm_am am = {
		.peer = {handle_id(ep)},
		.head = data,
		.data = (const unsigned char *)data + head_len,
		.head_len = head_len,
		.data_len = total - head_len,
		.id = (uint16_t)stream,
	};

	if (LIKELY(h != NULL))
		am_call(ep, h, &am);
	else if (am.id > SLMPM_AM_ID_MAX)
		parts.handle(ep, &am);
	else
		ep->stats->am_unhandled++;
}

/* What was handled has been charged nowhere yet. */
static inline void am_settle_at_once(struct endpoint *ep, uint64_t charge)
{
	if (UNLIKELY(ep->answers)) {
		ep->unmatched_charge += charge;
		ep->rooms->am->charge += charge;
	} else {
		link_matched(ep, charge);
	}
}

static inline bool am_take_inline(struct endpoint *ep, const struct fabric_arrival *a)
{
	uint32_t stream = (uint32_t)a->head[1], head_len = stream >> 16;
	uint64_t flags = a->head[2] ^ a->length, charge = wire_charge(a->length);
	const struct am_handler *h;

	if (UNLIKELY(a->kind != WIRE_SEND_ONLY || flags & ~AM_PLAIN || !(flags & AM_ACTIVE) ||
		     PEER_FAULT(a->length > ep->packet_max_in || a->head[0] != ep->received + 1 ||
				head_len > SLMPM_AM_HEAD_MAX || head_len > a->length)))
		return false;
	h = am_find(ep->ctx, (uint16_t)stream);
	if (UNLIKELY(!h || ep->unmatched_charge + charge > ep->credit))
		return false;
	ep->received++;
	match_account(ep, a->length);
	am_run(ep, h, stream, a->data, a->length);
	if (LIKELY(!(flags & AM_UNCHARGED)))
		am_settle_at_once(ep, charge);
	progress_release(ep, a);
	return true;
}

#endif
