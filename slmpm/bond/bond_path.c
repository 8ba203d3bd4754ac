/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bond's paths: how they join, what is posted to one, how one is lost or rejected, and comes
 * back. One that is lost takes nothing more at first, and what it holds is read; then, if the
 * present packets came by it, the peer is asked for the others. A place has one incarnation after
 * the other: both ends empty it before the next begins, and what is said of an earlier one counts
 * no more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/bond/bond_parts.h"

/* Fabrics carve their heads out of the same ring's quarter, or put them beside it. */
#define EVEN_FROM   4096 /* payloads that some align */
#define EVEN        64
#define MARGIN_FROM 16384
#define MARGIN      1024

#define LIFE_BITS 15
#define LIFE_MASK ((UINT64_C(1) << LIFE_BITS) - 1)
_Static_assert(BOND_INCARNATIONS == LIFE_MASK && BOND_PATHS * (LIFE_BITS + 1) == 64, "one word");

/* Both ends must find the same, each from its ring and the other's. */
static uint32_t longest_payload(uint32_t payload_max)
{
	return payload_max < EVEN_FROM   ? payload_max :
	       payload_max < MARGIN_FROM ? payload_max - EVEN :
					   payload_max - MARGIN;
}

COLD int bond_poison(struct bond *b, const char *violation)
{
	b->base.violation = violation;
	return -EPROTO;
}

int bond_path_post(struct bond *b, struct bond_path *p, const struct fabric_wr *wr)
{
	struct fabric_wr alone;
	int rc;

	if (UNLIKELY(wr->flags & FABRIC_STAYS)) { /* the next one may go by another path */
		alone = *wr;
		alone.flags &= (uint16_t)~FABRIC_STAYS;
		wr = &alone;
	}
	rc = p->fabric->post(p->port, wr);
	if (LIKELY(rc > 0))
		return 1;
	if (rc == 0) {
		b->base.lags = true;
		return 1;
	}
	if (rc == -EPROTO)
		return bond_poison(b, p->port->violation);
	if (rc == -EPIPE) {
		bond_path_lost(b, p, false, p->port->lost);
		return -EAGAIN;
	}
	return rc;
}

int bond_path_send(struct bond *b, struct bond_path *p, uint8_t kind, uint64_t a, uint64_t c,
		   uint64_t d)
{
	struct fabric_wr wr = {.op = FABRIC_SEND, .kind = kind, .head = {a, c, d}};

	if (p->state != PATH_UP)
		return -EAGAIN;
	/* Who waits for an acknowledgement asks for it again. */
	p->watch.said |= kind != WIRE_BOND_ACK && kind != WIRE_BOND_PROBE;
	return bond_path_post(b, p, &wr);
}

int bond_send_control(struct bond *b, uint8_t kind, uint64_t a, uint64_t c, uint64_t d)
{
	uint32_t first = b->memory && b->memory->stores ? bond_index(b, b->memory) : b->out.path;
	int rc = -EAGAIN;

	/* First by one that stores, where no acknowledgement that words wait for is lost in silence;
	 * or by that in use: the peer polls it most often. */
	for (uint32_t i = 0; i < BOND_PATHS && rc == -EAGAIN; i++)
		rc = bond_path_send(b, &b->paths[(first + i) % BOND_PATHS], kind, a, c, d);
	return rc;
}

/* ---- loss ----------------------------------------------------------------------------------- */

COLD void bond_path_leave(struct bond *b, struct bond_path *p)
{
	if (p->state != PATH_LOST || p->unreleased || p->gone || p == b->memory)
		return;
	p->fabric->disconnect(p->port);
	p->gone = true;
}

static void bond_path_shut(struct bond *b, struct bond_path *p, const char *why)
{
	uint32_t index = bond_index(b, p);

	bond_tell(b);
	p->state = PATH_SHUT;
	p->reason = why ? why : "it is lost";
	b->lost |= (uint8_t)(1u << index);
	/* What was said by it last may be lost with it. */
	b->has_deferred |= DEFER_LOST | DEFER_ACK | DEFER_ASK;
	if (b->out.path == index)
		b->out.stopped = true;
	if (b->out.wanted == (int32_t)index)
		b->out.wanted = -1;
	if (p == b->memory)
		b->memory_lost = true;
	if (p->port->lags) {
		b->out.in_part = b->out.sent != b->base.domain->config.start;
		b->out.again = b->out.sent;
		b->out.resumed = false;
	}
}

/* What is landing comes again by another path: this one must not write there any more. */
static void leave_place(struct bond_path *p)
{
	struct fabric_wr wr = {.op = FABRIC_LAND};

	if (p->lands && !p->port->lost)
		(void)p->fabric->post(p->port, &wr);
	p->lands = false;
}

/* Operations on memory that were under way: no poll of the link's tells of them any more. */
static void end_operations(struct bond *b, struct bond_path *p)
{
	struct fabric_wr wr = {.op = FABRIC_FLUSH, .flags = FABRIC_CANCEL};
	struct fabric_done *ops = b->base.ops;

	(void)p->fabric->post(p->port, &wr);
	for (int i = 0; ops && i < FABRIC_OPS; i++)
		if (ops[i].status == FABRIC_PENDING)
			ops[i].status = -ENOLINK;
}

COLD void bond_path_lost(struct bond *b, struct bond_path *p, bool drained, const char *why)
{
	b->busy = true;
	if (p->state == PATH_UP)
		bond_path_shut(b, p, why);
	if (p->state != PATH_SHUT || !drained)
		return;
	bond_tell(b);
	p->state = PATH_LOST;
	leave_place(p);
	if (p == b->memory)
		end_operations(b, p);
	/* Also when it was by this one that RESUME went, or RESTART was to come. */
	if (b->in.waiting || bond_index(b, p) == b->in.path)
		bond_await_restart(b);
	bond_path_leave(b, p);
}

static void give_reasons(struct bond *b)
{
	size_t at = 0;

	PATH_EACH(p, b)
		if (p->reason && at < sizeof(b->reasons))
			at += (size_t)snprintf(b->reasons + at, sizeof(b->reasons) - at,
					       "%slink %u: %s", at ? "; " : "", bond_index(b, p),
					       p->reason);
	b->base.lost = b->reasons;
}

int bond_check_paths(struct bond *b)
{
	if (bond_up(&b->base) || b->may_reconnect)
		return 0;
	if (!b->base.lost)
		give_reasons(b);
	return -EPIPE;
}

int bond_is_lost(struct bond *b)
{
	PATH_EACH(p, b)
		if (bond_is_live(p))
			return 0;
	return bond_check_paths(b);
}

/* ---- joining -------------------------------------------------------------------------------- */

static void join(struct bond *b, struct bond_path *p, const struct fabric *fabric,
		 struct fabric_link *port)
{
	p->fabric = fabric;
	p->port = port;
	p->state = PATH_UP;
	p->stores = fabric->alloc != NULL;
	p->watch.asked = p->watch.last = b->base.domain->config.start;
	bond_tell(b);
	bond_spread_joined(b, p);
}

/* Only the first link's: the ends see a later one join at different times, and both must agree on
 * how loans and regions travel. */
static void reach_by(struct bond *b, struct bond_path *first)
{
	struct bond_domain *d = (struct bond_domain *)b->base.domain;

	if (first->fabric->reg && (!d->memory || d->memory == first->port->domain)) {
		b->memory = first;
		d->memory = first->port->domain;
		b->base.access = first->port->access;
		b->base.peer_access = first->port->peer_access;
	}
}

int bond_open(struct fabric_link *link, uint64_t log, const struct fabric *fabric,
	      struct fabric_link *port)
{
	struct bond_domain *d = (struct bond_domain *)link->domain;
	struct bond *b = bond_of(link);
	struct bond_out *o = &b->out;
	uint64_t packets, start = link->domain->config.start;
	int rc;

	link->payload_max = longest_payload(port->payload_max);
	link->payload_max_in = longest_payload(port->payload_max_in);
	link->start_in = port->start_in;
	packets = 4 * bond_entry_size(link->payload_max);
	rc = bond_log_open(&o->log, log > packets ? log : packets, start);
	if (rc < 0)
		return rc;
	b->turn = BOND_ASIDE;
	o->sent = o->forwarded = o->reached = o->acked = o->stored = b->before = start;
	o->next = o->bytes = o->asked = o->inspect = o->log.head;
	o->wanted = -1;
	b->in.received = b->in.notified = b->paths[0].from = link->start_in;
	b->links = BOND_PATHS;
	join(b, &b->paths[0], fabric, port);
	reach_by(b, &b->paths[0]);
	b->paths[0].begun = true;
	b->next = d->bonds;
	d->bonds = b;
	return 0;
}

int bond_add(struct fabric_link *link, uint32_t path, const struct fabric *fabric,
	     struct fabric_link *port)
{
	struct fabric_wr held = {.op = FABRIC_HOLD_BACK};
	struct bond *b = bond_of(link);
	struct bond_path *p;

	if (path >= BOND_PATHS || b->paths[path].port)
		return -EINVAL;
	held.length = b->out.held;
	if (port->start_in != link->start_in || port->payload_max < link->payload_max ||
	    port->payload_max_in < link->payload_max_in ||
	    (held.length && fabric->post(port, &held) != 1))
		return -EMSGSIZE;
	p = &b->paths[path];
	join(b, p, fabric, port);
	b->busy = true;         /* it may be the first one left */
	if (path == b->in.path) /* by which the peer's packets come already */
		b->has_deferred |= DEFER_ACK;
	if (p->notified) /* meanwhile */
		bond_path_lost(b, p, false, "the peer has lost it");
	return 0;
}

/* ---- losses --------------------------------------------------------------------------------- */

uint64_t bond_losses(const struct bond *b)
{
	uint64_t word = b->lost;

	PATH_EACH(p, b) {
		bool over = p->notified || p->state == PATH_SHUT || p->state == PATH_LOST;
		uint32_t i = bond_index(b, p);

		/* Of one that has come back the peer knows; that there was a loss, it may not. */
		if (b->lost >> i & 1)
			word |= (uint64_t)(over || !p->life ? p->life : p->life - 1)
				<< (BOND_PATHS + i * LIFE_BITS);
	}
	return word;
}

static void path_notified(struct bond *b, uint32_t i)
{
	struct bond_path *p = &b->paths[i];

	/* It has not even come here. RESTART may have gone by it, once the peer has been asked. */
	if (p->state == PATH_NONE && !p->notified &&
	    (b->in.waiting ? !(b->has_deferred & DEFER_RESUME) : i == b->in.path))
		bond_await_restart(b);
	p->notified = true;
	b->lost |= (uint8_t)(1u << i);
	if (p->state == PATH_UP)
		bond_path_lost(b, p, false, "the peer has lost it");
}

bool bond_notified(struct bond *b, uint64_t losses)
{
	uint64_t incarnations = losses >> BOND_PATHS;
	uint32_t mask = losses & ((1u << BOND_PATHS) - 1);

	if (PEER_FAULT(!mask))
		return false;
	for (uint32_t i = 0; i < BOND_PATHS; i++, incarnations >>= LIFE_BITS) {
		uint64_t life = incarnations & LIFE_MASK;

		if (PEER_FAULT(mask >> i & 1 ? life == BOND_INCARNATIONS : life))
			return false;
		/* A later one has been rejected before it was expected here. */
		if ((mask >> i & 1) && life >= b->paths[i].life)
			path_notified(b, i);
	}
	return true;
}

void bond_reject(struct fabric_link *link, uint32_t path)
{
	struct bond *b = bond_of(link);

	path_notified(b, path);
	b->has_deferred |= DEFER_LOST;
	b->busy = true;
}

/* ---- again ----------------------------------------------------------------------------------- */

int bond_expect(struct fabric_link *link, uint32_t path, uint32_t life)
{
	struct bond *b = bond_of(link);
	struct bond_path *p = path < BOND_PATHS ? &b->paths[path] : NULL;

	/* The first one of a place that nobody has spoken of. */
	if (p && life == p->life && p->state == PATH_NONE && !p->notified)
		return 0;
	if (!p || life <= p->life || life >= BOND_INCARNATIONS)
		return -EINVAL;
	if (p->state == PATH_UP) /* the peer would not begin again otherwise */
		path_notified(b, path);
	/* A link that is refused now the peer rejects, perhaps by another round: once. */
	b->links += life > b->expected[path];
	b->expected[path] = life > b->expected[path] ? life : b->expected[path];
	if (bond_is_live(p) || p == b->memory || (p->port && !p->gone))
		return -EBUSY;
	if (p->port) {
		bond_add_counts(&b->past, &p->port->counts, false);
		free(p->port);
	}
	*p = (struct bond_path){.life = life, .reason = p->reason};
	return 0;
}

void bond_may_reconnect(struct fabric_link *link, bool on)
{
	bond_of(link)->may_reconnect = on;
}

/* ---- as seen from above ---------------------------------------------------------------------- */

enum bond_state bond_state(const struct fabric_link *link, uint32_t path)
{
	return path < BOND_PATHS ? bond_of(link)->paths[path].state : PATH_NONE;
}

uint32_t bond_life(const struct fabric_link *link, uint32_t path)
{
	return path < BOND_PATHS ? bond_of(link)->paths[path].life : 0;
}

const char *bond_reason(const struct fabric_link *link, uint32_t path)
{
	return path < BOND_PATHS ? bond_of(link)->paths[path].reason : NULL;
}

bool bond_news(struct fabric_domain *domain)
{
	struct bond_domain *d = (struct bond_domain *)domain;
	bool news = d->news;

	d->news = false;
	return news;
}

uint64_t bond_moved(const struct fabric_link *link)
{
	const struct bond *b = bond_of(link);
	uint64_t moved = b->out.bytes - bond_log_place(b->base.domain->config.start);

	PATH_EACH(p, b)
		if (p->port)
			moved += p->port->counts.read * p->port->domain->config.segment_size;
	return moved;
}
