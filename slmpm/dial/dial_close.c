/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closing idle connections without waiting. The end of stream goes behind what was sent; what the
 * peer sends until it has seen that is still received, and the connection counts until it has left.
 */
#include <stdatomic.h>

#include "slmpm/am/am.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/dial/dial.h"
#include "slmpm/link/binding.h"
#include "slmpm/link/link.h"
#include "slmpm/loan/area.h"
#include "slmpm/message/held.h"
#include "slmpm/region/memory.h"

#define LEAVES_MS UINT64_C(1000) /* so long a peer that does not leave may take */

/* Bits of ep->blocked without anything under way. */
#define HARMLESS ((uint32_t)(BLOCK_CHECK | BLOCK_LAGS | BLOCK_TURN | BLOCK_SAMPLE | BLOCK_BOUND))

static bool reads_areas(const struct endpoint *ep)
{
	for (const struct area *a = ep->rooms->loans->peer_areas; a; a = a->next)
		if (a->busy)
			return true;
	return false;
}

bool dial_has_lent(const struct endpoint *ep)
{
	return held_any(ep) || ep->lent != LENT_NONE;
}

bool dial_is_read(const struct endpoint *ep)
{
	return !ep->before && !ep->unpack.left && list_empty(&ep->kept) && !dial_has_lent(ep) &&
	       !reads_areas(ep) && list_empty(&ep->rooms->am->entries);
}

bool dial_has_unread(const struct endpoint *ep, uint32_t stream, uint32_t n)
{
	LIST_EACH(at, &ep->messages->unexpected)
		if (LIST_ENTRY(at, const struct inbound, node)->stream - stream < n)
			return true;
	return false;
}

bool dial_first_unread(const struct endpoint *ep, uint32_t stream, uint32_t *imm)
{
	LIST_EACH_ENTRY(struct inbound, m, &ep->messages->unexpected, node) {
		if (m->stream != stream)
			continue;
		*imm = m->imm;
		return true;
	}
	return false;
}

static bool has_regions(const struct endpoint *ep)
{
	const struct regions *r = ep->rooms->regions;

	return r->count || !list_empty(&r->offered) || !list_empty(&r->open) || ep->rooms->mirrors;
}

bool dial_is_idle(const struct endpoint *ep)
{
	return ep->state == SLMPM_PEER_UP && !ep->closing && !(ep->blocked & ~HARMLESS) &&
	       !ep->bundle.count && list_empty(&ep->link.announced) && !binding_has_deferred(ep) &&
	       ep->link.next == ep->link.end && list_empty(&ep->one_sided) &&
	       list_empty(&ep->messages->assembling) && !ep->rooms->am->message &&
	       list_empty(&ep->rooms->am->awaiting) && dial_is_read(ep) && !has_regions(ep);
}

void dial_say_close(struct endpoint *ep)
{
	link_control(ep, WIRE_CLOSE, ep->stats->received_messages, 0, NULL, 0);
	ep->life->sent_end = true;
	(void)link_flush(ep);
	atomic_thread_fence(memory_order_release); /* as in close.c */
}

bool dial_has_left(struct endpoint *ep)
{
	return list_empty(&ep->link.deferred) && link_flush(ep);
}

void dial_close_begin(struct dial *d, uint64_t now)
{
	struct endpoint *ep = d->ep;

	d->state = DIAL_CLOSING;
	d->when = now + LEAVES_MS * 1000000;
	d->named->ep = NULL;
	ep->closing = true;
	endpoint_block(ep, BLOCK_STATE, true);
	dial_say_close(ep);
}

void dial_close_undo(struct dial *d)
{
	d->ep->closing = false;
	endpoint_block(d->ep, BLOCK_STATE, d->ep->state != SLMPM_PEER_UP);
}

/* What it has not read lies in its ring, or at its machine. */
void dial_close_step(struct dial *d, uint64_t now)
{
	struct endpoint *ep = d->ep;

	if (!dial_has_left(ep) || !link_has_arrived(ep)) {
		d->when = now + LEAVES_MS * 1000000;
		return;
	}
	endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, "it has been closed");
	bootstrap_stop(ep, NULL);
}
