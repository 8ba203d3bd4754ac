/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PIPE entries: messages that come go on to another peer through a few buffers, used in turn. What
 * one needs is allocated when it is posted, however many messages it is for. Its receives and sends
 * are told to a queue of its own, which only notes that they have ended: what follows is begun by
 * the channel's next turn, so that no end begins anything, and each turn is short.
 */
#include "slmpm/workqueue/intake.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/completion/completion.h"
#include "slmpm/link/binding.h"
#include "slmpm/message/inbound.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/sendrecv/sendrecv.h"

#define STEPS 64 /* of a turn: receives and sends */

enum place_state { PLACE_EMPTY, PLACE_RECEIVES, PLACE_FULL, PLACE_SENDS };

struct place { /* a buffer */
	enum place_state state;
	struct request *request;    /* under way; or NULL */
	struct intake source;       /* RECEIVES, or EMPTY and to be the next that does */
	struct spread_part part;    /* SENDS */
	struct slmpm_done received; /* FULL: how its receive has ended */
};

struct pipe {
	struct queue inner; /* its pass_on is place_ended */
	struct await await; /* the target's receive entry is disabled */
	struct channel *ch;
	struct work *work;
	slmpm_peer from;              /* or any; */
	uint32_t from_stream;         /* they come from there, */
	slmpm_wq source;              /* perhaps to this queue */
	uint64_t receives, forwarded; /* messages: receives begun; sends done */
	uint32_t in, out;             /* the places of the next receive and of the next send */
	int32_t status;               /* it fails: why, ... */
	slmpm_peer culprit;           /* ... and by whom; else to whom it sends */
	bool cancelled;               /* sends are taken back, too */
	bool busy;                    /* handlers may run that would make it go on */
	bool full;                    /* none of its places receives: the source has been held up */
	uint64_t full_at;             /* messages forwarded by then */
	uint32_t receiving;           /* places */
	struct place places[];        /* as many as buffers; behind them their description */
};

int piping_source(const struct workqueue *wq, struct slmpm_wr *wr)
{
	struct workqueue *source = handle_get(&workqueue_table, wr->wq.id);
	int rc;

	if (!source)
		return handle_error(&workqueue_table, wr->wq.id);
	if (source->ctx != wq->ctx)
		return error_set(SLMPM_EINVAL, "slmpm_post: a PIPE's .wq is of another context");
	if (wr->from.id || wr->from_stream)
		return error_set(
			SLMPM_EINVAL,
			"slmpm_post: %s of a PIPE is set beside .wq, which stands for .from "
			"and .from_stream",
			wr->from.id ? ".from" : ".from_stream");
	rc = intake_check(source, "a PIPE");
	if (rc)
		return rc < 0 ? rc : 0;
	wr->from = source->receive.peer;
	wr->from_stream = source->receive.stream;
	wr->wq.id = 0;
	return 0;
}

bool piping_keep(struct work *w)
{
	size_t count = (size_t)w->wr.iov_count, pieces = count * sizeof(*w->wr.iov);
	struct pipe *p = malloc(sizeof(*p) + count * sizeof(p->places[0]) + pieces);

	if (!p)
		return false;
	w->wr.iov = memcpy(&p->places[count], w->wr.iov, pieces);
	w->owned = p;
	p->source = w->wr.wq;
	return true;
}

/* ---- ends -------------------------------------------------------------------------------- */

/* The first failure is what it ends with. */
static void piping_fail(struct pipe *p, int status, slmpm_peer culprit)
{
	if (p->status)
		return;
	p->status = status;
	p->culprit = endpoint_plain(culprit);
}

static void place_ended(struct queue *inner, uint64_t cookie, const struct slmpm_done *done)
{
	struct pipe *p = LIST_ENTRY(inner, struct pipe, inner);
	struct place *at = &p->places[cookie];

	at->request = NULL;
	if (UNLIKELY(at->part.by))
		spread_end(p->ch->wq, &at->part, done->status, done->flags);
	if (at->state == PLACE_RECEIVES) {
		p->receiving--;
		intake_end(&at->source, done->status, done->peer);
		at->state = PLACE_FULL;
		completion_copy(&at->received, done);
	} else {
		at->state = PLACE_EMPTY;
		if (done->status < 0)
			piping_fail(p, done->status, p->work->wr.peer);
		else
			p->forwarded++;
	}
	channel_ready(p->ch);
}

static void place_bound(struct queue *inner, uint64_t cookie, struct request *r)
{
	struct place *at = &LIST_ENTRY(inner, struct pipe, inner)->places[cookie];

	at->request = r;
	at->source.request = r;
}

static bool piping_has_ended(const struct pipe *p)
{
	return !p->inner.in_flight && (p->status || p->forwarded == p->work->wr.value);
}

/* It is gone with that, or ready for the next run. */
static void piping_end(struct pipe *p)
{
	struct workqueue *wq = p->ch->wq;
	const struct slmpm_wr *wr = &p->work->wr;
	const struct slmpm_done done = {
		.status = p->status,
		.op = wr->op,
		.stream = wr->stream,
		.peer = p->culprit,
		.len = p->forwarded,
	};

	list_remove(&p->await.node);
	entry_ended(&wq->inner, (uint64_t)(p->work - wq->work), &done);
}

/* ---- what is under way ----------------------------------------------------------------------- */

static int begin_receive(const struct pipe *p, const struct slmpm_iov *room,
			 const struct slmpm_how *how)
{
	bool any = work_is_any(p->from);
	struct endpoint *ep = any ? NULL : endpoint_of(p->from);

	if (!ep && !any)
		return -SLMPM_ECLOSED;
	return message_recvv(p->ch->wq->ctx, ep, p->from_stream, room, 1, how, NULL);
}

static int begin_send(const struct pipe *p, const struct slmpm_iov *piece,
		      const struct slmpm_how *how)
{
	const struct slmpm_wr *wr = &p->work->wr;
	struct endpoint *ep = endpoint_of(wr->peer);

	return ep ? message_sendv(ep, wr->stream, piece, 1, how, NULL) : -SLMPM_ECLOSED;
}

/* Place I goes over to STATE: it receives or sends. 0, or why not. */
static int begin(struct pipe *p, uint32_t i, enum place_state state)
{
	struct workqueue *wq = p->ch->wq;
	struct context *ctx = wq->ctx;
	const struct slmpm_wr *wr = &p->work->wr;
	struct place *at = &p->places[i];
	struct slmpm_iov piece = wr->iov[i];
	struct slmpm_how how = {.size = sizeof(how), .cq = {QUEUE_THAT_BEGINS}, .cookie = i};
	int rc;

	at->state = state;
	ctx->begins = &p->inner; /* nothing begins another meanwhile */
	if (state == PLACE_RECEIVES) {
		rc = begin_receive(p, &piece, &how);
	} else {
		piece.len = at->received.len;
		how.imm = at->received.imm;
		how.flags = wr->flags & MODE_LINK_MASK;
		if (UNLIKELY(wq->flags & SLMPM_WQ_SPREAD))
			spread_begin(wq, &at->part, wr, endpoint_of(wr->peer), piece.len);
		how.flags |= spread_hint(at->part);
		rc = begin_send(p, &piece, &how);
	}
	ctx->begins = NULL;
	if (rc < 0)
		at->request = NULL;
	if (UNLIKELY(rc < 0 && at->part.by))
		spread_end(wq, &at->part, rc, 0);
	return rc;
}

static uint32_t behind(const struct pipe *p, uint32_t i)
{
	return i + 1 == (uint32_t)p->work->wr.iov_count ? 0 : i + 1;
}

static void entry_enabled(struct await *a)
{
	channel_ready(LIST_ENTRY(a, struct pipe, await)->ch);
}

/* The target would refuse the next message: it waits until it may come. */
static bool is_refused(struct pipe *p)
{
	const struct slmpm_wr *wr = &p->work->wr;
	const struct endpoint *ep = endpoint_of(wr->peer);
	struct binding *b = ep ? binding_of(ep, wr->stream) : NULL;

	list_remove(&p->await.node);
	if (!b || binding_allows(b))
		return false;
	binding_wait(b, &p->await);
	return true;
}

/* The next message that has come goes on, or fails the entry once those before it have gone. */
static bool send_next(struct pipe *p)
{
	uint32_t i = p->out;
	struct place *at = &p->places[i];
	int rc;

	if (at->state != PLACE_FULL)
		return false;
	if (at->received.status < 0) {
		piping_fail(p, at->received.status,
			    at->received.peer.id ? at->received.peer : p->from);
		return false;
	}
	if (is_refused(p))
		return false;
	p->out = behind(p, i);
	rc = begin(p, i, PLACE_SENDS);
	if (rc < 0) {
		at->state = PLACE_EMPTY;
		piping_fail(p, rc, p->work->wr.peer);
	}
	return true;
}

static bool receive_next(struct pipe *p)
{
	uint32_t i = p->in;
	struct place *at = &p->places[i];
	int rc;

	if (at->state != PLACE_EMPTY || p->receives == p->work->wr.value)
		return false;
	rc = intake_begin(&at->source, p->ch);
	if (!rc)
		return false;
	p->in = behind(p, i);
	p->receives++;
	if (rc > 0) {
		p->receiving++;
		rc = begin(p, i, PLACE_RECEIVES);
		p->receiving -= rc < 0;
	}
	if (rc < 0) { /* in its turn, as if it had ended so */
		intake_end(&at->source, rc, (slmpm_peer){0});
		at->state = PLACE_FULL;
		at->received.status = rc;
		at->received.peer.id = 0;
	}
	return true;
}

/* What it has posted; what has gone too far ends by itself. */
static void take_back(struct pipe *p)
{
	bool busy = p->busy;

	p->busy = true;
	for (int i = 0; i < p->work->wr.iov_count; i++) {
		struct place *at = &p->places[i];

		if (at->request && (p->cancelled || at->state == PLACE_RECEIVES))
			(void)request_cancel(at->request);
		else if (at->state == PLACE_EMPTY)
			intake_end(&at->source, -SLMPM_ECANCELED, (slmpm_peer){0});
	}
	p->busy = busy;
}

/* There is no peer for what is yet to come. */
static void inspect_target(struct pipe *p)
{
	slmpm_peer peer = p->work->wr.peer;
	const struct endpoint *ep = endpoint_of(peer);

	if (!ep || endpoint_has_ended(ep))
		piping_fail(p, ep && ep->life->error ? -ep->life->error : -SLMPM_ECLOSED, peer);
}

/* What comes while no place receives would be copied once more than it has to, and a source that
 * is not held up keeps from the next hop a processor that they share. */
static void hold_up_source(struct pipe *p)
{
	const struct slmpm_wr *wr = &p->work->wr;
	struct endpoint *ep = work_is_any(wr->from) ? NULL : endpoint_of(wr->from);
	bool full = !p->status && !p->receiving && p->receives < wr->value &&
		    p->places[p->in].state != PLACE_EMPTY; /* its entry is disabled */

	if (!ep || (!full && !p->full) || (full && p->full && p->full_at == p->forwarded))
		return;
	p->full = full;
	p->full_at = p->forwarded;
	if (full)
		inbound_full(ep, wr->from_stream);
	else
		inbound_not_full(ep, wr->from_stream);
}

static int piping_turn(struct pipe *p)
{
	int n = 0;

	p->busy = true;
	if (p->forwarded != p->work->wr.value)
		inspect_target(p);
	while (n < STEPS && !p->status && (send_next(p) || receive_next(p)))
		n++;
	if (p->status)
		take_back(p);
	hold_up_source(p);
	p->busy = false;
	return n;
}

/* ---- the entry ------------------------------------------------------------------------------- */

void piping_begin(struct channel *ch, struct work *w)
{
	struct pipe *p = w->owned;
	slmpm_wq queue = p->source;
	const struct workqueue *source = handle_get(&workqueue_table, queue.id);

	memset(p, 0, sizeof(*p) + (size_t)w->wr.iov_count * sizeof(p->places[0]));
	p->source = queue;
	p->from = source ? source->receive.peer : w->wr.from;
	p->from_stream = source ? source->receive.stream : w->wr.from_stream;
	for (int i = 0; i < w->wr.iov_count; i++)
		intake_init(&p->places[i].source, queue);
	p->inner.ctx = ch->wq->ctx;
	p->inner.pass_on = place_ended;
	p->inner.bound = place_bound;
	p->await.over = entry_enabled;
	list_init(&p->await.node);
	p->ch = ch;
	p->work = w;
	p->culprit = endpoint_plain(w->wr.peer);
	ch->amidst = w;
	channel_ready(ch);
}

int piping_advance(struct channel *ch)
{
	struct pipe *p = ch->amidst->owned;
	int n;

	if (p->busy || ch->wq->ctx->begins) { /* inside a call that goes on with it */
		channel_ready(ch);
		return 0;
	}
	n = piping_turn(p);
	if (piping_has_ended(p)) {
		ch->amidst = NULL;
		piping_end(p);
		n++;
	} else if (n == STEPS) {
		channel_ready(ch);
	}
	return n;
}

bool piping_cancel(struct work *w)
{
	struct pipe *p = w->owned;

	piping_fail(p, -SLMPM_ECANCELED, w->wr.peer);
	p->cancelled = true;
	if (!p->busy)
		take_back(p);
	channel_ready(p->ch);
	return !p->inner.in_flight;
}

void piping_peer_ended(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct workqueue, wq, &ep->ctx->work_queues, node)
		for (uint32_t i = 0; i < wq->channels_used; i++)
			if (wq->channels[i].amidst)
				channel_ready(&wq->channels[i]);
}
