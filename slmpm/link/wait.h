/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: spin briefly, yield, sleep on the context's descriptor. */
#ifndef SLMPM_WAIT_H
#define SLMPM_WAIT_H

#include "slmpm/base/clock.h"
#include "slmpm/endpoint.h"

typedef bool wait_test(void *arg);
/* Progress until TEST holds: 0, or -SLMPM_ETIMEOUT (no detail set). With several threads in the
 * context one polls for all. */
int wait_until(struct context *ctx, wait_test *test, void *arg, int timeout_ms);
/* Until another thread, which polls, has changed something: 0, or -SLMPM_ETIMEOUT at DEADLINE. */
int wait_for_poller(struct context *ctx, uint64_t deadline);
/* Waits for the handshake's end, whatever it is: 0, or -SLMPM_ETIMEOUT (no detail set). */
int wait_connected(struct endpoint *ep, int timeout_ms);
/* Peers need not ring any more. */
void wait_disarm(struct context *ctx);
/* Looks at the descriptors without sleeping. */
int wait_inspect(struct context *ctx);

/* ---- wait_scan.c: polling without the lock -------------------------------------------------- */

/* What arrives would show in a few words, and nothing else is to be done: those are scanned, with
 * yields in between, without the context's lock, until one has changed, another thread needs this
 * one, or a yield took long; or UNTIL. NOW is the time; returns that afterwards, or 0: not so. */
uint64_t wait_scan(struct context *ctx, struct idle *i, uint64_t now, uint64_t until);

/* ---- wait_sleep.c: sleep on a context's descriptors, and what none of these shows ----------- */

/* Until something happens, TEST holds, or DEADLINE; NOW is the time. Without the context's lock
 * meanwhile. True: something has come, for whichever call. */
bool wait_sleep(struct context *ctx, uint64_t now, uint64_t deadline, wait_test *test, void *arg);
/* The application is to sleep on the descriptor: peers ring it. False: there is work first. */
bool wait_announce(struct context *ctx);
/* Room for what is sent, by the peer's word: another figure with each word. */
uint64_t wait_room(const struct endpoint *ep);

#endif
