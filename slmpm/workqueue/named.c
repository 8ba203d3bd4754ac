/* SPDX-License-Identifier: BSD-3-Clause */
/* Named peers by their handles, and entries that wait for one to be connected. */
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
	ch->await.total = &n->connects; /* as it is shown */
	ch->await.start = 0;
	ch->await.value = n->connects + 1;
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
