/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that both sides copy: whether a pair has them, and what is said about one (share.h). */
#include "slmpm/share/share.h"

#include <stdlib.h>

#include "slmpm/link/addressee.h"
#include "slmpm/link/link.h"
#include "slmpm/message/fetch.h"
#include "slmpm/rma/rma.h"

#define REGIONS 16 /* own ones among which memory is looked for */

void share_open(struct endpoint *ep)
{
	if (ep->link.check || !addressee_hold_max(ep, link_ring_out(ep)))
		return;
	ep->rooms->share = calloc(1, sizeof(*ep->rooms->share)); /* without, nothing is shared */
	if (!ep->rooms->share)
		return;
	ep->rooms->share->room.max = 1;
	list_init(&ep->rooms->share->asks);
	ep->rooms->share->id = endpoint_start(ep);
	ep->rooms->share->in.id = endpoint_start_in(ep);
}

void share_free(struct endpoint *ep)
{
	free(ep->rooms->share);
	ep->rooms->share = NULL;
}

bool share_offer(struct endpoint *ep, const struct wire_share *w)
{
	struct share *s = ep->rooms->share;
	struct packet p = {.opcode = WIRE_SHARE, .seq = s->id + 1, .data = w, .length = sizeof(*w)};
	bool by_address = LITTLE_32(w->how) & WIRE_SHARE_ADDRESS;

	if (!split_hold(ep, &s->room, &s->held, 1))
		return false;
	if (!(by_address ? fetch_notify : split_notify)(ep, &p, NULL)) {
		(void)split_hold(ep, &s->room, &s->held, -1);
		return false;
	}
	s->id++;
	s->out = true;
	s->over = s->given = false;
	s->limit = LITTLE_64(w->target.length);
	s->upto = s->done = 0;
	return true;
}

bool share_take_back(struct endpoint *ep)
{
	struct share *s = ep->rooms->share;
	struct packet p = {.opcode = WIRE_SHARE_GIVE, .seq = s->id};

	if (!s->given)
		s->given = split_notify_held(ep, &s->room, &s->held, &p);
	return s->given && split_catch_up(ep);
}

void share_taken(struct endpoint *ep, const struct head *h)
{
	bool over = h->opcode == WIRE_SHARE_OVER;
	uint64_t upto = h->extent & WIRE_LENGTH_MASK;
	uint64_t done = over ? upto : h->stream | (uint64_t)h->imm << 32;
	struct share *s = ep->rooms->share;

	if (endpoint_broke(ep, "share of a put",
			   !s || !s->out || s->over || h->seq != s->id || h->length || h->flags ||
				   upto > s->limit || done < s->done || done > s->upto ||
				   (!over && upto <= s->upto)))
		return;
	s->done = done;
	s->upto = upto;
	s->over = over;
	if (over) {
		(void)split_hold(ep, &s->room, &s->held, -(int)s->held);
		ep->rma->holds &= (uint8_t)~RMA_BEHIND;
	}
	if (s->asked)
		ask_answered(ep);
}

/* The key by which the peer has mapped R. */
static const struct grant *grant_of(const struct region *r, const struct endpoint *ep,
				    uint32_t access)
{
	LIST_EACH_ENTRY(const struct grant, g, &r->grants, of_region)
		if (g->ep == ep && g->mapped && g->accepted && !g->ending &&
		    !g->releasing_mapping && g->access & access)
			return g;
	return NULL;
}

const struct grant *share_grant(const struct endpoint *ep, const void *at, uint64_t len,
				uint32_t access, uint64_t *offset)
{
	int inspected = 0;

	LIST_EACH_ENTRY(const struct region, r, &ep->ctx->regions, node) {
		uintptr_t base = (uintptr_t)r->memory.base, from = (uintptr_t)at;

		if (from >= base && from - base < r->memory.size &&
		    len <= r->memory.size - (from - base)) {
			*offset = from - base;
			return r->allocated ? grant_of(r, ep, access) : NULL;
		}
		if (++inspected == REGIONS)
			break;
	}
	return NULL;
}
