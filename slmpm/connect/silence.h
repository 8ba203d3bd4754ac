/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer's machine that has fallen silent: found in bounded time, and never for a short outage. */
#ifndef SLMPM_SILENCE_H
#define SLMPM_SILENCE_H

#include "slmpm/connect/control.h"

/* C's endpoint is UP: from now on it is watched, where its connection leaves this machine. */
void silence_watch(struct control *c);
/* Ends peers whose machine has been silent for too long: when to call again, 0 where one has ended. */
uint64_t silence_deadlines(struct context *ctx, uint64_t now_ns);

#endif
