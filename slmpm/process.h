/* SPDX-License-Identifier: BSD-3-Clause */
/* The process behind an endpoint that slmpm_spawn started. */
#ifndef SLMPM_PROCESS_H
#define SLMPM_PROCESS_H

#include "slmpm/endpoint.h"

/* How it ended, in words ("killed by signal 9"), without reaping it; true: normally, with 0. */
bool process_describe(struct endpoint *ep, char *text, size_t size);
/* Sends the SIGKILLs whose grace is over; when the next is due, or UINT64_MAX. */
uint64_t process_kill_due(struct context *ctx);
void process_free(struct endpoint *ep);
/* In a forked child: the leash is the parent's alone. */
void process_forked(struct endpoint *ep);

#endif
