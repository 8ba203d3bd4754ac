/* SPDX-License-Identifier: BSD-3-Clause */
/* CALC entries: prepared when they are posted, done a piece at each of their channel's turns. */
#include "slmpm/workqueue/workqueue.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/engine/engine.h"

/* Of a calculation's turn: no more than a step while other threads may want the lock. */
static inline uint64_t steps_of(const struct context *ctx)
{
	return ctx->multiple ? 1 : 2;
}

/* ---- at once ------------------------------------------------------------------------------ */

/* What stands between a request's peer and its calculation is no CALC's (member.c), but .ctr. */
#define OTHERS (offsetof(struct slmpm_wr, calc) - offsetof(struct slmpm_wr, peer))

/* Nothing is said of it but what it calculates, and how its end is told. */
static inline bool is_bare(const struct slmpm_wr *wr)
{
	uint64_t words[OTHERS / 8], any = wr->rctr.id | (wr->flags & ~SLMPM_SILENT);

	memcpy(words, (const char *)wr + offsetof(struct slmpm_wr, peer), sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		any |= words[i];
	return !any;
}

/* An entry of its own would begin, as soon as it is posted. */
static inline bool would_begin(const struct workqueue *wq, const struct channel *ch)
{
	const uint32_t waits = SLMPM_WQ_MANAGED | SLMPM_WQ_KEPT | SLMPM_WQ_RECEIVE;

	return !ch->at && list_empty(&ch->begun) && !(wq->flags & waits) && !wq->stopped &&
	       wq->used < wq->depth && !wq->ctx->begins;
}

/* Its end is that of the room taken in Q. */
static inline void complete_room(struct queue *q, const struct slmpm_wr *wr)
{
	struct slmpm_done *done;

	if (wr->flags & SLMPM_SILENT) {
		q->in_flight--;
		return;
	}
	done = queue_next(q);
	work_describe(done, wr, 0, 0);
	done->cookie = wr->cookie;
	await_inspect(&q->awaits);
}

bool calculation_at_once(struct workqueue *wq, const struct slmpm_wr *wr)
{
	struct context *ctx = wq->ctx;

	if (!is_bare(wr) || wr->channel >= wq->channel_count || wq->ctr.id ||
	    !would_begin(wq, &wq->channels[wr->channel]) || !queue_take_room(wq->queue))
		return false;
	if (!calc_plain_at_once(wr->calc, steps_of(ctx) * CALC_STEP)) {
		wq->queue->in_flight--;
		return false;
	}
	wq->posted++;
	wq->begun++;
	wq->done++;
	complete_room(wq->queue, wr);
	if (context_is_server(ctx))
		wq->by_engine++;
	ctx->news = true;
	context_told(ctx);
	await_inspect(&wq->awaits);
	return true;
}

/* ---- in its turn --------------------------------------------------------------------------- */

int calculation_take(const struct workqueue *wq, struct work *w)
{
	int rc;

	w->exchanges = false;
	if (LIKELY(calc_plain_take(&w->plain, w->wr.calc)))
		return 0;
	if (!w->wr.calc)
		return error_set(SLMPM_EINVAL, "slmpm_post: a CALC without .calc");
	rc = calc_check(w->wr.calc, "slmpm_post");
	return rc < 0 ? rc : exchange_take(wq, w);
}

bool calculation_keep(struct work *w)
{
	const struct slmpm_calc *calc = w->wr.calc;

	w->wr.calc = NULL; /* the caller's again */
	if (w->plain.kernel)
		return true;
	if (w->exchanges)
		return exchange_keep(w, calc);
	w->owned = malloc(calc_job_size(calc));
	if (w->owned)
		calc_begin(w->owned, calc);
	return w->owned;
}

/* False: it is done. */
static bool take_turn(const struct context *ctx, struct work *w)
{
	bool more = true;

	for (uint64_t n = steps_of(ctx); n && more; n--)
		more = w->plain.kernel ? calc_plain_step(&w->plain) : calc_step(w->owned);
	return more;
}

void calculation_begin(struct channel *ch, struct work *w)
{
	ch->amidst = w;
	if (w->exchanges) {
		exchange_begin(ch, w);
		return;
	}
	if (w->plain.kernel)
		calc_plain_again(&w->plain);
	else
		calc_again(w->owned);
	(void)calculation_advance(ch);
}

int calculation_advance(struct channel *ch)
{
	struct work *w = ch->amidst;

	if (w->exchanges)
		return exchange_advance(ch);
	if (!w->cancelled && take_turn(ch->wq->ctx, w)) {
		ch->wq->ctx->laboured = true;
		channel_ready(ch);
		return 1;
	}
	ch->amidst = NULL;
	channel_end(ch, w, w->cancelled ? -SLMPM_ECANCELED : 0, 0);
	return 1;
}

void calculation_given(const struct work *w, struct slmpm_calc *c,
		       struct slmpm_operand operands[SLMPM_CALC_ARGS_MAX + SLMPM_CALC_TARGETS_MAX])
{
	if (w->plain.kernel)
		calc_plain_given(&w->plain, c, operands);
	else if (w->exchanges)
		exchange_given(w, c, operands);
	else
		calc_given(w->owned, c, operands);
}
