/* SPDX-License-Identifier: BSD-3-Clause */
/* A timer in a context's epoll set: who sleeps on the context's descriptor himself wakes at the deadlines that no
 * other descriptor shows. */
#ifndef SLMPM_ALARM_H
#define SLMPM_ALARM_H

#include "slmpm/context.h"

/* False: it cannot be had now, for want of descriptors perhaps. Who is to need it asks in time. */
bool alarm_open(struct context *ctx);
void alarm_close(struct context *ctx);
/* It rings then, by clock_now's clock, or before, where that had been asked for; UINT64_MAX: no need. False: it does
 * not. */
bool alarm_set(struct context *ctx, uint64_t when);

#endif
