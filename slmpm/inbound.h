/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on their way in: matching, assembling, keeping what no receive has asked for. */
#ifndef SLMPM_INBOUND_H
#define SLMPM_INBOUND_H

#include "slmpm/endpoint.h"
#include "slmpm/link.h"
#include "slmpm/request.h"

struct inbound {
	struct list node;  /* unexpected, or alone */
	struct list parts; /* assembling, or alone */
	struct endpoint *ep;
	uint64_t seq, total, got;
	uint64_t charge; /* against the credit, until matched */
	uint32_t stream, imm;
	bool announced, cleared, damaged;
	bool cut;                /* its receive was too short and has ended: the rest is dropped */
	struct request *receive; /* matched */
	unsigned char *data;     /* bytes kept here while unmatched or held: room for `room` */
	uint64_t room;
	struct area *area; /* the message lies there; got bytes are ready */
	bool final;        /* area: got is the length */
	bool held;         /* handed out by slmpm_hold: its memory stays until released */
	bool released;     /* area: the reader let go before the end */
};

/* Handles one arrival; true when it was kept (held in place) and must not be released yet. */
bool inbound_packet(struct endpoint *ep, const struct fabric_arrival *a);
/* One message of a bundle. */
void inbound_bundled(struct endpoint *ep, uint64_t route, const void *data, uint32_t length);
/* The first unexpected message that R may take, or NULL. */
struct inbound *inbound_find(const struct request *r);
/* Gives a message to a receive or hold: copies what is there, asks for the rest. */
void inbound_match(struct inbound *m, struct request *r);
/* The receive leaves: what arrived goes to the next that wants it, nothing is lost. -SLMPM_EBUSY
 * where that cannot be; one whose buffer has overflowed is done then, as truncated. */
int inbound_unmatch(struct request *r);
/* Drops a message: its memory, its area. */
void inbound_free(struct inbound *m);
/* No more can come: unfinished messages are dropped, their receives end with ERROR. */
void inbound_end(struct endpoint *ep, int error);
bool inbound_complete(const struct inbound *m);
/* An eager message that was charged has its receive. */
void inbound_charge(struct endpoint *ep, uint64_t charge);
/* Where to record a message read in place; NULL when memory is short. */
struct held *held_new(struct endpoint *ep);
struct held *held_find(struct endpoint *ep, const void *data);
void held_release(struct endpoint *ep, struct held *h);

static inline uint64_t inbound_cost(uint64_t bytes)
{
	return bytes + WIRE_ENVELOPE;
}

/* Eager messages went straight to their receives: what they would have been charged goes back. */
static inline void inbound_direct(struct endpoint *ep, uint64_t charge)
{
	ep->matched_charge += charge;
	if (UNLIKELY(ep->matched_charge - ep->returned_charge >= ep->credit / 4))
		link_return_credit(ep);
}

#endif
