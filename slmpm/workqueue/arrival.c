/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments of a CALC that are messages: each is held where it has come in, as slmpm_hold does,
 * read there, and given back when the entry ends. That they have come is only noted; the channel's
 * next turn goes on with it.
 */
#include "slmpm/workqueue/arrival.h"

#include <stdio.h>

#include "slmpm/base/error.h"
#include "slmpm/message/held.h"
#include "slmpm/sendrecv/sendrecv.h"

int arrival_check(const struct workqueue *wq, const struct slmpm_operand *o, int k)
{
	struct workqueue *source = o->wq.id ? handle_get(&workqueue_table, o->wq.id) : NULL;
	char what[32];
	int rc = 0;

	snprintf(what, sizeof(what), "argument %d", k);
	if (o->wq.id && !source)
		return handle_error(&workqueue_table, o->wq.id);
	if (source && source->ctx != wq->ctx)
		return error_set(SLMPM_EINVAL, "slmpm_post: argument %d: .wq is of another context",
				 k);
	rc = source ? intake_check(source, what) : work_check_source(wq, o->peer);
	if (rc < 0 || source)
		return rc < 0 ? rc : 0;
	return intake_check_stream(wq, o->peer, o->stream, what);
}

void arrival_init(struct arrival *a, const struct slmpm_operand *o, uint32_t number)
{
	const struct workqueue *source = o->wq.id ? handle_get(&workqueue_table, o->wq.id) : NULL;
	bool managed = source && source->flags & SLMPM_WQ_MANAGED;

	*a = (struct arrival){
		.from = source ? source->receive.peer : endpoint_plain(o->peer),
		.stream = source ? source->receive.stream : o->stream,
		.number = number,
	};
	intake_init(&a->source, managed ? o->wq : (slmpm_wq){0});
}

/* ---- coming ---------------------------------------------------------------------------------- */

static void arrival_ended(struct queue *inner, uint64_t cookie, const struct slmpm_done *done)
{
	struct arrivals *all = LIST_ENTRY(inner, struct arrivals, inner);
	struct arrival *a = &all->each[cookie];
	struct endpoint *ep = endpoint_of(done->peer);
	bool came = done->status == 0 || done->status == -SLMPM_ECHECKSUM;

	intake_end(&a->source, done->status, done->peer);
	a->status = done->status;
	a->len = came ? done->len : 0;
	a->peer = done->peer.id ? done->peer : a->from;
	a->held = came && ep ? message_held(ep, a->request) : NULL;
	a->orphan = came && !a->held ? a->request->message : NULL;
	if (!a->held && came)
		a->status = -SLMPM_ENOMEM;
	a->request = NULL;
	a->ended = true;
	channel_ready(all->ch);
}

static void arrival_bound(struct queue *inner, uint64_t cookie, struct request *r)
{
	struct arrival *a = &LIST_ENTRY(inner, struct arrivals, inner)->each[cookie];

	a->request = r;
	a->source.request = r;
}

static void arrival_fail(struct arrival *a, int status)
{
	intake_end(&a->source, status, (slmpm_peer){0});
	a->request = NULL;
	a->status = status;
	a->ended = true;
}

static int arrival_begin(const struct arrivals *all, const struct arrival *a)
{
	const struct slmpm_how how = {
		.size = sizeof(how),
		.cq = {QUEUE_THAT_BEGINS},
		.cookie = (uint64_t)(a - all->each),
	};
	bool any = work_is_any(a->from);
	struct endpoint *ep = any ? NULL : endpoint_of(a->from);

	if (!ep && !any)
		return -SLMPM_ECLOSED;
	return message_hold(all->ch->wq->ctx, ep, a->stream, &how);
}

void arrivals_begin(struct arrivals *all, struct channel *ch)
{
	all->inner = (struct queue){
		.ctx = ch->wq->ctx,
		.pass_on = arrival_ended,
		.bound = arrival_bound,
	};
	all->ch = ch;
	for (uint32_t i = 0; i < all->count; i++) {
		struct arrival *a = &all->each[i];

		a->held = NULL;
		a->orphan = NULL;
		a->ended = false;
		a->status = 0;
		a->len = 0;
		a->peer = a->from;
		a->begun = false;
	}
	arrivals_go_on(all);
}

void arrivals_go_on(struct arrivals *all)
{
	struct context *ctx = all->ch->wq->ctx;

	for (uint32_t i = 0; i < all->count; i++) {
		struct arrival *a = &all->each[i];
		int rc = a->begun ? 0 : intake_begin(&a->source, all->ch);

		if (!rc)
			continue;
		a->begun = true;
		ctx->begins = &all->inner; /* nothing begins another meanwhile */
		if (rc > 0)
			rc = arrival_begin(all, a);
		ctx->begins = NULL;
		if (rc < 0)
			arrival_fail(a, rc);
	}
}

/* ---- there ----------------------------------------------------------------------------------- */

/* A loan may be read while it grows: 0 until it has all. */
static int inspect_growth(struct arrivals *all, struct arrival *a)
{
	const struct inbound *m = a->held->message;
	const struct endpoint *ep = endpoint_of(a->peer);

	if (!m || !m->area || m->final) {
		a->len = m && m->area ? m->got : a->len;
		return 1;
	}
	if (ep->state != SLMPM_PEER_UP)
		return -ep->life->error;
	channel_ready(all->ch); /* nothing says that it has grown */
	return 0;
}

/* 1: it is there, and as long as it is to be; 0: not yet; or why it will not be. */
static int inspect(struct arrivals *all, struct arrival *a, uint64_t bytes)
{
	int rc;

	if (!a->ended || a->status < 0)
		return a->status;
	if (!endpoint_of(a->peer))
		return -SLMPM_ECLOSED; /* the message has gone with it */
	rc = inspect_growth(all, a);
	if (rc <= 0)
		return rc;
	if (a->len != bytes)
		return a->len > bytes ? -SLMPM_ETRUNC : -SLMPM_EINVAL;
	return 1;
}

int arrivals_inspect(struct arrivals *all, uint64_t bytes, const struct arrival **which)
{
	int state = 1;

	for (uint32_t i = 0; i < all->count; i++) {
		int rc = inspect(all, &all->each[i], bytes);

		*which = &all->each[i];
		if (rc < 0)
			return rc;
		state &= rc;
	}
	return state;
}

const void *arrival_data(const struct arrival *a)
{
	return a->held->data;
}

/* ---- the end --------------------------------------------------------------------------------- */

void arrivals_take_back(struct arrivals *all)
{
	for (uint32_t i = 0; i < all->count; i++) {
		struct arrival *a = &all->each[i];

		if (!a->begun)
			arrival_fail(a, -SLMPM_ECANCELED);
		else if (a->request)
			(void)request_cancel(a->request);
		a->begun = true;
	}
}

void arrivals_give_back(struct arrivals *all)
{
	for (uint32_t i = 0; i < all->count; i++) {
		struct arrival *a = &all->each[i];
		struct endpoint *ep = endpoint_of(a->peer);

		if (a->held && ep)
			held_release(ep, a->held);
		if (a->orphan && !ep)
			a->orphan->area = NULL; /* that went with it */
		if (a->orphan)
			inbound_free(a->orphan);
		a->held = NULL;
		a->orphan = NULL;
	}
}
