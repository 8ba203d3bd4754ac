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

/* One that a call is still connecting belongs to that call; a spawned one that was closed here still reads
 * what was sent. */
static bool may_reclaim(const struct endpoint *ep)
{
	if (ep->state == SLMPM_PEER_CONNECTING || ep->state == SLMPM_PEER_UP)
		return false;
	return (ep->was_up || ep->process) && !(ep->closing && ep->process);
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

void endpoint_reclaim(struct context *ctx)
{
	ctx->ended = false;
	for (uint32_t i = 0; i < ctx->count; i++)
		if (may_reclaim(ctx->endpoints[i]))
			reclaim(ctx->endpoints[i]);
}
