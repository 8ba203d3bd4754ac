/* SPDX-License-Identifier: BSD-3-Clause */
/* A message on its way in: what has come of it, where its bytes are, what it costs the credit. */
#ifndef SLMPM_INBOUND_H
#define SLMPM_INBOUND_H

#include "slmpm/endpoint.h"
#include "slmpm/link/link.h"
#include "slmpm/request.h"

struct inbound {
	struct list node;  /* unexpected, or alone */
	struct list parts; /* assembling, or alone */
	struct endpoint *ep;
	uint64_t seq, total, got;
	uint64_t charge; /* against the credit, until matched */
	uint32_t stream, imm;
	bool announced, cleared, damaged;
	bool waits;              /* announced, and its sender waits for a clear */
	bool active;             /* an active message: no receive is to have it */
	bool cut;                /* its receive was too short and has ended: the rest is dropped */
	struct request *receive; /* matched */
	unsigned char *data;     /* bytes kept here while unmatched or held: room for `room` */
	uint64_t room;
	struct fetch_in *fetch; /* the message is to be fetched ... */
	bool fetched;           /* ... and has been */
	struct area *area;      /* the message lies there; got bytes are ready */
	bool final;             /* area: got is the length */
	bool held;              /* handed out by slmpm_hold: its memory stays until released */
	bool released;          /* area: the reader released it before the end */
};

struct messages {               /* of an endpoint: those that come, but for unasked_out */
	struct list unexpected; /* struct inbound in order of arrival, no receive yet */
	struct list posted;     /* receives from this peer in posting order, struct request */
	struct list assembling; /* struct inbound with packets missing */
	struct held_block *held;
	uint32_t held_segments; /* of the ring */
	bool held_elsewhere;    /* the last message held did not lie in the ring */
	struct {
		uint64_t since; /* ns */
		uint64_t seq, offset;
	} enomem; /* the packet that there is no memory for */
	struct {
		uint64_t until; /* ns */
		uint32_t stream;
	} full; /* where ep->link.full */
	/* Announced, not cleared, and goes on all the same: one each way at a time, or NULL. */
	struct request *unasked_out;
	struct inbound *unasked_in;
};

void inbound_begin(struct endpoint *ep);
/* The first of the active messages that are kept. */
static inline struct inbound *inbound_first_kept(const struct endpoint *ep)
{
	return LIST_ENTRY(ep->kept.next, struct inbound, parts);
}

/* The next envelope on this link; the credit bounds what may come unasked (R10). */
static inline bool inbound_envelope(struct endpoint *ep, const struct head *h, uint64_t charge)
{
	if (PEER_FAULT(h->seq != ep->received + 1))
		return endpoint_poison(ep, "sequence number");
	if (PEER_FAULT(h->stream == SLMPM_ANY_STREAM))
		return endpoint_poison(ep, "stream");
	ep->received++;
	ep->unmatched_charge += charge;
	if (PEER_FAULT(ep->unmatched_charge > ep->credit))
		return endpoint_poison(ep, "credit overrun");
	return true;
}
/* The unfinished message with that envelope, or NULL. */
struct inbound *inbound_unfinished(struct endpoint *ep, uint64_t seq);
/* With ROOM for so many bytes. NULL: no memory. */
struct inbound *inbound_try(struct endpoint *ep, const struct head *h, uint64_t total,
			    uint64_t room);
/* The same without room; for want of memory the endpoint ends. */
struct inbound *inbound_new(struct endpoint *ep, const struct head *h, uint64_t total);
/* A copy of one that came whole, with room even for no byte: what is held has an address. */
struct inbound *inbound_whole(struct endpoint *ep, const struct head *h);
/* Drops a message: its memory, its area. */
void inbound_free(struct inbound *m);
/* No memory for a packet of message SEQ: it stays in the ring, where it holds the peer up, and
 * comes again at the next pass; for SLMPM_DEAD_MS, then the endpoint ends. */
COLD void inbound_defer(struct endpoint *ep, uint64_t seq, uint64_t offset);
/* All buffers for what comes on STREAM are in use, and one of them is about to be free: a message
 * without a receive stays in the ring for a moment, as long as nothing else asks for what is there.
 * So it is copied but once, and its sender has to wait. */
void inbound_full(struct endpoint *ep, uint32_t stream);
/* There is room again, or none to come. */
void inbound_not_full(struct endpoint *ep, uint32_t stream);
/* Is H to wait in the ring? Then it has been deferred. */
COLD bool inbound_waits(struct endpoint *ep, const struct head *h);
/* Room for N bytes in all; keeps what is there. */
bool inbound_room(struct inbound *m, uint64_t n);
void inbound_drop_data(struct inbound *m);
/* Copies what an area shows behind FROM to the receive. */
void inbound_copy_area(struct inbound *m, uint64_t from);
bool inbound_complete(const struct inbound *m);
void inbound_describe(const struct inbound *m, struct slmpm_done *done);
/* Of one that has come as a whole. */
static inline void inbound_describe_whole(struct slmpm_done *done, const struct endpoint *ep,
					  uint64_t len, uint32_t stream, uint32_t imm)
{
	done->len = len;
	done->stream = stream;
	done->imm = imm;
	done->peer.id = handle_id(ep);
	done->flags = 0;
	done->op = SLMPM_OP_RECV;
	done->protocol = SLMPM_BY_SMT;
	done->reason = SLMPM_REASON_NONE;
}
/* What R, whose result describes the message, ends with. */
static inline int inbound_verdict(bool damaged, const struct request *r)
{
	if (UNLIKELY(damaged))
		return -SLMPM_ECHECKSUM;
	return r->kind == REQUEST_RECV && r->result.len > r->length ? -SLMPM_ETRUNC : 0;
}
/* The message is complete and its receive has it; a receive's message is freed. */
void inbound_finish(struct inbound *m);
/* No more can come: unfinished messages are dropped, their receives end with its error. */
void inbound_end(struct endpoint *ep);
/* It is closed: nobody receives what came without a receive. */
void inbound_forget(struct endpoint *ep);

#endif
