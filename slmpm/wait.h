/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: spin briefly, yield, sleep on the context's descriptor; and the clock for it. */
#ifndef SLMPM_WAIT_H
#define SLMPM_WAIT_H

#include "slmpm/context.h"

uint64_t wait_now(void); /* ns, monotonic */
/* A clock that costs next to nothing, of a rate between one and five in a nanosecond. */
static inline uint64_t wait_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#else
	return wait_now();
#endif
}
/*
 * Between two looks at a line that another processor is about to write. A processor would begin many
 * looks ahead of time; those under way when the line is taken from it have to be made again, in the
 * way of what has come. x86 waits here for the last one; a pause takes far too long.
 */
static inline void wait_between_looks(void)
{
#if defined(__x86_64__)
	__builtin_ia32_lfence();
#endif
}
/* Keeps the processor, quietly, for about so long. */
void wait_relax(uint64_t ns);
uint64_t wait_deadline(int timeout_ms);
/* Milliseconds from NOW to DEADLINE for poll, rounded up; LONGEST < 0: no other bound. */
int wait_ms(uint64_t now, uint64_t deadline, int longest);

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
