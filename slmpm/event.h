/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events: what became of peers, until the application asks. Of one peer at most one of each type
 * waits, and of each link: a later one takes the place of the earlier. They go with the peer's
 * handle.
 */
#ifndef SLMPM_EVENT_H
#define SLMPM_EVENT_H

#include <slmpm.h>

#include "slmpm/base/list.h"

struct context;
struct endpoint;

struct event {
	struct list node;    /* ctx->events */
	struct list of_peer; /* ep->life->events */
	uint32_t link;       /* of SLMPM_EVENT_LINK_*, else 0 */
	struct slmpm_event event;
};

/* Queues an event for slmpm_next_event. None is told of a peer that nobody has been given: who
 * failed before it was up. */
void context_event(struct context *ctx, struct endpoint *ep, uint32_t type, const char *detail);
/* The same of one of its links. */
void context_link_event(struct context *ctx, struct endpoint *ep, uint32_t type, uint32_t link,
			const char *detail);
/* The next one, into one of the application's; false: there is none. */
bool context_next_event(struct context *ctx, struct slmpm_event *event);
/* That of LINK, 0: of the peer itself, which has not been taken; or NULL. */
struct event *event_find(const struct endpoint *ep, uint32_t type, uint32_t link);
/* The handle goes: nobody asks any more. */
void context_forget_events(struct endpoint *ep);

#endif
