/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the links of an endpoint. Each has a number, its place in the bond, and one life after the
 * other. Who connected tries to open them, one at a time; the other side answers:
 *
 *     further.c        what is opened when, and what is of all links
 *     further_try.c    one try: rounds as in the handshake
 */
#ifndef SLMPM_FURTHER_PARTS_H
#define SLMPM_FURTHER_PARTS_H

#include "slmpm/bond/bond.h"
#include "slmpm/bond/further.h"
#include "slmpm/bond/ways.h"
#include "slmpm/connect/net.h"
#include "slmpm/endpoint.h"
#include "slmpm/wire.h"

#define NEVER UINT64_MAX

struct further_link {
	const struct way *way;
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
	uint64_t hear;  /* when the fabrics are asked whether the peer's machine is there */
	uint64_t alone; /* since when they are; NEVER */
	bool homed;     /* the control connection has, or had, addresses: */
	struct sockaddr_storage here, there;
	struct further_link link[BOND_PATHS];
	struct further_try try;
	bool waits; /* a packet for room in the bond, where there is no control connection */
	struct wire_link waiting;
};

/* ---- further.c ---- */

/* A try for LINK has ended; where it FAILED the next one comes after a pause. */
void further_tried(struct further *f, uint32_t link, bool failed);

/* ---- further_try.c ---- */

/* A link like the bond, to be connected. */
void further_inherit(struct fabric_link *port, const struct fabric_link *from);
void further_try(struct further *f, uint32_t link);
/* The fabric may know more by now. */
void further_try_ask(struct further *f);
/* It has not come to an end: TELL the peer. */
void further_try_end(struct further *f, bool tell, const char *why);
void further_try_free(struct further *f);
/* The passive side wants LINK to be tried. */
void further_ask_for(struct further *f, uint32_t link);
/* What waits goes out, where there is room by now. */
void further_say_on(struct further *f);

#endif
