/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between unrelated processes, whichever side made them. */
#ifndef SLMPM_CONNECT_H
#define SLMPM_CONNECT_H

#include "slmpm/endpoint.h"

/* Is the other end of this user, or root? */
bool connect_allowed(int fd);
/* An endpoint over FD, its handshake begun; NULL with *RC set, FD is closed then. */
struct endpoint *connect_adopt(struct context *ctx, int fd, struct listener *l, int *rc);

#endif
