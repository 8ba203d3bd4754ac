/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages on their way in: checked, put together where they are long, and given to the
 * handler of their number. While it runs, its context is not free for calls that would block.
 */
#include "slmpm/am/am_take.h"

#include <stdlib.h>

#include "slmpm/engine/engine.h"
#include "slmpm/base/error.h"
#include "slmpm/am/am_ack.h"
#include "slmpm/link/landing.h"
#include "slmpm/message/match.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"

/* Room is made ahead of the bytes at most by as much as has come, and this. */
#define AHEAD (UINT64_C(1) << 20)

/* ---- the table ------------------------------------------------------------------------------ */

static struct am_handler *make_handler(struct context *ctx, uint16_t id)
{
	struct am_page **page;

	if (!ctx->handlers)
		ctx->handlers = calloc(UINT16_MAX / AM_PAGE + 1, sizeof(struct am_page *));
	if (!ctx->handlers)
		return NULL;
	page = &ctx->handlers[id / AM_PAGE];
	if (!*page)
		*page = calloc(1, sizeof(**page));
	return *page ? &(*page)->handlers[id % AM_PAGE] : NULL;
}

void am_forget(struct context *ctx)
{
	for (int i = 0; ctx->handlers && i <= UINT16_MAX / AM_PAGE; i++)
		free(ctx->handlers[i]);
	free(ctx->handlers);
}

int slmpm_am_handler(slmpm_ctx handle, uint16_t id, slmpm_am_fn *fn, void *arg)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);
	struct am_handler *h;

	if (!ctx)
		return rc;
	if (id > SLMPM_AM_ID_MAX)
		return error_set(SLMPM_EINVAL, "slmpm_am_handler: 0x%x, the highest is 0x%x", id,
				 SLMPM_AM_ID_MAX);
	if (fn)
		engine_leave_handlers(ctx);
	context_lock(ctx);
	h = fn || am_find(ctx, id) ? make_handler(ctx, id) : NULL;
	if (h)
		*h = (struct am_handler){fn, arg};
	else if (fn)
		rc = error_set(SLMPM_ENOMEM, "for a handler");
	if (h && ctx->accepted)
		context_wake(ctx); /* the engine's thread, which has kept what this one is for */
	context_unlock(ctx);
	return rc;
}

/* ---- its life -------------------------------------------------------------------------------- */

void am_begin_peer(struct endpoint *ep)
{
	list_init(&ep->kept);
	list_init(&ep->rooms->am->awaiting);
	list_init(&ep->rooms->am->entries);
	ep->rooms->am->tags = endpoint_start(ep);
}

/* ---- what arrives --------------------------------------------------------------------------- */

static bool head_fits(struct endpoint *ep, const struct head *h, uint64_t total)
{
	if (PEER_FAULT(h->stream >> 16 > SLMPM_AM_HEAD_MAX || h->stream >> 16 > total ||
		       (h->flags & WIRE_FLAG_TAGGED)))
		return endpoint_poison(ep, "head of an active message");
	return true;
}

static bool is_confirmed(uint32_t stream)
{
	return (uint16_t)stream == AM_CONFIRMED;
}

/* Is there no handler, where only a handler takes it? DATA: its head, or more. */
static bool lacks_handler(const struct context *ctx, uint32_t stream, const void *data)
{
	uint16_t id = (uint16_t)stream;

	if (is_confirmed(stream)) {
		if (stream >> 16 != sizeof(struct am_confirmed))
			return false; /* refused when it is run */
		id = am_confirm_id(data);
	}
	return id <= SLMPM_AM_ID_MAX && !am_find(ctx, id);
}

/* The application has called nothing, and may set the handler before it does. */
static bool is_left(const struct endpoint *ep, uint32_t stream, const void *data)
{
	return context_is_server(ep->ctx) && lacks_handler(ep->ctx, stream, data);
}

static void am_keep(struct inbound *m)
{
	struct endpoint *ep = m->ep;
	uint64_t bytes = ep->rooms->am->kept_free + (m->charge ? 0 : m->got + sizeof(*m));

	list_append(&ep->kept, &m->parts);
	ep->rooms->am->kept_free = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
	ep->ctx->accepted |= !ep->rooms->listener;
	endpoint_block(ep, BLOCK_KEPT, true);
}

static bool is_too_much(uint32_t bytes)
{
	return bytes > config_get()->am_answers || bytes == UINT32_MAX;
}

bool am_may_run(const struct endpoint *ep)
{
	const struct inbound *m = inbound_first_kept(ep);

	return !context_is_server(ep->ctx) || m->cut ||
	       !lacks_handler(ep->ctx, m->stream, m->data) || is_too_much(ep->rooms->am->kept_free);
}

/* It has asked for none: that would cost it nothing, and this process memory. */
static bool may_be_early(struct endpoint *ep, const struct head *h)
{
	if (PEER_FAULT(ep->rooms->listener && h->flags & WIRE_FLAG_UNCHARGED))
		return endpoint_poison(ep, "answer to nobody");
	return true;
}

static void keep_only(struct endpoint *ep, const struct head *h, uint64_t charge)
{
	struct inbound *m = inbound_whole(ep, h);

	if (!m) {
		endpoint_no_memory(ep);
		return;
	}
	m->active = true;
	m->charge = charge;
	am_keep(m);
}

HOT void am_only(struct endpoint *ep, const struct head *h)
{
	uint64_t charge = h->flags & WIRE_FLAG_UNCHARGED ? 0 : wire_charge(h->length);

	if (!head_fits(ep, h, h->length) || !may_be_early(ep, h) ||
	    !inbound_envelope(ep, h, charge))
		return;
	match_account(ep, h->length);
	if (UNLIKELY(am_is_early(ep) || is_left(ep, h->stream, h->data))) {
		keep_only(ep, h, charge);
		return;
	}
	if (UNLIKELY(h->damaged))
		parts.emulated_damaged(ep, (uint16_t)h->stream);
	else if (UNLIKELY(am_ack_wanted(h->stream))) {
		am_ack_arrived(ep, h->stream, h->data, h->length, NULL, charge);
		return;
	} else
		am_run(ep, am_find(ep->ctx, (uint16_t)h->stream), h->stream, h->data, h->length);
	am_settle(ep, charge);
}

bool am_take(struct endpoint *ep, const struct fabric_arrival *a)
{
	ep->ctx->news = true; /* what its handler says may be for who is about to sleep */
	return am_take_inline(ep, a);
}

/* Is there somebody to have it, or may there be when it is run; and may it be as long? */
static bool am_is_wanted(const struct endpoint *ep, const struct head *h, uint64_t total)
{
	uint16_t id = (uint16_t)h->stream;

	if (is_confirmed(h->stream)) {
		id = am_confirm_id(h->data);
		total -= sizeof(struct am_confirmed);
	} else if (am_ack_wanted(h->stream)) {
		return true;
	}
	return (am_find(ep->ctx, id) || ep->rooms->listener || context_is_server(ep->ctx)) &&
	       total <= (uint64_t)config_get()->am_max;
}

/* Room for what comes next; the peer's word alone takes no memory that its bytes do not. */
static bool am_make_room(struct inbound *m, uint64_t need)
{
	uint64_t room = need + (need < AHEAD ? AHEAD : need);

	if (need <= m->room)
		return true;
	return inbound_room(m, room < m->total ? room : m->total);
}

static void am_add(struct inbound *m, const struct head *h)
{
	if (!m->cut && !am_make_room(m, m->got + h->length)) {
		endpoint_no_memory(m->ep);
		return;
	}
	if (!m->cut)
		landing_copy(m->data + m->got, h->data, h->length);
	m->got += h->length;
	m->damaged |= h->damaged;
}

/* The beginning of a message: what nobody wants is dropped, but for whom to tell. */
static void am_begin(struct inbound *m, const struct head *h)
{
	bool wanted = am_is_wanted(m->ep, h, m->total);

	m->cut = !wanted && !is_confirmed(h->stream);
	am_add(m, h);
	if (m->ep->rooms->am->message == m)
		m->cut = !wanted;
}

void *am_landing(struct inbound *m, uint32_t length)
{
	return !m->cut && am_make_room(m, m->got + length) ? m->data + m->got : NULL;
}

void am_first(struct endpoint *ep, const struct head *h)
{
	uint64_t total = h->extent & WIRE_LENGTH_MASK;
	bool announced = h->flags & WIRE_FLAG_ANNOUNCED;
	uint64_t charge = wire_charge(announced ? h->length : total);
	struct inbound *m;

	if (h->flags & WIRE_FLAG_UNCHARGED)
		charge = 0;
	if (!head_fits(ep, h, h->length) || !may_be_early(ep, h))
		return;
	if (PEER_FAULT(ep->rooms->am->message ||
		       ((uint16_t)h->stream > SLMPM_AM_ID_MAX && !am_ack_may_begin(h)))) {
		endpoint_poison(ep, "active message within another");
		return;
	}
	if (!inbound_envelope(ep, h, charge))
		return;
	m = inbound_new(ep, h, total);
	if (!m)
		return;
	m->active = true;
	m->announced = m->waits = announced;
	m->charge = charge;
	list_append(&ep->messages->assembling, &m->parts);
	ep->rooms->am->message = m;
	am_begin(m, h);
	if (!announced || !ep->rooms->am->message || !am_ack_clears(ep, m))
		return;
	m->cleared = true;
	link_control(ep, WIRE_CLEAR, m->seq, 0, NULL, 0);
}

/* All of it is here. */
static void run_whole(struct inbound *m)
{
	struct endpoint *ep = m->ep;
	uint64_t charge = m->charge;

	m->charge = 0;
	if (m->damaged) {
		parts.emulated_damaged(ep, (uint16_t)m->stream);
	} else if (m->cut) {
		ep->stats->am_unhandled++;
		if (is_confirmed(m->stream))
			am_confirm_dropped(m);
	} else if (am_ack_wanted(m->stream)) {
		unsigned char *memory = m->data;

		m->data = NULL;
		am_ack_arrived(ep, m->stream, memory, m->total, memory, charge);
		charge = 0;
	} else {
		am_run(ep, am_find(ep->ctx, (uint16_t)m->stream), m->stream, m->data, m->total);
	}
	inbound_free(m);
	am_settle(ep, charge);
}

void am_more(struct inbound *m, const struct head *h, bool last)
{
	struct endpoint *ep = m->ep;

	am_add(m, h);
	if (!last || ep->rooms->am->message != m)
		return;
	ep->rooms->am->message = NULL;
	list_remove(&m->parts);
	match_account(ep, m->total);
	if (UNLIKELY(am_is_early(ep) || (!m->cut && is_left(ep, m->stream, m->data))))
		am_keep(m);
	else
		run_whole(m);
}

int am_run_kept(struct endpoint *ep)
{
	int n = 0;

	if (LIKELY(!am_is_due(ep)))
		return 0;
	while (am_is_due(ep) && !ep->ctx->handling) {
		struct inbound *m = inbound_first_kept(ep);
		uint64_t next = m->seq + 1;

		list_remove(&m->parts);
		run_whole(m);
		if (list_empty(&ep->kept) || inbound_first_kept(ep)->seq != next)
			match_accepted(ep); /* messages that were sent behind it */
		n++;
	}
	if (n && list_empty(&ep->kept)) {
		ep->rooms->am->kept_free = 0;
		if (ep->rooms->am->holds_up && !ep->rooms->am->longs)
			am_ack_clear_next(ep);
		ep->ctx->ended |= ep->state != SLMPM_PEER_UP; /* it may retire now */
	}
	endpoint_block(ep, BLOCK_KEPT, !list_empty(&ep->kept));
	return n;
}

/* From the start behind each run: a handler may close peers, which moves others in the array. */
COLD void am_run_accepted(struct context *ctx)
{
	if (ctx->handling)
		return;
	ctx->accepted = false;
	for (uint32_t i = 0; i < ctx->count;)
		i = am_run_kept(ctx->endpoints[i]) ? 0 : i + 1;
}

void am_forget_kept(struct endpoint *ep)
{
	LIST_EACH(at, &ep->kept)
		inbound_free(LIST_ENTRY(at, struct inbound, parts));
}
