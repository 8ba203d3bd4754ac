/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues in the statistics page of their context, for other processes: their totals, and what
 * their channels wait for. Nothing is noted where entries begin: since when one waits is when it
 * was seen first.
 */
#include <string.h>

#include "slmpm/base/clock.h"
#include "slmpm/stats.h"
#include "slmpm/workqueue/workqueue.h"

/* The entry at which CH stands and waits; or NULL. */
static const struct work *waits_at(const struct channel *ch)
{
	const struct work *w = ch->at;

	if (!w || ch->status)
		return NULL;
	if (w->wr.op == SLMPM_OP_WAIT)
		return w->state == WORK_BEGUN ? w : NULL;
	if (list_empty(&ch->await.node))
		return NULL;
	return w->waited || named_is(w->wr.peer) ? w : NULL;
}

static void name_subject(const struct slmpm_wr *wr, struct slmpm_stats_wait *wait)
{
	if (wr->op != SLMPM_OP_WAIT && named_is(wr->peer) && !named_endpoint(wr->peer)) {
		wait->kind = SLMPM_SUBJECT_PEER;
		wait->subject = wr->peer.id;
	} else if (wr->op != SLMPM_OP_WAIT) {
		wait->kind = SLMPM_SUBJECT_RECEIVE;
		wait->subject = wr->peer.id;
		wait->index = wr->stream;
	} else if (wr->wq.id) {
		wait->kind = SLMPM_SUBJECT_WQ;
		wait->subject = wr->wq.id;
		wait->index = wr->index;
	} else if (wr->cq.id) {
		wait->kind = SLMPM_SUBJECT_CQ;
		wait->subject = wr->cq.id;
	} else {
		wait->kind = SLMPM_SUBJECT_COUNTER;
		wait->subject = wr->ctr.id;
	}
}

/* When what waits now, as NEXT says, was seen first. */
static uint64_t since(const struct slmpm_stats_queue *before, const struct slmpm_stats_wait *next,
		      uint64_t now)
{
	for (uint32_t i = 0; i < before->wait_count; i++)
		if (before->waits[i].channel == next->channel &&
		    before->waits[i].entry == next->entry)
			return before->waits[i].since_ns;
	return now;
}

static void show_wait(const struct workqueue *wq, const struct channel *ch, const struct work *w,
		      struct slmpm_stats_queue *to)
{
	struct slmpm_stats_wait *wait = &to->waits[to->wait_count];

	to->waiting++;
	if (to->wait_count == SLMPM_STATS_WAITS_MAX)
		return;
	to->wait_count++;
	name_subject(&w->wr, wait);
	wait->entry = work_number(wq, w);
	wait->channel = (uint32_t)(ch - wq->channels);
	wait->value = ch->await.value;
	wait->total = *ch->await.total - ch->await.start;
	wait->since_ns = since(&wq->shown, wait, to->taken_ns);
}

static void workqueue_show_now(struct workqueue *wq, uint64_t now)
{
	const struct channel *first = channel_first_stopped(wq);
	uint32_t n = wq->channels_used;
	struct slmpm_stats_queue to = {
		.size = sizeof(to),
		.flags = wq->flags,
		.queue = handle_id(wq),
		.taken_ns = now,
		.posted = wq->posted,
		.enabled = wq->flags & SLMPM_WQ_MANAGED ? wq->enabled : wq->posted,
		.begun = wq->begun,
		.done = wq->done,
		.failed = wq->failed,
		.by_engine = wq->by_engine,
	};

	memcpy(to.by_link, wq->spread.bytes, sizeof(wq->spread.bytes));
	n = n < SLMPM_STATS_CHANNELS_MAX ? n : SLMPM_STATS_CHANNELS_MAX;
	for (uint32_t i = 0; i < n; i++) {
		const struct work *w = waits_at(&wq->channels[i]);

		if (w)
			show_wait(wq, &wq->channels[i], w, &to);
	}
	if (first) {
		to.status = first->status;
		to.first_failed = first->failed;
		to.channel = (uint32_t)(first - wq->channels);
	}
	wq->shown = to;
	stats_queue_fill(wq->ctx, wq->place, &to);
}

void workqueue_show_begin(struct workqueue *wq)
{
	wq->place = stats_queue_take(wq->ctx);
	if (wq->place)
		workqueue_show_now(wq, clock_now());
}

void workqueue_show_end(struct workqueue *wq)
{
	stats_queue_drop(wq->ctx, wq->place);
	wq->place = 0;
}

void workqueue_publish(struct context *ctx)
{
	uint64_t now = clock_now();

	LIST_EACH_ENTRY(struct workqueue, wq, &ctx->work_queues, node)
		if (wq->place)
			workqueue_show_now(wq, now);
}
