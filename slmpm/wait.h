/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: spin briefly, yield, sleep on the context's descriptor. */
#ifndef SLMPM_WAIT_H
#define SLMPM_WAIT_H

#include "slmpm/base/clock.h"
#include "slmpm/context.h"

typedef bool wait_test(void *arg);
/* Progress until TEST holds: 0, or -SLMPM_ETIMEOUT (no detail set). With several threads in the
 * context one polls for all. */
int wait_until(struct context *ctx, wait_test *test, void *arg, int timeout_ms);
/* -SLMPM_ESTATE with the detail set inside a handler of an active message, else 0. There wait_until
 * only tests. */
COLD int wait_in_handler(const char *call);
static inline int wait_forbidden(const struct context *ctx, const char *call)
{
	return UNLIKELY(ctx->handling) ? wait_in_handler(call) : 0;
}
/* Others may have what they wait for: wakes them, and the one that polls if it sleeps. */
void wait_wake(struct context *ctx);
static inline void wait_changed(struct context *ctx)
{
	if (UNLIKELY(ctx->waiting || ctx->sleeping))
		wait_wake(ctx);
}
/* Peers need not ring any more. */
void wait_disarm(struct context *ctx);
/* Looks at the descriptors without sleeping. */
int wait_look(struct context *ctx);

#endif
