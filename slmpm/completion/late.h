/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that end without what they waited for: their error, and the peer that is suspect. */
#ifndef SLMPM_LATE_H
#define SLMPM_LATE_H

#include "slmpm/context.h"

struct endpoint;

/* What is to be known of EP's reaction: 0, or -ENOMEM. */
int late_new(struct endpoint *ep);
void late_free(struct endpoint *ep);
/* The code, positive: a call of TIMEOUT_MS 0 only tries. */
static inline int late_code(int timeout_ms)
{
	return timeout_ms ? SLMPM_ETIMEOUT : SLMPM_EAGAIN;
}

/*
 * -late_code(TIMEOUT_MS); the detail is FORMAT, and which peer is suspect: EP, or, where that is NULL, the first
 * such of CTX. Calls that only try come often: for them /proc is not read each time.
 */
__attribute__((format(printf, 4, 5), cold)) int late_error(struct context *ctx, struct endpoint *ep,
							   int timeout_ms, const char *format, ...);
/* "nothing from" EP, or any peer. */
COLD int late_from(struct context *ctx, struct endpoint *ep, int timeout_ms, const char *what);

#endif
