/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages on their way in: checked, put together where they are long, and given to the
 * handler of their number. While it runs, its context is not free for calls that would block.
 */
#include "slmpm/message/am_take.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/message/arrival.h"
#include "slmpm/memory/emulate.h"
#include "slmpm/engine/engine.h"
#include "slmpm/error.h"
#include "slmpm/engine/fifo.h"
#include "slmpm/link/landing.h"
#include "slmpm/message/match.h"
#include "slmpm/link/progress.h"

/* Room is made ahead of the bytes at most by as much as has come, and this. */
#define AHEAD (UINT64_C(1) << 20)

/* ---- the table ------------------------------------------------------------------------------ */

static struct am_handler *make(struct context *ctx, uint16_t id)
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
	h = fn || am_find(ctx, id) ? make(ctx, id) : NULL;
	if (h)
		*h = (struct am_handler){fn, arg};
	else if (fn)
		rc = error_set(SLMPM_ENOMEM, "for a handler");
	context_unlock(ctx);
	return rc;
}

/* ---- what arrives --------------------------------------------------------------------------- */

static void handle(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total)
{
	am_run(ep, am_find(ep->ctx, (uint16_t)stream), stream, data, total);
}

static bool head_fits(struct endpoint *ep, const struct head *h, uint64_t total)
{
	if (PEER_FAULT(h->stream >> 16 > SLMPM_AM_HEAD_MAX || h->stream >> 16 > total ||
		       (h->flags & WIRE_FLAG_TAGGED)))
		return arrival_violates(ep, "head of an active message");
	return true;
}

/* Nobody has accepted the peer yet, or what came before that has still to run. */
static inline bool is_early(const struct endpoint *ep)
{
	return ep->listener || !list_empty(&ep->am.kept);
}

/* It has asked for none: that would cost it nothing, and this process memory. */
static bool may_be_early(struct endpoint *ep, const struct head *h)
{
	if (PEER_FAULT(ep->listener && h->flags & WIRE_FLAG_UNCHARGED))
		return arrival_violates(ep, "answer to nobody");
	return true;
}

static void keep_only(struct endpoint *ep, const struct head *h, uint64_t charge)
{
	struct inbound *m = inbound_new(ep, h, h->length);

	if (!m)
		return;
	if (!inbound_room(m, (uint64_t)h->length + !h->length)) {
		inbound_free(m); /* without its bytes no handler may run */
		inbound_no_memory(ep);
		return;
	}
	m->active = true;
	m->charge = charge;
	m->damaged = h->damaged;
	m->got = h->length;
	landing_copy(m->data, h->data, h->length);
	list_append(&ep->am.kept, &m->parts);
}

void am_only(struct endpoint *ep, const struct head *h)
{
	uint64_t charge = h->flags & WIRE_FLAG_UNCHARGED ? 0 : wire_charge(h->length);

	if (!head_fits(ep, h, h->length) || !may_be_early(ep, h) ||
	    !arrival_envelope(ep, h, charge))
		return;
	match_account(ep, h->length);
	if (UNLIKELY(is_early(ep))) {
		keep_only(ep, h, charge);
		return;
	}
	if (UNLIKELY(h->damaged))
		emulate_damaged(ep, (uint16_t)h->stream);
	else if (UNLIKELY(fifo_is_own(h->stream))) {
		fifo_arrived(ep, h->stream, h->data, h->length, NULL, charge);
		return;
	} else
		handle(ep, h->stream, h->data, h->length);
	am_settle(ep, charge);
}

bool am_take(struct endpoint *ep, const struct fabric_arrival *a)
{
	return am_take_inline(ep, a);
}

static bool is_confirmed(uint32_t stream)
{
	return (uint16_t)stream == AM_CONFIRMED;
}

/* Is there somebody to have it, and may it be as long? */
static bool is_wanted(const struct endpoint *ep, const struct head *h, uint64_t total)
{
	uint16_t id = (uint16_t)h->stream;

	if (is_confirmed(h->stream)) {
		id = am_confirm_id(h->data);
		total -= sizeof(struct am_confirmed);
	} else if (fifo_is_own(h->stream)) {
		return true;
	}
	return am_find(ep->ctx, id) && total <= (uint64_t)config_get()->am_max;
}

/* Room for what comes next; the peer's word alone takes no memory that its bytes do not. */
static bool make_room(struct inbound *m, uint64_t need)
{
	uint64_t room = need + (need < AHEAD ? AHEAD : need);

	if (need <= m->room)
		return true;
	return inbound_room(m, room < m->total ? room : m->total);
}

static void add(struct inbound *m, const struct head *h)
{
	if (!m->cut && !make_room(m, m->got + h->length)) {
		inbound_no_memory(m->ep);
		return;
	}
	if (!m->cut)
		landing_copy(m->data + m->got, h->data, h->length);
	m->got += h->length;
	m->damaged |= h->damaged;
}

/* The beginning of a message: what nobody wants is dropped, but for whom to tell. */
static void begin(struct inbound *m, const struct head *h)
{
	bool wanted = is_wanted(m->ep, h, m->total);

	m->cut = !wanted && !is_confirmed(h->stream);
	add(m, h);
	if (m->ep->am.message == m)
		m->cut = !wanted;
}

void *am_landing(struct inbound *m, uint32_t length)
{
	return !m->cut && make_room(m, m->got + length) ? m->data + m->got : NULL;
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
	if (PEER_FAULT(ep->am.message ||
		       ((uint16_t)h->stream > SLMPM_AM_ID_MAX && !fifo_may_begin(h)))) {
		arrival_violates(ep, "active message within another");
		return;
	}
	if (!arrival_envelope(ep, h, charge))
		return;
	m = inbound_new(ep, h, total);
	if (!m)
		return;
	m->active = true;
	m->announced = m->waits = announced;
	m->charge = charge;
	list_append(&ep->assembling, &m->parts);
	ep->am.message = m;
	begin(m, h);
	if (!announced || !ep->am.message || !fifo_clears(ep, m))
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
		emulate_damaged(ep, (uint16_t)m->stream);
	} else if (m->cut) {
		ep->stats->am_unhandled++;
		if (is_confirmed(m->stream))
			am_confirm_dropped(m);
	} else if (fifo_is_own(m->stream)) {
		unsigned char *memory = m->data;

		m->data = NULL;
		fifo_arrived(ep, m->stream, memory, m->total, memory, charge);
		charge = 0;
	} else {
		handle(ep, m->stream, m->data, m->total);
	}
	inbound_free(m);
	am_settle(ep, charge);
}

void am_more(struct inbound *m, const struct head *h, bool last)
{
	struct endpoint *ep = m->ep;

	add(m, h);
	if (!last || ep->am.message != m)
		return;
	ep->am.message = NULL;
	list_remove(&m->parts);
	match_account(ep, m->total);
	if (UNLIKELY(is_early(ep)))
		list_append(&ep->am.kept, &m->parts);
	else
		run_whole(m);
}

int am_run_kept(struct endpoint *ep)
{
	int n = 0;

	while (am_is_due(ep) && !ep->ctx->handling) {
		struct inbound *m = am_first_kept(ep);
		uint64_t next = m->seq + 1;

		list_remove(&m->parts);
		run_whole(m);
		if (list_empty(&ep->am.kept) || am_first_kept(ep)->seq != next)
			match_accepted(ep); /* messages that were sent behind it */
		n++;
	}
	endpoint_refresh(ep);
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
	LIST_EACH(at, &ep->am.kept)
		inbound_free(LIST_ENTRY(at, struct inbound, parts));
}
