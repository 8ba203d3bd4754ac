/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets spread over the paths of a bond: how far each path is that can tell, how much it carries
 * while it is busy, and the change to another one. The selector says which (mode_spread); to the
 * peer it is a change of paths like any other.
 */
#include <errno.h>

#include "slmpm/bond/bond_parts.h"
#include "slmpm/mode/mode.h"
#include "slmpm/base/clock.h"

#define EVERY  16384            /* bytes between two inspections */
#define WINDOW 2000000          /* ns of work that are a measurement */
#define FIRST  262144           /* bytes: a new connection begins slowly */
#define NEVER  (UINT64_MAX / 2) /* bytes put into a log */
#define OLD    1000000000       /* ns after which one says nothing any more */

/* Acknowledgements that are late make a link look slower than it is, and one that is given little
 * for that would look slower yet: what is less counts less. */
static uint64_t average(uint64_t rate, uint64_t one)
{
	return one > rate ? (rate + one) / 2 : (15 * rate + one) / 16;
}

/* What it has carried since the last inspection counts where it cannot have stood idle: of what it
 * had then something is still under way, and that was more than what a late acknowledgement leaves
 * open. */
static void measure(struct bond_flow *f, const struct fabric_counts *c, uint64_t now)
{
	uint64_t more = c->carried - f->carried, ns = now - f->inspected, one;

	if (more > UINT64_MAX / 2) /* a credit is under way, too, and was not posted */
		more = 0;
	if (f->in_flight >= EVERY && more < f->in_flight) {
		f->bytes += more;
		f->ns += ns;
	} else if (ns >= WINDOW && more >= EVERY) {
		f->least = more * 1000 / (ns / 1000);
		if (f->rate && f->least > f->rate) {
			f->rate = f->least;
			f->rated = now;
		}
	}
	f->inspected = now;
	f->carried = c->carried;
	f->in_flight = c->in_flight;
	if (f->ns >= WINDOW && (f->rate || f->bytes >= FIRST)) {
		one = f->bytes * 1000 / (f->ns / 1000) + 1;
		f->rate = f->rate ? average(f->rate, one) : one;
		f->rated = now;
		f->bytes = f->ns = 0;
	} else if (now - f->rated > OLD) {
		f->rate = 0;
	}
}

static struct mode_load load_of(struct bond *b, struct bond_path *p, uint64_t now)
{
	struct fabric_wr wr = {.op = FABRIC_STATUS, .flags = FABRIC_LOAD};

	if (p->state != PATH_UP || bond_path_post(b, p, &wr) != 1 || p->state != PATH_UP)
		return (struct mode_load){.able = false};
	measure(&p->flow, &p->port->counts, now);
	return (struct mode_load){
		.able = true, .in_flight = p->flow.in_flight, .rate = p->flow.rate};
}

/* The others are inspected only where the present one has too much to do. */
static int bond_spread_choose(struct bond *b, uint32_t length)
{
	struct mode_load loads[BOND_PATHS] = {{.able = false}};
	uint64_t patience = b->out.patience, now = clock_now();
	int present = (int)b->out.path;

	loads[present] = load_of(b, &b->paths[present], now);
	if (!loads[present].rate)
		loads[present].rate = b->paths[present].flow.least;
	if (!mode_is_loaded(&loads[present], patience))
		return present;
	PATH_EACH(p, b)
		if (p != &b->paths[present])
			loads[bond_index(b, p)] = load_of(b, p, now);
	return mode_spread(loads, BOND_PATHS, present, length, patience);
}

bool bond_spreads(const struct fabric_link *link)
{
	uint32_t able = 0;

	PATH_EACH(p, bond_of(link))
		able += p->state == PATH_UP && p->tells;
	return able > 1 && bond_of(link)->out.spreads;
}

COLD int bond_spread_out(struct bond *b, uint32_t length)
{
	struct bond_out *o = &b->out;
	bool spreads = bond_spreads(&b->base);
	int path;

	o->inspect = o->bytes + (spreads ? length + EVERY : NEVER);
	if (!spreads || o->wanted >= 0 || bond_has_backlog(b))
		return 0;
	path = bond_spread_choose(b, length > EVERY ? length : EVERY);
	if (b->base.violation)
		return -EPROTO;
	o->spread = path != (int)o->path;
	if (!o->spread)
		return 0;
	o->wanted = path;
	o->home = (uint32_t)path;
	b->busy = true;
	return bond_settle(b);
}

/* Of a packet that has followed a hint the next one asks anyway. */
void bond_spread_rescan(struct bond *b)
{
	struct bond_out *o = &b->out;

	o->inspect = o->bytes + (o->spreads || o->path != o->home ? 0 : NEVER);
}

void bond_spread_joined(struct bond *b, struct bond_path *p)
{
	struct fabric_wr wr = {.op = FABRIC_STATUS, .flags = FABRIC_LOAD};

	p->tells = p->fabric->post(p->port, &wr) == 1;
	bond_spread_rescan(b);
}

void bond_spread(struct fabric_link *link, uint64_t patience_us)
{
	struct bond *b = bond_of(link);

	b->out.spreads = patience_us != UINT64_MAX;
	b->out.patience = patience_us;
	bond_spread_rescan(b);
}

bool bond_is_spread(const struct fabric_link *link)
{
	const struct bond *b = bond_of(link);

	return b->out.spreads && b->out.spread;
}
