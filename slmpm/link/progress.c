/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress: each endpoint in turn gets a bounded share, so that a fast or lying peer cannot starve
 * the others; then what waits to be sent moves on.
 */
#include "slmpm/link/progress.h"

#include <errno.h>

#include "slmpm/message/am_take.h"
#include "slmpm/message/arrival.h"
#include "slmpm/connect/bootstrap.h"
#include "slmpm/message/bundle.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/domain.h"
#include "slmpm/engine/engine.h"
#include "slmpm/message/fetch.h"
#include "slmpm/link/link.h"
#include "slmpm/memory/ask.h"
#include "slmpm/wait.h"
#include "slmpm/yield.h"
#include "slmpm/completion/workqueue.h"

#define AWAY_NS    4000
#define SHARE      16  /* packets of an endpoint before it is the next one's turn */
#define LOOK_EVERY 512 /* passes between looks at the descriptors, busy or not ... */
#define POLLS      16  /* of one ring in a call before it is found empty */
#define LOOK_TICKS 200000
#define LOOK_SHARE 64      /* ... where so many packets count as one more: passes over many peers */
#define TURN_TICKS 2000000 /* of a peer, before the others get theirs */

COLD int progress_look_away(struct endpoint *ep)
{
	struct link *l = &ep->link;
	bool gained = !l->away || l->run >= PROGRESS_RUN + PROGRESS_GAIN;

	/* With several endpoints the others take time enough. */
	l->away = gained && ep->ctx->live == 1 && !ep->ctx->oversubscribed;
	l->run = l->away ? PROGRESS_RUN : 0;
	if (!l->away)
		return 0;
	clock_relax(AWAY_NS);
	return l->fabric->poll(l->port, l->arrivals, LINK_BATCH);
}

COLD void progress_turn(struct endpoint *ep)
{
	struct context *ctx = ep->ctx;
	uint64_t now = clock_ticks();

	if (!ep->direct || ctx->passing || now - ctx->turned < TURN_TICKS)
		return;
	ctx->turned = now;
	ctx->idle = LOOK_EVERY;
	ctx->due = true;
	ep->direct = false;
}

/* They have had it. */
static COLD void turn_over(struct context *ctx)
{
	ctx->due = false;
	for (uint32_t i = 0; i < ctx->live; i++)
		endpoint_refresh(ctx->endpoints[i]);
}

COLD void progress_failed(struct endpoint *ep, int rc)
{
	if (rc == -EPIPE)
		bootstrap_link_lost(ep);
	else
		endpoint_poison(ep, ep->link.port->violation);
}

/* There is no memory for the arrival in hand: it is the next one again. */
static COLD void put_back(struct endpoint *ep)
{
	ep->starved.now = false;
	ep->link.next--;
}

/*
 * Ends with the first request that finishes: what lies behind its message may be for the next
 * receive, and is not to be kept in memory meanwhile. ALL: there will be none.
 */
static int take_batch(struct endpoint *ep, bool all)
{
	struct context *ctx = ep->ctx;
	struct fabric_arrival *a;
	bool news = ctx->news;
	int n;

	ctx->finished = false;
	n = bundle_unpack(ep, all);
	while (n < SHARE && (all || !ctx->finished) && !ep->unpack.left &&
	       ep->state == SLMPM_PEER_UP && (a = progress_take(ep))) {
		n++;
		if (!arrival_take(ep, a)) {
			progress_release(ep, a);
		} else if (UNLIKELY(ep->starved.now)) {
			put_back(ep);
			n--;
			ctx->news = news || n;
			break;
		}
	}
	return n;
}

/* A process that was closed here may send until it is joined. Nobody wants that; but what tells of it, a socket that
 * stays readable, would do so for ever, and each wait for others would be over at once. */
static COLD void discard(struct endpoint *ep)
{
	struct link *l = &ep->link;

	for (int n = 0; n < SHARE; n++) {
		if (l->next == l->end) {
			int got;

			progress_settle(ep);
			got = l->fabric->poll(l->port, l->arrivals, LINK_BATCH);
			if (got <= 0)
				return;
			l->next = l->arrivals;
			l->end = l->arrivals + got;
		}
		progress_release(ep, l->next++);
	}
	progress_settle(ep);
}

static int progress_ended(struct endpoint *ep)
{
	if (ep->closing && ep->process && ep->was_up)
		discard(ep);
	return UNLIKELY(am_is_due(ep)) ? am_run_kept(ep) : 0;
}

static int progress_endpoint(struct endpoint *ep)
{
	int n;

	if (ep->state != SLMPM_PEER_UP)
		return progress_ended(ep);
	n = UNLIKELY(!ep->direct) && am_is_due(ep) ? am_run_kept(ep) : 0;
	n += take_batch(ep, false);
	if (ep->end_of_stream && ep->state == SLMPM_PEER_UP)
		endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, "it closed the connection");
	if (!ep->direct || ep->bundle.count) {
		n += link_push(ep);
		if (ep->work_waiting)
			n += workqueue_advance(ep);
		if (fetch_busy(ep))
			n += fetch_step(ep);
		if (share_waits(ep) && ep->state == SLMPM_PEER_UP)
			n += share_step(ep);
		if (ask_waits(ep) && ep->state == SLMPM_PEER_UP)
			n += ask_step(ep);
		if (ep->rma->moving)
			n += engine_step(ep->ctx);
	}
	if (UNLIKELY(ep->broken != NULL))
		endpoint_poison(ep, ep->broken);
	return n;
}

/* Nothing has come, as its fabric has found out since it was asked, and nothing waits to be sent: among
 * many most are so, and cost a pass no more than this. */
static inline bool rests(const struct endpoint *ep)
{
	return ep->direct && ep->link.port->quiet && !ep->bundle.count && !ep->unpack.left &&
	       !ep->link.port->domain->anew;
}

/* Until a request has finished. What that cuts short the next call goes on with, so that all have their turn, and
 * asks the fabrics no more meanwhile; who finds nothing so begins anew, and then has found all there is. */
static NOINLINE int pass(struct context *ctx)
{
	bool asked;
	int n = 0;

	do {
		asked = ctx->gone >= ctx->live;
		if (asked) {
			ctx->gone = 0;
			domain_ask_anew(ctx);
		}
		for (uint32_t left = ctx->live; left && ctx->live; left--) {
			struct endpoint *ep;

			if (ctx->finished)
				return n;
			if (ctx->next >= ctx->live)
				ctx->next = 0;
			ep = ctx->endpoints[ctx->next++];
			ctx->gone++;
			if (!rests(ep))
				n += progress_endpoint(ep);
		}
		ctx->gone = UINT32_MAX;
	} while (!asked && !n);
	return n;
}

int progress_context(struct context *ctx)
{
	int n;

	if (UNLIKELY(ctx->handling)) /* it goes on when the handler has returned */
		return 0;
	ctx->finished = false;
	ctx->passing = true;
	n = LIKELY(ctx->live == 1) ? progress_endpoint(ctx->endpoints[0]) : pass(ctx);
	ctx->passing = false;
	if (UNLIKELY(ctx->due))
		turn_over(ctx);
	/* Also while busy: one peer's traffic must not keep others from connecting or dying. */
	ctx->idle += 1 + (uint32_t)n / LOOK_SHARE;
	if (UNLIKELY(ctx->idle >= LOOK_EVERY)) {
		ctx->idle = 0;
		n += wait_look(ctx);
		if (!n)
			yield_consider(ctx);
	}
	if (n) { /* a bell, too: it must not be taken behind the back of slmpm_arm */
		ctx->news = true;
		wait_changed(ctx);
	}
	return n;
}

COLD void progress_in_passing(struct context *ctx)
{
	if (ctx->handling || ctx->polling || ctx->passing)
		return;
	if (ctx->armed && !ctx->sleeping)
		wait_disarm(ctx);
	ctx->monitor.in_passing = true;
	(void)progress_context(ctx);
	(void)wait_look(ctx); /* progress alone asks the kernel far too seldom for that */
	ctx->monitor.in_passing = false;
}

int progress_read_ahead(struct context *ctx)
{
	int n = 0;

	for (uint32_t i = 0; i < ctx->live && !ctx->handling; i++) {
		struct endpoint *ep = ctx->endpoints[i];

		if (ep->state == SLMPM_PEER_UP && !ep->direct && !am_is_due(ep))
			n += take_batch(ep, false);
	}
	return n;
}

bool progress_look(struct endpoint *ep)
{
	bool finished = ep->ctx->finished;
	int n;

	domain_ask_anew(ep->ctx);
	n = take_batch(ep, true);
	ep->ctx->finished |= finished;
	return n < SHARE && !ep->unpack.left && ep->link.next == ep->link.end;
}

bool progress_drain(struct endpoint *ep)
{
	/* Nothing can be added any more; the bound is for a process that inherited the mapping. */
	uint64_t most = 2 * ep->link.port->counts.in_segments + SHARE;
	uint64_t i = 0;

	if (am_is_due(ep))
		(void)am_run_kept(ep);
	ep->direct = false; /* nobody is about to post a receive for what comes */
	domain_ask_anew(ep->ctx);
	while (i < most && ep->state == SLMPM_PEER_UP && take_batch(ep, true))
		i++;
	endpoint_refresh(ep);
	return i > 0;
}

/*
 * The short way of a call, for one peer that sends active messages: those that are there. What else
 * there is waits for the long way. Negative: not this way.
 */
static inline int progress_shortly(struct context *ctx)
{
	struct endpoint *ep;
	struct link *l;
	uint64_t awaited = 0;
	int n = 0, polls = POLLS;

	if (UNLIKELY(ctx->multiple || ctx->live != 1 || ctx->handling || ctx->armed))
		return -1;
	ep = ctx->endpoints[0];
	l = &ep->link;
	while (LIKELY(ep->direct && !ep->unpack.left && !ep->bundle.count &&
		      ctx->idle < LOOK_EVERY)) {
		struct fabric_arrival *a;

		/* Behind a violation there may be more. */
		while (!(a = progress_take(ep)) && --polls && ep->direct) {
			if (polls == POLLS - 1 && ep->mirrors)
				awaited = mirror_now(); /* not in the way of a change to come */
			else
				clock_between_looks();
		}
		if (!a)
			return clock_ticks() - ctx->looked < LOOK_TICKS && ep->direct ? 0 : -1;
		if (UNLIKELY(!(mirror_is_change(a->kind) ? mirror_take_shortly(ep, a, awaited) :
							   am_take_inline(ep, a)))) {
			l->next--;
			return -1;
		}
		ctx->idle++;
		awaited = 0;
		/* The ring had no more than it gave, or others want a look. */
		n++;
		if (LIKELY(l->next == l->end && l->end < l->arrivals + LINK_BATCH) || n == SHARE)
			break;
	}
	ctx->news |= n > 0;
	return LIKELY(ep->direct && n) ? n : -1;
}

/* All that is there, and no more than a pass over everybody would find. */
static int progress_locked(struct context *ctx)
{
	int n = 0;

	if (ctx->armed && !ctx->sleeping) {
		wait_disarm(ctx);
		ctx->looked = 0;
	}
	for (uint32_t passes = ctx->live * SHARE + 1; passes; passes--) {
		n += progress_context(ctx);
		if (!ctx->finished)
			break;
	}
	return n;
}

static void enter(struct context *ctx)
{
	if (LIKELY(!ctx->multiple))
		return;
	pthread_mutex_lock(&ctx->lock);
	if (ctx->port)
		engine_step_aside(ctx, false);
}

int slmpm_progress(slmpm_ctx handle)
{
	int rc = 0;
	struct context *ctx = context_get_quickly(handle, &rc);

	if (UNLIKELY(!ctx))
		return rc;
	rc = progress_shortly(ctx);
	if (LIKELY(rc >= 0))
		return rc;
	enter(ctx);
	rc = progress_locked(ctx);
	/* Who calls all the time need not ask the kernel each time. */
	if (!rc && clock_ticks() - ctx->looked >= LOOK_TICKS) {
		rc = wait_look(ctx);
		ctx->looked = clock_ticks();
		if (!rc)
			yield_consider(ctx);
	}
	if (!rc)
		yield_poll(ctx);
	if (UNLIKELY(ctx->yields)) /* the next one comes this way, too */
		ctx->looked = 0;
	context_unlock(ctx);
	return rc;
}
