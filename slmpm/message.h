/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: the calls that send and receive them. */
#ifndef SLMPM_MESSAGE_H
#define SLMPM_MESSAGE_H

#include "slmpm/endpoint.h"

struct request;

/* Orderly end of an endpoint, the handle stays: what is queued, then end of stream. */
int message_close(struct endpoint *ep, int timeout_ms);
/* Waits for the handshake's end, whatever it is: 0, or -SLMPM_ETIMEOUT (no detail set). */
int message_connected(struct endpoint *ep, int timeout_ms);
/* The endpoint or context that a receive names, locked; NULL with *RC set. *EP NULL: any peer. */
struct context *message_source(slmpm_peer peer, struct endpoint **ep, int *rc);
/* Posts or matches R and waits; the request is finished or taken back when it returns. */
int message_await(struct request *r, int timeout_ms);

#endif
