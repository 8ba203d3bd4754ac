/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages, the sending side: which share it copies, and the copying (fetch.h). */
#include "slmpm/message/fetch.h"
#include "slmpm/link/link.h"

uint64_t fetch_share(const struct endpoint *ep, const struct fetch_out *p)
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

	return held ? split_notify_held(ep, &ep->rooms->fetch->room_out, &p->held, &packet) :
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

/* A claim that is sure is carried out; whatever became of it is told. */
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

	while ((share = fetch_share(ep, p)) && wrote < FETCH_BUDGET &&
	       send_claim(ep, p, p->done - share)) {
		bool heard;

		n++;
		wrote += share;
		f->out_hand = p;
		heard = split_catch_up(ep);
		if (f->out_hand != p)
			return n; /* it has gone */
		if (!p->notified)
			return n; /* another receive has got the message, and perhaps the next soon */
		/* The application may compute before the rest is heard, and who receives is not to
		 * wait meanwhile. */
		fetch_settle(ep, p, heard);
		if (!heard)
			return n;
	}
	if (!share)
		fetch_leave(ep, p);
	return n;
}
