/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries for named peers: where they wait, go on and fail. */
#include "slmpm/workqueue/named.h"

#include "slmpm/base/error.h"
#include "slmpm/workqueue/workqueue.h"

struct handle_table named_table = HANDLE_TABLE_FROM("peer", struct named, node);

static uint64_t id_of(slmpm_peer peer)
{
	return peer.id & ~ENDPOINT_NAMED;
}

struct named *named_of(slmpm_peer peer)
{
	return named_is(peer) ? handle_get(&named_table, id_of(peer)) : NULL;
}

struct endpoint *named_endpoint(slmpm_peer peer)
{
	struct named *n = named_of(peer);

	if (!n)
		return NULL;
	n->used = ++n->ctx->lookups;
	return n->ep;
}

int named_bad_handle(slmpm_peer peer)
{
	return handle_error(&named_table, id_of(peer));
}

/* ---- entries ------------------------------------------------------------------------------ */

static bool may_name(uint32_t op)
{
	return op == SLMPM_OP_SEND || op == SLMPM_OP_RECV || op == SLMPM_OP_AM;
}

int named_check(const struct workqueue *wq, const struct slmpm_wr *wr)
{
	const struct named *n = named_of(wr->peer);

	if (!named_is(wr->peer))
		return endpoint_bad_handle(wr->peer);
	if (!n)
		return named_bad_handle(wr->peer);
	if (n->ctx != wq->ctx)
		return error_set(SLMPM_EINVAL, "slmpm_post: the peer belongs to another context");
	if (!may_name(wr->op) || wr->rctr.id)
		return error_set(SLMPM_EINVAL, "slmpm_post: a peer by its address is for SEND, "
					       "RECV and AM; a PUT, GET, ATOMIC, PIPE or .rctr "
					       "needs its connection's handle");
	return 0;
}

bool named_waits(struct channel *ch, struct work *w)
{
	struct named *n = may_name(w->wr.op) ? named_of(w->wr.peer) : NULL;

	if (!n) /* it fails as it begins */
		return false;
	/* It is for another peer than those, whose end makes the channel ready. */
	if (w->wr.op != SLMPM_OP_RECV && !list_empty(&ch->begun))
		return true;
	list_append(&n->awaits, &ch->await.node);
	named_want(n);
	return true;
}

void named_want(struct named *n)
{
	struct context *ctx = n->ctx;

	if (n->dial || !list_empty(&n->to_dial))
		return;
	list_append(&ctx->to_dial, &n->to_dial);
	ctx->news = true;
	context_changed(ctx); /* a sleeper does not know of it */
}

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

	LIST_EACH_ENTRY(const struct workqueue, wq, &n->ctx->work_queues, node)
		for (uint32_t i = 0; i < wq->depth; i++)
			if (wq->work[i].state != WORK_IDLE && wq->work[i].wr.peer.id == id)
				return true;
	return false;
}
