/* SPDX-License-Identifier: BSD-3-Clause */
/* CALC entries: prepared when they are posted, done a piece at each of their channel's turns. */
#include "slmpm/workqueue/workqueue.h"

#include <stdlib.h>

#include "slmpm/base/error.h"
#include "slmpm/calc/calc.h"

int calculation_check(const struct slmpm_wr *wr)
{
	if (wr->op != SLMPM_OP_CALC)
		return wr->calc ? error_set(SLMPM_EINVAL, "slmpm_post: .calc is for CALC") : 0;
	if (!wr->calc)
		return error_set(SLMPM_EINVAL, "slmpm_post: a CALC without .calc");
	return calc_check(wr->calc, "slmpm_post");
}

bool calculation_keep(struct work *w)
{
	w->owned = malloc(calc_job_size(w->wr.calc));
	if (w->owned)
		calc_begin(w->owned, w->wr.calc);
	w->wr.calc = NULL; /* the caller's again */
	return w->owned;
}

void calculation_begin(struct channel *ch, struct work *w)
{
	calc_again(w->owned);
	(void)calculation_advance(ch);
}

int calculation_advance(struct channel *ch)
{
	struct work *w = LIST_ENTRY(ch->begun.next, struct work, node);

	if (w->cancelled) {
		channel_end(ch, w, -SLMPM_ECANCELED, 0);
	} else if (calc_step(w->owned)) {
		ch->wq->ctx->laboured = true;
		channel_ready(ch);
	} else {
		channel_end(ch, w, 0, 0);
	}
	return 1;
}
