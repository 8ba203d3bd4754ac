/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: what sending, receiving, waiting and closing ask of one another. */
#ifndef SLMPM_MESSAGE_H
#define SLMPM_MESSAGE_H

#include "slmpm/request.h"

struct head;

/* The endpoint or context that a receive names, locked; NULL with *RC set. *EP NULL: any peer. */
struct context *message_source(slmpm_peer peer, struct endpoint **ep, int *rc);
/*
 * The general send and receive, in a locked context, without waiting: REQ, or else the counter or
 * queue of HOW, learns the end. HOW is in full. A negative error: nothing has begun.
 */
int message_sendv(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov, int n,
		  const struct slmpm_how *how, slmpm_req *req);
int message_recvv(struct context *ctx, struct endpoint *ep, uint32_t stream,
		  const struct slmpm_iov *iov, int n, const struct slmpm_how *how, slmpm_req *req);
/* Posts or matches R and waits; the request is finished or taken back when it returns. */
int message_await(struct request *r, int timeout_ms);
/* What a short way says: sent, or not this way; or sent, but part of it has not left this process yet. */
enum sent { NOT_SENT, SENT, SENT_IN_PART };
/* A message has been taken by EP's link, which lags, and cannot be taken back: waits until all of it has left
 * this process, or the deadline. */
COLD void message_let_leave(struct endpoint *ep, int timeout_ms);
/* The same without waiting: what was to be TOLD is, as DONE, when it has left; false: no memory for that. */
COLD bool message_tell_later(struct endpoint *ep, struct told *told, const struct slmpm_done *done);

/* ---- requests (request_ops) and their packets ------------------------------------------------- */

/* A message to its peer's transmit queue; a receive to the messages that came, or those to come. */
int message_queue(struct request *r);
int message_post(struct request *r);
/* Out of there again; false when it has gone too far. */
bool message_withdraw(struct request *r);
bool message_unpost(struct request *r);
/* The error of one that has failed, with its detail. */
int message_failed(const struct request *r);
bool message_ready(struct endpoint *ep, struct request *r, bool first);
int message_push(struct endpoint *ep, struct request *r, bool *stop);
/* All of R's packets are posted, and it awaits no answer: it ends when the link does not lag any more. */
bool message_is_out(const struct request *r);
/* R is out: ends it. */
void message_sent(struct endpoint *ep, struct request *r);
/* An announced message has its receive: the rest may go. */
void message_cleared(struct endpoint *ep, const struct head *h);

/* ---- parts of single calls, for bursts ------------------------------------------------------ */

/* A message that goes at once: false, not this way. MORE: another follows, or a flush. */
bool message_send_direct(struct endpoint *ep, uint32_t stream, const void *buf, size_t len,
			 bool more);
/* One by a request, which waits. */
int message_send_slowly(struct endpoint *ep, uint32_t stream, const void *buf, size_t len,
			int timeout_ms);
/*
 * What EP's ring has for a receive on STREAM, in at most so many looks: 1 and *A is a message, not
 * yet released; 2 the opened bundle has it; 0 neither, what else came has been handled.
 */
int message_look(struct endpoint *ep, uint32_t stream, int polls, struct fabric_arrival **a);
/* May what arrives go to the caller, or do others come first? */
static inline bool message_is_first(const struct endpoint *ep)
{
	return !ep->ctx->posted_count && !ep->before;
}
/* How often a receive scans the ring before it becomes a request. */
static inline int message_polls(const struct context *ctx, int timeout_ms)
{
	return !timeout_ms || ctx->oversubscribed || ctx->wait == SLMPM_WAIT_BLOCK ||
			       ctx->multiple ?
		       1 :
		       (int)ctx->scans;
}
/* That message into BUF: its length, or -SLMPM_ETRUNC. */
int64_t message_deliver(struct endpoint *ep, const struct fabric_arrival *a, void *buf, size_t cap,
			struct slmpm_done *done);
/* The next message, by whatever way; EP NULL: of any peer. */
int64_t message_recv(struct context *ctx, struct endpoint *ep, uint32_t stream, void *buf,
		     size_t cap, struct slmpm_done *done, int timeout_ms);

/* ---- the rest -------------------------------------------------------------------------------- */

/* The next message of EP, held where it lies; NULL: it comes later, or in another way. */
const struct fabric_arrival *message_hold_direct(struct endpoint *ep, uint32_t stream,
						 struct slmpm_done *done, int timeout_ms);
/* Sets the detail of ETRUNC: the message of DONE did not fit CAP bytes. */
COLD int message_truncated(const struct slmpm_done *done, uint64_t cap);

/* No how, or one of this library's size without anything rare: the short ways look no further. */
static inline bool message_is_plain(const struct slmpm_how *how)
{
	return !how || (how->size == sizeof(*how) &&
			!((how->flags & ~SLMPM_MORE) | how->ctr.id | how->cq.id));
}

/* HOW in full, zero where an older one ends or there is none; -SLMPM_EINVAL, with the detail set,
 * where it is too short or has flags beyond FLAGS. */
int message_how(const char *call, struct slmpm_how *full, const struct slmpm_how *how,
		uint32_t flags);

#endif
