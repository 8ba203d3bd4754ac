/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Further links of an endpoint (SLMPM_LINKS): where both sides want them its link becomes a bond.
 * They are opened once they are worth it, and anew when they are lost, over the control connection,
 * or, when that has gone, by way of the bond itself.
 */
#ifndef SLMPM_FURTHER_H
#define SLMPM_FURTHER_H

#include "slmpm/connect/control.h"

struct further;
struct head;

/* The features of this side, and with them how many links it wants. */
uint64_t further_features(const struct endpoint *ep);
/* The first link stands: into a bond, where both sides want more than one. 0 or -ENOMEM. */
int further_open(struct control *c);
/* The endpoint is UP. */
void further_begin(struct endpoint *ep);
/* A packet of a link to be, by the control connection; what is out of turn poisons the endpoint: 0. */
int further_packet(struct control *c, struct received *r);
/* And by the bond. */
void further_arrival(struct endpoint *ep, const struct head *h);
/* Traffic is to use LINK from now on; UINT32_MAX: any. */
void further_use(struct endpoint *ep, uint32_t link);
/* Fabrics that could not say yet whether one is connected may know now. */
void further_ask_all(struct context *ctx);
/* What is due: when to look again, 0 where something was. */
uint64_t further_deadlines(struct context *ctx, uint64_t now_ns);
void further_free(struct endpoint *ep);
/* Disconnects all links of an ended peer, unless a message that is held or being built lies in a ring; counts and reasons stay
 * readable. */
void further_reclaim(struct endpoint *ep);

/* The control connection's descriptors, for all links; -1 none any more. */
void further_bell(struct endpoint *ep, int fd);
void further_process(struct endpoint *ep, int fd);

#endif
