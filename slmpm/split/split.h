/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy that two processes split: long messages (message/fetch.h), long puts and what an engine is
 * asked for (share/share.h). One side offers a range. The other takes pieces of it from the front;
 * the first claims what is left from the back; and whoever is through says so.
 *
 * Who copies what is agreed on by packets, and nothing is shared. Before a side touches a piece it
 * says so (TAKE: all up to here is mine; GIVE: all from here is), fences, and takes in all that the
 * other has said so far. Each does it in this order, so of two that want the same piece at least
 * one sees the other's packet. The side that offered gives way; the other one, where a claim was
 * first, waits for what becomes of it.
 *
 * So a packet waits where a pair has several links, and the other side still reads what went by
 * another one than memory is reached by (bond_is_read_next).
 *
 * A packet that has to go out however full the ring is has a segment of it held back.
 */
#ifndef SLMPM_SPLIT_H
#define SLMPM_SPLIT_H

#include "slmpm/endpoint.h"
#include "slmpm/link/packet.h"
#include "slmpm/request.h"

struct split_room { /* segments that are held back, and may be at most */
	uint32_t held, max;
};

/* N segments more (or fewer) of ROOM for one copy, which has *HELD of them; false: too many. */
bool split_hold(struct endpoint *ep, struct split_room *room, uint32_t *held, int n);
/* Posts P, which is R's first packet or, NULL, none of a request to come, now or not at all. */
bool split_notify(struct endpoint *ep, struct packet *p, struct request *r);
/* By a segment of *HELD: only a loan that lies open in the ring keeps it from going out, and what
 * went by another link. It overtakes what waits for room, and a burst that is staged: none of it is
 * about this copy. */
bool split_notify_held(struct endpoint *ep, struct split_room *room, uint32_t *held,
		       struct packet *p);
/* The same of P that says what has become of a piece: the other side waits for that, and need not
 * see it at once. Only an open loan, or the end of the link, keeps it from going out. */
bool split_conclude(struct endpoint *ep, struct split_room *room, uint32_t *held, struct packet *p);
/* Takes in all that the peer had said before it could receive what was posted last. False: it has
 * gone, or there is no memory for what it has said. */
bool split_catch_up(struct endpoint *ep);
/* The same of what has come by now, whatever was posted. */
bool split_look(struct endpoint *ep);

#endif
