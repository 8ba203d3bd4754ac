/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Managed receive queues of any peer. Each peer has a total of its own, as that of a queue of one
 * peer (link/binding.h), which begins with nothing: enabled entries are reserved for those that
 * claim them, in turn. What a peer has is reserved until its message has come, it gives it back, or
 * it ends.
 */
#include "slmpm/workqueue/workqueue.h"

#include <stdlib.h>

#include "slmpm/base/error.h"
#include "slmpm/link/binding.h"
#include "slmpm/link/link.h"
#include "slmpm/message/inbound.h"

#define BAD_CLAIM "claim of a receive queue's entries"

struct reservation {          /* what a peer has of a queue's entries; totals */
	struct list of_queue; /* of the queue's */
	struct list of_peer;  /* of the endpoint's */
	struct list claims;   /* of the queue's, or alone */
	struct workqueue *wq;
	struct endpoint *ep;
	uint64_t which; /* as of binding_begin; 0: it is announced later */
	bool known;
	uint64_t early;      /* messages that it had sent by then */
	uint64_t granted;    /* and may send behind them, ... */
	uint64_t told;       /* ... as last told */
	uint64_t given_back; /* of these, without a message */
	uint64_t wanted;     /* it waits for so many to be granted */
	uint64_t taken;      /* entries that have ended with its messages */
	uint64_t counted;    /* that are its, among the queue's `reserved` */
};

static struct reservation *find_reservation(const struct endpoint *ep, const struct workqueue *wq)
{
	LIST_EACH_ENTRY(struct reservation, r, &ep->rooms->bindings->reservations, of_peer)
		if (r->wq == wq)
			return r;
	return NULL;
}

static void set_counted(struct reservation *r, uint64_t n)
{
	r->wq->receive.reserved += n - r->counted;
	r->counted = n;
}

/* What has come without having been granted counts as well: of one that has ended, or does not know
 * yet, that is all. */
static void count_reserved(struct reservation *r)
{
	uint64_t n = endpoint_has_ended(r->ep) || !r->known ?
			     r->taken + receive_count_coming(r->wq, r->ep) :
			     r->early + r->granted - r->given_back;

	set_counted(r, n > r->taken ? n : r->taken);
}

static void drop_reservation(struct reservation *r)
{
	set_counted(r, r->taken);
	list_remove(&r->of_queue);
	list_remove(&r->of_peer);
	list_remove(&r->claims);
	free(r);
}

/* ---- giving ---------------------------------------------------------------------------------- */

/* Enabled entries that no peer has reserved or taken. */
static uint64_t free_entries(const struct workqueue *wq)
{
	uint64_t n = receive_allowed(wq) - wq->receive.reserved;

	return (int64_t)n > 0 ? n : 0;
}

/* So many at most, of those that it needs for TOTAL: how many. */
static uint64_t grant_some(struct reservation *r, uint64_t total, uint64_t most)
{
	uint64_t need = total - r->granted, n;

	if ((int64_t)need <= 0)
		return 0;
	n = need < most ? need : most;
	r->granted += n;
	count_reserved(r);
	return n;
}

/* Each the same, in the order of their claims; who wants more stands behind the others then. */
static void give_in_turn(struct workqueue *wq, uint64_t n)
{
	struct list *claims = &wq->receive.claims;
	uint64_t count = 0, share;

	LIST_EACH(at, claims)
		count++;
	share = count && n > count ? n / count : 1;
	for (; count && n; count--) {
		struct reservation *r = LIST_ENTRY(claims->next, struct reservation, claims);

		n -= grant_some(r, r->wanted, share);
		list_remove(&r->claims);
		if ((int64_t)(r->wanted - r->granted) > 0)
			list_append(claims, &r->claims);
	}
}

static void tell_granted(struct reservation *r)
{
	if (r->told == r->granted || r->ep->state != SLMPM_PEER_UP)
		return;
	r->told = r->granted;
	binding_allow(r->ep, r->wq->receive.stream, r->granted, BIND_SHARED);
}

void reservation_give(struct workqueue *wq)
{
	uint64_t n = free_entries(wq);

	if (!n || list_empty(&wq->receive.claims))
		return;
	for (; n && !list_empty(&wq->receive.claims); n = free_entries(wq))
		give_in_turn(wq, n);
	LIST_EACH_ENTRY(struct reservation, r, &wq->receive.reservations, of_queue)
		tell_granted(r);
}

/* ---- what comes ------------------------------------------------------------------------------ */

/* A peer that does not answer keeps no queue from the others: one more is announced to it for each
 * that it has acknowledged. Until then what it sends counts as what is sent before a peer knows. */
static void begin_binding(struct reservation *r)
{
	if (!r->which && r->ep->state == SLMPM_PEER_UP && binding_may_begin(r->ep))
		r->which = binding_begin(r->ep, r->wq->receive.stream, 0, BIND_SHARED);
}

bool reservation_known(struct endpoint *ep, uint64_t which, uint64_t waiting)
{
	LIST_EACH_ENTRY(struct reservation, r, &ep->rooms->bindings->reservations, of_peer)
		begin_binding(r);
	LIST_EACH_ENTRY(struct reservation, r, &ep->rooms->bindings->reservations, of_peer) {
		if (r->which != which)
			continue;
		r->known = true;
		r->early = r->taken + receive_count_coming(r->wq, ep);
		r->granted = r->told = r->wanted = waiting;
		count_reserved(r);
		return true;
	}
	return false;
}

void reservation_taken(struct workqueue *wq, slmpm_peer peer)
{
	struct endpoint *ep = endpoint_of(peer);
	struct reservation *r = ep ? find_reservation(ep, wq) : NULL;

	if (!r) { /* it has left meanwhile */
		wq->receive.reserved++;
		return;
	}
	r->taken++;
	count_reserved(r);
}

/* All that there is, up to TOTAL, and an answer. */
static void claim_at_once(struct reservation *r, uint64_t total)
{
	struct workqueue *wq = r->wq;

	if ((int64_t)(total - r->granted) <= 0)
		return; /* it has been told, or is about to be */
	(void)grant_some(r, total, free_entries(wq));
	if ((int64_t)(total - r->granted) <= 0) {
		tell_granted(r);
		return;
	}
	r->told = r->granted;
	link_control_whole(r->ep, WIRE_BIND, r->granted, wq->receive.stream, BIND_REFUSED, NULL, 0);
}

static void claim_in_turn(struct reservation *r, uint64_t total)
{
	r->wanted = total;
	if ((int64_t)(total - r->granted) > 0 && list_empty(&r->claims))
		list_append(&r->wq->receive.claims, &r->claims);
	reservation_give(r->wq);
}

static void take_given_back(struct reservation *r, uint64_t total)
{
	r->given_back = total;
	count_reserved(r);
	reservation_give(r->wq);
}

/* Totals that go back, or are beyond what there may be. One answer at a time is owed. */
static bool is_bad_claim(const struct reservation *r, uint64_t total, uint64_t how)
{
	switch (how) {
	case CLAIM_NOW:
		return (int64_t)(total - r->granted) > (int64_t)CLAIM_MOST ||
		       link_defers(r->ep, WIRE_BIND, r->wq->receive.stream, BIND_REFUSED);
	case CLAIM_WAIT:
		return (int64_t)(total - r->wanted) <= 0 ||
		       (int64_t)(total - r->granted) > (int64_t)CLAIM_MOST;
	default: return total <= r->given_back || total > r->granted;
	}
}

/* The one of EP's STREAM, if EP knows of it. */
static struct reservation *known_reservation(const struct endpoint *ep, uint32_t stream)
{
	LIST_EACH_ENTRY(struct reservation, r, &ep->rooms->bindings->reservations, of_peer)
		if (r->wq->receive.stream == stream)
			return r->known ? r : NULL;
	return NULL;
}

void reservation_claimed(struct endpoint *ep, uint32_t stream, uint64_t total, uint64_t how)
{
	struct reservation *r = known_reservation(ep, stream);

	if (!r && ep->rooms->bindings->released)
		return; /* of one before */
	if (PEER_FAULT(!r || is_bad_claim(r, total, how))) {
		endpoint_poison(ep, BAD_CLAIM);
		return;
	}
	if (how == CLAIM_NOW)
		claim_at_once(r, total);
	else if (how == CLAIM_WAIT)
		claim_in_turn(r, total);
	else
		take_given_back(r, total);
}

/* ---- life ------------------------------------------------------------------------------------ */

int reservation_begin(struct workqueue *wq, struct endpoint *ep)
{
	struct reservation *r = calloc(1, sizeof(*r));

	if (!r)
		return error_set(SLMPM_ENOMEM, "for a work queue");
	r->wq = wq;
	r->ep = ep;
	list_init(&r->claims);
	list_append(&wq->receive.reservations, &r->of_queue);
	list_append(&ep->rooms->bindings->reservations, &r->of_peer);
	count_reserved(r);
	begin_binding(r);
	return 0;
}

int reservation_bind(struct workqueue *wq)
{
	const struct context *ctx = wq->ctx;
	int rc = 0;

	for (uint32_t i = 0; i < ctx->count && rc == 0; i++)
		if (ctx->endpoints[i]->state != SLMPM_PEER_CONNECTING)
			rc = reservation_begin(wq, ctx->endpoints[i]);
	return rc;
}

void reservation_release(struct workqueue *wq)
{
	LIST_EACH_ENTRY(struct reservation, r, &wq->receive.reservations, of_queue) {
		if (r->which && r->ep->state == SLMPM_PEER_UP)
			binding_release_shared(r->ep, wq->receive.stream);
		drop_reservation(r);
	}
}

/* What it had reserved is others'. */
void reservation_end(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct reservation, r, &ep->rooms->bindings->reservations, of_peer) {
		list_remove(&r->claims);
		count_reserved(r);
		reservation_give(r->wq);
	}
}

/* What of its messages no entry has taken is gone. */
void reservation_leave(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct reservation, r, &ep->rooms->bindings->reservations, of_peer) {
		struct workqueue *wq = r->wq;

		drop_reservation(r);
		reservation_give(wq);
	}
}
