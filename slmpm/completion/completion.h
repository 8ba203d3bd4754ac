/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the end of an operation is told when nobody waits for it: counted, or queued. A request whose
 * how names a counter or a queue has no handle of the caller's; it ends with completion_deliver,
 * and is dropped by the context at a later call, for who finishes it may look at it a little more.
 * What is done at once needs no request: it opens a struct notified of its own and tells it.
 */
#ifndef SLMPM_COMPLETION_H
#define SLMPM_COMPLETION_H

#include <slmpm.h>
#include <stddef.h>
#include <string.h>

#include "slmpm/request.h"

/* A completion but for what it has in reserve, which is the caller's. */
static inline void completion_copy(struct slmpm_done *to, const struct slmpm_done *from)
{
	memcpy(to, from, offsetof(struct slmpm_done, reserved));
}

/* No how, or one of this library's size with FLAGS at most: the fast paths check no further. */
static inline bool how_is_plain(const struct slmpm_how *how, uint32_t flags)
{
	return !how ||
	       (how->size == sizeof(*how) && !((how->flags & ~flags) | how->ctr.id | how->cq.id));
}

/* HOW in full, zero where an older one ends or there is none; -SLMPM_EINVAL, with the detail set,
 * where it is too short or has flags beyond FLAGS. */
int how_take(const char *call, struct slmpm_how *full, const struct slmpm_how *how, uint32_t flags);

/* Does HOW name a counter or a queue? */
static inline bool completion_wanted(const struct slmpm_how *how)
{
	return how && how->size >= sizeof(*how) && (how->ctr.id || how->cq.id);
}

/* Does a call with HOW and REQ block until the operation is done? */
static inline bool completion_blocks(const struct slmpm_how *how, const slmpm_req *req)
{
	return !req && !completion_wanted(how);
}

static inline bool completion_notified(const struct notified *t)
{
	return t->counter || t->queue;
}

/* Before the operation starts: takes what its end will need. Negative with the detail set when the
 * handle is wrong or of another context, or REQ is there too. T then has no target. */
int completion_open(struct notified *t, struct context *ctx, const struct slmpm_how *how,
		    const slmpm_req *req);
/* It has not started after all, or its end is not wanted. Nothing, once T is notified. */
void completion_undo(struct notified *t);
/* It is done. Fills in the cookie. */
void completion_done(struct context *ctx, struct notified *t, const struct slmpm_done *done);
/* The same of one that has failed, for the reason WHY. */
COLD void completion_failed(struct context *ctx, struct notified *t, const struct slmpm_done *done,
			    const char *why);

/* Before R, from request_new, is submitted: its end goes to how->ctr or how->cq, if there is
 * one. As completion_open; request_drop undoes it. */
int completion_bind(struct request *r, const struct slmpm_how *how, const slmpm_req *req);
/* It is done when R is, which takes its place among those posted: T is the newest. */
void completion_pass_on(struct notified *t, struct request *r);
/* R, which is bound, has ended: its counter or queue is notified. */
void completion_deliver(struct request *r);

/* 0; or negative with the detail set: nothing can come to CTX's counters and queues any more, for
 * no peer is left, nor an entry of a work queue. */
int completion_source_ended(struct context *ctx);

/* Takes R back, which ends as SLMPM_ECANCELED. -SLMPM_EBUSY with the detail set: it has gone too
 * far. What the peer has said is taken in meanwhile, so that handlers may run. */
int request_cancel(struct request *r);

/* The counter and the queue that a region is to notify, {0}: NULL; negative with the detail set.
 * While they are known there each has one user more. */
int completion_find(struct context *ctx, slmpm_ctr ctr, slmpm_cq cq, struct counter **counter,
		    struct queue **queue);
/*
 * A peer's notified put has landed in a region, moved BY: the region's counter and queue (or NULL)
 * are notified. Who took the packet has added WIRE_ENVELOPE to ep->unmatched_charge and checked it
 * against the credit, as for a message without bytes; that goes back to the peer from here: now, or
 * when it is polled.
 */
void completion_notify(struct counter *counter, struct queue *queue, struct endpoint *ep,
		       uint64_t offset, uint64_t len, uint32_t imm, enum slmpm_protocol by);

/* ---- messages that a link which lags has taken, and that cannot be taken back ------------ */

/* Of a fast path: sent, or not so; or sent, but part of it has not left this process yet. */
enum sent { NOT_SENT, SENT, SENT_IN_PART };

/* Of one that the link has just taken; it had not lagged before. */
static inline enum sent leaving_sent(const struct endpoint *ep)
{
	return UNLIKELY(endpoint_is_blocked(ep, BLOCK_LAGS)) ? SENT_IN_PART : SENT;
}
/* Waits until all of it has left this process, or the deadline. */
COLD void leaving_await(struct endpoint *ep, int timeout_ms);
/* The same without waiting: NOTIFIED is, with DONE, when it has left; false: no memory for that. */
COLD bool leaving_notify(struct endpoint *ep, struct notified *notified,
			 const struct slmpm_done *done);

/* The fast path of a message has returned SENT: 1, or 0, not so. */
static inline int leaving_end(struct endpoint *ep, struct notified *notified,
			      const struct slmpm_done *done, enum sent sent)
{
	if (UNLIKELY(sent == NOT_SENT)) {
		completion_undo(notified);
		return 0;
	}
	if (LIKELY(sent == SENT) || !leaving_notify(ep, notified, done))
		completion_done(ep->ctx, notified, done);
	return 1;
}

/* The context ends: its counters and queues, and requests that have been notified. */
void completion_end(struct context *ctx);

#endif
