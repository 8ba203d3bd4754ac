/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: spin briefly, yield, sleep on the context's descriptor. */
#ifndef SLMPM_WAIT_H
#define SLMPM_WAIT_H

#include "slmpm/base/clock.h"
#include "slmpm/context.h"

struct endpoint;

typedef bool wait_test(void *arg);
/* Progress until TEST holds: 0, or -SLMPM_ETIMEOUT (no detail set). With several threads in the
 * context one polls for all. */
int wait_until(struct context *ctx, wait_test *test, void *arg, int timeout_ms);
/* Waits for the handshake's end, whatever it is: 0, or -SLMPM_ETIMEOUT (no detail set). */
int wait_connected(struct endpoint *ep, int timeout_ms);
/* Peers need not ring any more. */
void wait_disarm(struct context *ctx);
/* Looks at the descriptors without sleeping. */
int wait_inspect(struct context *ctx);

#endif
