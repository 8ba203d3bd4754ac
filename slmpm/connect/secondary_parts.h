/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the links of an endpoint. Each has a number, its place in the bond, and one life after the
 * other. Who connected tries to open them, one at a time; the other side answers:
 *
 *     secondary.c         which there are to be, and what is of all of them
 *     secondary_events.c  when each is tried, and what became of it
 *     secondary_try.c     one try: rounds as in the handshake
 *     secondary_packet.c  the packets of those
 */
#ifndef SLMPM_SECONDARY_PARTS_H
#define SLMPM_SECONDARY_PARTS_H

#include "slmpm/connect/secondary.h"

#define NEVER           UINT64_MAX
#define SECONDARY_PAUSE UINT64_C(50000000) /* ns before a link is tried again, at first */

/* ---- secondary.c ---- */

/* Packets may be spread over several, unless one is wanted. */
void secondary_spread(struct secondary *f);
/* Between which addresses it goes, as far as known. */
void secondary_name_where(struct secondary_link *l, const struct sockaddr_storage *local,
			  const struct sockaddr_storage *remote);

/* ---- secondary_events.c ---- */

/* A try for LINK has ended; where it FAILED the next one comes after a pause. */
void secondary_tried(struct secondary *f, uint32_t link, bool failed);
/* With all links lost there will be no other one. */
void secondary_give_up(struct secondary *f);

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

/* ---- secondary_packet.c ---- */

/* 0 or negative. */
int secondary_send(struct secondary *f, struct wire_round *packet, int fd);
/* ROUND, a WIRE_ROUND_*, and why. */
void secondary_send_word(struct secondary *f, uint32_t round, uint32_t link, uint32_t life,
			 const char *why);
/* What waits goes out, where there is room by now. */
void secondary_send_round(struct secondary *f);
/* False: of no family that there is. */
bool secondary_address(const struct wire_round *packet, struct sockaddr_storage *to);
/* False. */
bool secondary_violates(struct endpoint *ep);

#endif
