/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams that end in a managed receive queue of the peer's. Its owner tells how many messages its
 * entries allow so far, a total; the sender counts those that it sends, and refuses one that has no
 * enabled entry here and now: nothing of it travels, and what is under way has its entry for sure.
 * Decision 0035 has the reasons.
 */
#ifndef SLMPM_BINDING_H
#define SLMPM_BINDING_H

#include "slmpm/base/await.h"
#include "slmpm/request.h"

struct head;

#define BINDINGS_MAX 256 /* of a peer */

struct binding {
	struct list node; /* of the endpoint's */
	uint32_t stream;
	uint64_t allowed, sent; /* totals since it is known here */
	struct list awaits;     /* struct await, of `allowed` */
};

struct bindings {        /* of an endpoint */
	struct list out; /* struct binding */
	uint32_t count;  /* of them */
	uint32_t in;     /* streams of the peer's that end here, or will once it is up */
	uint64_t told;   /* streams that it has been told of so far, ... */
	uint64_t known;  /* ... and of how many of these it has said that it knows */
};

void binding_init(struct endpoint *ep);

/* ---- of who sends */

/* That of EP's STREAM; or NULL. */
struct binding *binding_find(const struct endpoint *ep, uint32_t stream);
static inline struct binding *binding_of(const struct endpoint *ep, uint32_t stream)
{
	return LIKELY(!endpoint_is_blocked(ep, BLOCK_BOUND)) ? NULL : binding_find(ep, stream);
}
static inline bool binding_allows(const struct binding *b)
{
	return (int64_t)(b->allowed - b->sent) > 0;
}
/* A message on STREAM is to be sent: 0, or -SLMPM_EDISABLED with the detail set. */
int binding_take(struct endpoint *ep, uint32_t stream);
/* It has not been sent after all. */
void binding_return(struct endpoint *ep, uint32_t stream);
/* The peer's word: WIRE_BIND. */
void binding_told(struct endpoint *ep, const struct head *h);
/* The peer has ended, and leaves. */
void binding_end(struct endpoint *ep);

/* ---- of who receives */

/* May there be one more? 0, or negative with the detail set. */
int binding_room(const struct endpoint *ep);
/* There is one, of which the peer learns now or once it is up. */
void binding_hold(struct endpoint *ep);
/* STREAM ends in a receive queue from now on, which allows so many messages in all. Which of those
 * that the peer is told of it is. */
uint64_t binding_begin(struct endpoint *ep, uint32_t stream, uint64_t allowed);
/* Likewise, behind those that were sent before the peer knew. */
void binding_allow(struct endpoint *ep, uint32_t stream, uint64_t allowed);
/* The queue is gone. */
void binding_release(struct endpoint *ep, uint32_t stream);
/* The peer knows, WIRE_BOUND: what comes behind this counts. */
void binding_known(struct endpoint *ep, const struct head *h);

#endif
