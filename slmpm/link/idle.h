/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait that finds nothing: whether it looks again, yields or sleeps. */
#ifndef SLMPM_IDLE_H
#define SLMPM_IDLE_H

#include "slmpm/context.h"

/* After a pass that found nothing: true, look again at once. */
static inline bool idle_is_new(struct context *ctx, struct idle *i)
{
	if (i->turns == 0)
		ctx->spin.quick++;
	return ++i->turns < ctx->scans / 4 && !ctx->oversubscribed &&
	       ctx->wait != SLMPM_WAIT_BLOCK && !ctx->multiple;
}
/* SLMPM_SPIN_*: what to do NOW. */
int idle_next(struct context *ctx, struct idle *i, uint64_t now);
/* Something has come (FOUND), or the wait is over. */
void idle_over(struct context *ctx, struct idle *i, bool found);

#endif
