/* SPDX-License-Identifier: BSD-3-Clause */
/* Work queues: made, moved on, run again, cancelled and ended. */
#include "slmpm/workqueue/workqueue.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/base/sized.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/late.h"
#include "slmpm/engine/engine.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/workqueue/intake.h"
#include "slmpm/workqueue/leaver.h"
#include "slmpm/workqueue/member.h"

#define DEPTH        256
#define DEPTH_MAX    65536
#define CHANNELS     64
#define CHANNELS_MAX 65536

#define OPTIONS                                                                                    \
	(SLMPM_WQ_UNACKNOWLEDGED | SLMPM_WQ_MANAGED | SLMPM_WQ_KEPT | SLMPM_WQ_RECEIVE |           \
	 SLMPM_WQ_SPREAD)

struct handle_table workqueue_table = HANDLE_TABLE_FROM("work queue", struct workqueue, node);

void workqueue_drop(struct workqueue *wq, struct work *w)
{
	if (w->owned)
		free(w->owned);
	w->owned = NULL;
	work_drop(w);
	w->state = WORK_IDLE;
	list_remove(&w->node);
	list_prepend(&wq->idle, &w->node);
	wq->used--;
}

bool workqueue_pending(const struct context *ctx)
{
	LIST_EACH_ENTRY(struct workqueue, wq, &ctx->work_queues, node)
		if (!workqueue_has_ended(wq))
			return true;
	return false;
}

/* ---- enabling, running again ------------------------------------------------------------- */

void workqueue_enable(struct workqueue *wq, uint64_t index)
{
	uint64_t before = wq->enabled;

	if (index <= before)
		return;
	wq->enabled = index;
	receive_enabled(wq, index - before);
	await_inspect(&wq->awaits);
	channels_ready(wq);
}

int slmpm_wq_enable(slmpm_wq handle, uint64_t index)
{
	int rc = 0;
	struct workqueue *wq = workqueue_lock(handle, &rc);

	if (!wq)
		return rc;
	if (wq->flags & SLMPM_WQ_MANAGED)
		workqueue_enable(wq, index);
	else
		rc = error_set(SLMPM_EINVAL, "slmpm_wq_enable: the queue is not SLMPM_WQ_MANAGED");
	(void)workqueue_advance(wq->ctx);
	context_unlock(wq->ctx);
	return rc;
}

static int workqueue_error(const struct workqueue *wq, const char *call)
{
	const struct channel *first = channel_first_stopped(wq);

	return first ? channel_error(first, call) : 0;
}

static int arm(struct workqueue *wq)
{
	int rc = workqueue_error(wq, "slmpm_wq_arm");

	if (!(wq->flags & SLMPM_WQ_KEPT))
		return error_set(SLMPM_EINVAL, "slmpm_wq_arm: the queue is not SLMPM_WQ_KEPT");
	if (rc < 0)
		return rc;
	if (!workqueue_has_ended(wq))
		return error_set(SLMPM_EBUSY, "slmpm_wq_arm: entries that have not ended: %llu",
				 (unsigned long long)(wq->posted - wq->done - wq->failed));
	if (!queue_take_rooms(wq->queue, wq->used))
		return error_set(SLMPM_ENOMEM, "for completions");
	wq->posted += wq->used;
	wq->run += wq->used;
	wait_rearm(wq);
	for (uint32_t i = 0; i < wq->channels_used; i++)
		wq->channels[i].at = wq->channels[i].first;
	await_inspect(&wq->awaits);
	channels_ready(wq);
	return 0;
}

int slmpm_wq_arm(slmpm_wq handle)
{
	int rc = 0;
	struct workqueue *wq = workqueue_lock(handle, &rc);

	if (!wq)
		return rc;
	rc = arm(wq);
	(void)workqueue_advance(wq->ctx);
	workqueue_leave(wq);
	context_unlock(wq->ctx);
	return rc;
}

/* ---- looking, waiting -------------------------------------------------------------------- */

static void workqueue_show(const struct workqueue *wq, struct slmpm_wq_info *info)
{
	const struct channel *first = channel_first_stopped(wq);

	*info = (struct slmpm_wq_info){
		.posted = wq->posted,
		.enabled = wq->flags & SLMPM_WQ_MANAGED ? wq->enabled : wq->posted,
		.begun = wq->begun,
		.done = wq->done,
		.failed = wq->failed,
		.by_engine = wq->by_engine,
	};
	memcpy(info->by_link, wq->spread.bytes, sizeof(wq->spread.bytes));
	for (uint32_t i = 0; i < wq->channels_used; i++) {
		const struct channel *ch = &wq->channels[i];

		info->waiting +=
			ch->at && ch->at->wr.op == SLMPM_OP_WAIT && ch->at->state == WORK_BEGUN;
	}
	if (first) {
		info->status = first->status;
		info->first_failed = first->failed;
		info->channel = (uint32_t)(first - wq->channels);
	}
}

int slmpm_wq_query(slmpm_wq handle, struct slmpm_wq_info *info)
{
	struct slmpm_wq_info now;
	int rc = 0;
	struct workqueue *wq = workqueue_lock(handle, &rc);

	if (!wq)
		return rc;
	rc = sized_check_own("slmpm_wq_query", info, sizeof(now));
	if (rc == 0) {
		workqueue_show(wq, &now);
		sized_give_own(info, &now, sizeof(now));
	}
	context_unlock(wq->ctx);
	return rc;
}

struct draining {
	slmpm_wq handle;
	struct workqueue *wq; /* NULL: another thread has destroyed it */
};

static bool is_drained(void *arg)
{
	struct draining *d = arg;

	if (handle_get(&workqueue_table, d->handle.id) != d->wq)
		d->wq = NULL;
	return !d->wq || workqueue_has_ended(d->wq);
}

int slmpm_wq_drain(slmpm_wq handle, int timeout_ms)
{
	struct draining d = {.handle = handle};
	struct context *ctx;
	int rc = 0;

	d.wq = workqueue_lock(handle, &rc);
	if (!d.wq)
		return rc;
	ctx = d.wq->ctx;
	rc = wait_until(ctx, is_drained, &d, timeout_ms);
	if (!d.wq)
		rc = handle_error(&workqueue_table, handle.id);
	else if (workqueue_has_ended(d.wq))
		rc = workqueue_error(d.wq, "slmpm_wq_drain");
	else if (!context_forbids(ctx, "slmpm_wq_drain"))
		rc = late_error(ctx, NULL, timeout_ms, "%llu of %llu entries have ended",
				(unsigned long long)(d.wq->done + d.wq->failed),
				(unsigned long long)d.wq->posted);
	context_unlock(ctx);
	return rc;
}

/* ---- cancelling -------------------------------------------------------------------------- */

static bool has_entry(const struct workqueue *wq, const struct work *w)
{
	return w->state != WORK_IDLE && (w->state != WORK_WAITS || w->over != wq->run + 1);
}

struct late_entry {      /* why what was to be cancelled is not; all zero: something else */
	uint64_t number; /* the first that has gone too far */
	uint32_t op;
	uint64_t taken; /* entries that CALCs and PIPEs of other queues take */
};

/* False: it has gone too far; or this is a handler inside the call that begins one, perhaps it. */
static bool cancel(const struct workqueue *wq, struct work *w)
{
	if (w->request)
		return !wq->ctx->begins && request_cancel(w->request) == 0;
	if (w->state == WORK_BEGUN && w->wr.op == SLMPM_OP_PIPE)
		return piping_cancel(w);
	if (w->state == WORK_BEGUN && w->wr.op == SLMPM_OP_CALC && w->exchanges)
		return exchange_cancel(w);
	if (w->state == WORK_ENDED ||
	    (w->state == WORK_BEGUN && w->wr.op != SLMPM_OP_WAIT && w->wr.op != SLMPM_OP_CALC))
		return w->state == WORK_ENDED;
	w->cancelled = true;
	return true;
}

/* All entries, or NUMBER: those that have gone too far, of which FIRST is one, if it is no CALC's
 * or PIPE's of another queue; -SLMPM_EINVAL: there is none such. */
static int cancel_those(struct workqueue *wq, uint64_t number, struct late_entry *first)
{
	bool any = !number, before = wq->cancelling; /* a handler may cancel another */
	int late = 0;

	*first = (struct late_entry){.taken = intake_count(wq, number)};
	any |= first->taken;

	wq->cancelling = true;
	for (uint32_t i = 0; i < wq->depth; i++) {
		struct work *w = &wq->work[i];

		if (!has_entry(wq, w) || (number && work_number(wq, w) != number))
			continue;
		any = true;
		if (!cancel(wq, w) && !late++) {
			first->number = work_number(wq, w);
			first->op = w->wr.op;
		}
	}
	for (uint32_t i = 0; i < wq->channels_used; i++)
		(void)channel_advance(&wq->channels[i]);
	wq->cancelling = before;
	return any ? late + (first->taken ? 1 : 0) : -SLMPM_EINVAL;
}

/* What FIRST of them, of WQ, has to do with it. */
static int late_to_cancel(const struct workqueue *wq, const char *call,
			  const struct late_entry *first)
{
	if (first->number)
		return error_set(SLMPM_EBUSY,
				 "%s: entry %llu, %s, has gone too far to be cancelled; it has "
				 "yet to end",
				 call, (unsigned long long)first->number, member_title(first->op));
	if (first->taken)
		return error_set(SLMPM_EBUSY,
				 "%s: a CALC or PIPE of another queue takes %llu of its entries: "
				 "cancel that",
				 call, (unsigned long long)first->taken);
	return error_set(SLMPM_EBUSY, "%s: entries that have not ended: %llu", call,
			 (unsigned long long)(wq->posted - wq->done - wq->failed));
}

int slmpm_wq_cancel(slmpm_wq handle, uint64_t number)
{
	struct late_entry late;
	int rc = 0;
	struct workqueue *wq = workqueue_lock(handle, &rc);

	if (!wq)
		return rc;
	rc = cancel_those(wq, number, &late);
	if (rc < 0)
		rc = error_set(SLMPM_EINVAL, "slmpm_wq_cancel: no entry %llu has yet to end",
			       (unsigned long long)number);
	else if (rc > 0)
		rc = late_to_cancel(wq, "slmpm_wq_cancel", &late);
	context_unlock(wq->ctx);
	return rc;
}

/* All have ended; or -SLMPM_EBUSY with the detail set. */
static int cancel_all(struct workqueue *wq, const char *call)
{
	struct late_entry late;

	if (wq->cancelling || wq->ctx->begins)
		return error_set(SLMPM_EBUSY, "%s: in a handler that runs in another such call",
				 call);
	(void)cancel_those(wq, 0, &late);
	return workqueue_has_ended(wq) ? 0 : late_to_cancel(wq, call, &late);
}

static void drop_all(struct workqueue *wq)
{
	for (uint32_t i = 0; wq->used && i < wq->depth; i++)
		if (wq->work[i].state != WORK_IDLE)
			workqueue_drop(wq, &wq->work[i]);
	for (uint32_t i = 0; i < wq->channels_used; i++) {
		struct channel *ch = &wq->channels[i];

		ch->at = ch->first = ch->last = NULL;
		ch->status = 0;
		ch->failed = 0;
	}
	wq->stopped = 0;
	wait_forget(wq);
	leavers_forget(wq);
}

int slmpm_wq_reset(slmpm_wq handle)
{
	int rc = 0;
	struct workqueue *wq = workqueue_lock(handle, &rc);

	if (!wq)
		return rc;
	rc = cancel_all(wq, "slmpm_wq_reset");
	if (rc == 0)
		drop_all(wq);
	context_unlock(wq->ctx);
	return rc;
}

/* ---- life -------------------------------------------------------------------------------- */

/* Its receives are answered in any case, and go by no link of its choice. */
static int check_receive(const struct slmpm_wq_options *o)
{
	uint32_t bad = o->flags & (SLMPM_WQ_SPREAD | SLMPM_WQ_UNACKNOWLEDGED);

	if (bad)
		return error_set(SLMPM_EINVAL,
				 "slmpm_wq_create: SLMPM_WQ_%s is for what is sent: not with "
				 "SLMPM_WQ_RECEIVE",
				 bad & SLMPM_WQ_SPREAD ? "SPREAD" : "UNACKNOWLEDGED");
	if (o->channels > 1)
		return error_set(SLMPM_EINVAL,
				 "slmpm_wq_create: a receive queue has one channel, not %u",
				 o->channels);
	return 0;
}

static int check_options(const struct slmpm_wq_options *o, const slmpm_wq *out)
{
	if (!out)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: no place for the handle");
	if (o->flags & ~OPTIONS)
		return error_set(SLMPM_EINVAL,
				 "slmpm_wq_create: flags 0x%x: there is no 0x%x, only "
				 "SLMPM_WQ_UNACKNOWLEDGED, MANAGED, KEPT, RECEIVE and SPREAD",
				 o->flags, o->flags & ~OPTIONS);
	if (o->depth > DEPTH_MAX)
		return error_set(SLMPM_ELIMIT, "slmpm_wq_create: a depth of %u, at most %u",
				 o->depth, DEPTH_MAX);
	if (o->channels > CHANNELS_MAX)
		return error_set(SLMPM_ELIMIT, "slmpm_wq_create: %u channels, at most %u",
				 o->channels, CHANNELS_MAX);
	if (!o->cq.id)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: no completion queue: set .cq");
	if (o->reserved)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: .reserved is %u, not 0",
				 o->reserved);
	if (o->flags & SLMPM_WQ_RECEIVE)
		return check_receive(o);
	if (o->peer.id || o->stream)
		return error_set(SLMPM_EINVAL,
				 "slmpm_wq_create: %s is set, which is a receive queue's: without "
				 "SLMPM_WQ_RECEIVE each request names its own",
				 o->peer.id ? ".peer" : ".stream");
	return 0;
}

static int take_options(struct slmpm_wq_options *o, const struct slmpm_wq_options *given,
			slmpm_wq *out)
{
	int rc = sized_take("slmpm_wq_create", o, given, sizeof(*o));

	if (rc == 0)
		rc = check_options(o, out);
	if (rc < 0)
		return rc;
	o->depth = o->depth ? o->depth : DEPTH;
	if (!o->channels)
		o->channels = o->flags & SLMPM_WQ_RECEIVE ? 1 : CHANNELS;
	return 0;
}

static void drop_queue(struct workqueue *wq)
{
	workqueue_show_end(wq);
	if (wq->work)
		drop_all(wq);
	receive_release(wq);
	if (wq->queue)
		wq->queue->users--;
	if (wq->counter)
		wq->counter->users--;
	for (uint32_t i = 0; wq->channels && i < wq->channels_used; i++)
		list_remove(&wq->channels[i].node);
	free(wq->work);
	free(wq->channels);
	wq->work = NULL;
	wq->channels = NULL;
	list_remove(&wq->node);
	handle_free(&workqueue_table, wq);
}

static void make_channels(struct workqueue *wq)
{
	for (uint32_t i = 0; i < wq->channel_count; i++) {
		struct channel *ch = &wq->channels[i];

		ch->wq = wq;
		list_init(&ch->node);
		list_init(&ch->begun);
		list_init(&ch->await.node);
		list_init(&ch->timed);
	}
}

static struct workqueue *workqueue_new(struct context *ctx, const struct slmpm_wq_options *o)
{
	struct workqueue *wq = handle_new(&workqueue_table);

	if (!wq)
		return NULL;
	context_own(&wq->ctx, ctx);
	wq->flags = o->flags;
	wq->depth = o->depth;
	wq->channel_count = o->channels;
	list_init(&wq->awaits);
	list_init(&wq->subjects);
	list_init(&wq->idle);
	list_init(&wq->receives);
	list_init(&wq->leavers);
	list_init(&wq->receive.reservations);
	list_init(&wq->receive.claims);
	list_init(&wq->receive.takers);
	list_init(&wq->receive.taking);
	list_init(&wq->involved);
	list_append(&ctx->work_queues, &wq->node);
	wq->work = calloc(o->depth, sizeof(*wq->work));
	wq->channels = calloc(o->channels, sizeof(*wq->channels));
	if (!wq->work || !wq->channels) {
		wq->depth = 0;
		drop_queue(wq);
		return NULL;
	}
	make_channels(wq);
	wq->inner.ctx = ctx;
	wq->inner.pass_on = entry_ended;
	wq->inner.bound = entry_bound;
	return wq;
}

int slmpm_wq_create(slmpm_ctx handle, const struct slmpm_wq_options *given, slmpm_wq *out)
{
	struct workqueue *wq = NULL;
	struct slmpm_wq_options o;
	struct counter *counter;
	struct queue *queue;
	struct context *ctx;
	int rc = take_options(&o, given, out);

	if (rc < 0)
		return rc;
	ctx = context_get(handle, &rc);
	if (!ctx)
		return rc;
	context_lock(ctx);
	rc = completion_find(ctx, o.ctr, o.cq, &counter, &queue);
	if (rc == 0) /* it runs them while the application does something else */
		rc = engine_stand_by(ctx);
	if (rc == 0 && !(wq = workqueue_new(ctx, &o)))
		rc = error_set(SLMPM_ENOMEM, "for a work queue");
	if (rc == 0 && (rc = receive_bind(wq, &o)) < 0)
		drop_queue(wq);
	if (rc == -SLMPM_EAGAIN) /* who tries again and again does so, too */
		(void)progress_context(ctx);
	if (rc == 0) {
		wq->queue = queue;
		queue->users++;
		wq->counter = counter;
		wq->ctr = o.ctr;
		if (counter)
			counter->users++;
		out->id = handle_id(wq);
		workqueue_show_begin(wq);
		if (ctx->parked && o.flags & SLMPM_WQ_RECEIVE && o.flags & SLMPM_WQ_MANAGED)
			engine_come_in(ctx); /* what no entry may take is to be refused */
	}
	context_unlock(ctx);
	return rc;
}

int workqueue_hide(slmpm_wq handle)
{
	int rc = 0;
	struct workqueue *wq = workqueue_lock(handle, &rc);

	if (!wq)
		return rc;
	workqueue_show_end(wq);
	context_unlock(wq->ctx);
	return 0;
}

int slmpm_wq_destroy(slmpm_wq handle)
{
	int rc = 0;
	struct workqueue *wq = workqueue_lock(handle, &rc);
	struct context *ctx;

	if (!wq)
		return rc;
	ctx = wq->ctx;
	rc = cancel_all(wq, "slmpm_wq_destroy");
	if (rc == 0) { /* its own entries may name it */
		drop_all(wq);
		if (wq->users)
			rc = error_set(SLMPM_EBUSY, "slmpm_wq_destroy: entries of another work "
						    "queue name it");
		else
			drop_queue(wq);
	}
	context_changed(ctx); /* who waits for it learns that it is gone */
	context_unlock(ctx);
	return rc;
}

void workqueue_shut(struct context *ctx)
{
	struct late_entry late;

	LIST_EACH(at, &ctx->work_queues)
		(void)cancel_those(LIST_ENTRY(at, struct workqueue, node), 0, &late);
	LIST_EACH(at, &ctx->work_queues)
		drop_queue(LIST_ENTRY(at, struct workqueue, node));
}
