/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that both sides copy: whether a pair has them, and what is said about one (share.h). */
#include "slmpm/memory/share.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "slmpm/config.h"
#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"

void share_open(struct endpoint *ep)
{
	if (config_get()->share != WAY_NEVER && !ep->check)
		ep->share = calloc(1, sizeof(*ep->share)); /* without, nothing is shared */
}

void share_free(struct endpoint *ep)
{
	free(ep->share);
	ep->share = NULL;
}

bool share_post(struct endpoint *ep, uint8_t opcode, uint64_t route, uint64_t extent,
		const struct wire_share *offer)
{
	struct packet p = {
		.opcode = opcode,
		.seq = opcode == WIRE_SHARE_TAKE ? ep->share->in.id : ep->share->id,
		.route = route,
		.extent = extent,
		.data = offer,
		.length = offer ? sizeof(*offer) : 0,
	};

	if (link_post(ep, &p) != 1)
		return false;
	ep->link.run = 0;
	return true;
}

bool share_say(struct endpoint *ep, uint8_t opcode, uint64_t route, uint64_t extent,
	       const struct wire_share *offer)
{
	if (!list_empty(&ep->owed) || ep->bundle.count || (ep->loan.data && !ep->loan.area))
		return false;
	return share_post(ep, opcode, route, extent, offer);
}

bool share_heard(struct endpoint *ep)
{
	/* Pairs with the same fence of the peer, between its word and its look (share.h). */
	atomic_thread_fence(memory_order_seq_cst);
	while (ep->state == SLMPM_PEER_UP)
		if (progress_look(ep))
			return ep->state == SLMPM_PEER_UP;
	return false;
}
