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

#include "slmpm/bond/bond.h"
#include "slmpm/bond/further.h"
#include "slmpm/base/routes.h"
#include "slmpm/base/net.h"
#include "slmpm/endpoint.h"
#include "slmpm/base/wire.h"

#define NEVER         UINT64_MAX
#define FURTHER_PAUSE UINT64_C(50000000) /* ns before a link is tried again, at first */

struct further_link {
	const struct route *route;
	uint32_t life; /* of the last try */
	uint32_t made, lost;
	uint64_t due;   /* when it is tried next; NEVER */
	uint64_t pause; /* ns before the try after that one */
	bool up;        /* as last told */
	uint64_t tell;  /* when it is told that it is lost: not where the peer is only leaving */
	const char *fabric; /* of the last try */
	char where[2 * NET_NAME + 4];
};

struct further_try {
	struct fabric_link *port; /* NULL: none under way */
	uint32_t link, life;
	int round;
	bool pending; /* the fabric does not know yet whether this round connects */
	uint64_t deadline;
	struct sockaddr_storage local, remote;
};

struct further {
	struct list node; /* ctx->further */
	struct endpoint *ep;
	uint32_t links;              /* that both sides want */
	int32_t wanted;              /* that traffic is to use; -1: any */
	bool active;                 /* this side opens them */
	bool open;                   /* they are worth it */
	const struct fabric *fabric; /* of the first one */
	bool hopes;                  /* for another one when all are lost */
	uint64_t alone;              /* since when they are, while this process looks; NEVER */
	uint64_t seen;               /* when it looked last, and */
	uint64_t spared;             /* how long it has stood still since */
	bool homed;                  /* the control connection has, or had, addresses: */
	struct sockaddr_storage here, there;
	struct further_link link[BOND_PATHS];
	struct further_try try;
	uint64_t since; /* tries are counted, */
	uint32_t begun; /* so many, */
	uint32_t given; /* and descriptors that the peer may not have read */
	bool by_bond;   /* the peer has said by the bond that it has no control connection */
	bool waits;     /* a packet for room in the bond, where there is none */
	struct wire_link waiting;
};

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
