/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving on: the one place that takes arrivals up and pushes what waits down. */
#ifndef SLMPM_PROGRESS_H
#define SLMPM_PROGRESS_H

#include "slmpm/endpoint.h"

#define PROGRESS_SHARE         16     /* packets of an endpoint before it is the next one's turn */
#define PROGRESS_INSPECT_EVERY 512    /* passes, busy or not, behind which a look may be due ... */
#define PROGRESS_ASK_TICKS     200000 /* ... at the descriptors: the kernel is slow */

/* One fair pass over all endpoints; packets handled and posted. Of one peer, at rest, the ring is
 * polled up to so many times until something has come. */
int progress_polling(struct context *ctx, uint32_t polls);
static inline int progress_context(struct context *ctx)
{
	return progress_polling(ctx, 1);
}
/* Of calls that do not wait, now and then: a pass, and the descriptors. */
void progress_opportunistic(struct context *ctx);
/* At the descriptors, where they have not been asked for a while. */
int progress_ask(struct context *ctx);
/* What a pass has read ahead, to make room: no descriptor shows it any more. Packets handled. */
int progress_read_ahead(struct context *ctx);
/* Takes what has come so far; false when there may be more. */
bool progress_inspect(struct endpoint *ep);
/* Takes all that a peer which is gone has committed; whether there was anything. */
bool progress_drain(struct endpoint *ep);

/* A reader right behind its writer takes each line from it while it is being written, and both
 * crawl. After so many packets of a one-way stream one that finds the ring empty therefore pauses
 * for some microseconds; if that brought less than PROGRESS_GAIN packets, not again soon. */
#define PROGRESS_RUN  64
#define PROGRESS_GAIN 4
int progress_back_off(struct endpoint *ep, int most);
/* Called now and then while EP is received from. The fast path scans nothing else: after a
 * millisecond the next call goes the slow path, by all peers and the descriptors. */
void progress_turn(struct endpoint *ep);
/* The fabric's poll has said this: the peer breaks the rules, or the link is lost. */
void progress_failed(struct endpoint *ep, int rc);

/* Gives back what progress_release has gathered. */
static inline void progress_settle(struct endpoint *ep)
{
	struct link *l = &ep->link;

	if (l->due.span) {
		l->fabric->release(l->port, &l->due);
		l->due.span = 0;
	}
}

/* All that was polled has been taken: polls again, for MOST packets. 1; 0: nothing has come; or
 * negative: the endpoint has ended. */
static inline int progress_poll(struct endpoint *ep, int most)
{
	struct link *l = &ep->link;
	int n;

	progress_settle(ep);
	n = l->fabric->poll(l->port, l->arrivals, most);
	if (n == 0 && UNLIKELY(l->run >= PROGRESS_RUN))
		n = progress_back_off(ep, most);
	if (n <= 0) {
		if (UNLIKELY(n < 0))
			progress_failed(ep, n);
		return n;
	}
	l->next = l->arrivals;
	l->end = l->arrivals + n;
	l->run += (uint32_t)n;
	ep->stats->received_packets += (uint64_t)n;
	return 1;
}

/* The next packet of an endpoint that is UP, or NULL; valid until released. */
static inline struct fabric_arrival *progress_take(struct endpoint *ep)
{
	struct link *l = &ep->link;

	return l->next == l->end && progress_poll(ep, LINK_BATCH) <= 0 ? NULL : l->next++;
}

/*
 * Through with an arrival. The release itself waits a little: off the way of the message just
 * received, and once for a run of packets. What waits is small beside what the read total's lazy
 * publication holds back anyway.
 */
static inline void progress_release(struct endpoint *ep, const struct fabric_arrival *a)
{
	struct fabric_arrival *due = &ep->link.due;

	if (due->span && due->token + due->span == a->token) {
		due->span += a->span;
	} else {
		progress_settle(ep);
		due->token = a->token;
		due->span = a->span;
	}
	if (due->span > ep->link.due_max)
		progress_settle(ep);
}

#endif
