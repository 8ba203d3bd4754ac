/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleep on a context's descriptors, and what its peers may say that none of these shows. */
#ifndef SLMPM_WAIT_SLEEP_H
#define SLMPM_WAIT_SLEEP_H

#include "slmpm/endpoint.h"
#include "slmpm/link/wait.h"

/* Until something happens, TEST holds, or DEADLINE; NOW is the time. The context's lock is given back
 * meanwhile. True: something has come, for whichever call. */
bool wait_sleep(struct context *ctx, uint64_t now, uint64_t deadline, wait_test *test, void *arg);
/* The application is to sleep on the descriptor: peers ring it. False: there is something to do before. */
bool wait_announce(struct context *ctx);
/* What the peer has told of room for what is sent: another figure whenever it has. */
uint64_t wait_room(const struct endpoint *ep);

#endif
