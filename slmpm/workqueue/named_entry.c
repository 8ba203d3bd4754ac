/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries for named peers go on, or fail; which are used by any. */
#include "slmpm/workqueue/named.h"

#include "slmpm/workqueue/workqueue.h"

void named_wake(struct named *n)
{
	LIST_EACH_ENTRY(struct channel, ch, &n->awaits, await.node) {
		list_remove(&ch->await.node);
		channel_ready(ch);
	}
}

void named_fail(struct named *n, int status)
{
	LIST_EACH_ENTRY(struct channel, ch, &n->awaits, await.node) {
		list_remove(&ch->await.node);
		channel_end(ch, ch->at, status, 0);
	}
}

/* ---- who uses it --------------------------------------------------------------------------- */

static void mark(const struct work *w)
{
	struct named *n = named_of(w->wr.peer);

	if (n)
		n->busy = true;
}

/* Disabled ones may stay so. */
static void mark_next(const struct channel *ch)
{
	const struct workqueue *wq = ch->wq;

	if (ch->at && (!(wq->flags & SLMPM_WQ_MANAGED) || work_number(wq, ch->at) <= wq->enabled))
		mark(ch->at);
}

void named_mark(struct context *ctx)
{
	LIST_EACH_ENTRY(struct named, n, &ctx->named, node)
		n->busy = false;
	LIST_EACH_ENTRY(struct workqueue, wq, &ctx->work_queues, node) {
		LIST_EACH_ENTRY(struct work, w, &wq->receives, node)
			mark(w);
		for (uint32_t i = 0; i < wq->channels_used; i++) {
			mark_next(&wq->channels[i]);
			LIST_EACH_ENTRY(struct work, w, &wq->channels[i].begun, node)
				mark(w);
		}
	}
}

bool named_has_entries(const struct named *n)
{
	uint64_t id = named_handle(n).id;

	LIST_EACH_ENTRY(const struct workqueue, wq, &n->ctx->work_queues, node) {
		uint32_t left = wq->used;

		for (const struct work *w = wq->work; left; w++) {
			if (w->state == WORK_IDLE)
				continue;
			if (w->wr.peer.id == id)
				return true;
			left--;
		}
	}
	return false;
}
