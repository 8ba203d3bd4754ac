/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A large message's way, in packets or fetched: the one that has taken less time of late, by what it
 * cost the sender until it could go on, for each power of two of the length (doc/performance.md).
 */
#include "slmpm/bulk.h"
#include "slmpm/wait.h"

#define TRY_SOON  8   /* messages after which the way that was longer is tried again, ... */
#define MANY      128 /* ... for so many; then after ... */
#define TRY_LATER 64  /* ... so many, ... */
#define TRY_LATE  512 /* ... or, where it was longer by half, so many */

static struct bulk_ways *ways_of(struct bulk *b, uint64_t length)
{
	int class = 63 - __builtin_clzll(length >> 14 | 1);

	return class < BULK_CLASSES ? &b->ways[class] : NULL;
}

static uint32_t try_after(const struct bulk_ways *w)
{
	uint64_t least = w->sent < w->fetched ? w->sent : w->fetched;
	uint64_t most = w->sent < w->fetched ? w->fetched : w->sent;

	return w->count < MANY ? TRY_SOON : 2 * most > 3 * least ? TRY_LATE : TRY_LATER;
}

/* The way that was the shorter one, and now and then the other: it may have become so. */
static bool is_shorter(const struct bulk_ways *w)
{
	uint32_t after = try_after(w);
	bool fetch = w->fetched <= w->sent;

	if (!w->sent || !w->fetched)
		return w->count % 2 == 0;
	return w->count % after == after - 1 ? !fetch : fetch;
}

bool push_is_shorter(const struct endpoint *ep, uint64_t length)
{
	const struct bulk_ways *w = ep->bulk ? ways_of(ep->bulk, length) : NULL;

	return !w || is_shorter(w);
}

void push_tried(struct endpoint *ep, uint64_t length)
{
	struct bulk_ways *w = ways_of(ep->bulk, length);

	if (w)
		w->count++;
}

/* Good news at once, bad news with doubt: what delayed one message need not delay the next. */
static void learn(uint32_t *cost, uint64_t ns, uint64_t length)
{
	uint64_t ps = ns * 1000 / length + 1, had = *cost;

	if (!had)
		had = ps;
	if (ps > 2 * had)
		ps = 2 * had;
	had = ps < had ? (had + ps) / 2 : had + (ps - had) / 8;
	*cost = had > UINT32_MAX ? UINT32_MAX : (uint32_t)had;
}

void push_learn(struct endpoint *ep, const struct push *p)
{
	struct bulk_ways *w = ways_of(ep->bulk, p->r->length);

	if (w)
		learn(&w->fetched, wait_now() - p->since, p->r->length);
}

void push_packets(struct endpoint *ep, const struct request *r)
{
	struct bulk *b = r->length >= ep->fetch_min && !r->wire ? bulk_of(ep) : NULL;
	struct bulk_ways *w = b ? ways_of(b, r->length) : NULL;

	if (!w)
		return;
	w->count++;
	b->timed = r->seq;
	b->since = wait_now();
}

void push_sent(struct endpoint *ep, const struct request *r)
{
	struct bulk *b = ep->bulk;
	struct bulk_ways *w = b && b->timed == r->seq ? ways_of(b, r->length) : NULL;
	uint64_t ns;

	if (!w)
		return;
	ns = wait_now() - b->since;
	learn(&w->sent, ns + ns * ep->packet_max / r->length,
	      r->length); /* the reader's last one */
}
