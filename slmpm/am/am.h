/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages: a handler of the receiver runs on what arrives. On the wire they are messages
 * with WIRE_FLAG_ACTIVE. One of a packet is handled where it lies in the ring; longer ones are put
 * together in memory first, one at a time and peer, and as fast as their bytes really come.
 */
#ifndef SLMPM_AM_H
#define SLMPM_AM_H

#include "slmpm/message/inbound.h"

struct am {                      /* of an endpoint */
	struct inbound *message; /* in several packets, of which some are missing */
	uint32_t own;            /* of the answers that wait, the library's, in number */
	uint32_t kept_free;      /* bytes of those kept that cost no credit */
	uint64_t charge;         /* of what was handled; the peer's again without the answers */
	struct list awaiting;    /* struct request: all of it is out, its answer is not here */
	uint64_t tags;           /* given to such */
	uint32_t abandoned;      /* answers to come that nobody waits for */
	struct list entries;     /* struct fifo_entry: of the peer's */
	uint32_t longs;          /* of the entries, those beyond the credit */
	bool holds_up;           /* a long entry is announced that waits for the end of `longs` */
	uint64_t uncleared;      /* envelope of that entry */
};

void am_begin_peer(struct endpoint *ep);

static inline uint32_t am_stream(uint16_t id, size_t head_len)
{
	return id | (uint32_t)head_len << 16;
}

/* A, if it is one of a packet with a handler and nothing about it is rare: handled and released. */
bool am_take(struct endpoint *ep, const struct fabric_arrival *a);
/* Is what comes now kept: is the peer not accepted yet, or has an earlier one still to run? */
static inline bool am_is_early(const struct endpoint *ep)
{
	return ep->rooms->listener || !list_empty(&ep->kept);
}
/* May the first that is kept run in this call? The engine's thread leaves one without handler to
 * the application, unless too much is kept already. */
bool am_may_run(const struct endpoint *ep);
/* Has the peer been accepted, with active messages that were kept and may run now? */
static inline bool am_is_due(const struct endpoint *ep)
{
	return !ep->rooms->listener && !list_empty(&ep->kept) && am_may_run(ep);
}
/* Runs these, where am_is_due: how many. */
int am_run_kept(struct endpoint *ep);
/* Runs those of all peers, before a call takes messages that were sent behind them. */
COLD void am_run_accepted(struct context *ctx);
static inline void am_run_due(struct context *ctx)
{
	if (UNLIKELY(ctx->accepted))
		am_run_accepted(ctx);
}
/* At the end of the peer: what has not run never will. */
void am_forget_kept(struct endpoint *ep);

/* ---- what arrived with WIRE_FLAG_ACTIVE ----------------------------------------------------- */

void am_only(struct endpoint *ep, const struct head *h);
void am_first(struct endpoint *ep, const struct head *h);
/* A packet more of M, which is one; its figures have been checked. */
void am_more(struct inbound *m, const struct head *h, bool last);

/* Where the next LENGTH bytes of M go. */
void *am_landing(struct inbound *m, uint32_t length);

/* CHARGE is the peer's again, once the answers have left. */
static inline void am_settle(struct endpoint *ep, uint64_t charge)
{
	if (UNLIKELY(ep->answers))
		ep->rooms->am->charge += charge;
	else if (charge)
		link_discharge(ep, charge);
}

/* Of one that is confirmed and begins at DATA: whose handler is to have it. */
uint16_t am_confirm_id(const void *data);
/* M is such a one and was dropped: answered. */
void am_confirm_dropped(struct inbound *m);

/* ---- sending -------------------------------------------------------------------------------- */

/* What a call asks for: 0, or negative with the detail set. */
int am_check(const char *call, uint16_t id, const void *head, size_t head_len, const void *data,
	     size_t len);
/* Does the peer take them? One that has not connected yet may; those that wait are refused then. */
int am_check_peer(const struct endpoint *ep);
/* R becomes one, of N pieces behind HEAD, which is copied; with COPY the first piece is, too. Not
 * yet submitted. Negative, with the detail set. */
int am_fill(struct request *r, struct endpoint *ep, uint16_t id, const void *head, size_t head_len,
	    const struct slmpm_iov *iov, int n, bool copy);
/* The same with FLAGS of a how: SLMPM_REMOTE, it is done when the peer has answered. */
int am_fill_as(struct request *r, struct endpoint *ep, uint16_t id, const void *head,
	       size_t head_len, const struct slmpm_iov *iov, int n, uint32_t flags);
/* By request_finish: what its result says. */
void am_finished(struct request *r);
/* By a request, whatever of it there is. */
int am_sendv(struct endpoint *ep, uint16_t id, const void *head, size_t head_len,
	     const struct slmpm_iov *iov, int n, const struct slmpm_how *how, slmpm_req *req);
/* One packet of head and data on ROUTE, at once: 1, -EAGAIN, or another negative when the endpoint
 * has ended. It costs no credit. */
int am_post(struct endpoint *ep, uint16_t by, uint64_t route, uint32_t flags, const void *head,
	    uint32_t head_len, const void *data, uint32_t len);
/* An answer: goes out now or as soon as there is room; both parts are copied. Negative, without
 * detail: -SLMPM_ENOMEM, or -SLMPM_ELIMIT when too much waits already. */
int am_answer(struct endpoint *ep, uint16_t id, const void *head, size_t head_len, const void *data,
	      size_t len);

/* The peer does not know active messages: those that wait for it, and all others, are ENOTSUP. */
void am_refuse(struct endpoint *ep);

/* The context ends. */
void am_forget(struct context *ctx);

#endif
