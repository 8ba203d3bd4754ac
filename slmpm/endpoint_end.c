/* SPDX-License-Identifier: BSD-3-Clause */
/* How an endpoint ends: what waited for it fails, who calls on it afterwards hears why. */
#include "slmpm/endpoint.h"

#include <stdio.h>

#include "slmpm/connect/bootstrap.h"
#include "slmpm/memory/ask.h"
#include "slmpm/memory/emulate.h"
#include "slmpm/engine/engine.h"
#include "slmpm/base/error.h"
#include "slmpm/message/fetch.h"
#include "slmpm/engine/fifo.h"
#include "slmpm/message/inbound.h"
#include "slmpm/message/match.h"
#include "slmpm/link/landing.h"
#include "slmpm/link/link.h"
#include "slmpm/base/log.h"
#include "slmpm/memory/memory.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/monitor/totals.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/link/progress.h"
#include "slmpm/stats.h"
#include "slmpm/completion/workqueue.h"

static void fail_list(struct list *list, int error)
{
	LIST_EACH(at, list) {
		struct request *r = LIST_ENTRY(at, struct request, node);

		list_remove(at);
		request_finish(r, -error);
	}
}

static bool anybody_left(const struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->live; i++)
		if (ctx->endpoints[i]->state == SLMPM_PEER_UP ||
		    ctx->endpoints[i]->state == SLMPM_PEER_CONNECTING)
			return true;
	return !list_empty(&ctx->listeners);
}

/* Receives from any peer, when none is left; EP's own. */
static void fail_posted(struct context *ctx, struct endpoint *ep, int error)
{
	struct list *lists[] = {ep ? &ep->posted : NULL, anybody_left(ctx) ? NULL : &ctx->posted};

	for (int i = 0; i < 2; i++)
		while (lists[i] && !list_empty(lists[i])) {
			struct request *r = LIST_ENTRY(lists[i]->next, struct request, node);

			match_unpost(r);
			request_finish(r, -error);
		}
}

void endpoint_nobody(struct context *ctx)
{
	fail_posted(ctx, NULL, SLMPM_ECLOSED);
}

static uint32_t event_of(uint32_t state)
{
	return state == SLMPM_PEER_CLOSED   ? SLMPM_EVENT_CLOSED :
	       state == SLMPM_PEER_POISONED ? SLMPM_EVENT_POISONED :
					      SLMPM_EVENT_DEAD;
}

void endpoint_end(struct endpoint *ep, uint32_t state, int error, const char *why)
{
	if (ep->state != SLMPM_PEER_UP && ep->state != SLMPM_PEER_CONNECTING)
		return;
	doubt_settle(ep);
	if (!ep->link.port->violation) { /* a lost link is closed once nothing of it is kept */
		progress_settle(ep);
		link_count(ep);
	}
	endpoint_stats(ep);
	landing_end(ep);
	ep->link.port->over = true;
	ep->state = state;
	ep->error = error;
	ep->direct = false;
	ep->ctx->refused |= ep->listener && !ep->was_up;
	ep->ctx->ended = true;
	snprintf(ep->reason, sizeof(ep->reason), "%s", why ? why : "unknown");
	ep->link.depth = ep->link.streaming = ep->link.uncharged = 0;
	ep->link.active = NULL;
	ep->link.lags = false;
	ep->am.message = NULL;
	ep->bundle.count = ep->bundle.left = 0;
	ep->unpack.left = 0;
	fetch_end(ep);
	fail_list(&ep->link.queue, error);
	fail_list(&ep->announced, error);
	emulate_end(ep);
	engine_end(ep);
	ask_end(ep);
	fifo_end(ep, error);
	rma_end(ep, error);
	link_forget_owed(ep);
	memory_end(ep);
	mirror_end(ep, error);
	inbound_end(ep, error);
	fail_posted(ep->ctx, ep, error);
	workqueue_fail(ep, error);
	if (ep->further && state != SLMPM_PEER_CLOSED)
		link_hang_up(ep);
	context_event(ep->ctx, ep, event_of(state), ep->reason);
	totals_end(ep);
	monitor_ended(ep);
	log_line(state == SLMPM_PEER_CLOSED ? SLMPM_LOG_DEBUG : SLMPM_LOG_INFO, "%s: %s", ep->name,
		 ep->reason);
}

bool endpoint_poison(struct endpoint *ep, const char *rule)
{
	char why[112];

	if (ep->state != SLMPM_PEER_UP && ep->state != SLMPM_PEER_CONNECTING)
		return false;
	if (!rule)
		rule = "unknown";
	ep->stats->violations++;
	stats_violation(rule);
	snprintf(why, sizeof(why), "impossible %s", rule);
	endpoint_end(ep, SLMPM_PEER_POISONED, SLMPM_EPROTO, why);
	bootstrap_stop(ep, why);
	return false;
}

void endpoint_lost(struct endpoint *ep, const char *why)
{
	endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_EDEAD, why);
}

void endpoint_refused(struct endpoint *ep, int error, const char *why)
{
	char text[128];

	if (ep->state != SLMPM_PEER_CONNECTING)
		return;
	snprintf(text, sizeof(text), "%s", why);
	if (error == SLMPM_EPROTO) {
		ep->stats->violations++;
		stats_violation("handshake");
	}
	endpoint_end(ep, SLMPM_PEER_DEAD, error, text);
	bootstrap_stop(ep, text);
}

int endpoint_error(struct endpoint *ep)
{
	if (ep->state == SLMPM_PEER_CONNECTING)
		return error_set(SLMPM_EAGAIN, "%s has not connected yet", ep->name);
	if (ep->state == SLMPM_PEER_UP && ep->link.port->lost) /* but not all of it has been read */
		return error_set(SLMPM_EDEAD, "%s: %s", ep->name, ep->link.port->lost);
	return error_set(ep->error ? ep->error : SLMPM_ECLOSED, "%s: %s", ep->name, ep->reason);
}
