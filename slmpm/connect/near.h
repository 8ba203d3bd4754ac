/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of a TCP connection that are on one machine after all: who listens keeps a second door, a
 * socket without a file, whose name it tells to nobody but who has proved the secret. Who can go
 * through it is here, and the same user's or root's.
 */
#ifndef SLMPM_NEAR_H
#define SLMPM_NEAR_H

#include "slmpm/watch.h"
#include "slmpm/wire.h"

struct near {
	struct watch watch; /* fd -1: no door */
	uint64_t door;      /* its name, by chance */
};

/* Opens it, where shared memory is wanted and there can be one. */
void near_open(struct near *n, struct context *ctx, void *owner);
void near_close(struct near *n, struct context *ctx);
/* What a guest who is to come through it is told; its name is *GUEST. */
void near_invite(const struct near *n, struct wire_near *token, uint64_t *guest);
/* Through it, as told: a connected socket, or -1 (it is another machine's, or another user's). */
int near_go(const struct wire_near *token);
/* Who came, and its name; -1: nobody, or somebody who may not. */
int near_accept(struct near *n, uint64_t *guest);

#endif
