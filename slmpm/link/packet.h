/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets: on their way out, as their headers come, and which room takes them. Each header is a
 * private copy, and every figure in it is checked before it is used; what cannot be is a violation.
 */
#ifndef SLMPM_PACKET_H
#define SLMPM_PACKET_H

#include "slmpm/endpoint.h"

struct packet { /* on its way out */
	uint8_t opcode;
	uint16_t flags; /* FABRIC_MORE, FABRIC_BY */
	uint32_t length;
	const void *data;
	uint64_t seq, route, extent;
};

struct head { /* of a packet that came, taken apart */
	uint64_t seq, extent;
	uint32_t stream, imm, flags;
	uint32_t length; /* payload without checksum */
	const void *data;
	const struct fabric_arrival *arrival; /* NULL: of a bundle, with others */
	uint8_t opcode;
	bool damaged;
};

/* What becomes of packets of one opcode. The rooms above the link hand these in (packets.c). */
struct packet_kind {
	/* Takes the packet, which is released afterwards unless this sets ep->link.kept. */
	void (*take)(struct endpoint *ep, const struct head *h);
	/* The same, not taken apart, of those that need no more than is usual. False: not so, and
	 * nothing has been done. NULL: none. */
	bool (*take_usual)(struct endpoint *ep, const struct fabric_arrival *a);
	/* Where a long payload belongs (landing.h); changes nothing. NULL: in the ring. */
	void *(*place)(struct endpoint *ep, const struct fabric_arrival *a);
	/* The payload goes where `place` said. */
	void (*placed)(struct endpoint *ep, const struct fabric_arrival *a);
};

extern const struct packet_kind packet_kinds[UINT8_MAX + 1];

bool packet_take_apart(struct endpoint *ep, const struct fabric_arrival *a);
/* Takes an arrival. True: kept, or deferred on ENOMEM (ep->link.enomem): it is not released yet. */
static inline bool packet_take(struct endpoint *ep, const struct fabric_arrival *a)
{
	const struct packet_kind *kind = &packet_kinds[a->kind];

	ep->ctx->news = true;
	return !(kind->take_usual && kind->take_usual(ep, a)) && packet_take_apart(ep, a);
}

#endif
