/* SPDX-License-Identifier: BSD-3-Clause */
/* From a connected socket to an endpoint that is UP: versions, limits, identity, the rings. */
#ifndef SLMPM_HANDSHAKE_H
#define SLMPM_HANDSHAKE_H

#include "slmpm/connect/control.h"

/* The first step. A spawned process has no deadline until it speaks; all others do. */
int handshake_begin(struct control *c);
/* A packet of the handshake; what is out of turn poisons the endpoint. */
int handshake_packet(struct control *c, struct received *r);
/* Ends what does not become a connection; -EPROTO, for whoever goes back with it. */
int handshake_refuse(struct endpoint *ep, int error, const char *why);
/* Fabrics that could not say yet whether they are connected may know now. */
void handshake_ask(struct control *c);
void handshake_ask_again(struct context *ctx);

#endif
