/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secondary links of an endpoint (SLMPM_LINKS): where both sides want them its link becomes a bond.
 * They are opened once they are worth it, and again when they are lost, over the control connection,
 * or, when that has gone, by way of the bond itself.
 */
#ifndef SLMPM_SECONDARY_H
#define SLMPM_SECONDARY_H

#include "slmpm/connect/control.h"

struct secondary;
struct head;

/* The features of this side, and with them how many links it wants. */
uint64_t secondary_features(const struct endpoint *ep);
/* The first link stands: into a bond, where both sides want more than one. 0 or -ENOMEM. */
int secondary_open(struct control *c);
/* The endpoint is UP. */
void secondary_begin(struct endpoint *ep);
/* A packet of a link to be, by the control connection; what is out of turn poisons the endpoint: 0. */
int secondary_packet(struct endpoint *ep, struct received *r);
/* And by the bond. */
void secondary_arrival(struct endpoint *ep, const struct head *h);
/* Traffic is to use LINK from now on; UINT32_MAX: any. */
void secondary_use(struct endpoint *ep, uint32_t link);
/* Fabrics that could not say yet whether one is connected may know now. */
void secondary_ask_all(struct context *ctx);
/* What is due: when to look again, 0 where something was. */
uint64_t secondary_deadlines(struct context *ctx, uint64_t now_ns);
void secondary_free(struct endpoint *ep);
/* Disconnects all links of an ended peer, unless a message that is held or being built lies in a ring; counts and reasons stay
 * readable. */
void secondary_reclaim(struct endpoint *ep);
/* The control connection has ended: no link has a bell any more, and PROCESS is what its process is now. */
void secondary_left(struct endpoint *ep, int process);

#endif
