/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of a TCP connection that are on one machine after all: who listens keeps a second door, a
 * socket without a file, whose name it tells to nobody but who has proved the secret. Who can go
 * through it is here, and of the user that its listener was when the door was opened: both sides ask the
 * kernel for these two, and so agree.
 */
#ifndef SLMPM_NEAR_H
#define SLMPM_NEAR_H

#include <sys/types.h>

#include "slmpm/watch.h"
#include "slmpm/base/wire.h"

struct near {
	struct watch watch; /* fd -1: no door */
	uint64_t door;      /* its name, by chance */
	uid_t user;         /* whose it is: guests see that, whoever this process is by now */
};

/* Opens it, where shared memory is wanted and there can be one. */
void near_open(struct near *n, struct context *ctx, watch_ready *ready, void *owner);
void near_close(struct near *n, struct context *ctx);
/* What a guest who is to come through it is told; its name is *GUEST. */
void near_invite(const struct near *n, struct wire_near *token, uint64_t *guest);
/* Through it, as told: a connected socket, or -1 (it is another machine's, or another user's). */
int near_go(const struct wire_near *token);
/* Who came, and its name; -1: nobody, or somebody who may not. */
int near_accept(struct near *n, uint64_t *guest);

#endif
