/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an ended endpoint holds that nobody needs goes as soon as nobody does: rings, descriptors, areas.
 * The endpoint itself, its statistics and what the application still holds stay until slmpm_close.
 */
#include "slmpm/endpoint.h"
#include "slmpm/part.h"

static bool endpoint_reclaim_has_ended(const struct endpoint *ep)
{
	return ep->state != SLMPM_PEER_CONNECTING && ep->state != SLMPM_PEER_UP;
}

/* A spawned process that was closed here still reads what was sent, and is to find room for what it says. */
static bool is_to_be_joined(const struct endpoint *ep)
{
	return ep->closing && ep->rooms->process;
}

/* One that a call is still connecting belongs to that call. */
static bool may_reclaim(const struct endpoint *ep)
{
	return endpoint_reclaim_has_ended(ep) && (ep->life->was_up || ep->rooms->process) &&
	       !is_to_be_joined(ep);
}

/* Nothing comes of it any more, and no pass has anything to do with it. */
static bool has_retired(const struct endpoint *ep)
{
	return endpoint_reclaim_has_ended(ep) && !is_to_be_joined(ep) && list_empty(&ep->kept);
}

void endpoint_reclaim(struct context *ctx)
{
	ctx->ended = false;
	for (uint32_t i = ctx->live; i-- > 0;)
		if (has_retired(ctx->endpoints[i]))
			context_retire(ctx, i);
	for (uint32_t i = 0; i < ctx->count; i++)
		if (may_reclaim(ctx->endpoints[i]))
			PART_EACH(part, parts.reclaim)
				(*part)(ctx->endpoints[i]);
}
