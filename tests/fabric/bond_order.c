/* SPDX-License-Identifier: BSD-3-Clause */
/* A bond whose links all live: order over changes of links, links that join late, releases in any
 * order, sleep, figures. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/bond_rig.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/random.h"

#define EARLY 24 /* packets: more than are asked for at once */

static const struct rig_shape two = {256, 64, 1 << 16, 0, 2};

static void use(struct rig *r, int side, int path)
{
	assert_int_equal(bond_use(r->link[side], (uint32_t)path), 0);
}

static void order_survives_changes(void **state)
{
	const struct rig_shape shape = {256, 64, 1 << 16, 0, 4};
	uint64_t sent[SIDES] = {1, 1}, taken[SIDES] = {1, 1};
	struct rng chance = {rng_run_seed(0x1234)};
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &shape);
	for (int step = 0; step < 20000; step++) {
		int side = (int)rng_below(&chance, 2);
		struct fabric_link *l = r.link[side];

		if (rng_one_in(&chance, 4))
			use(&r, side, (int)rng_below(&chance, 4));
		for (uint32_t n = rng_below(&chance, 5); n; n--)
			sent[side] += link_put(l, sent[side], (uint32_t)(sent[side] % 300),
					       rng_one_in(&chance, 3) ? FABRIC_MORE : 0) == 1;
		for (uint32_t n = rng_below(&chance, 5); n && taken[!side] < sent[!side]; n--) {
			rig_take(&r, side, taken[!side], (uint32_t)(taken[!side] % 300));
			taken[!side]++;
		}
	}
	for (int side = 0; side < SIDES; side++) {
		assert_true(sent[side] > 10000);
		for (; taken[side] < sent[side]; taken[side]++)
			rig_take(&r, !side, taken[side], (uint32_t)(taken[side] % 300));
	}
	rig_quiet(&r);
	rig_close(&r);
}

/* Whatever goes by a link that the other end has not joined yet waits there. */
static void links_join_at_different_times(void **state)
{
	const struct rig_shape one = {256, 64, 1 << 16, 0, 1};
	struct fabric_arrival a;
	struct rig r;
	int path;

	(void)state;
	rig_open(&r, fabric, &one);
	path = rig_path(&r, fabric, &one);
	assert_int_equal(bond_use(r.link[LEFT], 1), -ENOENT);
	rig_add(&r, path, LEFT);
	assert_int_equal(link_put(r.link[LEFT], 1, 8, 0), 1);
	use(&r, LEFT, path);
	assert_int_equal(link_put(r.link[LEFT], 2, 8, 0), 1);
	assert_int_equal(bond_path(r.link[LEFT]), 1);
	rig_take(&r, RIGHT, 1, 8);
	for (int i = 0; i < 50; i++)
		assert_int_equal(bond_fabric.poll(r.link[RIGHT], &a, 1), 0);
	rig_add(&r, path, RIGHT);
	rig_take(&r, RIGHT, 2, 8);
	assert_int_equal(bond_up(r.link[RIGHT]), 3);
	rig_close(&r);
}

/* Where all of it waits for what another link has not brought. */
static void read_early(uint32_t land_min, uint32_t length)
{
	const struct rig_shape one = {1024, 64, 1 << 16, land_min, 1};
	struct fabric_arrival a;
	struct rig r;
	int path;

	rig_open(&r, fabric, &one);
	path = rig_path(&r, fabric, &one);
	r.wire[path].land_min = 0; /* nobody here knows a place */
	rig_add(&r, path, LEFT);
	use(&r, LEFT, path);
	assert_int_equal(link_put(r.link[LEFT], 1, length, 0), 1);
	use(&r, LEFT, 0);
	for (uint64_t seed = 2; seed <= EARLY; seed++)
		assert_int_equal(link_put(r.link[LEFT], seed, length, 0), 1);
	for (int64_t end = actor_now_ms() + 10000; r.wire[0].polled[RIGHT] < EARLY;) {
		struct fabric_wr flush = {.op = FABRIC_FLUSH};

		assert_int_equal(bond_fabric.poll(r.link[RIGHT], &a, 1), 0);
		(void)bond_fabric.post(r.link[LEFT], &flush);
		assert_true(actor_now_ms() < end);
	}
	r.wire[0].land_min = 0;
	rig_add(&r, path, RIGHT);
	for (uint64_t seed = 1; seed <= EARLY; seed++)
		rig_take(&r, RIGHT, seed, length);
	rig_quiet(&r);
	rig_close(&r);
}

static void what_comes_early_is_read(void **state)
{
	(void)state;
	read_early(0, 8);
	read_early(128, 200);
}

static void what_cannot_join_is_refused(void **state)
{
	const struct rig_shape small = {64, 64, 1 << 16, 0, 1};
	struct fabric_link *port;
	struct rig r;
	int path;

	(void)state;
	rig_open(&r, fabric, &two);
	path = rig_path(&r, fabric, &small);
	port = lossy_new(&r.wire[path], LEFT, r.pair[path].link[LEFT]);
	assert_int_equal(bond_add(r.link[LEFT], 2, &lossy_fabric, port), -EMSGSIZE);
	port->payload_max = r.link[LEFT]->payload_max; /* one way it would do */
	assert_int_equal(bond_add(r.link[LEFT], 2, &lossy_fabric, port), -EMSGSIZE);
	assert_int_equal(bond_add(r.link[LEFT], 1, &lossy_fabric, port), -EINVAL);
	assert_int_equal(bond_add(r.link[LEFT], BOND_PATHS, &lossy_fabric, port), -EINVAL);
	assert_int_equal(bond_use(r.link[LEFT], BOND_PATHS), -ENOENT);
	assert_int_equal(bond_use(r.link[LEFT], 2), -ENOENT);
	assert_int_equal(bond_up(r.link[LEFT]), 3);
	free(port);
	rig_close(&r);
}

/* The bond's own opcodes are nobody else's. */
static void own_opcodes_are_refused(void **state)
{
	struct fabric_wr wr = {.op = FABRIC_SEND};
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &two);
	for (int kind = 250; kind <= 255; kind++) {
		wr.kind = (uint8_t)kind;
		assert_int_equal(bond_fabric.post(r.link[LEFT], &wr), -EINVAL);
	}
	wr.kind = 249;
	assert_int_equal(bond_fabric.post(r.link[LEFT], &wr), 1);
	wr.op = 63;
	assert_int_equal(bond_fabric.post(r.link[LEFT], &wr), -EINVAL);
	wr.op = FABRIC_LAND;
	assert_int_equal(bond_fabric.post(r.link[LEFT], &wr), -EINVAL);
	rig_close(&r);
}

#define HELD 12

/* Arrivals of several links are out at once, also of one that is lost meanwhile. */
static void releases_come_in_any_order(void **state)
{
	struct rng chance = {rng_run_seed(0x77)};
	struct fabric_arrival held[HELD];
	uint64_t seeds[HELD], sent = 1, taken = 1;
	struct fabric_wr flush = {.op = FABRIC_FLUSH};
	struct rig r;
	int n = 0;

	(void)state;
	rig_open(&r, fabric, &two);
	for (int step = 0; step < 8000; step++) {
		if (rng_one_in(&chance, 8) && bond_up(r.link[LEFT]) == 3)
			use(&r, LEFT, (int)rng_below(&chance, 2));
		if (step == 6000)
			rig_cut(&r, 1, true);
		sent += link_put(r.link[LEFT], sent, (uint32_t)(sent % 300), 0) == 1;
		if (n < HELD && rng_one_in(&chance, 2)) {
			if (bond_fabric.poll(r.link[RIGHT], &held[n], 1) != 1)
				continue;
			seeds[n++] = taken++;
		} else if (n) {
			int i = (int)rng_below(&chance, (uint32_t)n);

			link_check(&held[i], seeds[i], (uint32_t)(seeds[i] % 300));
			bond_fabric.release(r.link[RIGHT], &held[i]);
			held[i] = held[--n];
			seeds[i] = seeds[n];
		}
		(void)bond_fabric.post(r.link[LEFT], &flush); /* and listens */
	}
	assert_true(taken > 3000);
	while (n--)
		bond_fabric.release(r.link[RIGHT], &held[n]);
	for (; taken < sent; taken++)
		rig_take(&r, RIGHT, taken, (uint32_t)(taken % 300));
	rig_close(&r);
}

/* Runs that the core releases as one are never of two links. */
static void tokens_of_two_links_are_no_run(void **state)
{
	struct fabric_arrival a[2];
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &two);
	for (uint64_t seed = 1; seed < 2000; seed += 2) {
		assert_int_equal(link_put(r.link[LEFT], seed, 8, 0), 1);
		use(&r, LEFT, !bond_path(r.link[LEFT]));
		assert_int_equal(link_put(r.link[LEFT], seed + 1, 8, 0), 1);
		for (int i = 0; i < 2; i++)
			while (bond_fabric.poll(r.link[RIGHT], &a[i], 1) != 1)
				;
		assert_true(a[0].token + a[0].span != a[1].token);
		bond_fabric.release(r.link[RIGHT], &a[0]);
		bond_fabric.release(r.link[RIGHT], &a[1]);
	}
	rig_close(&r);
}

/* After sleep is announced the next poll looks everywhere: also where it seldom looks. */
static void sleeper_hears_every_link(void **state)
{
	struct fabric_arrival a;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &two);
	for (uint64_t seed = 1; seed < 60; seed++) {
		assert_int_equal(link_put(r.link[LEFT], seed, 8, 0), 1);
		rig_take(&r, RIGHT, seed, 8);
		if (seed % 3 == 0) {
			use(&r, LEFT, (int)(seed / 3 % 2));
			link_flush_totals(r.link[LEFT]);
		}
		rig_arm(&r, RIGHT, true);
		assert_int_equal(bond_fabric.poll(r.link[RIGHT], &a, 1), 0);
		rig_arm(&r, RIGHT, false);
	}
	rig_cut(&r, 0, true);
	rig_arm(&r, RIGHT, true);
	assert_int_equal(bond_fabric.poll(r.link[RIGHT], &a, 1), 0);
	assert_int_equal(bond_up(r.link[RIGHT]), 2);
	rig_close(&r);
}

static void figures_are_sums(void **state)
{
	const struct fabric_counts *left, *right;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &two);
	left = &r.link[LEFT]->counts;
	right = &r.link[RIGHT]->counts;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		if (seed % 10 == 0)
			use(&r, LEFT, (int)(seed / 10 % 2));
		assert_int_equal(link_put(r.link[LEFT], seed, 8, 0), 1);
		rig_take(&r, RIGHT, seed, 8);
	}
	rig_quiet(&r);
	for (int i = 0; i < 2; i++) {
		link_flush_totals(r.link[RIGHT]);
		link_flush_totals(r.link[LEFT]);
		rig_quiet(&r);
	}
	link_flush_totals(r.link[RIGHT]);
	link_flush_totals(r.link[LEFT]);
	assert_true(left->produced >= 40 + 2 * 4);
	assert_true(left->produced == left->consumed_seen);
	assert_true(left->produced == right->consumed && right->consumed == right->read);
	assert_int_equal(left->out_segments, 512);
	assert_int_equal(right->in_segments, 512);
	assert_int_equal(bond_ring_out(r.link[LEFT]), 256);
	assert_int_equal(bond_ring_in(r.link[RIGHT]), 256);
	rig_close(&r);
}

static void expect_share(const struct rig *r, uint64_t used, uint64_t segments)
{
	const struct fabric_counts *c = &r->link[LEFT]->counts;

	link_flush_totals(r->link[LEFT]);
	assert_true(c->produced - c->consumed_seen >= used);
	assert_true(c->produced - c->consumed_seen <= c->out_segments);
	assert_int_equal(c->out_segments, segments);
}

/* Whatever stands in how many rings is a part of them; a lost one has none. */
static void share_is_of_all_rings(void **state)
{
	uint64_t seed = 1, taken = 1;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &two);
	for (int path = 0; path < 2; path++) {
		use(&r, LEFT, path);
		for (int i = 0; i < 200; i++)
			assert_int_equal(link_put(r.link[LEFT], seed++, 8, 0), 1);
	}
	expect_share(&r, 400, 512);
	for (; taken < seed; taken++)
		rig_take(&r, RIGHT, taken, 8);
	rig_cut(&r, 0, false);
	rig_quiet(&r);
	expect_share(&r, 0, 256);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(order_survives_changes),
		FABRIC_TEST(links_join_at_different_times),
		FABRIC_TEST(what_comes_early_is_read),
		FABRIC_TEST(what_cannot_join_is_refused),
		FABRIC_TEST(own_opcodes_are_refused),
		FABRIC_TEST(releases_come_in_any_order),
		FABRIC_TEST(tokens_of_two_links_are_no_run),
		FABRIC_TEST(sleeper_hears_every_link),
		FABRIC_TEST(figures_are_sums),
		FABRIC_TEST(share_is_of_all_rings),
	};

	return FABRIC_SUITE(tests);
}
