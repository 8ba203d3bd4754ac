/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an ended endpoint holds that nobody needs goes as soon as nobody does: rings, descriptors, areas.
 * The endpoint itself, its statistics and what the application still holds stay until slmpm_close.
 */
#include "slmpm/bond/further.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/endpoint.h"
#include "slmpm/link/link.h"
#include "slmpm/message/area.h"
#include "slmpm/message/held.h"
#include "slmpm/monitor/monitor.h"

static bool has_ended(const struct endpoint *ep)
{
	return ep->state != SLMPM_PEER_CONNECTING && ep->state != SLMPM_PEER_UP;
}

/* A spawned process that was closed here still reads what was sent, and is to find room for what it says. */
static bool is_to_be_joined(const struct endpoint *ep)
{
	return ep->closing && ep->process;
}

/* One that a call is still connecting belongs to that call. */
static bool may_reclaim(const struct endpoint *ep)
{
	return has_ended(ep) && (ep->was_up || ep->process) && !is_to_be_joined(ep);
}

static bool ring_in_use(struct endpoint *ep)
{
	return (ep->loan.data && !ep->loan.area) || held_in_ring(ep);
}

/* A process's descriptor stays for slmpm_join and slmpm_kill. */
static void reclaim(struct endpoint *ep)
{
	if (ep->process)
		bootstrap_stop(ep, NULL);
	else
		bootstrap_free(ep);
	area_reclaim(ep);
	monitor_leave_page(ep);
	if (!ring_in_use(ep))
		further_reclaim(ep);
}

/* Nothing comes of it any more, and no pass has anything to do with it. */
static bool has_retired(const struct endpoint *ep)
{
	return has_ended(ep) && !is_to_be_joined(ep) && list_empty(&ep->am.kept);
}

void endpoint_reclaim(struct context *ctx)
{
	ctx->ended = false;
	for (uint32_t i = ctx->live; i-- > 0;)
		if (has_retired(ctx->endpoints[i]))
			context_retire(ctx, i);
	for (uint32_t i = 0; i < ctx->count; i++)
		if (may_reclaim(ctx->endpoints[i]))
			reclaim(ctx->endpoints[i]);
}
