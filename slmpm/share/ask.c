/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets that the peer's engine is asked to do: the side that asks (ask.c). */
#include "slmpm/share/share.h"

#include "slmpm/base/config.h"
#include "slmpm/message/fetch.h"
#include "slmpm/base/clock.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/completion/completion.h"
#include "slmpm/rma/rma.h"

#define PATIENCE_NS 10000000 /* for a target to take an offer; ... */
#define BYTES_A_NS  8        /* ... or as long as the copy would take */
#define LEAST_MS    100      /* a call that has less does not wait for another's engine */

uint64_t ask_least(const struct endpoint *ep, bool engine)
{
	const struct mode_limits *l = mode_limits();

	if (!engine || !ep->rooms->share || config_get()->engine || l->force == MODE_SMT)
		return UINT64_MAX;
	return l->force == MODE_DMA && l->engine < l->ask ? l->engine : l->ask;
}

/* As for messages that are fetched; whether that works, the peer finds out. */
static bool is_attached(const struct endpoint *ep)
{
	return ep->life->attach && ep->link.fabric->reg && !ep->rooms->share->unreached;
}

/* Whether this call, which may not block, or not long, is to wait for somebody. */
static bool ask_may_wait(const struct operation *o)
{
	const struct endpoint *ep = o->remote->ep;

	if (!completion_blocks(&o->full, o->req))
		return true;
	return !ep->ctx->handling && ep->lent != LENT_PACKET &&
	       (o->full.timeout_ms < 0 || o->full.timeout_ms >= LEAST_MS);
}

static uint32_t access_here(enum request_kind kind)
{
	return kind == REQUEST_PUT ? SLMPM_READ : SLMPM_WRITE;
}

bool ask_reaches(const struct operation *o, bool *beyond)
{
	const struct endpoint *ep = o->remote->ep;
	uint64_t offset;

	if (o->span_count != 1 || o->piece_count != 1 || o->atomic ||
	    o->full.flags & SLMPM_NOTIFY || !ask_may_wait(o))
		return false;
	if (share_grant(ep, o->pieces->base, o->length, access_here(o->kind), &offset))
		return true;
	*beyond = !is_attached(ep);
	/* What it would have to attach to takes it longer than a copy here, whatever the length. */
	return !*beyond && (mode_hint(o->full.flags) || mode_limits()->force == MODE_DMA);
}

/* From the byte DONE on. */
static void copy_here(struct request *r, uint64_t done, enum slmpm_reason reason)
{
	r->rma.carrier = RMA_BY_ENGINE;
	r->mode = (struct mode){.way = MODE_COPY, .reason = (uint8_t)reason, .link = r->mode.link};
	rma_count(r->ep, r->kind, -1, (int64_t)(done - r->length));
	rma_move_here(r, done);
}

/* ---- offering ---------------------------------------------------------------------------- */

static bool ask_offer(struct endpoint *ep, const struct request *r)
{
	uint32_t how = WIRE_SHARE_ENGINE | (r->kind == REQUEST_GET ? WIRE_SHARE_GET : 0);
	uint64_t offset = 0;
	const struct grant *g =
		share_grant(ep, r->pieces->base, r->length, access_here(r->kind), &offset);
	const struct wire_share w = {
		.target = rma_target(r->rma.remote, r->rma.spans->offset, r->length),
		.offset = LITTLE_64(g ? offset : (uint64_t)(uintptr_t)r->pieces->base),
		.grant = LITTLE_32(g ? g->id : 0),
		.how = LITTLE_32(how | (g ? 0 : WIRE_SHARE_ADDRESS)),
	};

	return share_offer(ep, &w);
}

static int ask_begin(struct endpoint *ep, struct request *r)
{
	struct share *s = ep->rooms->share;

	if (!ask_offer(ep, r))
		return 0;
	list_remove(&r->node);
	s->asked = r;
	s->since = clock_now();
	ep->ctx->asking = true;
	context_changed(ep->ctx); /* a sleeper does not know of this deadline */
	ask_block(ep);
	return 1;
}

static uint64_t late_at(const struct share *s)
{
	uint64_t copy = s->limit / BYTES_A_NS;

	return s->since + (copy > PATIENCE_NS ? copy : PATIENCE_NS);
}

/* What is asked is taken back: true, nothing is asked any more. Not in a handler: its packet lies
 * where others would be read to. */
static bool ask_undo(struct endpoint *ep)
{
	struct share *s = ep->rooms->share;
	const struct request *r = s->asked;

	if (ep->ctx->handling || !share_take_back(ep) || s->asked != r || s->upto)
		return false;
	s->asked = NULL;
	ask_block(ep);
	return true;
}

int ask_step(struct endpoint *ep)
{
	struct share *s = ep->rooms->share;
	struct request *r;

	if (!ask_waits(ep) || (s->asked && s->upto))
		return 0;
	r = s->asked;
	if (r && (clock_now() < late_at(s) || !ask_undo(ep)))
		return 0;
	if (!r) {
		r = LIST_ENTRY(s->asks.next, struct request, node);
		if (!s->out || s->over)
			return ask_begin(ep, r);
		list_remove(&r->node);
		ask_block(ep);
	}
	copy_here(r, 0, SLMPM_REASON_ABSENT);
	return 1;
}

void ask_start(struct request *r)
{
	struct rma_work *w = &r->rma;

	w->parts = 1;
	w->span = w->span_count;
	list_append(&r->ep->rooms->share->asks, &r->node);
	ask_block(r->ep);
	if (!r->ep->rooms->share
		     ->asked) /* else its turn comes, and who is late is given up amid no packet */
		(void)ask_step(r->ep);
}

uint64_t ask_deadlines(struct context *ctx, uint64_t now)
{
	uint64_t first = UINT64_MAX;

	if (!ctx->asking)
		return first;
	ctx->asking = false;
	for (uint32_t i = 0; i < ctx->live; i++) {
		const struct share *s = ctx->endpoints[i]->rooms->share;

		if (!s || !s->asked || s->upto || s->given)
			continue;
		ctx->asking = true;
		if (late_at(s) < first)
			first = late_at(s);
	}
	return first > now ? first : 0;
}

/* ---- ends -------------------------------------------------------------------------------- */

void ask_answered(struct endpoint *ep)
{
	struct share *s = ep->rooms->share;
	struct request *r = s->asked;
	uint64_t done = s->done;

	if (s->over)
		s->asked = NULL;
	ask_block(ep);
	if (!s->over)
		return;
	if (done == r->length) {
		ep->stats->asked++;
		ep->stats->asked_bytes += done;
		/* What a get has brought was stored before the packet that said so. */
		rma_part_done(r, 0, 0);
		return;
	}
	if (s->given) {
		copy_here(r, done, SLMPM_REASON_ABSENT);
		return;
	}
	s->unreached |= !done && !share_grant(ep, r->pieces->base, r->length, access_here(r->kind),
					      &(uint64_t){0});
	copy_here(r, done, SLMPM_REASON_UNREACHABLE);
}

bool ask_take_back(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct share *s = ep->rooms->share;

	if (s->asked != r) {
		list_remove(&r->node);
		ask_block(ep);
		return true;
	}
	return ask_undo(ep);
}

struct endpoint *ask_abandon(struct request *r)
{
	struct endpoint *ep = r->ep;

	if (ep->rooms->share->asked != r)
		return NULL;
	ep->rooms->share->asked = NULL;
	ask_block(ep);
	ep->rma->holds |= RMA_BEHIND; /* nothing may be overtaken by what it still moves */
	rma_finished(r);
	return ep;
}

bool ask_release(struct endpoint *ep)
{
	struct share *s = ep->rooms->share;
	struct request *r;

	if (!s)
		return true;
	while (!list_empty(&s->asks)) {
		r = LIST_ENTRY(s->asks.next, struct request, node);
		list_remove(&r->node);
		request_finish(r, -SLMPM_ECLOSED);
	}
	ask_block(ep);
	r = s->asked;
	if (r && ask_undo(ep))
		request_finish(r, -SLMPM_ECLOSED);
	return !s->asked && (!s->upto || s->over);
}

void ask_end(struct endpoint *ep)
{
	if (!ep->rooms->share)
		return;
	ask_stop(ep);
	ep->rooms->share->asked = NULL; /* it is among those of rma_end, like what waits */
	endpoint_block(ep, BLOCK_SHARE, false);
}
