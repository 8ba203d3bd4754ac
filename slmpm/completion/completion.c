/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions: from the operation that has ended to the counter or queue that wants to know. */
#include "slmpm/completion/completion.h"

#include "slmpm/base/error.h"
#include "slmpm/base/sized.h"
#include "slmpm/link/link.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/completion/queue.h"
#include "slmpm/part.h"
#include "slmpm/request.h"
#include "slmpm/link/wait.h"

int how_take(const char *call, struct slmpm_how *full, const struct slmpm_how *how, uint32_t flags)
{
	if (!how) {
		*full = (struct slmpm_how){.size = sizeof(*full), .timeout_ms = -1};
		return 0;
	}
	if (LIKELY(how->size == sizeof(*full)))
		*full = *how;
	else if (sized_take(call, full, how, sizeof(*full)) < 0)
		return -SLMPM_EINVAL;
	if (full->flags & ~flags || !mode_hint_is_sound(full->flags))
		return error_set(SLMPM_EINVAL, "%s: flags 0x%x", call, full->flags);
	return 0;
}

int completion_source_ended(struct context *ctx)
{
	return parts.pending(ctx) ? 0 : context_source_ended(ctx, NULL);
}

int completion_find(struct context *ctx, slmpm_ctr ctr, slmpm_cq cq, struct counter **counter,
		    struct queue **queue)
{
	*counter = ctr.id ? handle_get(&counter_table, ctr.id) : NULL;
	*queue = cq.id == QUEUE_THAT_BEGINS ? ctx->begins :
		 cq.id                      ? handle_get(&queue_table, cq.id) :
					      NULL;
	if (ctr.id && !*counter)
		return handle_error(&counter_table, ctr.id);
	if (cq.id && !*queue)
		return handle_error(&queue_table, cq.id);
	if ((*counter && (*counter)->ctx != ctx) || (*queue && (*queue)->ctx != ctx))
		return error_set(SLMPM_EINVAL, "the %s belongs to another context",
				 *counter && (*counter)->ctx != ctx ? "counter" :
								      "completion queue");
	return 0;
}

int completion_open(struct notified *t, struct context *ctx, const struct slmpm_how *how,
		    const slmpm_req *req)
{
	struct counter *counter;
	struct queue *queue;
	int rc;

	*t = (struct notified){.counter = NULL};
	if (!completion_wanted(how))
		return 0;
	if ((how->ctr.id && how->cq.id) || req)
		return error_set(SLMPM_EINVAL,
				 "only one of a request, a counter and a completion queue");
	rc = completion_find(ctx, how->ctr, how->cq, &counter, &queue);
	if (rc < 0)
		return rc;
	if (queue && !queue_take_room(queue))
		return error_set(SLMPM_ENOMEM, "for a completion");
	if (counter) {
		counter->posted++;
		t->ticket = ++counter->tickets;
		list_append(&counter->in_flight, &t->node);
	}
	t->counter = counter;
	t->queue = queue;
	t->cookie = how->cookie;
	return 0;
}

void completion_undo(struct notified *t)
{
	if (t->counter) {
		list_remove(&t->node);
		t->counter->posted--;
	}
	if (t->queue)
		t->queue->in_flight--;
	t->counter = NULL;
	t->queue = NULL;
}

void completion_done(struct context *ctx, struct notified *t, const struct slmpm_done *done)
{
	if (t->counter) {
		list_remove(&t->node);
		counter_end(t->counter, done->status);
	} else if (t->queue && t->queue->pass_on) {
		t->queue->in_flight--;
		t->queue->pass_on(t->queue, t->cookie, done);
	} else if (t->queue) {
		struct slmpm_done notified;

		completion_copy(&notified, done);
		notified.cookie = t->cookie;
		queue_put(t->queue, &notified);
	}
	t->counter = NULL;
	t->queue = NULL;
	ctx->news = true;
	context_told(ctx);
}

/* T is R's from now on: a work queue learns it, to take it back by. */
static void notified_bound(struct notified *t, struct request *r)
{
	r->bound = true;
	if (t->queue && t->queue->bound)
		t->queue->bound(t->queue, t->cookie, r);
}

/* ---- requests ---------------------------------------------------------------------------- */

/* Those that have been told: whoever finished them has released them by now. */
static void drop_spent(struct context *ctx)
{
	LIST_EACH(at, &ctx->spent) {
		list_remove(at);
		request_drop(LIST_ENTRY(at, struct request, node));
	}
}

int completion_bind(struct request *r, const struct slmpm_how *how, const slmpm_req *req)
{
	int rc;

	if (!completion_wanted(how))
		return 0;
	drop_spent(r->ctx);
	rc = completion_open(&r->notified, r->ctx, how, req);
	if (rc == 0)
		notified_bound(&r->notified, r);
	return rc;
}

void completion_pass_on(struct notified *t, struct request *r)
{
	drop_spent(r->ctx);
	r->notified = *t;
	notified_bound(&r->notified, r);
	if (t->counter) {
		list_remove(&t->node);
		list_append(&t->counter->in_flight, &r->notified.node);
	}
	t->counter = NULL;
	t->queue = NULL;
}

/* By the thread's detail. */
static COLD void done_with_detail(struct context *ctx, struct notified *t,
				  const struct slmpm_done *done)
{
	struct slmpm_done failed;

	completion_copy(&failed, done);
	if (t->queue && !t->queue->pass_on && queue_put_detail(t->queue))
		failed.op |= QUEUE_ASIDE;
	completion_done(ctx, t, &failed);
}

/* The thread may be another one than that which takes it from the queue, and has failed in
 * nothing itself. */
static COLD void deliver_failed(struct request *r)
{
	char own[ERROR_DETAIL];

	error_save(own);
	(void)request_explain(r);
	done_with_detail(r->ctx, &r->notified, &r->result);
	error_restore(own);
}

void completion_failed(struct context *ctx, struct notified *t, const struct slmpm_done *done,
		       const char *why)
{
	char own[ERROR_DETAIL];

	error_save(own);
	(void)error_set(-done->status, "%s", why);
	done_with_detail(ctx, t, done);
	error_restore(own);
}

void completion_deliver(struct request *r)
{
	const struct queue *q = r->notified.queue;

	if (UNLIKELY(r->result.status < 0) && q && !q->pass_on)
		deliver_failed(r);
	else
		completion_done(r->ctx, &r->notified, &r->result);
	list_append(&r->ctx->spent, &r->node);
}

void completion_notify(struct counter *counter, struct queue *queue, struct endpoint *ep,
		       uint64_t offset, uint64_t len, uint32_t imm, enum slmpm_protocol by)
{
	struct slmpm_done done = {
		.len = len,
		.imm = imm,
		.peer = {handle_id(ep)},
		.cookie = offset,
		.op = SLMPM_OP_NOTIFY | QUEUE_ASIDE,
		.protocol = (uint16_t)by,
	};

	ep->stats->notifications++;
	if (counter) {
		counter->posted++;
		counter_end(counter, 0);
	}
	if (queue && !queue_take_room(queue)) {
		endpoint_no_memory(ep);
		return;
	}
	if (queue)
		queue_put(queue, &done);
	else
		link_discharge(ep, WIRE_ENVELOPE);
	ep->ctx->news = true;
	context_changed(ep->ctx);
}

/* ---- what a link that lags has taken leaves this process later --------------------------- */

struct leaving {
	struct endpoint *ep;
	uint64_t id; /* another thread may free it */
	struct link_mark mark;
};

/* What others send behind it is not waited for. */
static bool leaving_has_left(void *arg)
{
	const struct leaving *l = arg;

	return handle_id(l->ep) != l->id || link_passed(l->ep, &l->mark);
}

void leaving_await(struct endpoint *ep, int timeout_ms)
{
	struct leaving l = {.ep = ep, .id = handle_id(ep)};

	if (ep->ctx->handling)
		return;
	link_mark(ep, &l.mark);
	(void)wait_until(ep->ctx, leaving_has_left, &l, timeout_ms);
}

bool leaving_notify(struct endpoint *ep, struct notified *notified, const struct slmpm_done *done)
{
	struct request *r = request_new(ep->ctx);

	if (!r)
		return false;
	(void)request_init(r, REQUEST_SEND, ep->ctx, ep, done->stream, NULL, 0);
	completion_pass_on(notified, r);
	completion_copy(&r->result, done);
	r->length = r->offset = done->len;
	r->seq = ep->sent;
	r->numbered = true;
	link_enqueue(ep, r);
	link_streams(ep, r);
	return true;
}

void completion_end(struct context *ctx)
{
	drop_spent(ctx);
	LIST_EACH(at, &ctx->counters)
		counter_free(LIST_ENTRY(at, struct counter, node));
	LIST_EACH(at, &ctx->queues)
		queue_free(LIST_ENTRY(at, struct queue, node));
}
