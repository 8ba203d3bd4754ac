/* SPDX-License-Identifier: BSD-3-Clause */
/* slmpm_peer_stats: a peer's statistics as they are now, with what its totals lag behind published. */
#include "slmpm/base/sized.h"
#include "slmpm/endpoint.h"
#include "slmpm/link/link.h"

int slmpm_peer_stats(slmpm_peer peer, struct slmpm_stats *stats, size_t size)
{
	struct endpoint *ep = endpoint_of(peer);

	if (!ep)
		return endpoint_bad_handle(peer);
	if (sized_check("slmpm_peer_stats", stats, size, sizeof(*stats)) < 0)
		return -SLMPM_EINVAL;
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	if (ep->state == SLMPM_PEER_UP && !ep->lent)
		link_flush(ep);
	endpoint_stats(ep);
	sized_give(stats, size, ep->stats, sizeof(*stats));
	context_unlock(ep->ctx);
	return 0;
}
