/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting: a work request becomes an entry of its channel, and begins if its turn is now. */
#include "slmpm/workqueue/workqueue.h"

#include "slmpm/base/error.h"
#include "slmpm/base/sized.h"
#include "slmpm/workqueue/member.h"

/* Its peer and stream are the queue's. */
static int take_receive(const struct workqueue *wq, struct slmpm_wr *wr)
{
	const char *title = member_title(wr->op);

	if (wr->op != SLMPM_OP_RECV) /* what is no operation is refused as such */
		return title ? error_set(SLMPM_EINVAL,
					 "slmpm_post: an entry of a receive queue is a RECV, "
					 "not %s",
					 title) :
			       0;
	if (wr->peer.id || wr->stream)
		return error_set(SLMPM_EINVAL,
				 "slmpm_post: an entry of a receive queue is without peer and "
				 "stream: %s is set",
				 wr->peer.id ? ".peer" : ".stream");
	if (!work_is_any(wq->receive.peer) && !endpoint_of(wq->receive.peer))
		return error_set(SLMPM_ECLOSED, "slmpm_post: the peer of the receive queue was "
						"closed");
	wr->peer = wq->receive.peer;
	wr->stream = wq->receive.stream;
	return 0;
}

static int take_wr(const struct workqueue *wq, struct slmpm_wr *to, const struct slmpm_wr *given)
{
	int rc = 0;

	if (LIKELY(given->size == sizeof(*to)))
		*to = *given;
	else
		rc = sized_take("slmpm_post", to, given, sizeof(*to));
	if (rc == 0 && wq->flags & SLMPM_WQ_RECEIVE)
		rc = take_receive(wq, to);
	if (rc == 0 && to->op == SLMPM_OP_PIPE && to->wq.id)
		rc = piping_source(wq, to);
	if (rc == 0 && !to->ctr.id && !work_names(to->op))
		to->ctr = wq->ctr;
	return rc < 0 ? rc : work_check(wq, to);
}

/* Its flags say the link of the handle, and whether the target is to answer. */
static void complete_flags(const struct workqueue *wq, struct slmpm_wr *wr)
{
	if (wr->op != SLMPM_OP_RECV && work_has_peer(wr->op))
		wr->flags = endpoint_hints(wr->peer, wr->flags);
	if (wr->op == SLMPM_OP_PUT && (!(wq->flags & SLMPM_WQ_UNACKNOWLEDGED) || wr->rctr.id))
		wr->flags |= SLMPM_REMOTE;
}

/* It begins now, or behind others. */
static int begin_or_append(struct channel *ch, struct work *w)
{
	struct workqueue *wq = ch->wq;
	struct endpoint *ep = NULL;
	int rc;

	w->next = NULL;
	if (ch->at || wq->flags & SLMPM_WQ_KEPT || w->wr.op >= SLMPM_OP_WAIT ||
	    !channel_may_begin(ch, w, ep = work_peer(&w->wr))) {
		if (!work_keep(w)) {
			list_remove(&ch->await.node); /* channel_may_begin may have */
			list_remove(&ch->timed);
			return error_set(SLMPM_ENOMEM, "for a work request");
		}
		channel_append(ch, w);
		return 0;
	}
	rc = channel_begin(ch, w, ep);
	if (rc < 0 && work_number(wq, w) != wq->posted) { /* a handler has posted others */
		channel_end(ch, w, rc, 0);
		return 0;
	}
	if (rc < 0)
		ch->at = w->next;
	return rc;
}

void workqueue_number(struct workqueue *wq, struct work *w)
{
	list_remove(&w->node);
	w->state = WORK_WAITS;
	w->over = 0;
	w->cancelled = w->refused = w->waited = false;
	w->request = NULL;
	w->number = ++wq->posted - wq->run;
	wq->used++;
	if (w->wr.channel >= wq->channels_used)
		wq->channels_used = w->wr.channel + 1;
}

/* W, not yet held, is to be one of the queue's. */
static int enter(struct workqueue *wq, struct work *w)
{
	int rc;

	if (!queue_take_room(wq->queue))
		return error_set(SLMPM_ENOMEM, "for a completion");
	workqueue_number(wq, w);
	rc = begin_or_append(&wq->channels[w->wr.channel], w);
	if (rc < 0) {
		wq->posted--;
		wq->queue->in_flight--;
		workqueue_drop(wq, w);
	}
	return rc;
}

int workqueue_fill(struct workqueue *wq, struct work *w, const struct slmpm_wr *given,
		   uint32_t size)
{
	int rc;

	if (given->size != size)
		return error_set(SLMPM_EINVAL,
				 "slmpm_post: .size of a work request is %u, of the first %u: all "
				 "of an array have one size",
				 given->size, size);
	rc = take_wr(wq, &w->wr, given);
	if (rc == 0 && UNLIKELY(wq->channels[w->wr.channel].status))
		rc = channel_error(&wq->channels[w->wr.channel], "slmpm_post");
	if (rc == 0 && w->wr.op == SLMPM_OP_CALC)
		rc = calculation_take(wq, w);
	w->ep = NULL;
	if (rc == 0)
		rc = work_hold(wq, w);
	if (rc == 0)
		complete_flags(wq, &w->wr);
	w->usual = rc == 0 && work_is_usual(wq, &w->wr);
	return rc;
}

static int workqueue_take(struct workqueue *wq, const struct slmpm_wr *given, uint32_t size)
{
	struct work *w;
	int rc;

	if (wq->used == wq->depth && wq->flags & SLMPM_WQ_KEPT)
		return error_set(SLMPM_ELIMIT,
				 "slmpm_post: the queue keeps as many entries as its depth, %u",
				 wq->depth);
	if (wq->used == wq->depth)
		return error_set(SLMPM_EAGAIN,
				 "slmpm_post: as many entries are under way as its depth, %u",
				 wq->depth);
	w = workqueue_idle(wq);
	rc = workqueue_fill(wq, w, given, size);
	if (rc < 0)
		return rc;
	rc = enter(wq, w);
	if (rc < 0)
		work_take_back(w);
	return rc;
}

static NOINLINE int workqueue_post(struct workqueue *wq, const struct slmpm_wr *wr, int n)
{
	int rc = 0, taken = 0;

	if (!wr || n <= 0)
		return n > 0 ? error_set(SLMPM_EINVAL, "slmpm_post: the work requests are NULL") :
			       error_set(SLMPM_EINVAL, "slmpm_post: %d work requests, at least 1",
					 n);
	while (rc == 0 && taken < n) {
		const void *next = (const char *)wr + (size_t)taken * wr->size;

		rc = workqueue_take(wq, next, wr->size);
		taken += rc == 0;
	}
	await_inspect(&wq->awaits);
	(void)workqueue_advance(wq->ctx);
	workqueue_leave(wq);
	return taken ? taken : rc;
}

int slmpm_post(slmpm_wq handle, const struct slmpm_wr *wr, int n)
{
	int rc = 0;
	struct workqueue *wq = workqueue_lock(handle, &rc);

	if (!wq)
		return rc;
	if (n == 1 && wr && wr->size == sizeof(*wr) && wr->op == SLMPM_OP_CALC &&
	    calculation_at_once(wq, wr)) {
		rc = 1;
		if (UNLIKELY(!list_empty(&wq->ctx->ready))) /* others have waited for that */
			(void)workqueue_advance(wq->ctx);
	} else {
		rc = workqueue_post(wq, wr, n);
	}
	context_unlock(wq->ctx);
	return rc;
}
