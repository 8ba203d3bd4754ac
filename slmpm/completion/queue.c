/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: made, polled, waited for, and ended. */
#include "slmpm/completion/queue.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/completion/completion.h"
#include "slmpm/base/error.h"
#include "slmpm/base/sized.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/link/idle.h"

#define ROOM_FIRST 16

struct queue_detail {
	struct list node;
	char text[];
};

struct handle_table queue_table = HANDLE_TABLE_FROM("completion queue", struct queue, node);

int slmpm_cq_create(slmpm_ctx handle, slmpm_cq *out)
{
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);
	struct queue *q;

	if (!ctx)
		return rc;
	if (!out)
		return error_set(SLMPM_EINVAL, "slmpm_cq_create: no place for the handle");
	context_lock(ctx);
	q = handle_new(&queue_table);
	if (q) {
		context_own(&q->ctx, ctx);
		q->head = q->tail = ctx->shape.start;
		list_init(&q->awaits);
		list_init(&q->details);
		list_append(&ctx->queues, &q->node);
		out->id = handle_id(q);
	} else {
		rc = error_set(SLMPM_ENOMEM, "for a completion queue");
	}
	context_unlock(ctx);
	return rc;
}

static void drop_detail(struct queue_detail *d)
{
	list_remove(&d->node);
	free(d);
}

void queue_free(struct queue *q)
{
	list_remove(&q->node);
	LIST_EACH_ENTRY(struct queue_detail, d, &q->details, node)
		drop_detail(d);
	free(q->ring);
	q->ring = NULL;
	handle_free(&queue_table, q);
}

static bool queue_grow(struct queue *q)
{
	uint64_t size = q->size ? q->size * 2 : ROOM_FIRST;
	struct slmpm_done *ring = malloc(size * sizeof(*ring));

	if (!ring)
		return false;
	for (uint64_t at = q->head; at != q->tail; at++)
		completion_copy(&ring[at & (size - 1)], &q->ring[at & (q->size - 1)]);
	free(q->ring);
	q->ring = ring;
	q->size = size;
	return true;
}

bool queue_take_rooms(struct queue *q, uint64_t n)
{
	while (UNLIKELY(q->tail - q->head + q->in_flight + n > q->size) && !q->pass_on)
		if (!queue_grow(q))
			return false;
	q->in_flight += n;
	return true;
}

void queue_put(struct queue *q, const struct slmpm_done *done)
{
	completion_copy(queue_next(q), done);
	await_inspect(&q->awaits);
}

bool queue_put_detail(struct queue *q)
{
	const char *text = slmpm_error_detail();
	size_t size = strlen(text) + 1;
	struct queue_detail *d = malloc(sizeof(*d) + size);

	if (!d)
		return false;
	memcpy(d->text, text, size);
	list_append(&q->details, &d->node);
	return true;
}

/* A notification was kept at the peer's expense. */
static void give_credit(const struct slmpm_done *done)
{
	struct endpoint *ep = endpoint_of(done->peer);

	if (ep)
		link_discharge(ep, WIRE_ENVELOPE);
}

/* What a call that had waited for it would say, it says. */
static NOINLINE void take_aside(struct queue *q, struct slmpm_done *done)
{
	struct queue_detail *d = LIST_ENTRY(q->details.next, struct queue_detail, node);

	done->op &= ~QUEUE_ASIDE;
	if (done->op == SLMPM_OP_NOTIFY) {
		give_credit(done);
		return;
	}
	error_restore(d->text);
	drop_detail(d);
}

static inline int queue_take(struct queue *q, struct slmpm_done *done, int n)
{
	int taken = 0;

	for (; taken < n && q->head != q->tail; taken++, done++) {
		completion_copy(done, &q->ring[q->head++ & (q->size - 1)]);
		if (UNLIKELY(done->op & QUEUE_ASIDE))
			take_aside(q, done);
	}
	return taken;
}

static int bad_place(const char *call, const struct slmpm_done *done, int n)
{
	return error_set(SLMPM_EINVAL, "%s: room for %d completions at %p", call, n,
			 (const void *)done);
}

/* It is empty. */
static NOINLINE int poll_anew(struct queue *q, struct slmpm_done *done, int n)
{
	struct context *ctx = q->ctx;
	int rc;

	if (ctx->armed && !ctx->sleeping)
		wait_disarm(ctx);
	(void)progress_context(ctx);
	rc = queue_take(q, done, n);
	if (rc == 0)
		yield_poll(ctx);
	return rc;
}

int slmpm_cq_poll(slmpm_cq cq, struct slmpm_done *done, int n)
{
	int rc = 0;
	struct queue *q = CONTEXT_LOCK_OBJECT(&queue_table, struct queue, cq.id, &rc);
	struct context *ctx;

	if (!q)
		return rc;
	ctx = q->ctx;
	if (UNLIKELY(!done || n <= 0))
		rc = bad_place("slmpm_cq_poll", done, n);
	else if (q->head != q->tail)
		rc = queue_take(q, done, n);
	else
		rc = poll_anew(q, done, n);
	context_unlock(ctx);
	return rc;
}

int queue_take_come(slmpm_cq cq, struct slmpm_done *done, int n)
{
	int rc = 0;
	struct queue *q = CONTEXT_LOCK_OBJECT(&queue_table, struct queue, cq.id, &rc);

	if (!q)
		return rc;
	rc = queue_take(q, done, n);
	context_unlock(q->ctx);
	return rc;
}

struct polling {
	slmpm_cq cq;
	struct queue *queue; /* NULL: another thread has destroyed it */
	struct context *ctx;
	int ended; /* nothing can come any more */
};

static bool has_completion(void *arg)
{
	struct polling *w = arg;

	if (handle_get(&queue_table, w->cq.id) != w->queue)
		w->queue = NULL;
	if (!w->queue || w->queue->head != w->queue->tail)
		return true;
	if (!w->queue->in_flight)
		w->ended = completion_source_ended(w->ctx);
	return w->ended < 0;
}

int slmpm_cq_wait(slmpm_cq cq, struct slmpm_done *done, int n, int timeout_ms)
{
	struct polling w = {.cq = cq};
	int rc = 0;

	w.queue = context_lock_object(&queue_table, cq.id, &rc);
	if (!w.queue)
		return rc;
	w.ctx = w.queue->ctx;
	if (!done || n <= 0) {
		rc = bad_place("slmpm_cq_wait", done, n);
	} else {
		int waited = wait_until(w.ctx, has_completion, &w, timeout_ms);

		rc = w.queue ? queue_take(w.queue, done, n) : handle_error(&queue_table, cq.id);
		if (rc == 0 && w.ended < 0)
			rc = completion_source_ended(w.ctx);
		else if (rc == 0 && waited == -SLMPM_ETIMEOUT)
			rc = late_error(w.ctx, NULL, timeout_ms, "slmpm_cq_wait: no completion");
		else if (rc == 0)
			rc = context_forbids(w.ctx, "slmpm_cq_wait");
	}
	context_unlock(w.ctx);
	return rc;
}

int slmpm_cq_query(slmpm_cq cq, struct slmpm_cq_info *info)
{
	struct slmpm_cq_info now = {0};
	int rc = 0;
	struct queue *q = context_lock_object(&queue_table, cq.id, &rc);

	if (!q)
		return rc;
	rc = sized_check_own("slmpm_cq_query", info, sizeof(now));
	if (rc == 0) {
		now.total = q->tail - q->ctx->shape.start;
		now.taken = q->head - q->ctx->shape.start;
		sized_give_own(info, &now, sizeof(now));
	}
	context_unlock(q->ctx);
	return rc;
}

static void drop_first(struct queue *q)
{
	const struct slmpm_done *done = &q->ring[q->head++ & (q->size - 1)];

	if (done->op == (SLMPM_OP_NOTIFY | QUEUE_ASIDE))
		give_credit(done);
}

int slmpm_cq_destroy(slmpm_cq cq)
{
	int rc = 0;
	struct queue *q = context_lock_object(&queue_table, cq.id, &rc);
	struct context *ctx;

	if (!q)
		return rc;
	ctx = q->ctx;
	if (q->in_flight || q->users) {
		rc = error_set(SLMPM_EBUSY, "slmpm_cq_destroy: %s",
			       q->users ? "a region or a work queue ends here" :
					  "operations are under way");
	} else {
		while (q->head != q->tail)
			drop_first(q);
		queue_free(q);
	}
	context_changed(ctx); /* who waits for it learns that it is gone */
	context_unlock(ctx);
	return rc;
}
