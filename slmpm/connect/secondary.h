/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secondary links of an endpoint (SLMPM_LINKS): where both sides want them its link becomes a bond.
 * They are opened once they are worth it, and again when they are lost, over the control connection
 * or, when that has gone, the bond itself. Each has a number, its place in the bond, and one
 * incarnation after the other. Who connected tries to open them, one at a time; the other answers:
 *
 *     secondary.c         which there are to be, what is of all of them, packets about them
 *     secondary_events.c  when each is tried, and what became of it
 *     secondary_try.c     one try: rounds as in the handshake
 */
#ifndef SLMPM_SECONDARY_H
#define SLMPM_SECONDARY_H

#include "slmpm/connect/control.h"

struct head;

#define NEVER           UINT64_MAX
#define SECONDARY_PAUSE UINT64_C(50000000) /* ns before a link is tried again, at first */

/* ---- secondary.c ---- */

/* The features of this side, and with them how many links it wants. */
uint64_t secondary_features(const struct endpoint *ep);
/* The first link stands: into a bond, where both sides want more than one. 0 or -ENOMEM. */
int secondary_open(struct control *c);
/* Packets may be spread over several, unless one is wanted. */
void secondary_spread(struct secondary *f);
/* Between which addresses it goes, as far as known. */
void secondary_name_where(struct secondary_link *l, const struct sockaddr_storage *local,
			  const struct sockaddr_storage *remote);
void secondary_free(struct endpoint *ep);
/* Disconnects all links of an ended peer, unless a message that is held or being built lies in a
 * ring; counts and reasons stay readable. */
void secondary_reclaim(struct endpoint *ep);
/* The control connection has ended: no link has a bell any more, and PROCESS is what its process is
 * now. */
void secondary_left(struct endpoint *ep, int process);
/* A packet of a link to be, by the control connection; what is out of turn breaks the endpoint. */
void secondary_packet(struct endpoint *ep, struct received *r);
/* And by the bond. */
void secondary_arrival(struct endpoint *ep, const struct head *h);
/* 0 or negative. */
int secondary_send(struct secondary *f, struct wire_round *packet, int fd);
/* ROUND, a WIRE_ROUND_*, and why. */
void secondary_send_word(struct secondary *f, uint32_t round, uint32_t link, uint32_t life,
			 const char *why);
/* What waits goes out, where there is room by now. */
void secondary_send_round(struct secondary *f);
void secondary_violates(struct endpoint *ep);

/* ---- secondary_events.c ---- */

/* The endpoint is UP. */
void secondary_begin(struct endpoint *ep);
/* Traffic is to use LINK from now on; UINT32_MAX: any. */
void secondary_use(struct endpoint *ep, uint32_t link);
/* A try for LINK has ended; where it FAILED the next one comes after a pause. */
void secondary_tried(struct secondary *f, uint32_t link, bool failed);
/* With all links lost there will be no other one. */
void secondary_give_up(struct secondary *f);
/* Fabrics that could not say yet whether one is connected may know now. */
void secondary_ask_all(struct context *ctx);
/* What is due: when to inspect again, 0 where something was. */
uint64_t secondary_deadlines(struct context *ctx, uint64_t now_ns);

/* ---- secondary_try.c ---- */

/* A link like the bond, to be connected. */
void secondary_inherit(struct fabric_link *port, const struct fabric_link *from);
void secondary_try(struct secondary *f, uint32_t link);
/* The fabric may know more by now. */
void secondary_try_ask(struct secondary *f);
/* It has not come to an end: TELL the peer. */
void secondary_try_end(struct secondary *f, bool tell, const char *why);
void secondary_try_free(struct secondary *f);
/* Sound packets, in turn: the other side tries; where it listens; a later round; not to be had. */
void secondary_try_begin(struct secondary *f, struct received *r);
void secondary_try_first(struct secondary *f, struct received *r);
void secondary_try_round(struct secondary *f, struct received *r);
void secondary_try_not(struct secondary *f, const struct wire_round *packet);

#endif
