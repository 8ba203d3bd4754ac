/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages, the sending side: the announcement, the share pushed, the end (bulk.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/arrival.h"
#include "slmpm/bulk.h"
#include "slmpm/link.h"
#include "slmpm/wait.h"

#define GRACE_NS 30000 /* what may be sent without asking waits so long for a receive */

/* The ranges of R's memory; 0: too many. */
static uint32_t list_ranges(const struct request *r, struct wire_range *ranges)
{
	uint32_t n = 0;

	for (int i = 0; i < r->piece_count; i++) {
		if (!r->pieces[i].len)
			continue;
		if (n == WIRE_RANGES)
			return 0;
		ranges[n].address = LITTLE_64((uint64_t)(uintptr_t)r->pieces[i].base);
		ranges[n++].length = LITTLE_64((uint64_t)r->pieces[i].len);
	}
	return n;
}

/* Who sleeps before it has looked around finds out too late that nobody has come for it. */
static bool waits_long(const struct context *ctx)
{
	return ctx->wait == SLMPM_WAIT_BLOCK || ctx->crowded;
}

bool push_wants(const struct endpoint *ep, const struct request *r)
{
	struct wire_range ranges[WIRE_RANGES];

	if (r->length < ep->fetch_min || !r->length || r->wire || r->kind != REQUEST_SEND)
		return false;
	if (r->length <= ep->eager_max && waits_long(ep->ctx))
		return false;
	if (!config_get()->fetch && !push_is_shorter(ep, r->length))
		return false;
	return list_ranges(r, ranges) != 0;
}

/* ---- announcing ----------------------------------------------------------------------------- */

int push_announce(struct endpoint *ep, struct request *r)
{
	struct {
		struct wire_fetch head;
		struct wire_range ranges[WIRE_RANGES];
	} fetch;
	uint32_t n = list_ranges(r, fetch.ranges);
	struct bulk *b = bulk_of(ep);
	struct push *p = malloc(sizeof(*p));

	if (!b || !p) {
		free(p);
		ep->fetch_min = UINT64_MAX; /* it goes in packets, then */
		return -EAGAIN;
	}
	fetch.head = (struct wire_fetch){.count = LITTLE_32(n)};
	if (!bulk_say(ep, WIRE_FETCH, ep->sent + 1, wire_route(r->stream, r->result.imm),
		      wire_extent(r->length, 0), &fetch,
		      (uint32_t)(sizeof(fetch.head) + n * sizeof(*fetch.ranges)))) {
		free(p);
		return -EAGAIN;
	}
	*p = (struct push){.r = r};
	list_init(&p->node);
	r->push = p;
	r->seq = ++ep->sent;
	r->announced = true;
	ep->charged += WIRE_ENVELOPE;
	ep->stats->sent_messages++;
	ep->stats->sent_bytes += r->length;
	p->since = wait_now();
	push_tried(ep, r->length);
	if (r->length <= ep->eager_max) {
		p->waiting = true;
		list_append(&b->pushes, &p->node);
	}
	return 1;
}

void push_forget(struct request *r)
{
	struct endpoint *ep = r->ep;

	if (ep->bulk->pushing == r->push)
		ep->bulk->pushing = NULL;
	list_remove(&r->push->node);
	free(r->push);
	r->push = NULL;
	endpoint_refresh(ep);
}

/* ---- the share ------------------------------------------------------------------------------ */

static struct request *find(struct endpoint *ep, uint64_t seq)
{
	LIST_EACH(at, &ep->announced) {
		struct request *r = LIST_ENTRY(at, struct request, node);

		if (r->seq == seq && r->push)
			return r;
	}
	return NULL;
}

/* What the receiver leaves of a message, or the half of it where that is much: 0 nothing. */
static uint64_t choose_share(struct endpoint *ep, const struct push *p)
{
	uint64_t left = p->done > p->upto ? p->done - p->upto : 0, share;

	if (!(ep->bulk->peer.ops & 1u << FABRIC_WRITE) || !p->address || !p->reading || p->asked ||
	    left < BULK_SHARE_MIN / 2 || bulk_is_scarce(ep))
		return 0;
	share = left / 2 > BULK_SHARE_MAX ? BULK_SHARE_MAX : left / 2;
	return share < BULK_SHARE_MIN ? left : share;
}

static bool say_give(struct endpoint *ep, struct push *p, bool now)
{
	struct wire_give give = {
		.claim = LITTLE_64(p->claim),
		.done = LITTLE_64(p->done),
		.turn = LITTLE_32(p->turn),
	};

	if (!bulk_say(ep, WIRE_FETCH_GIVE, p->r->seq, 0, 0, &give, sizeof(give))) {
		if (now)
			return false;
		link_control(ep, WIRE_FETCH_GIVE, p->r->seq, 0, &give, sizeof(give));
	}
	p->owes = false;
	return true;
}

/* Bytes CLAIM to DONE of the message into the peer's buffer. */
static int write_share(struct endpoint *ep, const struct push *p)
{
	struct request_walk walk = {p->r, 0, p->claim};
	uint64_t at = p->claim, n;
	void *run;

	while (at < p->done && (run = request_walk_on(&walk, p->done - at, &n))) {
		int rc = link_reach(ep, FABRIC_WRITE, &ep->bulk->peer, p->address + at, run, n);

		if (rc != 1)
			return rc;
		at += n;
	}
	return 0;
}

/* A claim that is sure is carried out; whatever became of it is told. */
static void settle(struct endpoint *ep, struct push *p)
{
	if (p->claim >= p->upto && p->reading && write_share(ep, p) == 0) {
		if (!p->shared)
			ep->stats->push_messages++;
		p->shared = true;
		ep->stats->push_bytes += p->done - p->claim;
		p->done = p->claim;
	} else {
		p->claim = p->done;
		p->address = 0; /* the receiver does the rest */
	}
	p->told = false;
	p->owes = true;
}

static void leave(struct endpoint *ep, struct push *p)
{
	list_remove(&p->node);
	endpoint_refresh(ep);
}

/* There is more to be heard first, and the application may compute before that: the receiver is not
 * to wait for a share that has not been begun. */
static void unclaim(struct endpoint *ep, struct push *p)
{
	if (!p->told)
		return;
	p->claim = p->done;
	p->told = false;
	(void)say_give(ep, p, false);
}

static int step_share(struct endpoint *ep, struct push *p)
{
	struct bulk *b = ep->bulk;
	uint64_t share = 0;
	bool heard;
	int n = 0;

	while (p->told || (share = choose_share(ep, p))) {
		if (!p->told) {
			p->claim = p->done - share;
			if (!say_give(ep, p, true)) {
				p->claim = p->done;
				break;
			}
			p->told = true;
		}
		b->pushing = p;
		heard = bulk_heard(ep);
		if (b->pushing != p)
			return n + 1; /* it has gone */
		if (!heard) {
			unclaim(ep, p);
			return n + 1;
		}
		if (!p->told)
			continue; /* another receive has got the message */
		settle(ep, p);
		n++;
	}
	if (choose_share(ep, p))
		return n; /* but there is no room to say so */
	if (p->owes)
		(void)say_give(ep, p, false);
	leave(ep, p);
	return n;
}

/* ---- packets after all ---------------------------------------------------------------------- */

/* The ring takes it, without being asked. */
static void send_instead(struct endpoint *ep, struct request *r)
{
	push_forget(r);
	list_remove(&r->node);
	r->cleared = true;
	link_enqueue(ep, r);
	link_streams(ep, r);
	(void)link_push(ep);
}

/* Nobody has come for it so far, and the send is not to wait for that. */
static int step_waiting(struct endpoint *ep, struct push *p)
{
	struct bulk *b = ep->bulk;

	if (p->reading || (!ep->ctx->armed && !p->hurried && wait_now() - p->since < GRACE_NS))
		return 0;
	if (!p->asked) {
		if (ep->charged - ep->credited + p->r->length > ep->credit ||
		    !bulk_say(ep, WIRE_FETCH_SEND, p->r->seq, 0, p->r->length, NULL, 0))
			return 0;
		ep->charged += p->r->length;
		p->asked = true;
		push_learn(ep, p);
	}
	b->pushing = p;
	if (!bulk_heard(ep) || b->pushing != p)
		return 1;
	if (p->turn) /* it has come: it says what is to become of it */
		leave(ep, p);
	else
		send_instead(ep, p->r);
	return 1;
}

int push_step(struct endpoint *ep, struct push *p)
{
	if (p->waiting && !p->turn)
		return step_waiting(ep, p);
	p->waiting = false;
	return step_share(ep, p);
}

void push_hurry(struct request *r)
{
	r->push->hurried = true;
}

bool push_take_back(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct push *p = r->push;
	bool heard;

	if (ep->ctx->handling || p->reading ||
	    !bulk_say(ep, WIRE_WITHDRAW, r->seq, 0, WIRE_WITHDRAW_ASK, NULL, 0))
		return false;
	ep->bulk->pushing = p;
	heard = bulk_heard(ep);
	if (ep->bulk->pushing != p)
		return false; /* it has had its end */
	if (heard && !p->reading) {
		link_control(ep, WIRE_WITHDRAW, r->seq, 0, NULL, 0);
		return true;
	}
	link_control(ep, WIRE_WITHDRAW, r->seq, WIRE_WITHDRAW_NOT, NULL, 0);
	return false;
}

/* ---- what the receiver says ----------------------------------------------------------------- */

/* A word about a message that has had its end meanwhile is no offence. */
static bool was_sent(const struct endpoint *ep, uint64_t seq)
{
	return seq && seq <= ep->sent;
}

void push_taken(struct endpoint *ep, const struct head *h)
{
	struct wire_take take;
	struct request *r = find(ep, h->seq);
	struct push *p = r ? r->push : NULL;

	if (PEER_FAULT(!ep->bulk || h->length < sizeof(take) || !was_sent(ep, h->seq) ||
		       !bulk_introduced(ep, h, sizeof(take)))) {
		arrival_violates(ep, "taking of a message");
		return;
	}
	if (!p)
		return;
	memcpy(&take, h->data, sizeof(take));
	take.turn = LITTLE_32(take.turn);
	take.limit = LITTLE_64(take.limit);
	take.upto = LITTLE_64(take.upto);
	if (PEER_FAULT(take.turn < p->turn || !take.turn || take.limit > r->length ||
		       take.upto > take.limit ||
		       (take.turn == p->turn && (take.limit != p->limit || take.upto < p->upto)))) {
		arrival_violates(ep, "share of a message");
		return;
	}
	if (take.turn != p->turn) {
		p->claim = p->done = p->limit = take.limit;
		p->address = LITTLE_64(take.address);
		p->told = false;
	}
	p->turn = take.turn;
	p->upto = take.upto;
	p->reading = take.reading != 0;
	if (list_empty(&p->node) && choose_share(ep, p)) {
		list_append(&ep->bulk->pushes, &p->node);
		endpoint_refresh(ep);
	}
}

void push_over(struct endpoint *ep, const struct head *h)
{
	struct request *r = find(ep, h->seq);
	uint64_t pushed;

	if (PEER_FAULT(!was_sent(ep, h->seq) || h->length)) {
		arrival_violates(ep, "end of fetching");
		return;
	}
	if (!r)
		return;
	pushed = r->push->limit - r->push->done;
	if (!r->push->asked)
		push_learn(ep, r->push);
	push_forget(r);
	list_remove(&r->node);
	ep->stats->rget_messages++;
	ep->stats->rget_bytes += r->length - pushed;
	request_finish(r, 0);
}
