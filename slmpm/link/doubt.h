/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which messages a peer has read for certain. The links tell of packets alone; so now and then it is
 * noted how far the link was when so many messages had gone whole.
 */
#ifndef SLMPM_DOUBT_H
#define SLMPM_DOUBT_H

#include <stdint.h>

struct endpoint;
struct context;

/* Where EP's link is, if nothing is under way in parts. */
void doubt_mark(struct endpoint *ep);
void doubt_mark_all(struct context *ctx);
/* What is known to be read is, last. */
void doubt_settle(struct endpoint *ep);

#endif
