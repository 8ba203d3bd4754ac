/* SPDX-License-Identifier: BSD-3-Clause */
/* How an endpoint ends: what waits for it fails, and later calls return why. */
#include "slmpm/endpoint.h"

#include <stdio.h>

#include "slmpm/base/error.h"
#include "slmpm/base/log.h"
#include "slmpm/part.h"
#include "slmpm/stats.h"

static uint32_t event_of(uint32_t state)
{
	return state == SLMPM_PEER_CLOSED   ? SLMPM_EVENT_CLOSED :
	       state == SLMPM_PEER_POISONED ? SLMPM_EVENT_POISONED :
					      SLMPM_EVENT_DEAD;
}

void endpoint_end(struct endpoint *ep, uint32_t state, int error, const char *why)
{
	if (endpoint_has_ended(ep))
		return;
	context_end_scan(ep->ctx); /* what may be unmapped from now on is not read any more */
	PART_EACH(part, parts.ending)
		(*part)(ep);
	endpoint_stats(ep);
	ep->link.port->over = true;
	ep->state = state;
	ep->life->error = error;
	endpoint_block(ep, BLOCK_STATE, true);
	ep->ctx->refused |= ep->rooms->listener && !ep->life->was_up;
	ep->ctx->ended = true;
	snprintf(ep->life->reason, sizeof(ep->life->reason), "%s", why ? why : "unknown");
	ep->link.depth = ep->link.streaming = ep->link.early = 0;
	ep->link.active = NULL;
	endpoint_block(ep, BLOCK_ACTIVE, false);
	endpoint_block(ep, BLOCK_LAGS, false);
	ep->bundle.count = ep->bundle.left = 0;
	ep->unpack.left = 0;
	PART_EACH(part, parts.end)
		(*part)(ep);
	context_event(ep->ctx, ep, event_of(state), ep->life->reason);
	log_line(state == SLMPM_PEER_CLOSED ? SLMPM_LOG_DEBUG : SLMPM_LOG_INFO, "%s: %s",
		 ep->life->name, ep->life->reason);
}

bool endpoint_poison(struct endpoint *ep, const char *rule)
{
	char why[112];

	if (endpoint_has_ended(ep))
		return false;
	if (!rule)
		rule = "unknown";
	ep->stats->violations++;
	stats_violation(rule);
	snprintf(why, sizeof(why), "impossible %s", rule);
	endpoint_end(ep, SLMPM_PEER_POISONED, SLMPM_EPROTO, why);
	parts.hang_up(ep, why);
	return false;
}

static const char no_memory[] = "no memory for a message";
static const char no_descriptor[] = "no descriptor is left for the area of a loan";

static void endpoint_lacks(struct endpoint *ep, int error, const char *why)
{
	if (endpoint_has_ended(ep))
		return;
	ep->life->lacks = true;
	endpoint_end(ep, SLMPM_PEER_DEAD, error, why);
	parts.hang_up(ep, why);
}

void endpoint_lacks_memory(struct endpoint *ep, const char *why)
{
	endpoint_lacks(ep, SLMPM_ENOMEM, why);
}

void endpoint_no_descriptor(struct endpoint *ep)
{
	endpoint_lacks(ep, SLMPM_ENOFILE, no_descriptor);
}

void endpoint_break_no_descriptor(struct endpoint *ep)
{
	endpoint_break(ep, no_descriptor);
}

void endpoint_no_memory(struct endpoint *ep)
{
	endpoint_lacks_memory(ep, no_memory);
}

void endpoint_break_no_memory(struct endpoint *ep)
{
	endpoint_break(ep, no_memory);
}

void endpoint_end_broken(struct endpoint *ep)
{
	if (ep->link.broken == no_memory)
		endpoint_no_memory(ep);
	else if (ep->link.broken == no_descriptor)
		endpoint_no_descriptor(ep);
	else
		endpoint_poison(ep, ep->link.broken);
}

void endpoint_lost(struct endpoint *ep, const char *why)
{
	endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_EDEAD, why);
}

void endpoint_refused(struct endpoint *ep, int error, const char *why)
{
	char text[sizeof(ep->life->reason)];

	if (ep->state != SLMPM_PEER_CONNECTING)
		return;
	snprintf(text, sizeof(text), "%s", why);
	if (error == SLMPM_EPROTO) {
		ep->stats->violations++;
		stats_violation("handshake");
	}
	endpoint_end(ep, SLMPM_PEER_DEAD, error, text);
	parts.hang_up(ep, text);
}

int endpoint_error(struct endpoint *ep)
{
	if (ep->state == SLMPM_PEER_CONNECTING)
		return error_set(SLMPM_EAGAIN, "%s has not connected yet", ep->life->name);
	if (ep->state == SLMPM_PEER_UP && ep->link.port->lost) /* but not all of it has been read */
		return error_set(SLMPM_EDEAD, "%s: %s", ep->life->name, ep->link.port->lost);
	return error_set(ep->life->error ? ep->life->error : SLMPM_ECLOSED, "%s: %s",
			 ep->life->name, ep->life->reason);
}

int context_source_ended(struct context *ctx, struct endpoint *ep)
{
	if (ep)
		return endpoint_has_ended(ep) ? endpoint_error(ep) : 0;
	for (uint32_t i = 0; i < ctx->live; i++)
		if (!endpoint_has_ended(ctx->endpoints[i]))
			return 0;
	if (!list_empty(&ctx->listeners))
		return 0;
	return error_set(SLMPM_ECLOSED, "no peer is left in this context");
}

/* ---- what is left --------------------------------------------------------------------------- */

/* What an ended endpoint holds and nobody needs goes; itself, its statistics and what the
 * application holds stay until slmpm_close. */

/* A spawned process that was closed here still reads what was sent, and has room to send. */
static bool is_to_be_joined(const struct endpoint *ep)
{
	return ep->closing && ep->rooms->process;
}

/* One that a call is still connecting belongs to that call. */
static bool may_reclaim(const struct endpoint *ep)
{
	return endpoint_has_ended(ep) && (ep->life->was_up || ep->rooms->process) &&
	       !is_to_be_joined(ep);
}

/* Nothing comes of it any more, and no pass has anything to do with it. */
static bool has_retired(const struct endpoint *ep)
{
	return endpoint_has_ended(ep) && !is_to_be_joined(ep) && list_empty(&ep->kept);
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
