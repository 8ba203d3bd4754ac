/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of peers: an atomic request that their owner executes (memory_counter.c). It goes once
 * what it counts is done there, and nothing of its channel goes between; its answer ends the entry.
 * Messages that are counted may follow one another once the count before is on its way.
 */
#include "slmpm/workqueue/workqueue.h"

#include "slmpm/base/error.h"
#include "slmpm/completion/completion.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"

int remote_count_check(const struct context *ctx, const struct slmpm_wr *wr,
		       const struct endpoint *ep)
{
	const struct remote *remote = remote_get(wr->rctr);

	if (!remote)
		return handle_error(&remote_table, wr->rctr.id);
	if (remote->access != SLMPM_COUNT)
		return error_set(SLMPM_EINVAL,
				 "slmpm_post: .rctr is a region of memory, no counter");
	if (remote->ctx != ctx)
		return error_set(SLMPM_EINVAL, "slmpm_post: .rctr is a counter of another context");
	if (wr->op != SLMPM_OP_COUNT && remote->ep != ep)
		return error_set(SLMPM_EINVAL, "slmpm_post: .rctr is a counter of %s, not of %s",
				 remote->ep->life->name, ep ? ep->life->name : "any");
	return endpoint_has_ended(remote->ep) ? endpoint_error(remote->ep) : 0;
}

int remote_count_allowed(const struct slmpm_wr *wr)
{
	const struct remote *remote = remote_get(wr->rctr);

	if (!remote)
		return handle_error(&remote_table, wr->rctr.id);
	return remote_is_revoked(remote) ? error_set(SLMPM_EACCES, "%s has taken its counter back",
						     remote->ep->life->name) :
					   0;
}

/* It is counted at the channel's turn: nothing begins inside another's beginning or end. */
void remote_count_arrived(struct channel *ch, struct work *w)
{
	w->done.status = 0;
	w->request = NULL;
	w->state = WORK_ARRIVED;
	ch->amidst = w;
	channel_ready(ch);
	await_inspect(&ch->wq->awaits); /* it has begun just now, perhaps */
}

void remote_count_begin(struct channel *ch, struct work *w)
{
	const struct endpoint *ep = work_peer(&w->wr);
	const struct slmpm_done done = {
		.op = SLMPM_OP_COUNT,
		.peer = {ep ? handle_id(ep) : w->wr.peer.id},
	};

	completion_copy(&w->done, &done);
	remote_count_arrived(ch, w);
}

/* As of entries without such a counter. */
static void count_finish(struct channel *ch, struct work *w, int status)
{
	w->request = NULL; /* of a count that could not begin after all */
	w->done.status = status;
	if (status == -SLMPM_ECANCELED) /* by itself */
		w->done.len = 0;
	channel_finish(ch, w);
}

void remote_count_ended(struct channel *ch, struct work *w, const struct slmpm_done *done)
{
	if (w->state != WORK_COUNTS)
		completion_copy(&w->done, done);
	if (w->state != WORK_COUNTS && done->status >= 0)
		remote_count_arrived(ch, w);
	else
		count_finish(ch, w, done->status);
}

static int count(struct workqueue *wq, struct work *w)
{
	const struct slmpm_wr *wr = &w->wr;
	const struct slmpm_how how = {
		.size = sizeof(how),
		.cq = {QUEUE_THAT_BEGINS},
		.cookie = (uint64_t)(w - wq->work),
	};
	bool sets = wr->op == SLMPM_OP_COUNT && !(wr->flags & SLMPM_RELATIVE);
	uint64_t value = wr->op == SLMPM_OP_COUNT ? wr->value : 1;
	int rc;

	w->state = WORK_COUNTS;
	if (!remote_get(wr->rctr))
		return work_stale(wr);
	wq->ctx->begins = &wq->inner;
	rc = slmpm_atomic(wr->rctr, 0, sets ? SLMPM_SWAP : SLMPM_FETCH_ADD, 64, value, 0, NULL,
			  &how, NULL);
	wq->ctx->begins = NULL;
	return rc;
}

int remote_count_advance(struct channel *ch)
{
	struct work *w = ch->amidst;
	int rc;

	if (ch->wq->ctx->begins) { /* one begins just now */
		channel_ready(ch);
		return 0;
	}
	ch->amidst = NULL;
	rc = w->cancelled ? -SLMPM_ECANCELED : count(ch->wq, w);
	if (rc < 0)
		count_finish(ch, w, rc);
	return 1;
}

/* In the ring; of other carriers it is not known. */
static bool is_out(const struct request *r)
{
	return rma_carrier_of(r) == RMA_BY_RING && r->numbered;
}

bool remote_counts_are_out(const struct channel *ch)
{
	/* Each began when those before were: the last says it of all. WAITs have ended at once. */
	for (struct list *at = ch->begun.prev; at != &ch->begun; at = at->prev) {
		const struct work *w = LIST_ENTRY(at, struct work, node);

		if (w->state != WORK_ENDED)
			return w->state == WORK_COUNTS && w->request && is_out(w->request);
	}
	return true;
}
