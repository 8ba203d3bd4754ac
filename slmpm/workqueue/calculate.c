/* SPDX-License-Identifier: BSD-3-Clause */
/* CALC entries: prepared when they are posted, done a piece at each of their channel's turns. */
#include "slmpm/workqueue/workqueue.h"

#include <stdlib.h>

#include "slmpm/base/error.h"

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

static bool step(struct work *w)
{
	return w->plain.kernel ? calc_plain_step(&w->plain) : calc_step(w->owned);
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
	if (!w->cancelled && step(w)) {
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
