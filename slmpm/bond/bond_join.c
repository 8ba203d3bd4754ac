/* SPDX-License-Identifier: BSD-3-Clause */
/* How paths join a bond, are denied, and come back. A path's place has one life after the other:
 * both ends empty it before the next begins, and what is said of an earlier one counts no more. */
#include <errno.h>
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
static uint32_t bond_join_longest(uint32_t payload_max)
{
	return payload_max < EVEN_FROM   ? payload_max :
	       payload_max < MARGIN_FROM ? payload_max - EVEN :
					   payload_max - MARGIN;
}

static void join(struct bond *b, struct bond_path *p, const struct fabric *fabric,
		 struct fabric_link *port)
{
	p->fabric = fabric;
	p->port = port;
	p->state = PATH_UP;
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

	link->payload_max = bond_join_longest(port->payload_max);
	link->payload_max_in = bond_join_longest(port->payload_max_in);
	link->start_in = port->start_in;
	packets = 4 * bond_entry_size(link->payload_max);
	rc = bond_log_open(&o->log, log > packets ? log : packets, start);
	if (rc < 0)
		return rc;
	b->turn = BOND_ASIDE;
	o->sent = o->forwarded = o->reached = o->acked = b->before = start;
	o->next = o->asked = o->inspect = o->log.head;
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
	b->busy = true;  /* it may be the first one left */
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

static void bond_join_notified(struct bond *b, uint32_t i)
{
	struct bond_path *p = &b->paths[i];

	if (p->state == PATH_NONE && !p->notified && i == b->in.path && !b->in.waiting)
		bond_await_restart(b); /* it has not even come here */
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
		/* A later one has been denied before it was expected here. */
		if ((mask >> i & 1) && life >= b->paths[i].life)
			bond_join_notified(b, i);
	}
	return true;
}

void bond_reject(struct fabric_link *link, uint32_t path)
{
	struct bond *b = bond_of(link);

	bond_join_notified(b, path);
	b->has_deferred |= DEFER_LOST;
	b->busy = true;
}

/* ---- again ----------------------------------------------------------------------------------- */

void bond_add_counts(struct fabric_counts *all, const struct fabric_counts *one, bool live)
{
	all->produced += one->produced;
	all->consumed_seen += live ? one->consumed_seen : one->produced;
	all->read += one->read;
	all->consumed += live ? one->consumed : one->read;
	all->in_produced_seen += live ? one->in_produced_seen : one->read;
	all->remote_writes += one->remote_writes;
	all->produced_publications += one->produced_publications;
	all->bells += one->bells;
	for (int i = 0; i < FABRIC_CAUSES; i++)
		all->publications[i] += one->publications[i];
	all->out_segments += live ? one->out_segments : 0;
	all->in_segments += live ? one->in_segments : 0;
}

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
		bond_join_notified(b, path);
	if (bond_is_live(p) || p == b->memory || (p->port && !p->gone))
		return -EBUSY;
	if (p->port) {
		bond_add_counts(&b->past, &p->port->counts, false);
		free(p->port);
	}
	*p = (struct bond_path){.life = life, .reason = p->reason};
	b->links++;
	return 0;
}

void bond_may_reconnect(struct fabric_link *link, bool on)
{
	bond_of(link)->may_reconnect = on;
}

/* ---- as told -------------------------------------------------------------------------------- */

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
	uint64_t moved = b->out.log.head - bond_log_place(b->base.domain->config.start);

	PATH_EACH(p, b)
		if (p->port)
			moved += p->port->counts.read * p->port->domain->config.segment_size;
	return moved;
}
