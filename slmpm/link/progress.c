/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress: each endpoint in turn gets a bounded share, so that a fast or lying peer cannot starve
 * the others; then what waits to be sent moves on.
 */
#include "slmpm/link/progress.h"

#include <errno.h>

#include "slmpm/base/clock.h"
#include "slmpm/link/bundle.h"
#include "slmpm/domain.h"
#include "slmpm/link/link.h"
#include "slmpm/link/packet.h"
#include "slmpm/part.h"
#include "slmpm/link/wait.h"
#include "slmpm/link/idle.h"

#define AWAY_NS        4000
#define INSPECT_SHARE  64 /* packets of a pass that count as one more: passes over many peers */
/* Members of a group that wait for each other mostly have links that are polled by themselves: the
 * fabrics are asked for the others each so many rounds. */
#define COLLECT_ROUNDS 4
#define TURN_TICKS     2000000 /* of a peer, before the others get theirs */

COLD int progress_back_off(struct endpoint *ep, int most)
{
	struct link *l = &ep->link;
	bool gained = !l->away || l->run >= PROGRESS_RUN + PROGRESS_GAIN;

	/* With several endpoints the others take time enough. */
	l->away = gained && ep->ctx->live == 1 && !ep->ctx->oversubscribed;
	l->run = l->away ? PROGRESS_RUN : 0;
	if (!l->away)
		return 0;
	clock_relax(AWAY_NS);
	return l->fabric->poll(l->port, l->arrivals, most);
}

COLD void progress_turn(struct endpoint *ep)
{
	struct context *ctx = ep->ctx;
	uint64_t now = clock_ticks();

	if (ep->blocked || ctx->passing || now - ctx->turned < TURN_TICKS)
		return;
	ctx->turned = now;
	ctx->idle = PROGRESS_INSPECT_EVERY;
	ctx->due = true;
	endpoint_block(ep, BLOCK_TURN, true);
}

/* They have had it. */
static COLD void turn_over(struct context *ctx)
{
	ctx->due = false;
	for (uint32_t i = 0; i < ctx->live; i++)
		endpoint_block(ctx->endpoints[i], BLOCK_TURN, false);
}

COLD void progress_failed(struct endpoint *ep, int rc)
{
	if (rc == -EPIPE)
		parts.lost(ep);
	else
		endpoint_poison(ep, ep->link.port->violation);
}

/*
 * Ends with the first request that finishes: what lies behind its message may be for the next
 * receive, and is not to be kept in memory meanwhile. ALL: there will be none.
 */
static INLINE int take_some(struct endpoint *ep, bool all)
{
	struct context *ctx = ep->ctx;
	struct fabric_arrival *a;
	bool news = ctx->news;
	int n;

	ctx->finished = false;
	n = UNLIKELY(ep->unpack.left) ? bundle_unpack(ep, all) : 0;
	while (n < PROGRESS_SHARE && (all || !ctx->finished) && !ep->unpack.left &&
	       ep->state == SLMPM_PEER_UP && (a = progress_take(ep))) {
		n++;
		if (!packet_take(ep, a)) {
			progress_release(ep, a);
		} else if (UNLIKELY(ep->link.enomem)) {
			ep->link.enomem = false;
			ep->link.next--; /* it is the next one again */
			ep->link.port->quiet = false;
			n--;
			ctx->news = news || n;
			break;
		}
	}
	return n;
}

static NOINLINE int take_batch(struct endpoint *ep, bool all)
{
	return take_some(ep, all);
}

/* A process that was closed here may send until it is joined. That is dropped: a socket that stays
 * readable would end each wait for others at once. */
static COLD void progress_discard(struct endpoint *ep)
{
	struct link *l = &ep->link;

	for (int n = 0; n < PROGRESS_SHARE; n++) {
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

static int take_steps(struct endpoint *ep)
{
	int n = 0;

	PART_EACH(part, parts.step)
		if (ep->state == SLMPM_PEER_UP)
			n += (*part)(ep);
	return n;
}

/* A pass would do no more, and nothing else brings it more to do. What has been waited for is taken
 * alone, before what lies behind it is inspected. */
static INLINE void poll_on(struct endpoint *ep, uint32_t polls)
{
	const struct context *ctx = ep->ctx;

	while (!progress_poll(ep, 1) && --polls) {
		clock_between_polls();
		if (UNLIKELY(ctx->multiple) && context_is_wanted(ctx))
			return;
	}
}

static INLINE int progress_endpoint(struct endpoint *ep, uint32_t polls)
{
	int n;

#ifdef SLMPM_COMPARE
	parts.compare(ep);
#endif
	n = UNLIKELY(endpoint_is_blocked(ep, BLOCK_KEPT)) ? parts.run_kept(ep) : 0;

	if (ep->state != SLMPM_PEER_UP) {
		if (ep->closing && ep->rooms->process && ep->life->was_up)
			progress_discard(ep);
		return n;
	}
	if (polls > 1)
		poll_on(ep, polls - 1);
	n += take_some(ep, false);
	if (ep->link.ended && ep->state == SLMPM_PEER_UP)
		endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, "it closed the connection");
	if (endpoint_has_work(ep)) {
		n += link_push(ep);
		n += take_steps(ep);
	}
	if (UNLIKELY(ep->link.broken != NULL))
		endpoint_end_broken(ep);
	return n;
}

/* Nothing has come, as its fabric has found out, and nothing waits to be sent: among many most are
 * so, and cost a pass no more than this. */
static inline bool rests(const struct endpoint *ep)
{
	return !endpoint_has_work(ep) && ep->link.port->quiet && !ep->unpack.left &&
	       !ep->link.port->domain->rescan;
}

/* Until a request has finished. The next call goes on there, so that all have their turn, and asks
 * the fabrics no more meanwhile; one that finds nothing so begins again, to find all there is. */
static NOINLINE int progress_pass(struct context *ctx)
{
	bool asked;
	int n = 0;

	do {
		asked = ctx->gone >= ctx->live;
		if (asked) {
			ctx->gone = 0;
			if (!ctx->collecting || !ctx->polling || ctx->armed ||
			    ctx->rounds++ % COLLECT_ROUNDS == 0)
				domain_rescan(ctx);
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
				n += progress_endpoint(ep, 1);
		}
		ctx->gone = UINT32_MAX;
	} while (!asked && !n);
	return n;
}

int progress_ask(struct context *ctx)
{
	uint64_t now = clock_ticks();

	if (now - ctx->inspected < PROGRESS_ASK_TICKS)
		return 0;
	ctx->inspected = now;
	return wait_inspect(ctx);
}

/* Also while busy: one peer's traffic must not keep others from connecting or dying. */
static COLD int inspect_in_turn(struct context *ctx)
{
	int n = progress_ask(ctx);

	ctx->idle = 0;
	if (!n)
		yield_consider(ctx);
	return n;
}

HOT int progress_polling(struct context *ctx, uint32_t polls)
{
	int n;

	if (UNLIKELY(ctx->handling)) /* it goes on when the handler has returned */
		return 0;
	ctx->finished = false;
	ctx->passing = true;
	n = LIKELY(ctx->live == 1) ? progress_endpoint(ctx->endpoints[0], polls) :
				     progress_pass(ctx);
	ctx->passing = false;
	if (UNLIKELY(ctx->due))
		turn_over(ctx);
	if (UNLIKELY(!list_empty(&ctx->ready)))
		n += parts.advance(ctx);
	if (UNLIKELY(ctx->collecting))
		n += parts.collect(ctx);
	ctx->idle += 1 + (uint32_t)n / INSPECT_SHARE;
	if (UNLIKELY(ctx->idle >= PROGRESS_INSPECT_EVERY))
		n += inspect_in_turn(ctx);
	if (n) { /* a bell, too: it must not be taken behind the back of slmpm_arm */
		ctx->news = true;
		context_changed(ctx);
	}
	return n;
}

COLD void progress_opportunistic(struct context *ctx)
{
	if (ctx->handling || ctx->polling || ctx->passing)
		return;
	if (ctx->armed && !ctx->sleeping)
		wait_disarm(ctx);
	ctx->monitor.opportunistic = true;
	(void)progress_context(ctx);
	(void)wait_inspect(ctx); /* progress alone asks the kernel far too seldom for that */
	ctx->monitor.opportunistic = false;
}

int progress_read_ahead(struct context *ctx)
{
	int n = 0;

	for (uint32_t i = 0; i < ctx->live && !ctx->handling; i++) {
		struct endpoint *ep = ctx->endpoints[i];
		int kept;

		if (ep->state != SLMPM_PEER_UP || !ep->blocked)
			continue;
		kept = parts.run_kept(ep);
		n += kept ? kept : take_batch(ep, false);
	}
	return n;
}

bool progress_inspect(struct endpoint *ep)
{
	bool finished = ep->ctx->finished;
	int n;

	domain_rescan(ep->ctx);
	ep->link.full = false;
	n = take_batch(ep, true);
	ep->ctx->finished |= finished;
	return n < PROGRESS_SHARE && !ep->unpack.left && ep->link.next == ep->link.end;
}

bool progress_drain(struct endpoint *ep)
{
	/* Nothing can be added any more; the bound is for a process that inherited the mapping. */
	uint64_t most = 2 * ep->link.port->counts.in_segments + PROGRESS_SHARE;
	uint64_t i = 0;

	(void)parts.run_kept(ep);
	/* No receive is about to be posted for what comes. */
	endpoint_block(ep, BLOCK_DRAIN, true);
	ep->link.full = false;
	domain_rescan(ep->ctx);
	while (i < most && ep->state == SLMPM_PEER_UP && take_batch(ep, true))
		i++;
	endpoint_block(ep, BLOCK_DRAIN, false);
	return i > 0;
}
