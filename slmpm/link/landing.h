/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Landing: a fabric that reads a stream asks where a long payload belongs before it reads it, and
 * puts it there without a copy. Before memory of a receive, a region or a message is handed back,
 * landing_moved takes the place back.
 */
#ifndef SLMPM_LANDING_H
#define SLMPM_LANDING_H

#include <string.h>

#include "shm/copy.h"
#include "slmpm/endpoint.h"
#include "slmpm/request.h"

#define LANDING_LEAST 4096 /* no fabric asks for less */

enum landing_state { LANDING_NONE, LANDING_ASKED, LANDING_KNOWN };

struct landing {                       /* a long payload that the fabric has not read yet */
	uint8_t state;                 /* enum landing_state */
	struct fabric_arrival arrival; /* but for its data */
	void *place;                   /* where it goes; NULL: into the ring */
	uint64_t asked; /* the message whose rest may come though this is not whole yet */
};

/* Where the fabric of TABLE asks, its poll answers from now on. */
bool landing_before(struct fabric *table);
/* That poll: of a fabric that does not ask it is the fabric's own. */
int landing_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n);
/* Something has changed that decides where a payload of EP, or of any peer, belongs. */
void landing_inspect(struct endpoint *ep);
void landing_inspect_all(struct context *ctx);
static inline void landing_moved(struct endpoint *ep)
{
	if (UNLIKELY(ep->ctx->landings))
		landing_inspect(ep);
}
static inline void landing_moved_all(struct context *ctx)
{
	if (UNLIKELY(ctx->landings))
		landing_inspect_all(ctx);
}
/* The endpoint ends: nothing of it lands any more. */
void landing_end(struct endpoint *ep);

/* Copies, unless the bytes have landed there. */
static inline void landing_copy(void *to, const void *from, size_t n)
{
	if (to != from)
		copy_bytes(to, from, n);
}

static inline void landing_scatter(const struct request *r, uint64_t offset, const void *from,
				   uint64_t n)
{
	if (LIKELY(n <= COPY_SHORT && r->piece_count == 1 && n + offset <= r->pieces->len))
		copy_short((unsigned char *)r->pieces->base + offset, from, n);
	else if (n < LANDING_LEAST || request_run(r, offset, n) != from)
		request_scatter(r, offset, from, n);
}

#endif
