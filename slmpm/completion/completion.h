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

struct counter;
struct endpoint;
struct queue;
struct request;

/* A completion but for what it has in reserve, which is the caller's. */
static inline void completion_copy(struct slmpm_done *to, const struct slmpm_done *from)
{
	memcpy(to, from, offsetof(struct slmpm_done, reserved));
}

/* No how, or one of this library's size without anything rare: the fast paths look no further. */
static inline bool how_is_plain(const struct slmpm_how *how)
{
	return !how || (how->size == sizeof(*how) &&
			!((how->flags & ~SLMPM_MORE) | how->ctr.id | how->cq.id));
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
 * handle is wrong or of another context, or REQ is there too. T then tells nobody. */
int completion_open(struct notified *t, struct context *ctx, const struct slmpm_how *how,
		    const slmpm_req *req);
/* It has not started after all, or nobody asks for its end any more; nothing, once it has been told. */
void completion_undo(struct notified *t);
/* It is done. Fills in the cookie. */
void completion_tell(struct context *ctx, struct notified *t, const struct slmpm_done *done);

/* Before R, from request_new, is submitted: it will be told to how->ctr or how->cq, if there is
 * one. As completion_open; request_drop undoes it. */
int completion_bind(struct request *r, const struct slmpm_how *how, const slmpm_req *req);
/* It is done when R is, which is bound by that. In its place among those posted: T is the newest. */
void completion_pass_on(struct notified *t, struct request *r);
/* R has ended: its counter or queue is told, if it is bound. */
void completion_deliver(struct request *r);

/* The counter and the queue that a region is to notify, {0}: NULL; negative with the detail set.
 * While they are known there each has one user more. */
int completion_find(struct context *ctx, slmpm_ctr ctr, slmpm_cq cq, struct counter **counter,
		    struct queue **queue);
/*
 * A peer's notified put has landed in a region, moved BY: told to the region's counter and queue, or NULL. Who took the packet
 * has added WIRE_ENVELOPE to ep->unmatched_charge and checked it against the credit, as for a
 * message without bytes; that goes back to the peer from here: now, or when it is polled.
 */
void completion_notify(struct counter *counter, struct queue *queue, struct endpoint *ep,
		       uint64_t offset, uint64_t len, uint32_t imm, enum slmpm_protocol by);

/* The context ends: its counters and queues, and requests that have been told. */
void completion_end(struct context *ctx);

#endif
