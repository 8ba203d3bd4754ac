/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a connection that the program wants. */
#ifndef SLMPM_CLOSE_H
#define SLMPM_CLOSE_H

struct endpoint;

/* Orderly end of an endpoint, the handle stays: what is queued, then end of stream. */
int close_peer(struct endpoint *ep, int timeout_ms);

#endif
