/* SPDX-License-Identifier: BSD-3-Clause */
/* The links of an endpoint as they are: each has a number, its place in the bond, and one life
 * after the other. Those beyond the first come and go by slmpm/connect/secondary.h. */
#ifndef SLMPM_SECONDARY_STATE_H
#define SLMPM_SECONDARY_STATE_H

#include <string.h>

#include "slmpm/net/net.h"
#include "slmpm/base/routes.h"
#include "slmpm/base/wire.h"
#include "slmpm/bond/bond.h"
#include "slmpm/endpoint.h"

struct secondary_link {
	const struct route *route;
	uint32_t life; /* of the last try */
	uint32_t made, lost;
	uint64_t due;       /* when it is tried next; NEVER */
	uint64_t pause;     /* ns before the try after that one */
	bool up;            /* as last reported */
	uint64_t tell;      /* when its loss is reported: not where the peer is only leaving */
	const char *fabric; /* of the last try */
	char where[2 * NET_NAME + 4];
};

struct rounds {                   /* of a link, the first one's, too */
	struct fabric_link *port; /* NULL: none under way */
	uint32_t link, life;
	int round;
	bool pending; /* the fabric does not know yet whether this round connects */
};

struct secondary {
	struct list node; /* ctx->secondary */
	struct endpoint *ep;
	uint32_t links;              /* that both sides want */
	int32_t wanted;              /* that traffic is to use; -1: any */
	bool active;                 /* this side opens them */
	bool open;                   /* they are worth it */
	const struct fabric *fabric; /* of the first one */
	bool may_reconnect;          /* for another one when all are lost */
	uint64_t alone;              /* since when they are, while this process runs; NEVER */
	uint64_t seen;               /* of the last inspection, and */
	uint64_t spared;             /* how long it has stood still since */
	bool homed;                  /* the control connection has, or had, addresses: */
	struct sockaddr_storage here, there;
	struct secondary_link link[BOND_PATHS];
	struct rounds try;                     /* of one of those, */
	uint64_t deadline;                     /* until then, */
	struct sockaddr_storage local, remote; /* between these */
	uint64_t since;                        /* tries are counted, */
	uint32_t begun;                        /* so many, */
	uint32_t given;                        /* and descriptors that the peer may not have read */
	bool by_bond; /* the peer has said by the bond that it has no control connection */
	bool waits;   /* a packet for room in the bond, where there is none */
	struct wire_round waiting;
};

static inline bool secondary_is_over(const struct secondary *f, uint32_t link, const char *fabric)
{
	return f->link[link].fabric && !strcmp(f->link[link].fabric, fabric);
}
/* How many links there are, or may come; and over which fabric, "" not known yet. */
uint32_t secondary_links(const struct endpoint *ep);
const char *secondary_fabric(const struct endpoint *ep, uint32_t link);
/* That link, or -1: any. */
int secondary_wanted(const struct endpoint *ep);
/* The number of one that stands over FABRIC (a setting SLMPM_DEFAULT_*); -1: none does, or it says
 * "auto". */
int secondary_default(const struct endpoint *ep, const char *fabric);
/* Is FABRIC, with several links, another one than the peer's memory is mapped by? */
bool secondary_is_elsewhere(const struct endpoint *ep, const char *fabric);
/* Where its peer can map memory. */
struct fabric_domain *secondary_memory(const struct endpoint *ep);
/* Has it a link with a connection of its own, which may still speak when the control's has
 * ended? */
bool secondary_speaks(const struct endpoint *ep);

#endif
