/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched messages, the receiving side: who copies what, and the copying, to the last byte (fetch.h). */
#include <errno.h>

#include "slmpm/message/fetch.h"
#include "slmpm/link/link.h"
#include "slmpm/stats.h"

#define PAGE 4096

/* ---- what is said --------------------------------------------------------------------------- */

/* Where the sender may write; 0: nowhere. */
static uint64_t fetch_address(const struct fetch_in *p)
{
	const struct inbound *m = p->m;

	if (m->receive->kind == REQUEST_HOLD)
		return (uint64_t)(uintptr_t)m->data;
	return p->limit ? (uint64_t)(uintptr_t)request_run(m->receive, 0, p->limit) : 0;
}

bool fetch_take(struct endpoint *ep, struct fetch_in *p, uint64_t upto, bool last)
{
	struct wire_take take = {
		.address = LITTLE_64(fetch_address(p)),
		.limit = LITTLE_64(p->limit),
		.upto = LITTLE_64(upto),
		.turn = LITTLE_32(p->turn),
	};
	struct packet packet = {
		.opcode = WIRE_FETCH_TAKE,
		.seq = p->m->seq,
		.data = &take,
		.length = sizeof(take),
	};

	if (last ? !split_notify_held(ep, &ep->rooms->fetch->room_in, &p->held, &packet) :
		   !fetch_notify(ep, &packet, NULL))
		return false;
	p->notified = true;
	p->sure = false;
	p->upto = upto;
	return true;
}

/* How far this side goes next, when it has the stretch up to UPTO. */
static uint64_t choose_upto(const struct fetch_in *p)
{
	uint64_t left = p->claim > p->upto ? p->claim - p->upto : 0, share = left / 2;

	if (!p->upto && left <= 2 * FETCH_SHARE_MAX)
		share += PAGE; /* the sender begins a little later */
	if (share > FETCH_SHARE_MAX)
		share = FETCH_SHARE_MAX;
	if (share < FETCH_SHARE_MIN)
		share = FETCH_SHARE_MIN;
	share = (share + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	return p->upto + (share < left ? share : left);
}

static bool take_first(struct endpoint *ep, struct fetch_in *p)
{
	struct fetch *f = ep->rooms->fetch;

	if (!split_hold(ep, &f->room_in, &p->held, FETCH_RECEIVER_WORDS))
		return false; /* others are through soon */
	if (fetch_take(ep, p, choose_upto(p), false))
		return true;
	(void)split_hold(ep, &f->room_in, &p->held, -FETCH_RECEIVER_WORDS);
	return false;
}

/* Where it might not have a say again, this side takes all that is left. */
static bool fetch_take_next(struct endpoint *ep, struct fetch_in *p)
{
	if (!p->notified)
		return take_first(ep, p);
	return fetch_take(ep, p, choose_upto(p), false) || fetch_take(ep, p, p->limit, true);
}

/* ---- copying -------------------------------------------------------------------------------- */

/* The place of the message's byte OFFSET in the receive, *N bytes in one run. */
static void *fetch_place(const struct inbound *m, uint64_t offset, uint64_t *n)
{
	struct request_walk walk = {m->receive, 0, offset};

	if (m->receive->kind == REQUEST_HOLD)
		return m->data + offset;
	return request_walk_on(&walk, *n, n);
}

/* Reads what is this side's, or a share of it: all may be, where there was room for but one word. */
static int read_share(struct endpoint *ep, struct fetch_in *p)
{
	uint64_t to = p->upto < p->claim ? p->upto : p->claim, begin = 0;

	if (to > p->at + FETCH_SHARE_MAX)
		to = p->at + FETCH_SHARE_MAX;

	for (uint32_t i = 0; i < p->count && p->at < to; i++) {
		const struct wire_range *range = &p->ranges[i];

		while (p->at < to && p->at < begin + range->length) {
			uint64_t in = p->at - begin, n = range->length - in;
			void *at;
			int rc;

			n = n < to - p->at ? n : to - p->at;
			at = fetch_place(p->m, p->at, &n);
			rc = link_reach(ep, FABRIC_READ, &ep->rooms->fetch->peer,
					range->address + in, at, n);
			if (rc != 1)
				return rc;
			ep->rooms->figures->pieces_read++;
			p->at += n;
		}
		begin += range->length;
	}
	return 0;
}

/* All that this side is to read, it has read. */
static bool is_through(const struct fetch_in *p)
{
	return p->notified && p->at >= p->claim && p->upto >= p->claim;
}

/* Every byte is there, those from CLAIM on by the sender. */
static bool fetch_is_whole(const struct fetch_in *p)
{
	return p->sure && is_through(p) && p->claim == p->done;
}

/* Takes in what the sender has said; false: not all of it yet, or P has gone. */
static bool fetch_inspect(struct endpoint *ep, struct fetch_in *p)
{
	ep->rooms->fetch->in_hand = p;
	return split_catch_up(ep) && ep->rooms->fetch->in_hand == p;
}

enum { REFUSED, LATER, ONWARD, AGAIN }; /* AGAIN: P may have gone */

/* The next stretch. */
static int read_on(struct endpoint *ep, struct fetch_in *p)
{
	bool out = p->at >= (p->upto < p->claim ? p->upto : p->claim);
	int rc;

	if (p->failed)
		return REFUSED;
	if (p->asked)
		return LATER; /* the sender is about to say that it has taken it back */
	if (is_through(p) && p->claim < p->done)
		return LATER; /* it is to say what has become of its share */
	if ((!p->notified || (out && !is_through(p))) && !fetch_take_next(ep, p))
		return LATER;
	if (!p->sure) {
		if (!fetch_inspect(ep, p))
			return AGAIN;
		p->sure = p->begun = true;
		return ONWARD;
	}
	rc = read_share(ep, p);
	if (rc == -ESRCH)
		return LATER; /* its end will be heard of */
	p->failed = rc < 0;
	return rc < 0 ? REFUSED : ONWARD;
}

/* Its memory may have been another's when it was read: whoever takes the message back, or leaves
 * without waiting for its end, says so before. */
static bool give_up_reading(struct endpoint *ep, struct fetch_in *p)
{
	if (!fetch_inspect(ep, p) || p->asked)
		return false;
	if (fetch_undo(p->m)) /* not while the sender writes */
		fetch_refuse(p->m, 1);
	return true;
}

/*
 * All of it is there. A sender that leaves without waiting has said so before it used the memory
 * again; one that takes it back either sees DONE, or its question is seen here, and its answer, which
 * follows at once, decides.
 */
static void fetch_finish(struct endpoint *ep, struct fetch_in *p)
{
	struct inbound *m = p->m;
	struct packet done = {.opcode = WIRE_FETCH_DONE, .seq = m->seq};

	if (!p->over) {
		if (!fetch_inspect(ep, p) || p->asked || ep->link.ended)
			return;
		p->over = split_notify_held(ep, &ep->rooms->fetch->room_in, &p->held, &done);
	}
	if (p->over && fetch_inspect(ep, p) && !p->asked)
		fetch_complete(m);
}

int fetch_read_step(struct endpoint *ep, struct fetch_in *p)
{
	uint64_t from = p->at;
	int n = 0;

	while (!fetch_is_whole(p) && p->at - from < FETCH_BUDGET) {
		int rc = read_on(ep, p);

		if (rc == LATER)
			return n;
		n++;
		if (rc == REFUSED)
			return give_up_reading(ep, p) ? n : 0;
		if (rc == AGAIN)
			return n;
	}
	if (fetch_is_whole(p))
		fetch_finish(ep, p);
	return n;
}
