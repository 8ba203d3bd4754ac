/* SPDX-License-Identifier: BSD-3-Clause */
/* What became of peers, queued in their context until it is asked for. */
#include <stdio.h>
#include <stdlib.h>

#include "slmpm/endpoint.h"
#include "slmpm/error.h"
#include "slmpm/wait.h"

struct event {
	struct list node;
	struct slmpm_event event;
};

void context_event(struct context *ctx, struct endpoint *ep, uint32_t type, const char *detail)
{
	struct event *e = calloc(1, sizeof(*e));

	ctx->news = true;
	if (!e)
		return;
	e->event.size = sizeof(e->event);
	e->event.type = type;
	e->event.peer.id = handle_id(ep);
	e->event.error = ep->state == SLMPM_PEER_UP ? 0 : -ep->error;
	e->event.pid = ep->pid;
	e->event.written = ep->stats->out_produced;
	e->event.read = ep->stats->out_consumed;
	e->event.sent = ep->stats->sent_messages;
	e->event.arrived = ep->doubt.arrived;
	snprintf(e->event.detail, sizeof(e->event.detail), "%s", detail);
	list_append(&ctx->events, &e->node);
	wait_changed(ctx);
}

static bool has_event(void *arg)
{
	return !list_empty(&((struct context *)arg)->events);
}

int slmpm_next_event(slmpm_ctx handle, struct slmpm_event *event, int timeout_ms)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);

	if (!ctx)
		return rc;
	if (!event || event->size < sizeof(*event))
		return error_set(SLMPM_EINVAL, "slmpm_next_event: set .size of the structure");
	context_lock(ctx);
	if (!timeout_ms && !has_event(ctx))
		(void)wait_look(ctx);
	(void)wait_until(ctx, has_event, ctx, timeout_ms);
	if (has_event(ctx)) {
		struct event *e = LIST_ENTRY(ctx->events.next, struct event, node);

		list_remove(&e->node);
		*event = e->event;
		free(e);
		rc = 1;
	}
	context_unlock(ctx);
	return rc;
}

void context_forget_events(struct context *ctx)
{
	LIST_EACH(at, &ctx->events)
		free(LIST_ENTRY(at, struct event, node));
}
