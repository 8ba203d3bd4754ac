/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that both sides copy: whether a pair has them, and what is said about one (share.h). */
#include "slmpm/share/share.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "slmpm/base/config.h"
#include "slmpm/link/addressee.h"
#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"

#define REGIONS 16 /* own ones among which memory is looked for */

void share_open(struct endpoint *ep)
{
	if (ep->check || !addressee_hold_max(ep, link_ring_out(ep)))
		return;
	ep->share = calloc(1, sizeof(*ep->share)); /* without, nothing is shared */
	if (!ep->share)
		return;
	list_init(&ep->share->asks);
	ep->share->id = endpoint_start(ep);
	ep->share->in.id = endpoint_start_in(ep);
}

void share_free(struct endpoint *ep)
{
	free(ep->share);
	ep->share = NULL;
}

bool share_post(struct endpoint *ep, uint8_t opcode, uint64_t route, uint64_t extent,
		const void *data, uint32_t length)
{
	struct packet p = {
		.opcode = opcode,
		.seq = opcode == WIRE_SHARE_TAKE ? ep->share->in.id : ep->share->id,
		.route = route,
		.extent = extent,
		.data = data,
		.length = length,
	};

	if (link_post(ep, &p) != 1)
		return false;
	ep->link.run = 0;
	return true;
}

bool share_notify(struct endpoint *ep, uint8_t opcode, uint64_t route, uint64_t extent,
		  const void *data, uint32_t length)
{
	if (!list_empty(&ep->deferred) || ep->bundle.count || (ep->loan.data && !ep->loan.area))
		return false;
	return share_post(ep, opcode, route, extent, data, length);
}

bool share_hold(struct endpoint *ep)
{
	return ep->share->held = link_hold_back(ep, 1);
}

void share_release(struct endpoint *ep)
{
	if (ep->share->held)
		(void)link_hold_back(ep, -1);
	ep->share->held = false;
}

/* The key by which the peer has mapped R. */
static const struct grant *grant_of(const struct region *r, const struct endpoint *ep,
				    uint32_t access)
{
	LIST_EACH(at, &r->grants) {
		const struct grant *g = LIST_ENTRY(at, struct grant, of_region);

		if (g->ep == ep && g->mapped && g->accepted && !g->ending &&
		    !g->releasing_mapping && g->access & access)
			return g;
	}
	return NULL;
}

const struct grant *share_grant(const struct endpoint *ep, const void *at, uint64_t len,
				uint32_t access, uint64_t *offset)
{
	int inspected = 0;

	LIST_EACH(node, &ep->ctx->regions) {
		const struct region *r = LIST_ENTRY(node, struct region, node);
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

bool share_acknowledged(struct endpoint *ep)
{
	/* Pairs with the same fence of the peer, between its word and its look (share.h). */
	atomic_thread_fence(memory_order_seq_cst);
	while (ep->state == SLMPM_PEER_UP)
		if (progress_inspect(ep))
			return ep->state == SLMPM_PEER_UP;
	return false;
}
