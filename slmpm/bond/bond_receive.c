/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving half of a bond. Each path's arrivals wait in a small inbox; at its head the bond's
 * own packets are handled and those of former rounds dropped, until a packet stands there that is
 * the next one, or one for later.
 */
#include <errno.h>
#include <string.h>

#include "slmpm/bond/bond_parts.h"

#define TOKEN_SHIFT 62 /* tokens count segments, from start_in on: nobody gets that far */

COLD void bond_await_restart(struct bond *b)
{
	b->in.waiting = true;
	b->in.round++;
	b->in.part = 0;
	PATH_EACH(p, b)
		p->begun = false;
	b->has_deferred |= DEFER_RESUME;
	b->busy = true;
}

/* ---- the bond's own packets ----------------------------------------------------------------- */

static bool is_current(const struct bond *b, const struct bond_path *p)
{
	return !b->in.waiting && bond_index(b, p) == b->in.path;
}

static bool is_next(const struct bond *b, const struct bond_path *p)
{
	return !PEER_FAULT(p->part != b->in.part || p->from != b->in.received);
}

/* P has been left and read: its writer, which chooses links by how full they are, would see the
 * rest of it until as much again has come by P, and so never come back. */
static void publish_consumed(struct bond_path *p)
{
	struct fabric_wr flush = {.op = FABRIC_FLUSH};

	if (p->state == PATH_UP)
		(void)p->fabric->post(p->port, &flush); /* the next poll finds out what failed */
}

/* What follows by P is stored: its writer waits to know that it is read next. */
static void acknowledge_part(struct bond *b, const struct bond_path *p)
{
	b->has_deferred |= p->stores && p->state == PATH_UP ? DEFER_ACK : 0;
	b->busy |= b->has_deferred != 0;
}

static bool take_switch(struct bond *b, struct bond_path *p, const uint64_t *head)
{
	if (PEER_FAULT(head[0] >= BOND_PATHS || head[0] == bond_index(b, p) ||
		       head[1] != b->in.received || head[2] > b->paths[head[0]].life))
		return false;
	p->begun = false;
	b->in.path = (uint32_t)head[0];
	b->turn = 1; /* what may be asked seldom is another */
	b->in.part++;
	p = &b->paths[head[0]];
	if (p->state == PATH_LOST || (p->state == PATH_NONE && p->notified) || p->life != head[2])
		bond_await_restart(b);
	else
		acknowledge_part(b, p);
	return !p->begun || is_next(b, p);
}

static bool take_restart(struct bond *b, struct bond_path *p, const uint64_t *head)
{
	struct bond_in *in = &b->in;

	if (PEER_FAULT(head[1] > in->round))
		return false;
	if (head[1] < in->round)
		return true; /* before it knows of the last loss */
	if (PEER_FAULT(p->begun || wire_is_before(head[0], in->received)))
		return false;
	p->begun = true;
	p->from = head[0];
	p->part = head[2];
	if (in->waiting && !p->part) { /* other links may be faster with later ones */
		in->path = bond_index(b, p);
		b->turn = 1;
		in->waiting = false;
		acknowledge_part(b, p);
	}
	return !is_current(b, p) || is_next(b, p);
}

static bool take_resume(struct bond *b, const uint64_t *head)
{
	return !PEER_FAULT(!head[1]) && bond_notified(b, head[2]) &&
	       bond_resumed(b, head[0], head[1]);
}

static int take_own(struct bond *b, struct bond_path *p, const struct fabric_arrival *a)
{
	static const char *const rules[] = {
		"acknowledgement in a bond",    "change of links",
		"resumption after a lost link", "restart after a lost link",
		"report of a lost link",        "question by a link of a bond",
	};
	bool sound = false;

	if (PEER_FAULT(a->length != 0))
		return bond_poison(b, "length of a bond's packet");
	switch (a->kind) {
	case WIRE_BOND_ACK:
		b->has_deferred |= a->head[1] ? DEFER_ACK : 0;
		b->busy |= b->has_deferred != 0;
		sound = !PEER_FAULT(a->head[1] > 1) && bond_part_is_read(b, a->head[2]) &&
			bond_acknowledged(b, a->head[0]);
		break;
	case WIRE_BOND_SWITCH: sound = take_switch(b, p, a->head); break;
	case WIRE_BOND_RESUME: sound = take_resume(b, a->head); break;
	case WIRE_BOND_RESTART: sound = take_restart(b, p, a->head); break;
	case WIRE_BOND_PROBE: sound = bond_probed(b, p, a->head); break;
	default: sound = bond_notified(b, a->head[0]);
	}
	return sound ? 0 : bond_poison(b, rules[a->kind - WIRE_BOND_ACK]);
}

/* ---- a path --------------------------------------------------------------------------------- */

static bool has_no_data(const struct fabric_arrival *a)
{
	return !a->data && a->length;
}

static int refill(struct bond *b, struct bond_path *p)
{
	int n = p->fabric->poll(p->port, p->inbox, BOND_BATCH);

	p->next = 0;
	p->count = n > 0 ? n : 0;
	if (LIKELY(n > 0)) {
		p->lands = has_no_data(&p->inbox[n - 1]);
		p->watch.received = true;
		return n;
	}
	if (n == -EPIPE || (n == 0 && UNLIKELY(p->notified)))
		bond_path_lost(b, p, true, p->port->lost);
	else if (n < 0)
		return bond_poison(b, p->port->violation);
	return 0;
}

/* An arrival without data, which comes again then. */
static int put_in_ring(struct bond *b, struct bond_path *p)
{
	struct fabric_wr wr = {.op = FABRIC_LAND};

	return bond_path_post(b, p, &wr) == -EPROTO ? -EPROTO : 0;
}

/* 1 a packet for now or for later stands at the head, 0 nothing does, 2 one may, or -EPROTO. */
static int bond_receive_advance(struct bond *b, struct bond_path *p)
{
	for (int turn = 0; turn < BOND_TURN; turn++) {
		struct fabric_arrival *a = &p->inbox[p->next];
		int rc = 0;

		if (p->next == p->count) {
			rc = bond_is_live(p) ? refill(b, p) : 0;
			if (rc <= 0)
				return rc;
			continue;
		}
		if (LIKELY(!bond_is_own(a->kind))) {
			if (LIKELY(p->begun && (is_current(b, p) || !has_no_data(a))))
				return 1;
			if (has_no_data(a)) { /* nothing more would come */
				p->next++;
				if (put_in_ring(b, p) < 0)
					return -EPROTO;
				continue;
			}
		} else if (a->kind == WIRE_BOND_SWITCH) {
			if (p->begun && !is_current(b, p))
				return 1;
			rc = p->begun ? take_own(b, p, a) : 0;
		} else {
			rc = take_own(b, p, a);
		}
		p->next++;
		p->fabric->release(p->port, a);
		if (rc < 0)
			return rc;
		if (a->kind == WIRE_BOND_SWITCH)
			publish_consumed(p);
	}
	return 2;
}

/* What comes by a path whose turn it is not is read all the same: else the peer's machine hears
 * late that it is here, takes the link for slow, and its descriptor wakes for nothing. */
static int bond_receive_read_ahead(struct bond *b, struct bond_path *p)
{
	int left = p->count - p->next, n;

	if (left == BOND_INBOX || p->lands || !bond_is_live(p))
		return 0;
	memmove(p->inbox, &p->inbox[p->next], (size_t)left * sizeof(p->inbox[0]));
	p->next = 0;
	p->count = left;
	n = p->fabric->poll(p->port, &p->inbox[left], BOND_INBOX - left);
	if (n <= 0) /* refill finds an end again */
		return n == -EPROTO ? bond_poison(b, p->port->violation) : 0;
	p->count += n;
	p->watch.received = true;
	if (!has_no_data(&p->inbox[p->count - 1]))
		return 0;
	p->count--;
	return put_in_ring(b, p);
}

int bond_inspect(struct bond *b)
{
	b->turn = b->paths[b->in.path].stores ? BOND_CALLS : BOND_ASIDE;
	b->out.more = false;
	PATH_EACH(p, b) {
		int rc = p->port ? bond_receive_advance(b, p) : 0;

		if (rc == 1 && !is_current(b, p))
			rc = bond_receive_read_ahead(b, p);
		if (rc < 0)
			return -EPROTO;
	}
	return 0;
}

/* ---- arrivals ------------------------------------------------------------------------------- */

int bond_land(struct bond *b, const struct fabric_wr *wr)
{
	struct bond_in *in = &b->in;
	struct bond_path *p = &b->paths[in->path];

	if (!in->land.open)
		return -EINVAL;
	in->land.placed = true;
	in->land.into = wr->into;
	/* By a path that is lost nothing more comes: what does come again is told as well. */
	if (!is_current(b, p) || !p->begun || !p->lands)
		return 1;
	return bond_path_post(b, p, wr) == -EPROTO ? -EPROTO : 1;
}

/* The arrival that was handed out without data has come again: 1 with it, 0 not yet. */
static int bond_receive_land(struct bond *b, struct bond_path *p, struct fabric_arrival *a)
{
	struct bond_in *in = &b->in;
	const struct fabric_arrival *first = &in->land.first;
	struct fabric_wr wr = {.op = FABRIC_LAND, .into = in->land.into};

	/* The core has decided by what the first one said. */
	if (PEER_FAULT(a->kind != first->kind || a->length != first->length ||
		       memcmp(a->head, first->head, sizeof(a->head)) != 0))
		return bond_poison(b, "packet sent again in a bond");
	if (!a->data) {
		if (!in->land.placed)
			return 0;
		p->next++;
		return bond_path_post(b, p, &wr) == -EPROTO ? -EPROTO : 0;
	}
	if (in->land.into && a->data != in->land.into) {
		memcpy(in->land.into, a->data, a->length);
		a->data = in->land.into;
	}
	in->land.open = in->land.placed = false;
	return 1;
}

/* The packet at the head: 1 handed out, 2 and there is no other behind it, 0 not yet. */
static int hand_out(struct bond *b, struct bond_path *p, struct fabric_arrival *to)
{
	struct fabric_arrival *a = &p->inbox[p->next];

	if (UNLIKELY(b->in.land.open)) {
		int rc = bond_receive_land(b, p, a);

		if (rc <= 0)
			return rc;
	}
	p->next++;
	*to = *a;
	if (UNLIKELY(has_no_data(a))) {
		b->in.land.open = true;
		b->in.land.placed = false;
		b->in.land.first = *a;
		b->in.land.into = NULL;
		return 2;
	}
	to->token += (uint64_t)bond_index(b, p) << TOKEN_SHIFT;
	p->unreleased += a->span;
	b->in.received++;
	return 1;
}

/* What has been taken and not sent yet goes on; nothing is taken in. */
static COLD void bond_receive_push(struct bond *b)
{
	PATH_EACH(p, b)
		if (p->state == PATH_UP)
			(void)p->fabric->poll(p->port, NULL, 0);
}

/* The first of GOT arrivals that is the bond's own, or without data; GOT: none is. */
static inline int find_special(const struct fabric_arrival *arrivals, int got)
{
	int i = 0;

	while (i < got && LIKELY(!bond_is_own(arrivals[i].kind) && !has_no_data(&arrivals[i])))
		i++;
	return i;
}

/* Straight to the core, as long as nothing else waits by the path in use; the rest goes into its
 * inbox. 0: what the longer way has to find out; -EAGAIN: there is nothing. */
static inline int take_straight(struct bond *b, struct fabric_arrival *arrivals, int n)
{
	struct bond_path *p = &b->paths[b->in.path];
	int got, first;

	if (UNLIKELY(!p->begun || p->next != p->count || b->in.land.open || !bond_is_live(p)))
		return 0;
	got = p->fabric->poll(p->port, arrivals, n < BOND_BATCH ? n : BOND_BATCH);
	if (got <= 0) /* an end is found again */
		return got == 0 && LIKELY(!p->notified) ? -EAGAIN : 0;
	p->watch.received = true;
	first = find_special(arrivals, got);
	for (int i = 0; i < first; i++) {
		arrivals[i].token += (uint64_t)bond_index(b, p) << TOKEN_SHIFT;
		p->unreleased += arrivals[i].span;
	}
	b->in.received += (uint32_t)first;
	p->next = 0;
	p->count = got - first;
	if (UNLIKELY(p->count)) {
		memcpy(p->inbox, &arrivals[first], (size_t)p->count * sizeof(p->inbox[0]));
		p->lands = has_no_data(&p->inbox[p->count - 1]);
	} else {
		p->lands = false;
	}
	return first;
}

/* Up to N that are next. */
static inline int take_next(struct bond *b, struct fabric_arrival *arrivals, int n)
{
	int got = b->in.waiting ? 0 : take_straight(b, arrivals, n);

	if (LIKELY(got))
		return got < 0 ? 0 : got;
	for (int turn = 0; got < n && turn < BOND_TURN && !b->in.waiting; turn++) {
		struct bond_path *p = &b->paths[b->in.path];
		int rc = bond_receive_advance(b, p);

		if (rc < 0)
			return got ? got : rc;
		if (p != &b->paths[b->in.path] || b->in.waiting || rc == 2)
			continue;
		if (rc == 0)
			break;
		rc = hand_out(b, p, &arrivals[got]);
		if (rc < 0)
			return got ? got : rc;
		got += rc > 0;
		if (rc == 2)
			break;
	}
	return got;
}

bool bond_reads_stored(const struct fabric_link *link)
{
	const struct bond *b = bond_of(link);
	const struct bond_path *m = b->memory, *p = &b->paths[b->in.path];

	if (!m || !m->stores || m->state != PATH_UP)
		return true;
	/* Begun: of one that has ended behind RESTART the next inspection reads that, too. */
	return !b->in.waiting && p->stores && p->state == PATH_UP && p->begun;
}

/* Something is deferred. What goes out may read what no descriptor shows any more. */
static COLD int settle_after(struct bond *b, struct fabric_arrival *arrivals, int n, int got)
{
	if (got < 0)
		return got;
	if (bond_settle(b) < 0)
		return got ? got : -EPROTO;
	return got ? got : take_next(b, arrivals, n);
}

int bond_receive(struct bond *b, struct fabric_arrival *arrivals, int n)
{
	int got;

	if (UNLIKELY(b->busy) && bond_settle(b) < 0)
		return -EPROTO;
	if (UNLIKELY(!n)) {
		bond_receive_push(b);
		return 0;
	}
	if (UNLIKELY(b->busy || b->armed || b->in.waiting || b->out.more || b->base.lags ||
		     !--b->turn)) {
		b->armed = false;
		if (bond_inspect(b) < 0)
			return -EPROTO;
	}
	got = take_next(b, arrivals, n);
	if (UNLIKELY(b->busy))
		got = settle_after(b, arrivals, n, got);
	return got || LIKELY(!b->lost) ? got : bond_is_lost(b);
}

void bond_release(struct fabric_link *link, const struct fabric_arrival *arrival)
{
	struct bond *b = bond_of(link);
	uint32_t index = (uint32_t)((arrival->token - b->base.start_in) >> TOKEN_SHIFT);
	struct bond_path *p = &b->paths[index];
	struct fabric_arrival a;

	p->unreleased -= arrival->span;
	if (UNLIKELY(index)) { /* the first one's tokens are its own */
		a = *arrival;
		a.token -= (uint64_t)index << TOKEN_SHIFT;
		arrival = &a;
	}
	p->fabric->release(p->port, arrival);
	if (UNLIKELY(p->state == PATH_LOST))
		bond_path_leave(b, p);
}
