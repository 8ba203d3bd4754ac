/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries that name a peer which is being closed. */
#include "slmpm/workqueue/leaver.h"

#include "slmpm/region/memory.h"
#include "slmpm/workqueue/workqueue.h"

static bool is_region_of(slmpm_rmem rmem, const struct endpoint *ep)
{
	const struct remote *remote = rmem.id ? remote_get(rmem) : NULL;

	return remote && remote->ep == ep;
}

/* Whence W, a PIPE, has its messages. */
static slmpm_peer source_of(const struct work *w)
{
	const struct workqueue *t = w->wr.wq.id ? handle_get(&workqueue_table, w->wr.wq.id) : NULL;

	return t ? t->receive.peer : endpoint_plain(w->wr.from);
}

/* The region goes with EP: from then on the handle says whose it was. */
static bool names_leaver(struct work *w, const struct endpoint *ep)
{
	uint64_t id = handle_id(ep);

	if (!w->wr.peer.id && (is_region_of(w->wr.rmem, ep) || is_region_of(w->wr.rctr, ep)))
		w->wr.peer.id = id;
	if (endpoint_plain(w->wr.peer).id == id)
		return true;
	if (w->wr.op == SLMPM_OP_CALC)
		return w->exchanges && exchange_names(w, id);
	return w->wr.op == SLMPM_OP_PIPE && source_of(w).id == id;
}

static bool queue_names(struct workqueue *wq, const struct endpoint *ep)
{
	uint32_t left = wq->used;
	bool any = false;

	for (struct work *w = wq->work; left; w++) {
		if (w->state == WORK_IDLE)
			continue;
		any |= names_leaver(w, ep);
		left--;
	}
	for (uint32_t i = 0; wq->stopped && i < wq->channels_used; i++)
		any |= wq->channels[i].status && wq->channels[i].culprit.id == handle_id(ep);
	return any;
}

void leaver_left(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct workqueue, wq, &ep->ctx->work_queues, node)
		if (queue_names(wq, ep))
			leaver_note(wq, ep);
}
