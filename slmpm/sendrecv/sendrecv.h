/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and receiving: what the calls ask of one another. */
#ifndef SLMPM_SENDRECV_H
#define SLMPM_SENDRECV_H

#include "slmpm/completion/completion.h"
#include "slmpm/link/link.h"
#include "slmpm/message/inbound.h"
#include "slmpm/message/match.h"
#include "slmpm/message/message.h"

/* The endpoint or context that a receive names, locked; NULL with *RC set. *EP NULL: any peer. */
struct context *message_source(slmpm_peer peer, struct endpoint **ep, int *rc);
/*
 * The general send and receive, in a locked context, without waiting: REQ, or else the counter or
 * queue of HOW, learns the end. HOW is in full. A negative error: nothing has begun.
 */
int message_sendv(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov, int n,
		  const struct slmpm_how *how, slmpm_req *req);
/* One piece that is neither empty nor NULL. */
static inline bool message_is_single(const struct slmpm_iov *iov, int n)
{
	return n == 1 && iov && iov->base && iov->len;
}
/* A short message that goes at once, and nothing learns it. SENT: it is done, as
 * message_describe_sent says; SENT_IN_PART: message_leaves is to follow; NOT_SENT: not this way. */
enum sent message_send_at_once(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov,
			       int n, uint32_t flags, uint32_t imm);
/* The same of a single piece, without flags. */
enum sent message_send_single(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov,
			      uint32_t imm);
void message_describe_sent(struct slmpm_done *done, const struct endpoint *ep, uint32_t stream,
			   const struct slmpm_iov *iov, uint32_t imm);
/* HOW's queue, that of a work queue's entries, which needs no memory, learns when the rest of it
 * has left. */
void message_leaves(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov,
		    const struct slmpm_how *how);
int message_recvv(struct context *ctx, struct endpoint *ep, uint32_t stream,
		  const struct slmpm_iov *iov, int n, const struct slmpm_how *how, slmpm_req *req);
/* A message to be held where it comes in. */
int message_hold(struct context *ctx, struct endpoint *ep, uint32_t stream,
		 const struct slmpm_how *how);
/* That of the finished request R of EP's, recorded for its release; NULL: no memory. */
struct held *message_held(struct endpoint *ep, const struct request *r);
/* A receive, or a hold (request_ops): to the messages that came, or those to come. */
int message_post(struct request *r);

static inline bool message_has_buffer(const struct slmpm_iov *m)
{
	return m->base || !m->len;
}
/* The next message of EP, held where it lies; NULL: it comes later, or in another way. */
const struct fabric_arrival *message_hold_direct(struct endpoint *ep, uint32_t stream,
						 struct slmpm_done *done, int timeout_ms);

/* ---- messages that need no more than is usual ----------------------------------------------- */

/* Is A a plain message of one packet that a receive on STREAM may take as it is? */
static inline bool message_is_plain(const struct endpoint *ep, const struct fabric_arrival *a,
				    uint32_t stream)
{
	return a->kind == WIRE_SEND_ONLY && a->head[2] == a->length &&
	       !PEER_FAULT(a->length > ep->only_max_in || a->head[0] != ep->received + 1 ||
			   (uint32_t)a->head[1] == SLMPM_ANY_STREAM) &&
	       (stream == SLMPM_ANY_STREAM || stream == (uint32_t)a->head[1]);
}

/* Its bytes have a receive. */
static inline void message_take_plain(struct endpoint *ep, const struct fabric_arrival *a)
{
	ep->received++;
	match_account(ep, a->length);
	link_matched(ep, wire_charge(a->length));
}

/* ---- packets of messages (arrival_send.c) ---------------------------------------------------- */

/* One packet, or a message of a bundle. */
void arrival_only(struct endpoint *ep, const struct head *h);
/* A plain one, for the first receive that its peer has. */
bool arrival_usual(struct endpoint *ep, const struct fabric_arrival *a);
void arrival_first(struct endpoint *ep, const struct head *h);
void arrival_more(struct endpoint *ep, const struct head *h);
/* The sender gave up: as if the message had never come, but for its envelope. */
void arrival_withdrawn(struct endpoint *ep, const struct head *h);

/* Of a message in an area (arrival_loan.c). */
void arrival_loan(struct endpoint *ep, const struct head *h);
void arrival_loan_more(struct endpoint *ep, const struct head *h);
void arrival_loan_area(struct endpoint *ep, const struct head *h);
void arrival_loan_bytes(struct endpoint *ep, const struct head *h);

/* ---- where its payload belongs -------------------------------------------------------------- */

void *arrival_place_first(struct endpoint *ep, const struct fabric_arrival *a);
void *arrival_place_more(struct endpoint *ep, const struct fabric_arrival *a);
void *arrival_place_loan(struct endpoint *ep, const struct fabric_arrival *a);
/* A first packet that lands in its receive: its sender may go on before all of it is there. */
void arrival_placed(struct endpoint *ep, const struct fabric_arrival *a);

#endif
