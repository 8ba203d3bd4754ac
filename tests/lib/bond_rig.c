/* SPDX-License-Identifier: BSD-3-Clause */
/* What the core does with a bond, by hand, at both ends. */
#include "tests/lib/bond_rig.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"

#define LOOKS 64 /* where nothing is to come */

int rig_path(struct rig *r, const struct fabric *fabric, const struct rig_shape *shape)
{
	int path = r->paths++;

	CHECK(path < BOND_PATHS, "too many paths");
	memset(&r->wire[path], 0, sizeof(r->wire[path]));
	r->wire[path].land_min = shape->land_min;
	link_pair_open(&r->pair[path], fabric, shape->segments, shape->segment_size);
	return path;
}

static void add(struct rig *r, int path, int side, const struct fabric *as)
{
	struct fabric_link *port = lossy_new(&r->wire[path], side, r->pair[path].link[side]);
	int rc = bond_add(r->link[side], (uint32_t)path, as, port);

	CHECK(rc == 0, "adding path %d said %d", path, rc);
}

void rig_add(struct rig *r, int path, int side)
{
	add(r, path, side, &lossy_fabric);
}

void rig_add_stored(struct rig *r, int path, int side)
{
	add(r, path, side, &lossy_memory);
}

static void open_side(struct rig *r, int side, const struct rig_shape *shape,
		      const struct fabric *first)
{
	struct fabric_link *port = lossy_new(&r->wire[0], side, r->pair[0].link[side]);
	int rc;

	r->domain[side] = calloc(1, bond_fabric.domain_size);
	r->link[side] = calloc(1, bond_fabric.link_size);
	CHECK(r->domain[side] && r->link[side], "out of memory");
	r->domain[side]->fabric = &bond_fabric;
	r->domain[side]->config = r->pair[0].domain[side]->config;
	CHECK(bond_fabric.open(r->domain[side]) == 0, "no domain");
	r->link[side]->domain = r->domain[side];
	rc = bond_open(r->link[side], shape->log, first, port);
	CHECK(rc == 0, "opening a bond said %d", rc);
}

static void open_all(struct rig *r, const struct fabric *fabric, const struct rig_shape *shape,
		     const struct fabric *first)
{
	memset(r, 0, sizeof(*r));
	(void)rig_path(r, fabric, shape);
	for (int side = 0; side < SIDES; side++)
		open_side(r, side, shape, first);
	while (r->paths < shape->paths) {
		int path = rig_path(r, fabric, shape);

		rig_add(r, path, LEFT);
		rig_add(r, path, RIGHT);
	}
}

void rig_open(struct rig *r, const struct fabric *fabric, const struct rig_shape *shape)
{
	open_all(r, fabric, shape, &lossy_fabric);
}

void rig_open_stored(struct rig *r, const struct fabric *fabric, const struct rig_shape *shape)
{
	open_all(r, fabric, shape, &lossy_memory);
}

void rig_close(struct rig *r)
{
	for (int side = 0; side < SIDES; side++) {
		bond_fabric.disconnect(r->link[side]);
		bond_fabric.disconnect(r->link[side]); /* idempotent */
		bond_fabric.close(r->domain[side]);
		free(r->link[side]);
		free(r->domain[side]);
	}
	for (int path = 0; path < r->paths; path++)
		link_pair_close(&r->pair[path]);
}

void rig_cut(struct rig *r, int path, bool all)
{
	const int deaf[SIDES] = {0, 0};
	uint64_t keep[SIDES];

	for (int side = 0; side < SIDES; side++)
		keep[side] = all ? 0 : lossy_under_way(&r->wire[path], side);
	lossy_cut(&r->wire[path], keep, deaf);
}

void rig_arm(struct rig *r, int side, bool on)
{
	bond_fabric.arm(r->domain[side], on);
	for (int path = 0; path < r->paths; path++) {
		struct fabric_domain *d = r->pair[path].domain[side];

		d->fabric->arm(d, on);
	}
}

static int inspect(struct fabric_link *l, struct fabric_arrival *a)
{
	int n = bond_fabric.poll(l, a, 1);

	CHECK(n >= 0, "poll said %d (%s, %s)", n, l->violation ? l->violation : "sound",
	      l->lost ? l->lost : "not lost");
	return n;
}

void rig_take(struct rig *r, int side, uint64_t seed, uint32_t length)
{
	struct fabric_arrival a;
	int64_t end = actor_now_ms() + PATIENCE;

	/* What the other side hears meanwhile is the bond's own: it must not receive yet. */
	while (inspect(r->link[side], &a) == 0) {
		struct fabric_wr flush = {.op = FABRIC_FLUSH};

		(void)bond_fabric.post(r->link[!side], &flush);
		CHECK(actor_now_ms() < end, "packet %llu has not come", (unsigned long long)seed);
	}
	link_check(&a, seed, length);
	bond_fabric.release(r->link[side], &a);
}

void rig_quiet(struct rig *r)
{
	struct fabric_arrival a;

	for (int i = 0; i < LOOKS; i++)
		for (int side = 0; side < SIDES; side++)
			CHECK(inspect(r->link[side], &a) == 0, "packet %llu comes once more",
			      (unsigned long long)a.head[0]);
}
