/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Silent paths. A link whose way is cut need not end: what goes by it vanishes, and nothing comes.
 * So where something sent by a path is unanswered and nothing has come for a while, a question goes
 * by it, and one by each of the others; a peer that answers there, again and again, and not here,
 * has not got it. One that is stopped, or computes, answers nowhere, and loses nothing.
 */
#include <errno.h>

#include "slmpm/bond/bond_parts.h"

#define PARTS 8 /* of the time: questions that others answer */
#define QUIET 2 /* parts before the first */

/* ---- questions ------------------------------------------------------------------------------ */

#define ANSWER     1u
#define HELD_SHIFT 4
#define WORD_END   (1u << (HELD_SHIFT + BOND_PATHS))

/* Of these the core keeps so much that the peer may find no room, not even for a question. */
static uint64_t held(const struct bond *b)
{
	uint64_t mask = 0;

	PATH_EACH(p, b)
		if (p->unreleased && p->unreleased >= p->port->domain->config.segments / 4)
			mask |= UINT64_C(1) << bond_index(b, p);
	return mask;
}

static int probe(struct bond *b, struct bond_path *p, uint64_t number, uint64_t flags)
{
	int rc = bond_path_send(b, p, WIRE_BOND_PROBE, b->in.received, number, flags);

	if (rc == 1)
		b->in.notified = b->in.received;
	return rc;
}

/* By this path, and to be answered by it: 1, -EAGAIN or -EPROTO. */
static int bond_watch_ask(struct bond *b, struct bond_path *p)
{
	struct bond_watch *w = &p->watch;
	int rc = probe(b, p, w->asked + 1, 0);

	w->asked += rc == 1;
	w->said &= rc != 1;
	return rc;
}

int bond_answer(struct bond *b)
{
	b->has_deferred &= (uint8_t)~DEFER_ANSWER;
	PATH_EACH(p, b) {
		int rc = !p->watch.questioned ?
				 1 :
				 probe(b, p, p->watch.question, ANSWER | held(b) << HELD_SHIFT);

		if (rc == -EPROTO)
			return rc;
		if (rc == 1 || p->state != PATH_UP)
			p->watch.questioned = false;
		else
			b->has_deferred |= DEFER_ANSWER;
	}
	return 0;
}

bool bond_probed(struct bond *b, struct bond_path *p, const uint64_t *head)
{
	struct bond_watch *w = &p->watch;

	if (PEER_FAULT(head[2] >= WORD_END || (head[2] && (head[2] & 15) != ANSWER) ||
		       head[1] == b->base.start_in || !bond_acknowledged(b, head[0])))
		return false;
	if (!head[2]) {
		w->questioned = true;
		w->question = head[1];
		b->has_deferred |= DEFER_ANSWER;
		b->busy = true;
		b->turn = 1; /* the others may have brought one, too */
		return true;
	}
	if (PEER_FAULT(!wire_is_given(head[1], w->last, w->asked)))
		return false;
	w->last = head[1];
	w->answered = true;
	b->turn = 1; /* the others may have brought one, too */
	PATH_EACH(other, b)
		other->watch.held = head[2] >> (HELD_SHIFT + bond_index(b, other)) & 1;
	return true;
}

/* ---- silence -------------------------------------------------------------------------------- */

/* Packets behind those that come by this path are here already: its SWITCH is out. They stand
 * before whatever else comes by theirs, answers too. */
static bool is_overtaken(const struct bond *b, const struct bond_path *p)
{
	if (b->in.waiting || bond_index(b, p) != b->in.path)
		return false;
	PATH_EACH(other, b)
		if (other != p && other->begun && other->next != other->count)
			return true;
	return false;
}

static bool has_deferred(const struct bond *b, const struct bond_path *p)
{
	const struct bond_out *o = &b->out;

	if (p->state != PATH_UP || p->stores) /* memory does not fall silent */
		return false;
	if (p->watch.said || p->watch.asked != p->watch.last || is_overtaken(b, p))
		return true;
	return bond_index(b, p) == o->path && !o->stopped && (o->acked != o->forwarded || o->full);
}

/* The peer has all that went by it: it makes room when it likes. */
static bool is_held(const struct bond *b, const struct bond_path *p)
{
	return p->watch.held && p->watch.asked == p->watch.last && b->out.acked == b->out.forwarded;
}

static bool other_answered(const struct bond *b, const struct bond_path *p)
{
	PATH_EACH(other, b)
		if (other != p && other->watch.answered)
			return true;
	return false;
}

/* Something has come by it, or the peer has acknowledged packets that came to it by this one. */
static bool is_heard(const struct bond *b, const struct bond_path *p)
{
	return p->watch.received || (bond_index(b, p) == b->out.path && b->out.acked != b->before);
}

/* True: it is to be asked for. */
static bool bond_watch_inspect_one(struct bond *b, struct bond_path *p)
{
	struct bond_watch *w = &p->watch;

	if (!has_deferred(b, p) || is_heard(b, p)) {
		w->quiet = w->asked != w->last; /* what has come may be older */
		w->silences = 0;
		return w->quiet;
	}
	if (!w->quiet) {
		w->quiet = true;
		return false;
	}
	if (is_held(b, p))
		w->silences = 0;
	else if ((other_answered(b, p) || is_overtaken(b, p)) && ++w->silences == PARTS) {
		p->notified = true; /* by its silence: nothing more is waited for */
		bond_path_lost(b, p, false, "it is silent, and the peer is not");
		return false;
	}
	return true;
}

/* A full one cannot be asked. */
static int ask_all(struct bond *b)
{
	PATH_EACH(p, b)
		if (p->state == PATH_UP && p->watch.asked == p->watch.last &&
		    bond_watch_ask(b, p) == -EPROTO)
			return -EPROTO;
	return 0;
}

static void bond_watch_forget(struct bond *b)
{
	PATH_EACH(p, b)
		p->watch.received = p->watch.answered = false;
	b->before = b->out.acked;
}

/* Whether somebody is asked. */
static bool bond_watch_inspect(struct bond *b)
{
	bool asks = false;

	PATH_EACH(p, b)
		asks |= bond_watch_inspect_one(b, p);
	bond_watch_forget(b);
	if ((asks && ask_all(b) < 0) || (b->busy && bond_settle(b) < 0))
		return false; /* poisoned: the next call says so */
	return asks;
}

static bool any_has_deferred(const struct bond *b)
{
	PATH_EACH(p, b)
		if (has_deferred(b, p))
			return true;
	return false;
}

uint64_t bond_keepalive(struct fabric_link *link, uint64_t now_ns, uint64_t dead_ns)
{
	struct bond *b = bond_of(link);
	uint64_t part = dead_ns / PARTS;
	uint32_t up = bond_up(link);

	if (link->violation || !(up & (up - 1)) || !any_has_deferred(b)) {
		bond_watch_forget(b);
		return UINT64_MAX;
	}
	if (now_ns >= b->inspect)
		b->inspect = now_ns + (bond_watch_inspect(b) ? part : QUIET * part);
	return b->inspect;
}
