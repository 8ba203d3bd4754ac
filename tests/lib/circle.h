/* SPDX-License-Identifier: BSD-3-Clause */
/* A process and others that have connected to it, over shared memory or TCP: who founds a
 * group, and its members. */
#ifndef TESTS_LIB_CIRCLE_H
#define TESTS_LIB_CIRCLE_H

#include <sys/types.h>

#include <slmpm_group.h>

#include "tests/lib/actor.h"

#define CIRCLE_MAX 64

struct circle {         /* at who founds: by the order in which they were started */
	uint32_t flags; /* of all contexts: before circle_begin */
	uint64_t apart; /* a bit each: those that connect by TCP; before circle_begin */
	slmpm_ctx ctx;
	slmpm_listener listener, door;
	slmpm_peer peers[CIRCLE_MAX];
	pid_t pids[CIRCLE_MAX];
	int n;
};

/* What one of the others does, the I-th of them; ARG as given. */
typedef void circle_part(slmpm_peer founder, int i, void *arg);

extern slmpm_ctx circle_own; /* in a part */

/* N others, each of which plays PART; at most SECONDS long, under sanitizers longer. */
void circle_begin(struct circle *c, int n, circle_part *part, void *arg, unsigned seconds);
/* All have left in order, and this one too. */
void circle_end(struct circle *c);
/* How the I-th has ended: child_wait. */
int circle_wait(struct circle *c, int i);

struct slmpm_group_info circle_query(slmpm_group group);
/* The group becomes broken: STATUS, by CULPRIT. */
void circle_breaks(slmpm_group group, int status, int culprit);

#endif
