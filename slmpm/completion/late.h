/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that end without what they waited for: their error, and the peer that is suspect. */
#ifndef SLMPM_LATE_H
#define SLMPM_LATE_H

#include "slmpm/context.h"

/* What is known of a peer's reaction; inspected in failing calls alone. */
struct reaction {
	bool reported;      /* an event has reported the present stop */
	uint64_t inspected; /* ticks, of the last inspection */
	uint64_t read;      /* segments that the peer had read at SINCE */
	uint64_t since;     /* ns; 0: the peer had read all */
	char reason[64];    /* "its process is stopped" and the like, or "" */
};

/* The code, positive: a call of TIMEOUT_MS 0 only tries. */
static inline int late_code(int timeout_ms)
{
	return timeout_ms ? SLMPM_ETIMEOUT : SLMPM_EAGAIN;
}

/*
 * -late_code(TIMEOUT_MS); the detail is FORMAT, and which peer is suspect: EP, or, where that is
 * NULL, the first such of CTX. For calls that only try, /proc is not read each time.
 */
__attribute__((format(printf, 4, 5), cold)) int late_error(struct context *ctx, struct endpoint *ep,
							   int timeout_ms, const char *format, ...);
/* Why the process of this number, here, is suspect; or NULL. */
COLD const char *late_process(int pid);
/* Why EP is suspect; or NULL. */
COLD const char *late_suspicion(struct endpoint *ep);
/* "nothing from" EP, or any peer. */
COLD int late_from(struct context *ctx, struct endpoint *ep, int timeout_ms, const char *what);

#endif
