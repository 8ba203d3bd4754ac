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

#define BINDINGS_MAX 256                 /* of a peer */
#define CLAIM_MOST   (UINT64_C(1) << 32) /* beyond what is reserved */

enum claim { CLAIM_NONE, CLAIM_ASKS, CLAIM_REFUSED };

struct binding {
	struct list node; /* of the endpoint's */
	struct endpoint *ep;
	uint32_t stream;
	uint64_t allowed, sent; /* totals since it is known here */
	struct list awaits;     /* struct await, of `allowed` */
	struct {                /* of a queue of any peer, which reserves entries for this one */
		bool is;
		bool asks;           /* the answer to a claim is on its way: */
		uint64_t asked;      /* of so many, a total as `allowed` */
		uint64_t wanted;     /* so many once there are, for `awaits` */
		uint64_t given_back; /* reservations; they count as sent */
		struct list waiting; /* struct request */
		uint64_t waiting_count;
		enum claim loan;    /* of the loan that is to be committed */
		struct list unused; /* of the context's, or alone */
		uint64_t deadline;  /* when what nothing has used by then is given back */
	} shared;
};

struct bindings {        /* of an endpoint */
	struct list out; /* struct binding */
	uint32_t count;  /* of them */
	uint32_t in;     /* streams of the peer's that end here, or will once it is up */
	uint64_t told;   /* streams that it has been told of so far, ... */
	uint64_t known;  /* ... and of how many of these it has said that it knows */
	/* Of queues of any peer's: struct reservation; one has ended, to which it may not know. */
	struct list reservations;
	bool released;
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
/* R, a message, is to be sent: 0; 1, it waits here for its entry; or -SLMPM_EDISABLED with the
 * detail set. */
int binding_enter(struct endpoint *ep, struct request *r);
/* STREAM's loan is to be committed, IN_RING or in an area: 0; -SLMPM_EAGAIN, not yet; or
 * -SLMPM_EDISABLED with the detail set. */
int binding_take_loan(struct endpoint *ep, uint32_t stream, bool in_ring);
void binding_return_loan(struct endpoint *ep, uint32_t stream, bool in_ring);
/* The detail of -SLMPM_EDISABLED; returns that. */
COLD int binding_refusal(uint32_t stream, const char *peer);
/* A is to be over once one more may be sent. */
void binding_wait(struct binding *b, struct await *a);
static inline bool binding_is_shared(const struct endpoint *ep, uint32_t stream)
{
	const struct binding *b = binding_of(ep, stream);

	return UNLIKELY(b != NULL) && b->shared.is;
}
/* It has not been sent after all. */
void binding_return(struct endpoint *ep, uint32_t stream);
/* The peer's word: WIRE_BIND. */
void binding_told(struct endpoint *ep, const struct head *h);
/* The peer has ended, and leaves. */
void binding_end(struct endpoint *ep);
/* Messages wait here for their entries. */
bool binding_has_deferred(const struct endpoint *ep);

/* ---- of who sends to a shared one (claim.c) */

/* R waits in B, behind the others. */
void claim_enter(struct binding *b, struct request *r);
/* It waits no longer, nor does the loan. */
void claim_leave(struct endpoint *ep, struct request *r);
void claim_leave_loan(struct endpoint *ep, uint32_t stream);
/* No request waits on STREAM. */
bool claim_is_free(const struct endpoint *ep, uint32_t stream);
/* As of binding_take_loan. */
int claim_loan(struct binding *b);
/* B's awaits want entries. */
void claim_later(struct binding *b);
/* What B has goes to those that wait: how many messages were queued. */
int claim_serve(struct binding *b);
/* The owner's word. */
void claim_answered(struct binding *b, uint64_t allowed, bool refused);
/* B ends: the stream is like others, or its peer has ended. */
void claim_end(struct binding *b);
/* As of parts.deadlines. */
uint64_t claim_deadlines(struct context *ctx, uint64_t now);

/* ---- of who receives */

/* May there be one more, beside SHARED ones? 0, or negative with the detail set. */
int binding_room(const struct endpoint *ep, uint32_t shared);
/* One more may be announced to it now: it has not left too many unanswered. */
bool binding_may_begin(const struct endpoint *ep);
/* There is one, of which the peer learns now or once it is up. */
void binding_hold(struct endpoint *ep);
/* STREAM ends in a receive queue from now on, which allows so many messages in all; HOW: enum
 * wire_bind. Which of those that the peer is told of it is. */
uint64_t binding_begin(struct endpoint *ep, uint32_t stream, uint64_t allowed, uint64_t how);
/* Likewise, behind those that were sent before the peer knew. */
void binding_allow(struct endpoint *ep, uint32_t stream, uint64_t allowed, uint64_t how);
/* The queue is gone. */
void binding_release(struct endpoint *ep, uint32_t stream);
void binding_release_shared(struct endpoint *ep, uint32_t stream);
/* The peer knows, WIRE_BOUND: what comes behind this counts. */
void binding_known(struct endpoint *ep, const struct head *h);
/* WIRE_CLAIM: it wants entries of a shared one, or gives them back. */
void binding_claimed(struct endpoint *ep, const struct head *h);

#endif
