/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the links of an endpoint. Each has a number, its place in the bond, and one life after the
 * other. Who connected tries to open them, one at a time; the other side answers:
 *
 *     further.c         which there are to be, and what is of all of them
 *     further_events.c  when each is tried, and what became of it
 *     further_try.c     one try: rounds as in the handshake
 *     further_bound.c   how many a peer may cause
 *     further_packet.c  the packets of those
 */
#ifndef SLMPM_FURTHER_PARTS_H
#define SLMPM_FURTHER_PARTS_H

#include "slmpm/bond/further_state.h"
#include "slmpm/connect/further.h"

#define NEVER         UINT64_MAX
#define FURTHER_PAUSE UINT64_C(50000000) /* ns before a link is tried again, at first */

/* ---- further.c ---- */

/* Packets may be spread over several, unless one is wanted. */
void further_spread(struct further *f);

/* ---- further_events.c ---- */

/* A try for LINK has ended; where it FAILED the next one comes after a pause. */
void further_tried(struct further *f, uint32_t link, bool failed);
/* With all links lost there will be no other one. */
void further_give_up(struct further *f);

/* ---- further_try.c ---- */

/* A link like the bond, to be connected. */
void further_inherit(struct fabric_link *port, const struct fabric_link *from);
void further_try(struct further *f, uint32_t link);
/* The fabric may know more by now. */
void further_try_ask(struct further *f);
/* It has not come to an end: TELL the peer. */
void further_try_end(struct further *f, bool tell, const char *why);
void further_try_free(struct further *f);
/* Checked packets, in turn: the other side tries; where it listens; a later round; not to be had. What
 * the fabric takes of *FD is -1 afterwards. */
void further_try_begin(struct further *f, const struct wire_link *packet, int *fd);
void further_try_first(struct further *f, const struct wire_link *packet, int *fd);
void further_try_round(struct further *f, const struct wire_link *packet, int *fd);
void further_try_not(struct further *f, const struct wire_link *packet);

/* ---- further_bound.c ---- */

/* When a try may begin, before anything is made for it: 0 now, and then it is counted. */
uint64_t further_bound(struct further *f);
/* A descriptor goes to the peer. */
void further_gave(struct further *f);

/* ---- further_packet.c ---- */

/* PACKET is filled in but for whose link it is. 0 or negative. */
int further_say(struct further *f, uint32_t link, uint32_t life, struct wire_link *packet, int fd);
void further_say_not(struct further *f, uint32_t link, uint32_t life, const char *why);
/* The passive side wants LINK to be tried. */
void further_ask_for(struct further *f, uint32_t link);
/* What waits goes out, where there is room by now. */
void further_say_on(struct further *f);
void further_put_address(struct wire_link *packet, const struct sockaddr *sa);
/* False: of no family that there is. */
bool further_address(const struct wire_link *packet, struct sockaddr_storage *to);
/* False. */
bool further_violates(struct endpoint *ep);

#endif
