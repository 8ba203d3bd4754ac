/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel: entries begin in their order and are told in it, up to one that fails. */
#include "slmpm/workqueue/intake.h"

#include <stdlib.h>

#include "slmpm/base/error.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/late.h"
#include "slmpm/engine/engine.h"
#include "slmpm/link/link.h"
#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/workqueue/leaver.h"

#define STEPS      64  /* of one channel before it is another's turn */
#define PASS_STEPS 256 /* of one call of progress */

/* At the next progress, whatever that is for: who would sleep has nothing to do yet. */
static void channel_retry(struct channel *ch)
{
	if (list_empty(&ch->node))
		list_append(&ch->wq->ctx->ready, &ch->node);
}

void channel_ready(struct channel *ch)
{
	struct context *ctx = ch->wq->ctx;

	channel_retry(ch);
	ctx->news = ctx->ready_since = true;
	context_told(ctx);
}

void channels_ready(struct workqueue *wq)
{
	for (uint32_t i = 0; i < wq->channels_used; i++)
		if (wq->channels[i].at)
			channel_ready(&wq->channels[i]);
}

/* Its peer has not let the entry begin, or end: it may be stopped. */
static bool may_be_suspect(const struct channel *ch)
{
	return ch->status == -SLMPM_EDISABLED || ch->status == -SLMPM_ETIMEOUT;
}

int channel_error(const struct channel *ch, const char *call)
{
	struct endpoint *ep = endpoint_of(ch->culprit);
	const char *name = ep ? ep->life->name : leaver_name(ch->wq, ch->culprit);
	const char *suspicion = ep && may_be_suspect(ch) ? late_suspicion(ep) : NULL;

	if (!ch->status)
		return 0;
	return error_set(-ch->status,
			 "%s: channel %u has stopped at entry %llu (%s%s%s%s%s); slmpm_wq_reset "
			 "lets it go on",
			 call, (unsigned)(ch - ch->wq->channels), (unsigned long long)ch->failed,
			 slmpm_error_name(ch->status), name ? ", " : "", name ? name : "",
			 suspicion ? ", suspect: " : "", suspicion ? suspicion : "");
}

static bool is_enabled(const struct workqueue *wq, const struct work *w)
{
	uint64_t number;

	if (!(wq->flags & SLMPM_WQ_MANAGED))
		return true;
	number = work_number(wq, w);
	return number <= wq->enabled && !intake_is_before(wq, number);
}

void channel_append(struct channel *ch, struct work *w)
{
	bool kept = ch->wq->flags & SLMPM_WQ_KEPT;

	w->next = NULL;
	if (ch->at || (kept && ch->last))
		ch->last->next = w;
	if (!ch->at)
		ch->at = w;
	if (!ch->first)
		ch->first = kept ? w : NULL;
	ch->last = w;
	/* Whatever those in front of it wait for, or its ENABLE, makes the channel ready: there is
	 * nothing yet for which a thread would have to be woken. */
	if (ch->at == w && is_enabled(ch->wq, w))
		channel_ready(ch);
}

/* ---- ends -------------------------------------------------------------------------------- */

static void channel_stop(struct channel *ch, const struct work *w, int status)
{
	struct workqueue *wq = ch->wq;
	uint64_t number = work_number(wq, w);

	/* Of those that were under way together the first counts, whichever has ended first. */
	if (ch->status && (w->wr.op == SLMPM_OP_RECV || number > ch->failed)) {
		channel_ready(ch);
		return;
	}
	wq->stopped += !ch->status;
	ch->status = status;
	ch->failed = number;
	ch->culprit = endpoint_plain(w->done.peer);
	channel_ready(ch);
}

static bool is_told(const struct work *w)
{
	return !(w->wr.flags & SLMPM_SILENT) || w->done.status < 0;
}

/* Its counter is there, for W holds it. */
static void count_end(const struct work *w)
{
	struct counter *c = LIST_ENTRY(w->awaits, struct counter, awaits);

	c->posted++;
	counter_end(c, w->done.status);
}

/* It is dropped, or a kept one ready for the next run. */
static void retire(struct workqueue *wq, struct work *w)
{
	w->cancelled = w->refused = w->waited = false;
	if (!(wq->flags & SLMPM_WQ_KEPT)) {
		workqueue_drop(wq, w);
		return;
	}
	list_withdraw(&w->node);
	w->state = WORK_WAITS;
	w->over = wq->run + 1;
}

static INLINE void deliver(struct workqueue *wq, struct work *w)
{
	if (!work_names(w->wr.op) && w->wr.ctr.id)
		count_end(w);
	if (is_told(w)) {
		w->done.cookie = w->wr.cookie;
		queue_put(wq->queue, &w->done);
	} else {
		wq->queue->in_flight--;
	}
	if (w->done.status < 0)
		wq->failed++;
	else
		wq->done++;
	if (wq->flags & SLMPM_WQ_RECEIVE)
		receive_ended(wq, work_number(wq, w), w->done.status, w->done.peer);
	retire(wq, w);
	await_inspect(&wq->awaits);
	if (UNLIKELY(wq->stopped))
		wait_strand(wq);
}

/* Of those that have begun, the first are told. */
static void deliver_ended(struct channel *ch)
{
	while (!list_empty(&ch->begun)) {
		struct work *w = LIST_ENTRY(ch->begun.next, struct work, node);

		if (w->state != WORK_ENDED)
			return;
		deliver(ch->wq, w);
	}
}

/* Among those that have begun; one that could not after all keeps its place. */
static void enlist(struct channel *ch, struct work *w)
{
	if (list_empty(&w->node))
		list_append(w->wr.op == SLMPM_OP_RECV ? &ch->wq->receives : &ch->begun, &w->node);
}

static void tell_passed(struct channel *ch);

/* Its completion is in w->done. */
static INLINE void entry_over(struct channel *ch, struct work *w)
{
	if (UNLIKELY(ch->passed != NULL))
		tell_passed(ch);
	w->state = WORK_ENDED;
	if (UNLIKELY(w->done.status < 0))
		channel_stop(ch, w, w->done.status);
	if (w->wr.op == SLMPM_OP_RECV || list_empty(&ch->begun)) {
		deliver(ch->wq, w);
	} else {
		enlist(ch, w);
		deliver_ended(ch);
	}
}

static NOINLINE void entry_finish(struct channel *ch, struct work *w)
{
	entry_over(ch, w);
}

static INLINE void complete(struct channel *ch, struct work *w)
{
	entry_over(ch, w);
	if (ch->at)
		channel_ready(ch);
}

void channel_finish(struct channel *ch, struct work *w)
{
	complete(ch, w);
}

static slmpm_peer peer_described(const struct slmpm_wr *wr)
{
	const struct endpoint *ep = work_peer(wr);

	if (ep)
		return (slmpm_peer){handle_id(ep)};
	return work_is_any(wr->peer) ? (slmpm_peer){0} : endpoint_plain(wr->peer);
}

/* What W's completion says, if it has one. */
static INLINE void entry_describe(struct work *w, int status, uint64_t len)
{
	struct slmpm_done *done = &w->done;

	done->status = status;
	if (!is_told(w))
		return;
	work_describe(done, &w->wr, status, len);
	if (UNLIKELY(work_has_peer(w->wr.op) || w->wr.rctr.id))
		done->peer = peer_described(&w->wr);
}

/* W, a WAIT, is over at LEN: what follows it does not wait for its completion. */
static void pass(struct channel *ch, struct work *w, uint64_t len)
{
	list_withdraw(&ch->timed);
	ch->at = w->next;
	w->done.len = len;
	ch->passed = w;
}

static void tell_passed(struct channel *ch)
{
	struct work *w = ch->passed;

	ch->passed = NULL;
	entry_describe(w, 0, w->done.len);
	entry_finish(ch, w);
}

void channel_end(struct channel *ch, struct work *w, int status, uint64_t len)
{
	if (w->state == WORK_WAITS)
		ch->wq->flushed++;
	if (w->state == WORK_WAITS || w->wr.op == SLMPM_OP_WAIT) { /* it stood at it */
		list_withdraw(&ch->await.node);
		list_withdraw(&ch->timed);
		ch->at = w->next;
	}
	entry_describe(w, status, len);
	entry_finish(ch, w);
}

void entry_ended(struct queue *inner, uint64_t cookie, const struct slmpm_done *done)
{
	struct workqueue *wq = LIST_ENTRY(inner, struct workqueue, inner);
	struct work *w = &wq->work[cookie];
	struct channel *ch = &wq->channels[w->wr.channel];

	w->request = NULL;
	if (UNLIKELY(w->part.by))
		spread_end(wq, &w->part, done->status, done->flags);
	if (UNLIKELY(w->wr.rctr.id)) {
		remote_count_ended(ch, w, done);
		return;
	}
	w->done.status = done->status;
	w->done.peer = done->peer;
	if (is_told(w))
		completion_copy(&w->done, done);
	if (UNLIKELY(done->status == -SLMPM_ECANCELED) && w->wr.op < SLMPM_OP_WAIT) /* by itself */
		w->done.len = 0;
	complete(ch, w);
}

void entry_bound(struct queue *inner, uint64_t cookie, struct request *r)
{
	LIST_ENTRY(inner, struct workqueue, inner)->work[cookie].request = r;
}

/* What has not begun in a channel that has stopped, and of which all that has begun has ended. */
static int flush(struct channel *ch)
{
	int n = 0;

	for (struct work *w; (w = ch->at); n++)
		channel_end(ch, w, -SLMPM_ECANCELED, ch->failed);
	return n;
}

/* ---- beginning --------------------------------------------------------------------------- */

/* Its peer is to be connected first; or messages that are staged leave before what is not one. */
static NOINLINE bool peer_is_late(struct channel *ch, struct work *w, struct endpoint *ep)
{
	if (!ep)
		return named_is(w->wr.peer) && (named_waits(ch, w) || ch->status);
	if (w->wr.op == SLMPM_OP_SEND || w->wr.op == SLMPM_OP_AM || w->wr.op == SLMPM_OP_RECV)
		return false;
	(void)link_push(ep);
	if (!ep->bundle.count)
		return ch->status; /* one has failed just now, on its way out */
	channel_retry(ch);         /* there was no room */
	return true;
}

/* Such a one is under way alone, receives aside. */
static bool is_barred(const struct channel *ch)
{
	return LIST_ENTRY(ch->begun.next, struct work, node)->wr.flags & SLMPM_BARRIER;
}

/* What may yet be refused is overtaken by none: behind it those of its stream alone begin. */
static bool follows_claim(const struct channel *ch, const struct work *w)
{
	LIST_EACH_ENTRY(struct work, b, &ch->begun, node)
		if (b->request && b->request->claims &&
		    (w->wr.op != SLMPM_OP_SEND || w->wr.stream != b->wr.stream))
			return false;
	return true;
}

static INLINE bool turn_has_come(struct channel *ch, struct work *w, struct endpoint *ep)
{
	enum work_kind kind;

	if (ch->wq->ctx->begins) { /* one begins just now */
		channel_ready(ch);
		return false;
	}
	if (!is_enabled(ch->wq, w) ||
	    (UNLIKELY(!ep || ep->bundle.count) && peer_is_late(ch, w, ep)) ||
	    (w->wr.timeout_ms && wait_entry(ch, w, ep)))
		return false;
	if (list_empty(&ch->begun))
		return true;
	if (w->wr.op == SLMPM_OP_RECV)
		return !is_barred(ch);
	if (ep && UNLIKELY(endpoint_is_blocked(ep, BLOCK_BOUND)) && !follows_claim(ch, w))
		return false;
	kind = work_kind_of(&w->wr);
	return kind == ch->kind && kind != WORK_ALONE && ep && handle_id(ep) == ch->peer &&
	       (kind != WORK_COUNTED || remote_counts_are_out(ch));
}

bool channel_may_begin(struct channel *ch, struct work *w, struct endpoint *ep)
{
	return !ch->amidst && turn_has_come(ch, w, ep);
}

/* ENABLE, COUNT of a counter here, or a CALC of one step? */
static bool acts_at_once(const struct work *w)
{
	if (work_names(w->wr.op))
		return w->awaits;
	return w->wr.op == SLMPM_OP_CALC && calculation_is_short(w);
}

/* Such a one; what it names is there, for W holds it. */
static void act(struct work *w)
{
	bool more = w->wr.flags & SLMPM_RELATIVE;
	uint64_t value = w->value;

	if (w->wr.op == SLMPM_OP_CALC) {
		calc_plain_again(&w->plain);
		(void)calc_plain_step(&w->plain);
	} else if (w->wr.op == SLMPM_OP_COUNT) {
		struct counter *c = LIST_ENTRY(w->awaits, struct counter, awaits);

		counter_set(c, more ? total_plus(c->done, value) : value);
	} else {
		struct workqueue *t = LIST_ENTRY(w->awaits, struct workqueue, awaits);

		workqueue_enable(t, more ? total_plus(t->enabled, value) : value);
	}
}

/* They begin and end at once, when all before them are done. */
static INLINE bool act_step(struct channel *ch, struct work *w)
{
	if (!is_enabled(ch->wq, w) || !list_empty(&ch->begun))
		return false;
	ch->at = w->next;
	ch->wq->begun++;
	act(w);
	entry_describe(w, 0, 0);
	deliver(ch->wq, w);
	return true;
}

/* 0, or why not. */
static int begin_operation(struct workqueue *wq, struct work *w, struct endpoint *ep,
			   enum sent sent)
{
	struct queue *before = wq->ctx->begins; /* a handler may post a receive meanwhile */
	bool kept = wq->flags & SLMPM_WQ_KEPT;
	uint64_t number = w->number;
	void *owned = w->owned;
	int rc;

	/* It may end meanwhile, and its place be another's: its arrays are read till the call's end. */
	if (!kept)
		w->owned = NULL;
	wq->ctx->begins = &wq->inner;
	rc = work_begin(wq->ctx, ep, w, (uint64_t)(w - wq->work), sent);
	wq->ctx->begins = before;
	if (UNLIKELY(rc && w->part.by))
		spread_end(wq, &w->part, rc, 0);
	if (kept)
		return rc;
	if (w->number == number && w->state == WORK_BEGUN)
		w->owned = owned;
	else
		free(owned);
	return rc;
}

/* W is under way from now on: 0, or why it is not after all. */
static NOINLINE int start(struct channel *ch, struct work *w, struct endpoint *ep, enum sent sent)
{
	struct workqueue *wq = ch->wq;

	if (ch->passed)
		tell_passed(ch);
	w->state = WORK_BEGUN;
	enlist(ch, w);
	if (w->wr.op != SLMPM_OP_RECV) {
		ch->kind = work_kind_of(&w->wr);
		ch->peer = ep ? handle_id(ep) : 0;
	}
	if (w->wr.op < SLMPM_OP_WAIT)
		return begin_operation(wq, w, ep, sent);
	if (w->wr.op == SLMPM_OP_PIPE)
		piping_begin(ch, w);
	else if (w->wr.op == SLMPM_OP_COUNT)
		remote_count_begin(ch, w);
	else
		calculation_begin(ch, w);
	return 0;
}

/* W, a SEND to EP, goes at once if it can. SENT: it is done, as W->done says; no handler runs. */
static INLINE enum sent send_now(struct endpoint *ep, struct work *w)
{
	const struct slmpm_wr *wr = &w->wr;
	enum sent sent;

	if (LIKELY(w->usual))
		sent = message_send_single(ep, wr->stream, wr->iov, wr->imm);
	else
		sent = message_send_at_once(ep, wr->stream, wr->iov, wr->iov_count,
					    wr->flags | spread_hint(w->part), wr->imm);
	if (sent == SENT)
		w->done.status = 0;
	if (sent == SENT && !(wr->flags & SLMPM_SILENT))
		message_describe_sent(&w->done, ep, wr->stream, wr->iov, wr->imm);
	return sent;
}

static INLINE int begin_now(struct channel *ch, struct work *w, struct endpoint *ep)
{
	struct workqueue *wq = ch->wq;
	enum sent sent = NOT_SENT;
	int rc = 0;

	ch->at = w->next;
	wq->begun++;
	if (!w->usual) {
		list_withdraw(&ch->timed);
		if (UNLIKELY(wq->flags & SLMPM_WQ_SPREAD) && w->wr.op < SLMPM_OP_WAIT)
			spread_begin(wq, &w->part, &w->wr, ep, work_bytes_of(&w->wr));
	}
	if (ep && w->wr.op == SLMPM_OP_SEND && !w->wr.rctr.id)
		sent = send_now(ep, w);
	if (sent == SENT)
		entry_finish(ch, w);
	else
		rc = start(ch, w, ep, sent);
	if (rc < 0) {
		w->next = ch->at; /* a handler may have posted one */
		ch->at = w;
		w->state = WORK_WAITS;
		w->request = NULL;
		wq->begun--;
		return rc;
	}
	await_inspect(&wq->awaits);
	return 0;
}

int channel_begin(struct channel *ch, struct work *w, struct endpoint *ep)
{
	return begin_now(ch, w, ep);
}

/* W is a SEND like a call's, and nothing is under way before it. */
static INLINE bool is_usual(const struct channel *ch, const struct work *w)
{
	return LIKELY(w->usual && !w->cancelled) && list_empty(&ch->begun) && !ch->wq->ctx->begins;
}

/* It begins, or fails. USUAL: as of is_usual. */
static INLINE bool begin_step(struct channel *ch, struct work *w, bool usual)
{
	struct endpoint *ep = work_endpoint(w);
	int rc;

	if (LIKELY(usual && ep) || turn_has_come(ch, w, ep))
		rc = begin_now(ch, w, ep);
	else if (w->refused)
		rc = -SLMPM_EDISABLED;
	else
		return false;
	if (rc < 0)
		channel_end(ch, w, rc, 0);
	return true;
}

/* Of W, a WAIT: 1 it is over; else as wait_on. */
static INLINE int wait_step(struct channel *ch, struct work *w, uint64_t *len)
{
	const struct await *a = &ch->await;

	if (w->state == WORK_WAITS)
		wait_reach(ch, w);
	*len = *a->total - a->start;
	return await_is_over(a) ? 1 : wait_on(ch, w, len);
}

enum turn { TURN_WAITS, TURN_TAKEN, TURN_BEGINS };

/* Of W, no usual SEND: it waits, or has had its turn, or is to begin an operation. */
static INLINE enum turn turn_of(struct channel *ch, struct work *w)
{
	uint64_t len = 0;
	int rc;

	if (w->wr.op != SLMPM_OP_SEND && ch->passed)
		tell_passed(ch);
	if (UNLIKELY(w->cancelled))
		rc = -SLMPM_ECANCELED;
	else if (w->wr.op == SLMPM_OP_WAIT)
		rc = w->state == WORK_BEGUN || is_enabled(ch->wq, w) ? wait_step(ch, w, &len) : 0;
	else if (acts_at_once(w))
		return act_step(ch, w) ? TURN_TAKEN : TURN_WAITS;
	else
		return TURN_BEGINS;
	if (rc < 0)
		channel_end(ch, w, rc, len);
	else if (rc)
		pass(ch, w, len);
	return rc ? TURN_TAKEN : TURN_WAITS;
}

/* The next entry of a channel that has not stopped: false, its turn has not come. */
static INLINE bool channel_step(struct channel *ch)
{
	struct work *w = ch->at;
	bool usual = is_usual(ch, w);
	enum turn turn = usual ? TURN_BEGINS : turn_of(ch, w);

	return turn == TURN_BEGINS ? begin_step(ch, w, usual) : turn == TURN_TAKEN;
}

static NOINLINE int advance_amidst(struct channel *ch)
{
	const struct work *w = ch->amidst;

	if (w->state == WORK_ARRIVED)
		return remote_count_advance(ch);
	return w->wr.op == SLMPM_OP_PIPE ? piping_advance(ch) : calculation_advance(ch);
}

static INLINE int advance(struct channel *ch)
{
	int steps = 0, n = 0;

	if (ch->amidst)
		steps = advance_amidst(ch);
	list_withdraw(&ch->await.node); /* it stands at none until a step says so */
	while (ch->at && !ch->status && !ch->amidst && n < STEPS && channel_step(ch))
		n++;
	if (ch->passed)
		tell_passed(ch);
	if (ch->at && ch->status && list_empty(&ch->begun))
		n += flush(ch);
	if (n >= STEPS && ch->at)
		channel_ready(ch);
	if (n && context_is_server(ch->wq->ctx))
		ch->wq->by_engine += (uint64_t)n;
	return n + steps;
}

int channel_advance(struct channel *ch)
{
	return advance(ch);
}

int workqueue_advance(struct context *ctx)
{
	const struct channel *first = NULL; /* that waits for room */
	int n = 0;

	ctx->laboured = false;
	while (!list_empty(&ctx->ready) && n < PASS_STEPS && !ctx->begins && !ctx->laboured) {
		struct channel *ch = LIST_ENTRY(ctx->ready.next, struct channel, node);
		int steps;

		if (ch == first) /* those behind it have had their turn */
			break;
		list_remove(&ch->node);
		steps = advance(ch);
		n += steps;
		if (!steps && !list_empty(&ch->node) && !first)
			first = ch;
	}
	return n;
}
