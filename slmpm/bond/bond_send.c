/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of a bond. A packet goes to its path and into the log at once; into the log
 * alone where it has been promised room, and from there as soon as a path takes it. */
#include <errno.h>

#include "slmpm/bond/bond_parts.h"
#include "slmpm/mode/mode.h"

bool bond_has_backlog(const struct bond *b)
{
	return b->out.stopped || b->out.restart || b->out.forwarded != b->out.sent;
}

bool bond_goes_again(struct bond *b)
{
	struct bond_out *o = &b->out;

	if (o->in_part &&
	    (!wire_is_before(o->acked, o->again) || (o->resumed && !bond_has_backlog(b))))
		o->in_part = false;
	return o->in_part;
}

/* ---- what the peer says --------------------------------------------------------------------- */

/* Are there N packets at all, among the first UPTO? */
static bool has_been(const struct bond *b, uint64_t n, uint64_t upto)
{
	uint64_t start = b->base.domain->config.start;

	return n - start <= upto - start;
}

bool bond_acknowledged(struct bond *b, uint64_t n)
{
	struct bond_out *o = &b->out;

	if (UNLIKELY(o->in_part && wire_is_before(n, o->again) &&
		     !o->resumed)) { /* it may have missed nothing, and not resume */
		b->has_deferred |= DEFER_ACK | DEFER_ASK;
		b->busy = true;
	}
	if (has_been(b, n, o->acked)) /* another path was faster */
		return true;
	if (PEER_FAULT(!has_been(b, n, o->forwarded)))
		return false;
	bond_log_retire(&o->log, n);
	o->acked = n;
	return true;
}

bool bond_part_is_read(struct bond *b, uint64_t part)
{
	struct bond_out *o = &b->out;

	if (PEER_FAULT(part > bond_part(o->round, o->part)))
		return false;
	if (part > o->read_part) {
		o->read_part = part;
		b->base.room++;
	}
	return true;
}

/* What is posted lies in the memory of the peer, which reads this part: of what went before it
 * nothing is lost any more, either. */
static bool bond_send_stores(const struct bond *b)
{
	const struct bond_out *o = &b->out;

	return b->paths[o->path].stores && o->read_part == bond_part(o->round, o->part);
}

static void choose_path(struct bond *b)
{
	struct bond_out *o = &b->out;
	int path = mode_path(bond_up(&b->base), o->wanted);

	o->stopped = path < 0;
	if (path >= 0)
		o->path = (uint32_t)path;
	if (b->paths[o->home].state != PATH_UP)
		o->home = o->path;
	o->wanted = -1;
}

bool bond_resumed(struct bond *b, uint64_t n, uint64_t round)
{
	struct bond_out *o = &b->out;

	/* One goes with each path lost; two, where it had not known of the path. */
	if (PEER_FAULT(!has_been(b, n, o->reached) || round > 2 * b->links))
		return false;
	if (round <= o->round) /* overtaken by a later one */
		return true;
	if (PEER_FAULT(wire_is_before(n, o->acked) || wire_is_before(n, o->stored)))
		return false;
	o->round = (uint32_t)round;
	bond_log_trim(&o->log, n);
	o->acked = o->forwarded = n;
	o->next = o->log.tail;
	o->part = 0;
	o->restart = o->resumed = true;
	choose_path(b);
	b->busy = true;
	return true;
}

/* ---- what is deferred ----------------------------------------------------------------------- */

/* The part that is read here, for an ACK; 0 while RESTART is waited for, or the part's path: one
 * that never joins here is rejected, with what lies in it. */
static uint64_t bond_send_read_part(const struct bond *b)
{
	const struct bond_in *in = &b->in;

	return in->waiting || b->paths[in->path].state != PATH_UP ? 0 :
								    bond_part(in->round, in->part);
}

static int send_deferred(struct bond *b)
{
	uint8_t total = b->has_deferred & (DEFER_ACK | DEFER_ASK),
		loss = b->has_deferred & (DEFER_RESUME | DEFER_LOST);
	int rc = b->has_deferred & DEFER_ANSWER ? bond_answer(b) : 0;

	if (rc < 0)
		return rc;
	if (loss & DEFER_RESUME)
		rc = bond_send_control(b, WIRE_BOND_RESUME, b->in.received, b->in.round,
				       bond_losses(b));
	else if (loss)
		rc = bond_send_control(b, WIRE_BOND_LOST, bond_losses(b), 0, 0);
	if (rc == 1)
		b->has_deferred &= (uint8_t)~loss;
	if (rc < 0 || !total)
		return rc;
	rc = bond_send_control(b, WIRE_BOND_ACK, b->in.received, !!(total & DEFER_ASK),
			       bond_send_read_part(b));
	if (rc != 1)
		return rc;
	b->has_deferred &= (uint8_t)~total;
	b->in.notified = b->in.received;
	return 1;
}

uint32_t bond_send_path(const struct bond *b, uint32_t path)
{
	const struct bond_path *m = b->memory;

	if (!b->out.held || b->paths[path].stores || !m || !m->stores || m->state != PATH_UP)
		return path;
	return bond_index(b, m);
}

bool bond_is_read_next(const struct fabric_link *link)
{
	const struct bond *b = bond_of(link);
	const struct bond_path *m = b->memory;

	if (!m || !m->stores || m->state != PATH_UP)
		return true;
	return bond_send_stores(b) && !bond_has_backlog(b) && b->out.wanted < 0;
}

static int change_path(struct bond *b)
{
	struct bond_out *o = &b->out;
	int rc;

	if (o->wanted < 0 || (uint32_t)o->wanted == o->path || bond_has_backlog(b))
		return 0;
	rc = bond_path_send(b, &b->paths[o->path], WIRE_BOND_SWITCH, (uint64_t)o->wanted, o->sent,
			    b->paths[o->wanted].life);
	if (rc != 1)
		return rc;
	o->path = (uint32_t)o->wanted;
	o->part++;
	o->restart = true;
	return 0;
}

static int send_again(struct bond *b)
{
	struct bond_out *o = &b->out;

	while (o->forwarded != o->sent && !o->stopped) {
		uint64_t next = o->next;
		struct bond_entry *e = bond_log_next(&o->log, &next);
		struct fabric_wr wr = {
			.op = FABRIC_SEND,
			.kind = e->kind,
			.flags = o->forwarded + 1 == o->sent ? 0 : FABRIC_MORE,
			.length = e->length,
			.data = bond_entry_data(e),
			.head = {e->head[0], e->head[1], e->head[2]},
		};
		int rc = bond_path_post(b, &b->paths[o->path], &wr);

		if (rc != 1)
			return rc;
		o->next = next;
		if (wire_is_before(o->reached, ++o->forwarded))
			o->reached = o->forwarded;
		o->more = wr.flags;
	}
	return 0;
}

/* Without what is deferred. */
static COLD int bond_settle_order(struct bond *b)
{
	struct bond_out *o = &b->out;
	int rc = 0;

	if (o->wanted < 0)
		o->wanted = (int32_t)bond_send_path(b, o->path);
	if (!o->stopped)
		rc = change_path(b);
	if (rc != -EPROTO && o->restart && !o->stopped) {
		rc = bond_path_send(b, &b->paths[o->path], WIRE_BOND_RESTART, o->forwarded,
				    o->round, o->part);
		o->restart = rc != 1;
	}
	if (rc != -EPROTO && !o->restart)
		rc = send_again(b);
	if (o->wanted == (int32_t)o->path)
		o->wanted = -1;
	if (o->path != o->home)
		bond_spread_rescan(b);
	b->busy = b->has_deferred || bond_has_backlog(b) || o->wanted >= 0 ||
		  bond_send_path(b, o->path) != o->path;
	return rc == -EPROTO ? rc : 0;
}

COLD int bond_settle(struct bond *b)
{
	return send_deferred(b) == -EPROTO ? -EPROTO : bond_settle_order(b);
}

/* ---- packets -------------------------------------------------------------------------------- */

/* For WR room has been held back, and that now is its own: no packet of the bond's takes it. */
static bool is_promised(const struct bond_out *o, const struct fabric_wr *wr)
{
	return UNLIKELY(o->promised) && wr->length <= FABRIC_WORD_MAX;
}

static bool bond_send_is_to_ask(const struct bond_out *o)
{
	return UNLIKELY(o->bytes - o->asked >= o->log.size / 4);
}

/* In front of the next packet and by its path: who has read that has answered, so that what is not
 * acknowledged leaves room in the log. 1, -EAGAIN or -EPROTO. */
static COLD int bond_send_ask(struct bond *b)
{
	struct bond_out *o = &b->out;
	int rc = bond_path_send(b, &b->paths[o->path], WIRE_BOND_ACK, b->in.received, 1,
				bond_send_read_part(b));

	if (rc != 1)
		return rc;
	o->asked = o->bytes;
	bond_log_mark(&o->log);
	b->in.notified = b->in.received;
	return 1;
}

static void bond_send_keep(struct bond *b, const struct fabric_wr *wr, bool built)
{
	struct bond_out *o = &b->out;

	if (!built && wr->length)
		copy_payload(bond_log_open_data(&o->log), wr->data, wr->length);
	bond_log_commit(&o->log, wr);
	o->bytes += bond_entry_size(wr->length);
	o->sent++;
}

static void bond_send_skip(struct bond_out *o, const struct fabric_wr *wr)
{
	bond_log_skip(&o->log);
	o->bytes += bond_entry_size(wr->length);
	o->stored = ++o->sent;
}

/* Into the log alone, where that was promised: as soon as there is a path it goes there. Nothing
 * else: what is in this process's memory alone would be lost with it. */
static int bond_send_keep_back(struct bond *b, const struct fabric_wr *wr, bool built)
{
	struct bond_out *o = &b->out;

	if (UNLIKELY(wr->flags & FABRIC_ONLY)) /* nobody knows by which it would go */
		return -EAGAIN;
	if (!is_promised(o, wr) || (!built && !bond_log_reserve(&o->log, wr->length, 0)))
		return -EAGAIN;
	o->promised--;
	bond_send_keep(b, wr, built);
	b->busy = true;
	return 1;
}

/* Room that must not be taken from those which have been promised it; one of them may leave some
 * unused in front of the log's end. */
static uint64_t bond_send_spare(const struct bond_out *o)
{
	uint64_t words = (uint64_t)o->held + o->promised;

	return words ? words * (BOND_ENTRY + FABRIC_WORD_MAX) + FABRIC_WORD_MAX : 0;
}

/* Room in the log; what the peer has acknowledged may make some. */
static int bond_send_make_room(struct bond *b, uint32_t length)
{
	struct bond_out *o = &b->out;
	bool promised = o->promised && length <= FABRIC_WORD_MAX;
	int rc = 1;

	if (LIKELY(bond_log_reserve(&o->log, length, promised ? 0 : bond_send_spare(o))))
		return 1;
	if (bond_send_is_to_ask(o)) /* words have gone without */
		rc = bond_send_ask(b);
	if (rc == -EPROTO || bond_inspect(b) < 0)
		return -EPROTO;
	if (bond_has_backlog(b)) /* a loss was reported */
		return -EAGAIN;
	bond_log_trim(&o->log, o->acked);
	return bond_log_reserve(&o->log, length, promised ? 0 : bond_send_spare(o)) ? 1 : -EAGAIN;
}

/* By its path; and into the log, if it may be lost. */
static int forward(struct bond *b, const struct fabric_wr *wr, bool built)
{
	struct bond_out *o = &b->out;
	int rc = bond_send_is_to_ask(o) && !is_promised(o, wr) ? bond_send_ask(b) : 1;

	if (LIKELY(rc == 1))
		rc = bond_path_post(b, &b->paths[o->path], wr);
	if (UNLIKELY(rc != 1)) {
		o->full = true;
		return rc == -EAGAIN ? bond_send_keep_back(b, wr, built) : rc;
	}
	o->full = false;
	o->more = wr->flags & FABRIC_MORE;
	if (is_promised(o, wr))
		o->promised--;
	if (bond_send_stores(b))
		bond_send_skip(o, wr);
	else
		bond_send_keep(b, wr, built);
	o->next = o->log.head;
	o->forwarded = o->sent;
	if (wire_is_before(o->reached, o->forwarded))
		o->reached = o->forwarded;
	return UNLIKELY(b->busy) && bond_settle(b) < 0 ? -EPROTO : !b->base.lags;
}

/* From where it lies in the log. */
static int forward_built(struct bond *b, const struct fabric_wr *wr)
{
	struct fabric_wr plain = *wr;

	plain.flags &= (uint16_t)~FABRIC_BUILT;
	plain.data = bond_log_open_data(&b->out.log);
	return forward(b, &plain, true);
}

/* The path that WR asks for, or the usual one; that in use where WR has been promised room, or may
 * be a word that was to be read next. */
static uint32_t path_wanted(struct bond *b, const struct fabric_wr *wr, uint32_t by)
{
	struct bond_out *o = &b->out;
	bool stays;

	if (b->paths[o->home].state != PATH_UP)
		o->home = o->path;
	if (by)
		return by - 1;
	stays = is_promised(o, wr) || (o->held && b->paths[o->path].stores);
	return bond_send_path(b, stays ? o->path : o->home);
}

/* To the path that the packet asks for, or, where that does not stand, by that in use; what asks
 * for none does not follow what has. 1, -EAGAIN not yet, -ENOLINK or -EPROTO. */
static COLD int find_path(struct bond *b, const struct fabric_wr *wr)
{
	uint32_t by = (wr->flags & FABRIC_BY_MASK) >> FABRIC_BY_SHIFT, path;
	struct bond_out *o = &b->out;

	if (by && (by > BOND_PATHS || b->paths[by - 1].state != PATH_UP))
		return wr->flags & FABRIC_ONLY ? -ENOLINK : 1;
	path = path_wanted(b, wr, by);
	/* Each time it is left the words for which room is held back have their chance before. */
	if (path != o->path && bond_send_path(b, path) != path && !bond_is_read_next(&b->base))
		return -EAGAIN;
	if (path != o->path && !bond_has_backlog(b)) {
		o->wanted = (int32_t)path;
		if (bond_settle_order(b) < 0)
			return -EPROTO;
	}
	if (path != o->path)
		return -EAGAIN;
	if (!by && path == o->home && bond_spread_out(b, wr->length) < 0)
		return -EPROTO;
	return bond_has_backlog(b) ? -EAGAIN : 1;
}

/* *WR has just been written word by word: to copy it, in moves of two words, would wait for every
 * store before it, those to the peer's ring too. */
int bond_send(struct bond *b, const struct fabric_wr *wr)
{
	struct bond_out *o = &b->out;
	bool built = wr->flags & FABRIC_BUILT;
	int rc;

	if (UNLIKELY(wr->length > b->base.payload_max))
		return -EAGAIN;
	if (UNLIKELY(bond_is_own(wr->kind)))
		return -EINVAL;
	if (UNLIKELY(b->busy)) {
		rc = is_promised(o, wr) ? bond_settle_order(b) : bond_settle(b);
		rc = rc < 0 ? rc : bond_check_paths(b);
		if (rc < 0)
			return rc;
		if (bond_has_backlog(b) && !(wr->flags & FABRIC_ONLY && wr->flags & FABRIC_BY_MASK))
			return bond_send_keep_back(b, wr, built);
	}
	if (UNLIKELY(wr->flags & FABRIC_BY_MASK ||
		     !wire_is_before(o->bytes + wr->length, o->inspect) ||
		     (o->full && o->spreads))) {
		rc = find_path(b, wr);
		if (rc != 1)
			return rc == -EAGAIN ? bond_send_keep_back(b, wr, built) : rc;
	}
	if (UNLIKELY(built))
		return forward_built(b, wr);
	rc = bond_send_stores(b) ? 1 : bond_send_make_room(b, wr->length);
	if (UNLIKELY(rc != 1))
		return rc == -EAGAIN ? bond_send_keep_back(b, wr, false) : rc;
	return forward(b, wr, false);
}

/* The path has refused the last packet: is there room by now? */
static bool path_has_room(struct bond *b, uint32_t length)
{
	struct bond_path *p = &b->paths[b->out.path];
	struct fabric_wr flush = {.op = FABRIC_FLUSH};

	if (!p->fabric->reserve(p->port, length))
		return false;
	(void)bond_path_post(b, p, &flush); /* gives it back */
	b->out.full = false;
	return p->state == PATH_UP;
}

void *bond_reserve(struct fabric_link *link, uint32_t length)
{
	struct bond *b = bond_of(link);
	struct bond_out *o = &b->out;

	if (length > b->base.payload_max || b->base.violation)
		return NULL;
	if (b->busy && (bond_settle(b) < 0 || bond_has_backlog(b)))
		return NULL;
	if (bond_send_make_room(b, length) != 1 || (o->full && !path_has_room(b, length)))
		return NULL;
	return bond_log_open_data(&o->log);
}
