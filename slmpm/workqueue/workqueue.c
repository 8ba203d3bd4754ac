/* SPDX-License-Identifier: BSD-3-Clause */
/* Work queues: made, posted to, moved on, and ended. */
#include "slmpm/workqueue/workqueue.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/completion/completion.h"
#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/base/sized.h"

#define DEPTH     256
#define DEPTH_MAX 65536

struct handle_table workqueue_table = HANDLE_TABLE_FROM("work queue", struct workqueue, node);

/* ---- beginning one ----------------------------------------------------------------------- */

/* Messages that are staged must leave before what is not one begins. */
static bool workqueue_staged(struct endpoint *ep, uint32_t op)
{
	if (op == SLMPM_OP_SEND || op == SLMPM_OP_AM || !ep->bundle.count)
		return false;
	(void)link_push(ep);
	return ep->bundle.count > 0;
}

static bool may_begin(const struct workqueue *wq, struct endpoint *ep, const struct slmpm_wr *wr)
{
	enum work_kind kind = work_kind_of(wr);

	if (wq->ctx->begins /* one begins just now */ || workqueue_staged(ep, wr->op))
		return false;
	return list_empty(&wq->begun) || (kind == wq->kind && kind != WORK_ALONE);
}

static void retire(struct workqueue *wq, struct work *w)
{
	free(w->owned);
	w->owned = NULL;
	list_remove(&w->node);
	list_append(&wq->idle, &w->node);
	wq->used--;
}

/* 0, or why not: then it is where it was before. */
static int workqueue_start(struct workqueue *wq, struct work *w)
{
	struct queue *before = wq->ctx->begins; /* a handler may post a receive meanwhile */
	int rc;

	if (w->wr.op != SLMPM_OP_RECV) {
		list_remove(&w->node);
		list_append(&wq->begun, &w->node);
		wq->kind = work_kind_of(&w->wr);
	}
	wq->ctx->begins = &wq->inner;
	rc = work_begin(&w->wr, wq->peer, (uint64_t)(w - wq->work));
	wq->ctx->begins = before;
	return rc;
}

/* ---- ends -------------------------------------------------------------------------------- */

static void deliver(struct workqueue *wq, struct work *w)
{
	w->done.cookie = w->wr.cookie;
	if (w->wr.flags & SLMPM_SILENT && w->done.status >= 0)
		wq->queue->in_flight--;
	else
		queue_put(wq->queue, &w->done);
	retire(wq, w);
}

/* Of those that have begun, the first are told. */
static void deliver_ended(struct workqueue *wq)
{
	while (!list_empty(&wq->begun)) {
		struct work *w = LIST_ENTRY(wq->begun.next, struct work, node);

		if (!w->ended)
			return;
		deliver(wq, w);
	}
}

/* An operation of the queue is done; its cookie is the number of its work. */
static void work_ended(struct queue *inner, const struct slmpm_done *done)
{
	struct workqueue *wq = LIST_ENTRY(inner, struct workqueue, inner);
	struct work *w = &wq->work[done->cookie];

	completion_copy(&w->done, done);
	w->ended = true;
	if (w->wr.op == SLMPM_OP_RECV)
		deliver(wq, w);
	else
		deliver_ended(wq);
}

/* One that waited cannot begin. */
static void workqueue_own_fail(struct workqueue *wq, struct work *w, int status)
{
	const struct slmpm_done done = {
		.status = status,
		.op = w->wr.op,
		.stream = w->wr.stream,
		.peer = wq->peer,
		.cookie = (uint64_t)(w - wq->work),
	};

	list_remove(&w->node);
	list_append(&wq->begun, &w->node);
	work_ended(&wq->inner, &done);
	wq->ctx->news = true;
}

static int workqueue_own_advance(struct workqueue *wq, struct endpoint *ep)
{
	int n = 0;

	while (!list_empty(&wq->waiting)) {
		struct work *w = LIST_ENTRY(wq->waiting.next, struct work, node);
		int rc;

		if (!may_begin(wq, ep, &w->wr))
			break;
		endpoint_block(ep, BLOCK_WORK, --ep->work_waiting);
		rc = workqueue_start(wq, w);
		if (rc < 0)
			workqueue_own_fail(wq, w, rc);
		n++;
	}
	return n;
}

int workqueue_advance(struct endpoint *ep)
{
	uint64_t id = handle_id(ep);
	int n = 0;

	if (!ep->work_waiting)
		return 0;
	LIST_EACH_ENTRY(struct workqueue, wq, &ep->ctx->work_queues, node)
		if (wq->peer.id == id)
			n += workqueue_own_advance(wq, ep);
	return n;
}

void workqueue_fail(struct endpoint *ep)
{
	uint64_t id = handle_id(ep);

	LIST_EACH_ENTRY(struct workqueue, wq, &ep->ctx->work_queues, node)
		while (wq->peer.id == id && !list_empty(&wq->waiting))
			workqueue_own_fail(wq, LIST_ENTRY(wq->waiting.next, struct work, node),
					   -ep->life->error);
	ep->work_waiting = 0;
}

/* ---- posting ----------------------------------------------------------------------------- */

static int wait_turn(struct workqueue *wq, struct endpoint *ep, struct work *w)
{
	if (!work_keep(w))
		return error_set(SLMPM_ENOMEM, "for a work request");
	list_append(&wq->waiting, &w->node);
	ep->work_waiting++;
	endpoint_block(ep, BLOCK_WORK, true);
	return 0;
}

static int workqueue_take(struct workqueue *wq, struct endpoint *ep, const struct slmpm_wr *wr)
{
	struct work *w = LIST_ENTRY(wq->idle.next, struct work, node);
	int rc;

	if (wq->used == wq->depth)
		return error_set(SLMPM_EAGAIN, "%u work requests are under way", wq->used);
	rc = work_check(wr, wq->peer);
	if (rc < 0)
		return rc;
	if (!queue_take_room(wq->queue))
		return error_set(SLMPM_ENOMEM, "for a completion");
	wq->used++;
	list_remove(&w->node);
	memcpy(&w->wr, wr, offsetof(struct slmpm_wr, reserved));
	w->ended = false;
	if (w->wr.op != SLMPM_OP_RECV && !(wr->flags & SLMPM_ON_LINK_MASK))
		w->wr.flags |= wq->hint;
	if (wr->op == SLMPM_OP_PUT && !(wq->flags & SLMPM_WQ_UNACKNOWLEDGED))
		w->wr.flags |= SLMPM_REMOTE;
	if (w->wr.op == SLMPM_OP_RECV || (list_empty(&wq->waiting) && may_begin(wq, ep, &w->wr)))
		rc = workqueue_start(wq, w);
	else
		rc = wait_turn(wq, ep, w);
	if (rc < 0) {
		wq->queue->in_flight--;
		retire(wq, w);
	}
	return rc;
}

int slmpm_post(slmpm_wq handle, const struct slmpm_wr *wr, int n)
{
	int rc = 0, taken = 0;
	struct workqueue *wq = context_lock_object(&workqueue_table, handle.id, &rc);
	struct endpoint *ep;

	if (!wq)
		return rc;
	ep = endpoint_of(wq->peer);
	if (!wr || n <= 0)
		rc = error_set(SLMPM_EINVAL, "slmpm_post: %d work requests at %p", n,
			       (const void *)wr);
	else if (!ep)
		rc = endpoint_bad_handle(wq->peer);
	else if (ep->state != SLMPM_PEER_UP && ep->state != SLMPM_PEER_CONNECTING)
		rc = endpoint_error(ep);
	while (rc == 0 && taken < n) {
		rc = workqueue_take(wq, ep, &wr[taken]);
		taken += rc == 0;
	}
	context_unlock(wq->ctx);
	return taken ? taken : rc;
}

/* ---- life -------------------------------------------------------------------------------- */

static int take_options(struct slmpm_wq_options *o, const struct slmpm_wq_options *given,
			slmpm_wq *out)
{
	int rc = sized_take("slmpm_wq_create", o, given, sizeof(*o));

	if (rc < 0)
		return rc;
	if (!out)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: no place for the handle");
	if (o->flags & ~SLMPM_WQ_UNACKNOWLEDGED)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: flags 0x%x", o->flags);
	if (o->reserved)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: .reserved is %u, not 0",
				 o->reserved);
	if (o->depth > DEPTH_MAX)
		return error_set(SLMPM_ELIMIT, "slmpm_wq_create: depth %u, at most %u", o->depth,
				 DEPTH_MAX);
	if (!o->cq.id)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: no completion queue");
	return 0;
}

static void drop_queue(struct workqueue *wq)
{
	if (wq->queue)
		wq->queue->users--;
	for (uint32_t i = 0; wq->work && i < wq->depth; i++)
		free(wq->work[i].owned);
	free(wq->work);
	wq->work = NULL;
	list_remove(&wq->node);
	handle_free(&workqueue_table, wq);
}

static struct workqueue *workqueue_new(struct context *ctx, uint32_t depth)
{
	struct workqueue *wq = handle_new(&workqueue_table);

	if (!wq)
		return NULL;
	wq->ctx = ctx;
	wq->depth = depth;
	list_init(&wq->waiting);
	list_init(&wq->begun);
	list_init(&wq->idle);
	list_append(&ctx->work_queues, &wq->node);
	wq->work = calloc(depth, sizeof(*wq->work));
	if (!wq->work) {
		drop_queue(wq);
		return NULL;
	}
	wq->inner.ctx = ctx;
	wq->inner.pass_on = work_ended;
	for (uint32_t i = 0; i < depth; i++)
		list_append(&wq->idle, &wq->work[i].node);
	return wq;
}

int slmpm_wq_create(slmpm_peer peer, const struct slmpm_wq_options *given, slmpm_wq *out)
{
	struct endpoint *ep = endpoint_of(peer);
	struct slmpm_wq_options o;
	struct workqueue *wq = NULL;
	struct counter *none;
	struct queue *queue;
	struct context *ctx;
	int rc = take_options(&o, given, out);

	if (rc < 0)
		return rc;
	if (!ep || !endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	rc = completion_find(ctx, (slmpm_ctr){0}, o.cq, &none, &queue);
	if (rc == 0 && ep->state != SLMPM_PEER_UP && ep->state != SLMPM_PEER_CONNECTING)
		rc = endpoint_error(ep);
	if (rc == 0 && !(wq = workqueue_new(ctx, o.depth ? o.depth : DEPTH)))
		rc = error_set(SLMPM_ENOMEM, "for a work queue");
	if (rc == 0) {
		wq->peer = endpoint_plain(peer);
		wq->hint = endpoint_hint(peer);
		wq->queue = queue;
		wq->flags = o.flags;
		queue->users++;
		out->id = handle_id(wq);
	}
	context_unlock(ctx);
	return rc;
}

int slmpm_wq_destroy(slmpm_wq handle)
{
	int rc = 0;
	struct workqueue *wq = context_lock_object(&workqueue_table, handle.id, &rc);
	struct context *ctx;

	if (!wq)
		return rc;
	ctx = wq->ctx;
	if (wq->used)
		rc = error_set(SLMPM_EBUSY, "slmpm_wq_destroy: %u work requests are under way",
			       wq->used);
	else
		drop_queue(wq);
	context_unlock(ctx);
	return rc;
}

void workqueue_shut(struct context *ctx)
{
	LIST_EACH(at, &ctx->work_queues)
		drop_queue(LIST_ENTRY(at, struct workqueue, node));
}
