/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint's link: the one door down. Only this file and link.c call a fabric's post. */
#ifndef SLMPM_LINK_H
#define SLMPM_LINK_H

#include "slmpm/endpoint.h"
#include "slmpm/request.h"

struct packet {
	uint8_t opcode;
	uint16_t flags; /* FABRIC_MORE, FABRIC_ASK */
	uint32_t length;
	const void *data;
	uint64_t seq, route, extent;
};

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

	return ep->link.fabric->post(ep->link.port, &wr);
}

/* The same with what is rare: checksum, payload gathered from the request's pieces. */
int link_post_request(struct endpoint *ep, struct packet *p, const struct request *r);
/* A packet without message: goes out now or as soon as there is room, before what is queued. */
void link_control(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t extent,
		  const void *data, uint32_t length);
/* The same with a stream and an immediate: the loan packets. */
void link_control_routed(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t route,
			 const void *data, uint32_t length);
/* The eager bytes matched so far; a newer total replaces one not yet sent. */
void link_return_credit(struct endpoint *ep);
/* At the endpoint's end. */
void link_forget_owed(struct endpoint *ep);
/* Moves the transmit queue on; the number of packets posted. */
int link_push(struct endpoint *ep);
void link_enqueue(struct endpoint *ep, struct request *r);
void link_dequeue(struct endpoint *ep, struct request *r);
/* A request that waits for its clear has got it. */
void link_cleared(struct endpoint *ep, uint64_t seq);
/* Publishes totals whatever the thresholds say. */
void link_flush(struct endpoint *ep);
/* Memory for LENGTH bytes of payload in the peer's ring, or NULL; and its packet. */
void *link_reserve(struct endpoint *ep, uint32_t length);
int link_post_built(struct endpoint *ep, const struct packet *p);
void link_unreserve(struct endpoint *ep);

#endif
