/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving on: the one place that takes arrivals up and pushes what waits down. */
#ifndef SLMPM_PROGRESS_H
#define SLMPM_PROGRESS_H

#include "slmpm/endpoint.h"

/* One fair pass over all endpoints; packets handled and posted. */
int progress_context(struct context *ctx);
int progress_endpoint(struct endpoint *ep);
/* Takes all that a peer which is gone has committed. */
void progress_drain(struct endpoint *ep);

/* The next packet of an endpoint that is UP, or NULL; valid until released. */
static inline struct fabric_arrival *progress_take(struct endpoint *ep)
{
	struct link *l = &ep->link;

	if (l->next == l->count) {
		int n = l->fabric->poll(l->port, l->arrivals, LINK_BATCH);

		if (n <= 0) {
			if (UNLIKELY(n < 0))
				endpoint_poison(ep, l->port->violation);
			return NULL;
		}
		l->next = 0;
		l->count = n;
	}
	return &l->arrivals[l->next++];
}

static inline void progress_release(struct endpoint *ep, const struct fabric_arrival *a)
{
	ep->link.fabric->release(ep->link.port, a);
}

#endif
