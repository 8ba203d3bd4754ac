/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that arrived: checked, taken apart, given to the room that their opcode belongs to. */
#include "slmpm/link/packet.h"

#include "slmpm/base/checksum.h"

static bool take_apart(struct endpoint *ep, const struct fabric_arrival *a, struct head *h)
{
	*h = (struct head){
		.seq = a->head[0],
		.stream = (uint32_t)a->head[1],
		.imm = (uint32_t)(a->head[1] >> 32),
		.extent = a->head[2],
		.flags = (uint32_t)(a->head[2] >> 48),
		.length = a->length,
		.data = a->data,
		.arrival = a,
		.opcode = a->kind,
	};
	if (PEER_FAULT(h->flags & ~WIRE_FLAGS) &&
	    (h->flags & ~(WIRE_FLAGS | WIRE_FLAG_TIMED) || a->kind != WIRE_SEND_ONLY))
		return endpoint_poison(ep, "unknown flag");
	if (h->flags & WIRE_FLAG_CHECK) {
		uint32_t sum;

		if (h->length < CHECKSUM_SIZE)
			return endpoint_poison(ep, "length of a checksum");
		h->length -= CHECKSUM_SIZE;
		sum = checksum_head(a->head[0], a->head[1], a->head[2]);
		sum = checksum(sum, h->data, h->length);
		h->damaged = sum != checksum_take((const unsigned char *)h->data + h->length);
		if (h->damaged)
			ep->stats->checksum_errors++;
	}
	return true;
}

bool packet_take_apart(struct endpoint *ep, const struct fabric_arrival *a)
{
	const struct packet_kind *kind = &packet_kinds[a->kind];
	bool outer = ep->link.kept, kept; /* a handler may take in the next packet */
	struct head h;

	if (!kind->take)
		return endpoint_poison(ep, "opcode");
	if (!take_apart(ep, a, &h))
		return false;
	ep->link.kept = false;
	kind->take(ep, &h);
	kept = ep->link.kept || ep->link.enomem;
	ep->link.kept = outer;
	return kept;
}
