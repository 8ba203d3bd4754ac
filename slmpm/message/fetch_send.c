/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages, the sending side (fetch.h): announcement, its share of copying, withdrawal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/message/fetch.h"
#include "slmpm/link/link.h"
#include "slmpm/message/message.h"
#include "slmpm/base/clock.h"

#define GRACE_NS  30000  /* what may be sent without asking waits so long for a receive, ... */
#define READ_A_NS 8      /* ... and so many bytes that lie before it are read in one more, ... */
#define READ_NS   120000 /* ... up to so many: what is charged may wait for other receives */

/* ---- announcing ----------------------------------------------------------------------------- */

static bool send_fetch(struct endpoint *ep, struct request *r)
{
	struct {
		struct wire_fetch head;
		struct wire_range ranges[WIRE_RANGES];
	} fetch;
	uint32_t n = fetch_ranges(r, fetch.ranges);
	struct packet p = {
		.opcode = WIRE_FETCH,
		.seq = ep->sent + 1,
		.route = wire_route(r->stream, r->result.imm),
		.extent = r->length,
		.data = &fetch,
		.length = (uint32_t)(sizeof(fetch.head) + n * sizeof(*fetch.ranges)),
	};

	fetch.head = (struct wire_fetch){.count = LITTLE_32(n)};
	return fetch_notify(ep, &p, r);
}

static uint64_t patience_of(const struct endpoint *ep)
{
	uint64_t reads = (ep->charged - ep->credited) / READ_A_NS;

	return GRACE_NS + (reads < READ_NS ? reads : READ_NS);
}

int fetch_announce(struct endpoint *ep, struct request *r)
{
	struct fetch *f = fetch_of(ep);
	struct fetch_out *p = f ? malloc(sizeof(*p)) : NULL;

	if (!p) {
		ep->fetch_min = UINT64_MAX; /* it goes in packets, then */
		return -EAGAIN;
	}
	*p = (struct fetch_out){.r = r, .turn = fetch_no_turn(ep), .done = r->length};
	list_init(&p->node);
	/* Held back before the announcement is posted: so they are free. */
	if (!split_hold(ep, &f->room_out, &p->held, FETCH_SENDER_WORDS) || !send_fetch(ep, r)) {
		(void)split_hold(ep, &f->room_out, &p->held, -(int)p->held);
		free(p);
		return -EAGAIN;
	}
	r->fetch = p;
	r->seq = ++ep->sent;
	r->numbered = true;
	r->announced = true;
	ep->charged += WIRE_ENVELOPE;
	ep->stats->sent_messages++;
	ep->stats->sent_bytes += r->length;
	p->patience = clock_now() + patience_of(ep);
	p->began = clock_ticks();
	p->ahead = f->announced++;
	f->begun = r->seq;
	p->of = fetch_choice(ep, r->length);
	f->received = ep->received;
	p->note = fetch_is_measured(r) ? choice_taken(p->of, true) : CHOICE_TIMED;
	if (r->length <= ep->life->eager_max && r->mode.reason != SLMPM_REASON_STRICT) {
		p->waiting = true;
		list_append(&f->waiting, &p->node);
		fetch_block(ep);
	}
	return 1;
}

void fetch_forget(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct fetch *f = ep->rooms->fetch;
	uint64_t uncredited = ep->charged - ep->credited; /* less than it took: the peer lies */

	if (f->out_hand == r->fetch)
		f->out_hand = NULL;
	f->announced--;
	if (r->fetch->asked)
		ep->charged -= r->length < uncredited ? r->length : uncredited;
	(void)split_hold(ep, &f->room_out, &r->fetch->held, -(int)r->fetch->held);
	list_remove(&r->fetch->node);
	free(r->fetch);
	r->fetch = NULL;
	fetch_block(ep);
}

/* ---- writing a share ------------------------------------------------------------------------ */

/* Nothing is to be done about P until the receiver says something. */
static void fetch_leave(struct endpoint *ep, struct fetch_out *p)
{
	list_remove(&p->node);
	fetch_block(ep);
}

/* What the receiver leaves of a message, or most of it where that is much: 0 nothing. */
static uint64_t fetch_share(const struct endpoint *ep, const struct fetch_out *p)
{
	uint64_t left = p->done > p->upto ? p->done - p->upto : 0, share;

	if (!(ep->rooms->fetch->peer.ops & 1u << FABRIC_WRITE) || !p->address || p->asked ||
	    left < FETCH_SHARE_MIN / 2)
		return 0;
	share = left / 8 * 7 > FETCH_SHARE_MAX ? FETCH_SHARE_MAX : left / 8 * 7;
	return left - share < FETCH_SHARE_MIN ? left : share;
}

/* What is claimed and what is done; HELD: amid a claim, by its segment. */
static bool send_give(struct endpoint *ep, struct fetch_out *p, bool held)
{
	struct wire_give give = {
		.claim = LITTLE_64(p->claim),
		.done = LITTLE_64(p->done),
		.turn = LITTLE_32(p->turn),
	};
	struct packet packet = {
		.opcode = WIRE_FETCH_GIVE,
		.seq = p->r->seq,
		.data = &give,
		.length = sizeof(give),
	};

	return held ? split_conclude(ep, &ep->rooms->fetch->room_out, &p->held, &packet) :
		      split_notify(ep, &packet, NULL);
}

/* Together with room to say what became of it. */
static bool send_claim(struct endpoint *ep, struct fetch_out *p, uint64_t claim)
{
	struct fetch *f = ep->rooms->fetch;
	int more = FETCH_SENDER_WORDS - (int)p->held;

	p->claim = claim;
	p->notified = split_hold(ep, &f->room_out, &p->held, more) && send_give(ep, p, false);
	if (p->notified)
		return true;
	if ((int)p->held == FETCH_SENDER_WORDS)
		(void)split_hold(ep, &f->room_out, &p->held, -more);
	p->claim = p->done;
	return false;
}

/* Bytes CLAIM to DONE of the message into the peer's buffer. */
static int write_share(struct endpoint *ep, const struct fetch_out *p)
{
	struct request_walk walk = {p->r, 0, p->claim};
	uint64_t at = p->claim, n;
	void *run;

	while (at < p->done && (run = request_walk_on(&walk, p->done - at, &n))) {
		int rc = link_reach(ep, FABRIC_WRITE, &ep->rooms->fetch->peer, p->address + at, run,
				    n);

		if (rc != 1)
			return rc;
		at += n;
	}
	return 0;
}

/* A claim that is sure is carried out; the receiver gets its outcome either way. */
static void fetch_settle(struct endpoint *ep, struct fetch_out *p, bool sure)
{
	if (sure && p->claim >= p->upto && write_share(ep, p) == 0) {
		if (!p->shared)
			ep->stats->push_messages++;
		p->shared = true;
		ep->stats->push_bytes += p->done - p->claim;
		p->done = p->claim;
	} else {
		p->claim = p->done;
		if (sure)
			p->address = 0; /* the receiver does the rest */
	}
	p->notified = false;
	(void)send_give(ep, p, true);
}

int fetch_write_step(struct endpoint *ep, struct fetch_out *p)
{
	struct fetch *f = ep->rooms->fetch;
	uint64_t share, wrote = 0;
	int n = 0;

	/* A receiver that leaves may have said so behind what it has sent by another link. */
	while ((share = fetch_share(ep, p)) && wrote < FETCH_BUDGET && link_reads_stored(ep) &&
	       send_claim(ep, p, p->done - share)) {
		bool caught_up;

		n++;
		wrote += share;
		f->out_hand = p;
		caught_up = split_catch_up(ep) && link_reads_stored(ep);
		if (f->out_hand != p || !p->notified)
			return n; /* it has gone; or another receive has got the message */
		/* The application may compute before the rest is taken: the receiver goes on. */
		fetch_settle(ep, p, caught_up);
		if (!caught_up)
			return n;
	}
	if (!share)
		fetch_leave(ep, p);
	return n;
}

/* ---- packets after all ---------------------------------------------------------------------- */

/* It goes in packets after all. */
static void change_mode(struct request *r)
{
	fetch_forget(r);
	r->mode = (struct mode){.way = MODE_PACKETS, .reason = SLMPM_REASON_ABSENT};
}

bool fetch_refused(struct request *r)
{
	struct endpoint *ep = r->ep;

	if (r->mode.reason != SLMPM_REASON_STRICT) {
		change_mode(r);
		return false;
	}
	fetch_forget(r);
	list_remove(&r->node);
	link_control(ep, WIRE_WITHDRAW, r->seq, 0, NULL, 0);
	ep->stats->sent_messages--;
	ep->stats->sent_bytes -= r->length;
	request_finish(r, -SLMPM_ENOTSUP);
	return true;
}

/* The receiver knows that it is not through: what follows decides. */
static void send_instead(struct endpoint *ep, struct fetch_out *p)
{
	struct request *r = p->r;
	struct packet instead = {.opcode = WIRE_FETCH_SEND, .seq = r->seq, .extent = r->length};

	if (!split_conclude(ep, &ep->rooms->fetch->room_out, &p->held, &instead))
		return; /* a loan lies open: later */
	fetch_learn(ep, p, true);
	p->asked = false; /* what it costs is spent */
	change_mode(r);
	message_clear(r);
}

static bool ask_back(struct endpoint *ep, struct fetch_out *p)
{
	struct packet ask = {
		.opcode = WIRE_WITHDRAW, .seq = p->r->seq, .extent = WIRE_WITHDRAW_ASK};

	return split_notify_held(ep, &ep->rooms->fetch->room_out, &p->held, &ask);
}

static bool may_wait(const struct endpoint *ep, const struct fetch_out *p)
{
	uint64_t until = ep->rooms->fetch->renewed;

	until = until > p->patience ? until : p->patience;
	return !p->asked && !ep->ctx->armed && !p->hurried && clock_now() < until;
}

bool fetch_is_awaited(const struct endpoint *ep)
{
	const struct fetch *f = ep->rooms->fetch;

	return f && !list_empty(&f->waiting) &&
	       may_wait(ep, LIST_ENTRY(f->waiting.next, struct fetch_out, node));
}

void fetch_hurry(struct request *r)
{
	struct fetch *f = r->ep->rooms->fetch;

	if (!f || r->done)
		return;
	LIST_EACH_ENTRY(struct fetch_out, p, &f->waiting, node)
		p->hurried = true;
	if (r->fetch && r->fetch->waiting) {
		list_remove(&r->fetch->node);
		list_insert(f->waiting.next, &r->fetch->node);
	}
}

/* Its receiver is not through with it so far, and the send is not to wait for that. */
int fetch_wait_step(struct endpoint *ep, struct fetch_out *p)
{
	struct fetch *f = ep->rooms->fetch;

	if (may_wait(ep, p))
		return 0;
	if (!p->asked) {
		if (ep->charged - ep->credited + p->r->length > ep->credit || !ask_back(ep, p)) {
			fetch_last(&f->waiting, &p->node);
			return 0;
		}
		ep->charged += p->r->length;
		p->asked = true;
	}
	f->out_hand = p;
	if (split_catch_up(ep) && f->out_hand == p)
		send_instead(ep, p);
	return 1;
}

/* ---- taking it back ------------------------------------------------------------------------- */

bool fetch_take_back(struct request *r)
{
	struct endpoint *ep = r->ep;
	struct fetch_out *p = r->fetch;
	struct packet withdraw = {.opcode = WIRE_WITHDRAW, .seq = r->seq};
	uint32_t verdict = 1;

	if (ep->ctx->handling || !ask_back(ep, p))
		return false;
	/* The segment for the verdict stays, also when its end is received now. */
	p->held -= verdict;
	(void)split_catch_up(ep);
	if (ep->state != SLMPM_PEER_UP)
		return false;
	withdraw.extent = r->done ? WIRE_WITHDRAW_NOT : 0;
	(void)split_conclude(ep, &ep->rooms->fetch->room_out, &verdict, &withdraw);
	if (r->fetch) /* else it was to go in packets, or is done */
		fetch_forget(r);
	return !r->done;
}

/* ---- what the receiver says ----------------------------------------------------------------- */

/* A word about a message that has had its end meanwhile is no offence. */
static bool was_sent(const struct endpoint *ep, uint64_t seq)
{
	return wire_is_given(seq, endpoint_start(ep), ep->sent);
}

/* The peer receives: so may what waits be soon. */
static void takes_on(struct endpoint *ep)
{
	ep->rooms->fetch->renewed = clock_now() + GRACE_NS;
}

void fetch_taken(struct endpoint *ep, const struct head *h)
{
	struct wire_take take;
	struct request *r = message_announced(ep, h->seq);
	struct fetch_out *p = r ? r->fetch : NULL;

	if (PEER_FAULT(!ep->rooms->fetch || h->length < sizeof(take) || !was_sent(ep, h->seq) ||
		       !fetch_introduced(ep, h, sizeof(take)))) {
		endpoint_poison(ep, "taking of a message");
		return;
	}
	if (!p)
		return;
	memcpy(&take, h->data, sizeof(take));
	take.turn = LITTLE_32(take.turn);
	take.limit = LITTLE_64(take.limit);
	take.upto = LITTLE_64(take.upto);
	if (PEER_FAULT((int32_t)(take.turn - p->turn) < 0 || take.turn == fetch_no_turn(ep) ||
		       take.limit > r->length || take.upto > take.limit ||
		       (take.turn == p->turn && (take.limit != p->limit || take.upto < p->upto)))) {
		endpoint_poison(ep, "share of a message");
		return;
	}
	if (take.turn != p->turn) {
		p->claim = p->done = p->limit = take.limit;
		p->address = LITTLE_64(take.address);
		p->notified = false;
	}
	if (take.turn != p->turn || take.upto != p->upto)
		takes_on(ep);
	p->turn = take.turn;
	p->upto = take.upto;
	if (p->waiting && !p->asked) {
		p->waiting = false;
		list_remove(&p->node);
	}
	if (list_empty(&p->node) && fetch_share(ep, p))
		list_append(&ep->rooms->fetch->out, &p->node);
	fetch_block(ep);
}

void fetch_over(struct endpoint *ep, const struct head *h)
{
	struct packet through = {
		.opcode = WIRE_WITHDRAW, .seq = h->seq, .extent = WIRE_WITHDRAW_NOT};
	struct request *r = message_announced(ep, h->seq);
	struct fetch_out *p = r ? r->fetch : NULL;

	if (PEER_FAULT(!was_sent(ep, h->seq) || h->length)) {
		endpoint_poison(ep, "end of fetching");
		return;
	}
	if (!p)
		return;
	fetch_learn(ep, p, false);
	takes_on(ep);
	if (p->asked && !split_conclude(ep, &ep->rooms->fetch->room_out, &p->held, &through))
		link_control(ep, through.opcode, through.seq, through.extent, NULL, 0);
	ep->stats->rget_messages++;
	ep->stats->rget_bytes += p->done; /* from there on we have written, or nobody wanted it */
	fetch_forget(r);
	list_remove(&r->node);
	request_finish(r, 0);
}
