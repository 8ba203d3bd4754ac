/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint's link: the one door down. Only this file and link.c call a fabric's post. */
#ifndef SLMPM_LINK_H
#define SLMPM_LINK_H

#include "slmpm/endpoint.h"
#include "slmpm/bond/bond.h"
#include "slmpm/bond/secondary_state.h"
#include "slmpm/link/packet.h"
#include "slmpm/request.h"

#define LINK_TURN 16 /* packets of one message before another that streams gets its turn */

COLD bool link_lags_still(struct endpoint *ep);
/* Has a part of what the link took not left this process yet? No message follows until it has. */
static inline bool link_lags(struct endpoint *ep)
{
	return UNLIKELY(endpoint_is_blocked(ep, BLOCK_LAGS)) && link_lags_still(ep);
}

/* What has been posted by now has left once this is passed, whatever is posted behind it. */
struct link_mark {
	uint64_t left[BOND_PATHS];
};
void link_mark(const struct endpoint *ep, struct link_mark *m);
bool link_passed(struct endpoint *ep, const struct link_mark *m);
/* For a call that cannot wait. True: nothing but its lag is in the way of the next message, and the
 * link counts as caught up until link_pressed_on. */
COLD bool link_presses_on(struct endpoint *ep);
COLD void link_pressed_on(struct endpoint *ep);

/* What link_post says where the fabric has said RC, which is not 1; 0: the link lags now. */
COLD int link_posted(struct endpoint *ep, int rc);

/* 1 taken, -EAGAIN no room, another negative: the endpoint has ended. Without checksum. */
static inline int link_post(struct endpoint *ep, const struct packet *p)
{
	struct fabric_wr wr = {
		.op = FABRIC_SEND,
		.kind = p->opcode,
		.flags = p->flags,
		.length = p->length,
		.data = p->data,
		.head = {p->seq, p->route, p->extent},
	};
	int rc = ep->link.fabric->post(ep->link.port, &wr);

	return LIKELY(rc == 1) ? 1 : link_posted(ep, rc);
}

/*
 * A packet of R's (NULL: of none), with what is rare: a checksum, a link that R is to go by, and,
 * where p->data is NULL, payload gathered from R's pieces. -ENOLINK: a strict one cannot begin.
 */
int link_post_request(struct endpoint *ep, struct packet *p, struct request *r);
/* The same with LEAD in front of p->length bytes of the request, or of those at p->data. */
int link_post_led(struct endpoint *ep, struct packet *p, const void *lead, uint32_t lead_length,
		  struct request *r);
/* The first or only packet of a message is out: it counts as sent, with BYTES. */
static inline void link_begun(struct endpoint *ep, uint64_t bytes)
{
	ep->link.run = 0;
	ep->sent++;
	ep->stats->sent_messages++;
	ep->stats->sent_bytes += bytes;
}
/* Can either side map what the other has made for it? Else it is copied through packets. */
static inline bool link_maps(const struct endpoint *ep)
{
	const struct fabric_domain *memory = secondary_memory(ep);

	return memory && memory->fabric->alloc;
}

/* Does the peer read next what is posted now, whatever has gone by others of several links? */
bool link_is_read_next(const struct endpoint *ep);
/* And is what this side reads next stored here? Then nothing of the peer's is under way by another
 * link that it posted before what has been read. */
bool link_reads_stored(const struct endpoint *ep);

/* Segments of a ring, out and in, of which a share may be kept: the least of several links'. */
static inline uint64_t link_ring_out(const struct endpoint *ep)
{
	return ep->rooms->secondary ? bond_ring_out(ep->link.port) :
				      ep->link.port->counts.out_segments;
}
static inline uint64_t link_ring_in(const struct endpoint *ep)
{
	return ep->rooms->secondary ? bond_ring_in(ep->link.port) :
				      ep->link.port->counts.in_segments;
}

/* A peer's memory: N bytes between OFFSET there and LOCAL, or a struct fabric_atomic. As post. */
int link_reach(struct endpoint *ep, enum fabric_op op, struct fabric_memory *memory,
	       uint64_t offset, void *local, uint64_t n);
/* An operation on memory that completes later (fabric_memory.later); and the end of all such. */
int link_begin(struct endpoint *ep, const struct fabric_wr *wr);
void link_cancel(struct endpoint *ep);
/* The peer's access word N: enum fabric_access. Nothing where there is none any more. */
void link_set_access(struct endpoint *ep, uint32_t n, unsigned value);
/* A packet without message: goes out now or as soon as there is room, before what is queued. */
void link_control(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t extent,
		  const void *data, uint32_t length);
/* With all three words of the head. */
void link_control_whole(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t route,
			uint64_t extent, const void *data, uint32_t length);
/* A total without payload, for ROUTE: a newer one replaces one not yet sent. */
void link_control_latest(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t route,
			 uint64_t extent);
/* Those of ROUTE that wait for room are not sent. */
void link_drop_route(struct endpoint *ep, uint8_t opcode, uint64_t route);
/* Such a packet for ROUTE and of EXTENT waits for room. */
bool link_defers(struct endpoint *ep, uint8_t opcode, uint64_t route, uint64_t extent);
/* The eager bytes matched so far; a newer total replaces one not yet sent. */
void link_return_credit(struct endpoint *ep);
/* Eager messages went straight to their receives: what they would have been charged goes back. */
static inline void link_matched(struct endpoint *ep, uint64_t charge)
{
	ep->matched_charge += charge;
	if (UNLIKELY(ep->matched_charge - ep->returned_charge >= ep->credit / 4))
		link_return_credit(ep);
}
/* One that was charged has its receive. */
static inline void link_discharge(struct endpoint *ep, uint64_t charge)
{
	ep->unmatched_charge -= charge;
	link_matched(ep, charge);
}
/* How many such packets wait for room: what a peer that reads nothing can make us owe. */
uint32_t link_deferred(const struct endpoint *ep, uint8_t opcode);
/* Takes one of them back; false: it has gone out, or never was. */
bool link_disown(struct endpoint *ep, uint8_t opcode, uint64_t seq);
/* Sends them as far as there is room: how many. For link_push. */
int link_push_deferred(struct endpoint *ep);
/* At the endpoint's end. */
void link_drop_deferred(struct endpoint *ep);
/* Moves the transmit queue on; the number of packets posted. */
int link_push(struct endpoint *ep);
/* EP has ended: what waits in its transmit queue fails, and what is announced to it. */
void link_queue_end(struct endpoint *ep);
void link_enqueue(struct endpoint *ep, struct request *r);
void link_dequeue(struct endpoint *ep, struct request *r);
/* What requests of the queue wait for, beside credit, has changed: others may begin now. */
static inline void link_changed(struct endpoint *ep)
{
	ep->link.changes++;
}
/* For parts.c: the requests of the queue, one after the other. */
int link_push_queue(struct endpoint *ep);
/* It has begun: goes on whatever stands before it. */
void link_streams(struct endpoint *ep, struct request *r);
/* Behind the others: what it has begun keeps its place in the order. */
void link_rotate(struct endpoint *ep, struct request *r);
/* So many segments more, or fewer, of the peer's ring are left free from now on (FABRIC_HOLD_BACK);
 * false: that would be too many. */
bool link_hold_back(struct endpoint *ep, int more);
/* Brings the port's counts up to date; publishes nothing. */
void link_count(struct endpoint *ep);
/* FABRIC_STATUS of PORT, which may be one of several links. */
int link_status(struct fabric_link *port, uint16_t flags);
/* Publishes totals now, and gives a reservation back: has all that was posted left this process? */
bool link_flush(struct endpoint *ep);
/* And so far that this process may end? */
bool link_has_arrived(struct endpoint *ep);
/* Who called PORT in the peer's place while it connects is counted as a violation, nobody's. */
void link_unauthenticated(struct endpoint *ep, struct fabric_link *port);
/* EP is connected: what has waited for that goes. */
void link_up(struct endpoint *ep);
/* EP is about to end: its last counts. */
void link_ending(struct endpoint *ep);
/* EP has ended. */
void link_end(struct endpoint *ep);
/* Memory for LENGTH bytes of payload in the peer's ring, or NULL; and its packet. */
void *link_reserve(struct endpoint *ep, uint32_t length);
int link_post_built(struct endpoint *ep, const struct packet *p);

/* ---- which messages a peer has read for certain (watermark.c) ------------------------------- */

#define WATERMARK_MARKS 16

struct watermark { /* of an endpoint */
	struct {
		uint64_t place; /* of the link, */
		uint64_t sent;  /* and messages that lie before it */
	} marks[WATERMARK_MARKS];
	uint32_t first, count;
};

/* Where EP's link is, if nothing is under way in parts. */
void watermark_mark(struct endpoint *ep);
/* What is known to be read is, last. */
void watermark_settle(struct endpoint *ep);

/* ---- packets, for packets.c ----------------------------------------------------------------- */

/* The peer has matched so many eager bytes: there is credit again. */
void link_credited(struct endpoint *ep, const struct head *h);
/* Nothing comes behind it. */
void link_closed(struct endpoint *ep, const struct head *h);

#endif
