/* SPDX-License-Identifier: BSD-3-Clause */
/* What became of peers, queued in their context until it is asked for (event.h). */
#include "slmpm/event.h"

#include <stdio.h>
#include <stdlib.h>

#include "slmpm/endpoint.h"
#include "slmpm/base/sized.h"
#include "slmpm/stats.h"

static bool is_end(uint32_t type)
{
	return type == SLMPM_EVENT_CLOSED || type == SLMPM_EVENT_DEAD ||
	       type == SLMPM_EVENT_POISONED;
}

struct event *event_find(const struct endpoint *ep, uint32_t type, uint32_t link)
{
	LIST_EACH_ENTRY(struct event, e, &ep->life->events, of_peer)
		if (e->event.type == type && e->link == link)
			return e;
	return NULL;
}

/* An end needs no memory, and is never lost. */
static struct event *place_for(struct endpoint *ep, uint32_t type, uint32_t link)
{
	struct event *e = event_find(ep, type, link);

	if (e)
		list_remove(&e->node);
	else if (is_end(type))
		e = &ep->life->ending;
	else
		e = calloc(1, sizeof(*e));
	return e;
}

static void drop(struct event *e)
{
	list_remove(&e->node);
	list_remove(&e->of_peer);
	if (!is_end(e->event.type))
		free(e);
}

void context_link_event(struct context *ctx, struct endpoint *ep, uint32_t type, uint32_t link,
			const char *detail)
{
	struct event *e = NULL;

	ctx->news = true;
	if (ep->life->was_up || ep->rooms->process)
		e = place_for(ep, type, link);
	if (!e)
		return;
	e->link = link;
	e->event.size = sizeof(e->event);
	e->event.type = type;
	e->event.peer.id = handle_id(ep);
	e->event.error = ep->state == SLMPM_PEER_UP ? 0 : -ep->life->error;
	e->event.pid = ep->life->pid;
	e->event.written = ep->stats->out_produced;
	e->event.read = ep->stats->out_consumed;
	e->event.sent = ep->stats->sent_messages;
	e->event.received = least_of(ep->rooms->figures->received, ep->stats->sent_messages);
	/* What its program has received its library has read, though that is said later. */
	e->event.arrived = ep->rooms->figures->arrived;
	if (e->event.arrived < e->event.received)
		e->event.arrived = e->event.received;
	snprintf(e->event.detail, sizeof(e->event.detail), "%s", detail);
	list_append(&ctx->events, &e->node);
	if (!event_find(ep, type, link))
		list_append(&ep->life->events, &e->of_peer);
	context_changed(ctx);
}

void context_event(struct context *ctx, struct endpoint *ep, uint32_t type, const char *detail)
{
	context_link_event(ctx, ep, type, 0, detail);
}

bool context_next_event(struct context *ctx, struct slmpm_event *event)
{
	struct event *e = LIST_ENTRY(ctx->events.next, struct event, node);

	if (list_empty(&ctx->events))
		return false;
	sized_give_own(event, &e->event, sizeof(e->event));
	drop(e);
	return true;
}

void context_forget_events(struct endpoint *ep)
{
	LIST_EACH(at, &ep->life->events)
		drop(LIST_ENTRY(at, struct event, of_peer));
}
