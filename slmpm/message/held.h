/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that the application reads in place: in the ring, in an area, or a copy kept for it. */
#ifndef SLMPM_HELD_H
#define SLMPM_HELD_H

#include "slmpm/message/inbound.h"

#define HELD_BLOCK 8

/* A message that the application reads in place (slmpm_hold). */
struct held {
	const void *data;              /* NULL: free */
	struct fabric_arrival arrival; /* span 0: not in the ring */
	struct inbound *message;       /* a copy, or one in an area */
};

/* Where to record one; NULL when memory is short. */
struct held *held_new(struct endpoint *ep);
struct held *held_find(struct endpoint *ep, const void *data);
void held_release(struct endpoint *ep, struct held *h);
/* EP is closed: all that the application still holds of it is released. */
void held_forget(struct endpoint *ep);
/* Does the application hold a message where it came in? */
bool held_in_ring(const struct endpoint *ep);
/* Does it hold any message? */
bool held_any(const struct endpoint *ep);
/* Records the plain message A as held where it lies; NULL: too much of the ring is held already. */
struct held *held_arrival(struct endpoint *ep, const struct fabric_arrival *a);
/* Hands a whole message to R where it lies; false: too much of the ring is held already. */
bool held_in_place(struct endpoint *ep, struct request *r, const struct head *h);

#endif
