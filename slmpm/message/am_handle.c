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

void am_only(struct endpoint *ep, const struct head *h)
{
	uint64_t charge = h->flags & WIRE_FLAG_UNCHARGED ? 0 : wire_charge(h->length);

	if (!head_fits(ep, h, h->length) || !arrival_envelope(ep, h, charge))
		return;
	match_account(ep, h->length);
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

/* Is there somebody to have it, and may it be as long? */
static bool is_wanted(const struct endpoint *ep, uint32_t stream, uint64_t total)
{
	if (fifo_is_own(stream))
		return true;
	return am_find(ep->ctx, (uint16_t)stream) && total <= (uint64_t)config_get()->am_max;
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
	if (!head_fits(ep, h, h->length))
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
	m->cut = !is_wanted(ep, h->stream, total);
	list_append(&ep->assembling, &m->parts);
	ep->am.message = m;
	add(m, h);
	if (!announced || !ep->am.message || !fifo_clears(ep, m))
		return;
	m->cleared = true;
	link_control(ep, WIRE_CLEAR, m->seq, 0, NULL, 0);
}

void am_more(struct inbound *m, const struct head *h, bool last)
{
	struct endpoint *ep = m->ep;
	uint64_t charge = m->charge;

	add(m, h);
	if (!last || ep->am.message != m)
		return;
	ep->am.message = NULL;
	list_remove(&m->parts);
	match_account(ep, m->total);
	m->charge = 0;
	if (m->damaged) {
		emulate_damaged(ep, (uint16_t)m->stream);
	} else if (fifo_is_own(m->stream)) {
		unsigned char *memory = m->data;

		m->data = NULL;
		fifo_arrived(ep, m->stream, memory, m->total, memory, charge);
		charge = 0;
	} else if (m->cut) {
		ep->stats->am_unhandled++;
	} else {
		handle(ep, m->stream, m->data, m->total);
	}
	inbound_free(m);
	am_settle(ep, charge);
}
