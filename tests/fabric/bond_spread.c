/* SPDX-License-Identifier: BSD-3-Clause */
/* A bond whose links say what they have under way: which of them the next packets go by. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/bond_rig.h"
#include "tests/lib/fabric_suite.h"

#define LENGTH   1000
#define BETWEEN  20      /* packets: more than between two looks */
#define MUCH     1000000 /* bytes */
#define WAIT_FOR 200     /* us */

static const struct rig_shape shape = {1024, 64, 1 << 20, 0, 2};

static void say(struct rig *r, int path, uint64_t carried, uint64_t in_flight)
{
	r->wire[path].carried[LEFT] = carried;
	r->wire[path].in_flight[LEFT] = in_flight;
}

/* N packets from LEFT to RIGHT. */
static void pass(struct rig *r, uint64_t *seed, int n)
{
	while (n--) {
		assert_int_equal(link_put(r->link[LEFT], *seed, LENGTH, 0), 1);
		rig_take(r, RIGHT, (*seed)++, LENGTH);
	}
}

/* So long that it may be a measurement. */
static void let_pass(int64_t ms)
{
	for (int64_t end = actor_now_ms() + ms; actor_now_ms() < end;)
		;
}

static void loaded_one_is_left(void **state)
{
	uint64_t seed = 1;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &shape);
	bond_spread(r.link[LEFT], WAIT_FOR);
	pass(&r, &seed, BETWEEN);
	assert_int_equal(bond_path(r.link[LEFT]), 0);
	say(&r, 0, 0, MUCH);
	pass(&r, &seed, BETWEEN);
	assert_int_equal(bond_path(r.link[LEFT]), 1);
	assert_true(bond_is_spread(r.link[LEFT]));
	say(&r, 0, MUCH, 0);
	say(&r, 1, 0, MUCH);
	pass(&r, &seed, BETWEEN);
	assert_int_equal(bond_path(r.link[LEFT]), 0);
	rig_quiet(&r);
	rig_close(&r);
}

/* Whoever asks for a link waits for it. */
static void asked_one_is_kept_when_full(void **state)
{
	uint64_t seed = 1, taken = 1;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &shape);
	bond_spread(r.link[LEFT], WAIT_FOR);
	say(&r, 0, 0, MUCH);
	for (int refused = 0; refused < 8;) {
		if (link_put(r.link[LEFT], seed, LENGTH, FABRIC_BY(0)) == 1)
			seed++;
		else
			refused++;
		assert_int_equal(bond_path(r.link[LEFT]), 0);
	}
	for (; taken < seed; taken++)
		rig_take(&r, RIGHT, taken, LENGTH);
	rig_quiet(&r);
	rig_close(&r);
}

static void strict_one_waits_for_its_link(void **state)
{
	const uint16_t strict = FABRIC_BY(1) | FABRIC_ONLY;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &shape);
	assert_int_equal(link_put(r.link[LEFT], 1, LENGTH, strict), 1);
	assert_int_equal(bond_path(r.link[LEFT]), 1);
	assert_int_equal(link_put(r.link[LEFT], 2, LENGTH, FABRIC_BY(0)), 1);
	assert_int_equal(bond_path(r.link[LEFT]), 0);
	for (uint64_t seed = 1; seed <= 2; seed++)
		rig_take(&r, RIGHT, seed, LENGTH);
	/* Where the others go by is lost: until the peer has said what it has. */
	rig_cut(&r, 0, true);
	assert_int_equal(link_put(r.link[LEFT], 3, LENGTH, FABRIC_BY(0) | FABRIC_ONLY), -EAGAIN);
	assert_int_equal(link_put(r.link[LEFT], 3, LENGTH, FABRIC_BY(0) | FABRIC_ONLY), -ENOLINK);
	assert_int_equal(link_put(r.link[LEFT], 3, LENGTH, strict), -EAGAIN);
	rig_quiet(&r);
	assert_int_equal(link_put(r.link[LEFT], 3, LENGTH, strict), 1);
	assert_int_equal(link_put(r.link[LEFT], 4, LENGTH, FABRIC_BY(0)), 1);
	assert_int_equal(link_put(r.link[LEFT], 5, LENGTH, FABRIC_BY(0) | FABRIC_ONLY), -ENOLINK);
	assert_int_equal(link_put(r.link[LEFT], 5, LENGTH, FABRIC_BY(3) | FABRIC_ONLY), -ENOLINK);
	for (uint64_t seed = 3; seed <= 4; seed++)
		rig_take(&r, RIGHT, seed, LENGTH);
	rig_quiet(&r);
	rig_close(&r);
}

/* What stands beside packets, credits or a greeting, is under way, too, and was not posted. */
static void carried_may_go_back(void **state)
{
	uint64_t seed = 1;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &shape);
	bond_spread(r.link[LEFT], WAIT_FOR);
	say(&r, 0, 1000, 0);
	pass(&r, &seed, BETWEEN);
	let_pass(4);
	say(&r, 0, 936, 64);
	pass(&r, &seed, BETWEEN);
	assert_int_equal(bond_path(r.link[LEFT]), 0);
	say(&r, 0, 1000, MUCH);
	pass(&r, &seed, BETWEEN);
	assert_int_equal(bond_path(r.link[LEFT]), 1);
	rig_quiet(&r);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(loaded_one_is_left),
		FABRIC_TEST(asked_one_is_kept_when_full),
		FABRIC_TEST(carried_may_go_back),
		FABRIC_TEST(strict_one_waits_for_its_link),
	};

	return FABRIC_SUITE(tests);
}
