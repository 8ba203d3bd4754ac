/* SPDX-License-Identifier: BSD-3-Clause */
/* A bond as a fabric: the table of functions that the core calls. A pair with a single link never
 * passes through here. */
#include "slmpm/bond/bond.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/bond/bond_parts.h"

/* ---- figures -------------------------------------------------------------------------------- */

static uint64_t bond_least(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

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

/* All are sums. */
static COLD void bond_refresh_counts(struct bond *b)
{
	struct fabric_counts *c = &b->base.counts;

	*c = b->past;
	b->ring_out = b->ring_in = 0;
	PATH_EACH(p, b) {
		if (!p->port)
			continue;
		bond_add_counts(c, &p->port->counts, bond_is_live(p));
		b->ring_out = bond_least(b->ring_out, p->port->counts.out_segments);
		b->ring_in = bond_least(b->ring_in, p->port->counts.in_segments);
	}
}

uint64_t bond_ring_out(const struct fabric_link *link)
{
	return bond_of(link)->ring_out;
}

uint64_t bond_ring_in(const struct fabric_link *link)
{
	return bond_of(link)->ring_in;
}

static uint64_t lag_of(const struct bond_path *p)
{
	return p->state == PATH_UP ? p->port->lags : 0;
}

static COLD void find_lagging(struct bond *b)
{
	b->base.lags = bond_goes_again(b);
	PATH_EACH(p, b)
		b->base.lags |= lag_of(p) != 0;
}

void bond_mark(const struct fabric_link *link, uint64_t *left)
{
	PATH_EACH(p, bond_of(link))
		*left++ = lag_of(p) ? p->port->left + lag_of(p) : 0;
}

bool bond_passed(const struct fabric_link *link, const uint64_t *left)
{
	PATH_EACH(p, bond_of(link))
		if (lag_of(p) && p->port->left < left[bond_index(bond_of(link), p)])
			return false;
	return !bond_goes_again(bond_of(link));
}

static COLD int bond_flush(struct bond *b, uint16_t flags)
{
	struct fabric_wr wr = {.op = FABRIC_FLUSH, .flags = flags};
	bool staged = false;

	b->out.more = false;
	b->has_deferred |= b->in.received != b->in.notified ? DEFER_ACK : 0;
	if (bond_inspect(b) < 0 || bond_settle(b) < 0)
		return -EPROTO;
	PATH_EACH(p, b) {
		int rc = p->state == PATH_UP ? bond_path_post(b, p, &wr) : 1;

		if (rc == -EPROTO)
			return rc;
		staged |= rc != 1;
	}
	bond_refresh_counts(b);
	find_lagging(b);
	if (bond_check_paths(b) < 0)
		return -EPIPE;
	return staged || bond_has_backlog(b) ? -EAGAIN : 1;
}

static COLD int bond_count(struct bond *b)
{
	struct fabric_wr wr = {.op = FABRIC_STATUS};

	PATH_EACH(p, b)
		if (p->state == PATH_UP)
			(void)bond_path_post(b, p, &wr);
	bond_refresh_counts(b);
	return 1;
}

static COLD int bond_hang_up(struct bond *b)
{
	struct fabric_wr wr = {.op = FABRIC_FLUSH, .flags = FABRIC_END};

	PATH_EACH(p, b)
		if (bond_is_live(p))
			(void)p->fabric->post(p->port, &wr);
	return 1;
}

static COLD int bond_hold_back(struct bond *b, uint32_t segments)
{
	struct fabric_wr wr = {.op = FABRIC_HOLD_BACK, .length = segments};
	struct bond_out *o = &b->out;

	PATH_EACH(p, b) {
		int rc = p->state == PATH_UP ? bond_path_post(b, p, &wr) : 1;

		if (rc == 1 || rc == -EAGAIN)
			continue;
		wr.length = o->held;
		while (p != b->paths)
			if ((--p)->state == PATH_UP)
				(void)bond_path_post(b, p, &wr);
		return rc;
	}
	/* Those that have been promised room may come whenever the path has none. */
	o->promised = segments < o->held ? o->promised + (o->held - segments) : 0;
	o->held = segments;
	if (o->promised || bond_send_path(b, o->path) == o->path)
		return 1;
	return bond_settle(b) < 0 ? -EPROTO : 1;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Beside the other operations, in another thread: what it reads never changes. */
static int bond_reach(struct bond *b, const struct fabric_wr *wr)
{
	if (!b->memory)
		return -EINVAL;
	/* A path that reaches memory keeps its access words as long as the bond does. */
	if (b->memory_lost && wr->memory != b->base.peer_access) {
		wr->memory->ops = wr->memory->later = 0;
		return -EPERM;
	}
	b->memory->port->ops = b->base.ops;
	return b->memory->fabric->post(b->memory->port, wr);
}

static int bond_reg(struct fabric_link *link, struct fabric_memory *m, bool own, bool writable,
		    struct fabric_blob *blob)
{
	struct bond *b = bond_of(link);

	if (!b->memory || b->memory_lost)
		return -ENOTSUP;
	return b->memory->fabric->reg(b->memory->port, m, own, writable, blob);
}

static void bond_dereg(struct fabric_domain *domain, struct fabric_memory *m)
{
	struct fabric_domain *memory = ((struct bond_domain *)domain)->memory;

	if (memory)
		memory->fabric->dereg(memory, m);
}

struct fabric_domain *bond_memory(const struct fabric_link *link)
{
	const struct bond_path *memory = bond_of(link)->memory;

	return memory ? memory->port->domain : NULL;
}

/* ---- the table ------------------------------------------------------------------------------ */

static int bond_probe(const struct fabric_config *config, struct fabric_caps *caps)
{
	(void)config;
	*caps = (struct fabric_caps){
		.ops = 1u << FABRIC_SEND | 1u << FABRIC_FLUSH,
		.memory = FABRIC_MEMORY_HOST,
		.message_max = UINT32_MAX,
		.land_min = 4096, /* where one of its paths asks for places */
	};
	return 0;
}

static int bond_open_domain(struct fabric_domain *domain)
{
	domain->fd = -1; /* its paths' domains wake */
	return 0;
}

static void bond_close_domain(struct fabric_domain *domain)
{
	(void)domain;
}

static COLD int bond_post_other(struct bond *b, const struct fabric_wr *wr)
{
	switch (wr->op) {
	case FABRIC_FLUSH:
		if (wr->flags & FABRIC_CANCEL)
			return b->memory ? b->memory->fabric->post(b->memory->port, wr) : -ENOTSUP;
		return wr->flags & FABRIC_END ? bond_hang_up(b) : bond_flush(b, wr->flags);
	case FABRIC_HOLD_BACK: return bond_hold_back(b, wr->length);
	case FABRIC_LAND: return bond_land(b, wr);
	case FABRIC_STATUS: return wr->flags ? -ENOTSUP : bond_count(b);
	default: return -EINVAL;
	}
}

static int bond_post(struct fabric_link *link, const struct fabric_wr *wr)
{
	struct bond *b = bond_of(link);

	if (wr->op == FABRIC_WRITE || wr->op == FABRIC_READ || wr->op == FABRIC_ATOMIC)
		return bond_reach(b, wr);
	if (UNLIKELY(link->violation))
		return wr->flags & FABRIC_END ? bond_hang_up(b) : -EPROTO;
	return LIKELY(wr->op == FABRIC_SEND) ? bond_send(b, wr) : bond_post_other(b, wr);
}

static int bond_poll(struct fabric_link *link, struct fabric_arrival *arrivals, int n)
{
	int got = UNLIKELY(link->violation) ? -EPROTO : bond_receive(bond_of(link), arrivals, n);

	if (UNLIKELY(link->lags))
		find_lagging(bond_of(link));
	return got;
}

/* The paths' own domains announce the sleep; before, what is deferred goes out. */
static void bond_arm(struct fabric_domain *domain, bool on)
{
	for (struct bond *b = ((struct bond_domain *)domain)->bonds; b; b = b->next) {
		b->armed = on; /* the inspection that follows is of all paths */
		if (!on)
			continue;
		PATH_EACH(p, b)
			if (p->port)
				p->port->over = b->base.over;
		if (b->busy && !b->base.violation)
			(void)bond_settle(b);
		bond_refresh_counts(b);
	}
}

void bond_shut(struct fabric_link *link)
{
	struct bond *b = bond_of(link), **at = &((struct bond_domain *)link->domain)->bonds;

	while (*at && *at != b)
		at = &(*at)->next;
	if (*at)
		*at = b->next;
	PATH_EACH(p, b)
		if (p->port)
			p->fabric->disconnect(p->port);
	bond_log_close(&b->out.log);
}

static void bond_disconnect(struct fabric_link *link)
{
	bond_shut(link);
	PATH_EACH(p, bond_of(link)) {
		free(p->port);
		*p = (struct bond_path){.state = PATH_NONE};
	}
}

const struct fabric bond_fabric = {
	.name = "bond",
	.domain_size = sizeof(struct bond_domain),
	.link_size = sizeof(struct bond),
	.probe = bond_probe,
	.open = bond_open_domain,
	.close = bond_close_domain,
	.disconnect = bond_disconnect,
	.reg = bond_reg,
	.dereg = bond_dereg,
	.reserve = bond_reserve,
	.post = bond_post,
	.poll = bond_poll,
	.release = bond_release,
	.arm = bond_arm,
};

/* ---- paths ---------------------------------------------------------------------------------- */

int bond_use(struct fabric_link *link, uint32_t path)
{
	struct bond *b = bond_of(link);

	if (path >= BOND_PATHS || b->paths[path].state != PATH_UP)
		return -ENOENT;
	b->out.wanted = (int32_t)bond_send_path(b, path);
	b->out.home = path;
	b->busy = true;
	return 0;
}

uint32_t bond_up(const struct fabric_link *link)
{
	uint32_t up = 0;

	PATH_EACH(p, bond_of(link))
		up |= (uint32_t)(p->state == PATH_UP) << bond_index(bond_of(link), p);
	return up;
}

void bond_position(const struct fabric_link *link, uint64_t *sent, uint64_t *acknowledged)
{
	*sent = bond_of(link)->out.sent;
	*acknowledged = bond_of(link)->out.acked;
}

uint32_t bond_path(const struct fabric_link *link)
{
	return bond_of(link)->out.path;
}

uint32_t bond_home(const struct fabric_link *link)
{
	return bond_of(link)->out.home;
}

struct fabric_link *bond_port(const struct fabric_link *link, uint32_t path)
{
	return path < BOND_PATHS ? bond_of(link)->paths[path].port : NULL;
}

bool bond_is(const struct fabric_link *port)
{
	return port->domain->fabric == &bond_fabric;
}
