/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place that knows what all packets are for: which room takes those of each opcode. */
#include "slmpm/link/packet.h"

#include "slmpm/connect/secondary.h"
#include "slmpm/link/bundle.h"
#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"
#include "slmpm/share/share.h"
#include "slmpm/loan/area.h"
#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/link/binding.h"
#include "slmpm/message/fetch.h"
#include "slmpm/message/message.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/monitor/aggregate.h"
#include "slmpm/monitor/monitor.h"

/* A Write, or a message. */
static void take_withdrawn(struct endpoint *ep, const struct head *h)
{
	if ((h->extent & WIRE_LENGTH_MASK) == 1)
		rma_serve_withdrawn(ep, h);
	else
		arrival_withdrawn(ep, h);
}

__extension__ const struct packet_kind packet_kinds[] = {
	[WIRE_SEND_FIRST] = {.take = arrival_first,
			     .place = arrival_place_first,
			     .placed = arrival_placed},
	[WIRE_SEND_MIDDLE] = {.take = arrival_more, .place = arrival_place_more},
	[WIRE_SEND_LAST] = {.take = arrival_more, .place = arrival_place_more},
	[WIRE_SEND_ONLY] = {.take = arrival_only,
			    .take_usual = arrival_usual,
			    .place = arrival_place_first},
	[WIRE_BUNDLE] = {.take = bundle_arrived},
	[WIRE_WITHDRAW] = {.take = take_withdrawn},

	[WIRE_BIND] = {.take = binding_told},
	[WIRE_BOUND] = {.take = binding_known},
	[WIRE_CLAIM] = {.take = binding_claimed},

	[WIRE_CREDIT] = {.take = link_credited},
	[WIRE_CLEAR] = {.take = message_cleared},
	[WIRE_CLOSE] = {.take = link_closed},
	[WIRE_BOND_LINK] = {.take = secondary_arrival},

	[WIRE_LOAN] = {.take = arrival_loan},
	[WIRE_LOAN_MORE] = {.take = arrival_loan_more},
	[WIRE_LOAN_AREA] = {.take = arrival_loan_area},
	[WIRE_LOAN_BYTES] = {.take = arrival_loan_bytes, .place = arrival_place_loan},
	[WIRE_LOAN_DONE] = {.take = area_returned},

	[WIRE_FETCH] = {.take = fetch_announced},
	[WIRE_FETCH_GIVE] = {.take = fetch_given},
	[WIRE_FETCH_SEND] = {.take = fetch_sent_instead},
	[WIRE_FETCH_TAKE] = {.take = fetch_taken},
	[WIRE_FETCH_DONE] = {.take = fetch_over},

	[WIRE_WRITE_FIRST] = {.take = rma_serve_write},
	[WIRE_WRITE_MIDDLE] = {.take = rma_serve_write, .place = rma_place_write},
	[WIRE_WRITE_LAST] = {.take = rma_serve_write, .place = rma_place_write},
	[WIRE_WRITE_ONLY] = {.take = rma_serve_write},
	[WIRE_NOTIFY] = {.take = rma_serve_notify},
	[WIRE_READ_REQUEST] = {.take = rma_serve_read},
	[WIRE_FETCH_ADD] = {.take = rma_serve_atomic},
	[WIRE_COMPARE_SWAP] = {.take = rma_serve_atomic},
	[WIRE_SWAP] = {.take = rma_serve_atomic},

	[WIRE_READ_FIRST... WIRE_READ_ONLY] = {.take = rma_response, .place = rma_place_response},
	[WIRE_ATOMIC_ACKNOWLEDGE] = {.take = rma_atomic_acknowledged},
	[WIRE_ACKNOWLEDGE] = {.take = rma_acknowledged},

	[WIRE_SHARE] = {.take = share_offered},
	[WIRE_SHARE_GIVE] = {.take = share_given},
	[WIRE_SHARE_TAKE] = {.take = share_taken},
	[WIRE_SHARE_OVER] = {.take = share_taken},

	[WIRE_REGION_GRANT] = {.take = memory_arrival},
	[WIRE_REGION_OFFER... WIRE_REGION_UNMAPPED] = {.take = memory_arrival},

	[WIRE_MIRROR_ASK... WIRE_MIRROR_STORED] = {.take = mirror_arrived},

	[WIRE_ECHO] = {.take = echo_asked},
	[WIRE_ECHO_ANSWER] = {.take = echo_answered},
	[WIRE_AGGREGATE] = {.take = aggregate_received},
};
