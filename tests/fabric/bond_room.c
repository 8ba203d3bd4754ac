/* SPDX-License-Identifier: BSD-3-Clause */
/* A bond's log while its links live: when it is full, what does not fit, packets built in it, room
 * held back. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/bond_rig.h"
#include "tests/lib/fabric_suite.h"

static const struct rig_shape two = {256, 64, 1 << 16, 0, 2};

/* The log is smaller than the ring: it fills, and acknowledgements empty it. */
static void full_log_refuses_and_moves_on(void **state)
{
	const struct rig_shape shape = {8192, 64, 4096, 0, 2};
	uint64_t sent = 1, taken = 1;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &shape);
	for (int lap = 0; lap < 50; lap++) {
		uint64_t before = sent;
		int rc;

		while ((rc = link_put(r.link[LEFT], sent, 3000, 0)) == 1)
			sent++;
		assert_int_equal(rc, -EAGAIN);
		assert_true(sent > before);
		assert_null(bond_fabric.reserve(r.link[LEFT], 3000));
		for (; taken < sent; taken++)
			rig_take(&r, RIGHT, taken, 3000);
		rig_quiet(&r);
		if (lap % 7 == 0)
			assert_int_equal(bond_use(r.link[LEFT], (uint32_t)lap % 2), 0);
	}
	assert_true(sent > 1000);
	rig_close(&r);
}

static void too_long_is_refused(void **state)
{
	struct rig r;
	uint32_t most;

	(void)state;
	rig_open(&r, fabric, &two);
	most = r.link[LEFT]->payload_max;
	assert_int_equal(most, r.link[RIGHT]->payload_max_in);
	assert_int_equal(link_put(r.link[LEFT], 1, most + 1, 0), -EAGAIN);
	assert_null(bond_fabric.reserve(r.link[LEFT], most + 1));
	assert_null(bond_fabric.reserve(r.link[LEFT], UINT32_MAX));
	assert_int_equal(link_put(r.link[LEFT], 1, most, 0), 1);
	rig_take(&r, RIGHT, 1, most);
	rig_close(&r);
}

/* What is built while a link is lost is not taken, for no path has it; it stays, and goes by the
 * other. */
static void built_packets_stay_until_taken(void **state)
{
	struct rig r;
	uint64_t seed = 1, taken = 1;

	(void)state;
	rig_open(&r, fabric, &two);
	for (int i = 0; i < 40; i++, seed++) {
		struct fabric_wr wr = {.op = FABRIC_SEND,
				       .kind = (uint8_t)(seed % 249 + 1),
				       .flags = FABRIC_BUILT,
				       .length = 500,
				       .head = {seed, ~seed, seed << 40 | 500}};
		unsigned char *at = bond_fabric.reserve(r.link[LEFT], 700);

		assert_non_null(at);
		assert_int_equal((uintptr_t)at % 32, 0);
		actor_fill(at, seed, 500);
		if (i == 20)
			rig_cut(&r, 0, true);
		if (i == 20) {
			assert_int_equal(bond_fabric.post(r.link[LEFT], &wr), -EAGAIN);
			rig_quiet(&r);
		}
		assert_int_equal(bond_fabric.post(r.link[LEFT], &wr), 1);
		for (; taken <= seed; taken++)
			rig_take(&r, RIGHT, taken, 500);
	}
	assert_int_equal(bond_up(r.link[LEFT]), 2);
	rig_quiet(&r);
	rig_close(&r);
}

static void reservation_is_given_back(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &two);
	for (uint64_t seed = 1; seed < 50; seed++) {
		assert_non_null(bond_fabric.reserve(r.link[LEFT], 100));
		link_flush_totals(r.link[LEFT]);
		assert_int_equal(link_put(r.link[LEFT], seed, 60, 0), 1);
		rig_take(&r, RIGHT, seed, 60);
	}
	rig_close(&r);
}

/* Room held back: packets of a word are taken whatever else is full, or lost, or being resumed. */
static void room_held_back_is_there(void **state)
{
	struct fabric_wr hold = {.op = FABRIC_HOLD_BACK, .length = 8};
	uint64_t sent = 1, taken = 1;
	struct rig r;

	(void)state;
	for (int how = 0; how < 3; how++) {
		struct fabric_wr plenty = {.op = FABRIC_HOLD_BACK, .length = 4096};

		rig_open(&r, fabric, &two);
		sent = taken = 1;
		assert_int_equal(bond_fabric.post(r.link[LEFT], &plenty), -EINVAL);
		assert_int_equal(bond_fabric.post(r.link[LEFT], &hold), 1);
		while (link_put(r.link[LEFT], sent, (uint32_t)(sent % 20), 0) == 1)
			sent++;
		if (how)
			rig_cut(&r, 0, how == 2);
		for (uint32_t left = hold.length; left--;) {
			struct fabric_wr lower = {.op = FABRIC_HOLD_BACK, .length = left};

			assert_int_equal(bond_fabric.post(r.link[LEFT], &lower), 1);
			assert_int_equal(link_put(r.link[LEFT], sent, (uint32_t)(sent % 20), 0), 1);
			sent++;
		}
		for (; taken < sent; taken++)
			rig_take(&r, RIGHT, taken, (uint32_t)(taken % 20));
		rig_quiet(&r);
		rig_close(&r);
	}
}

/* Also where such a packet does not fit in front of the log's end. */
static void room_held_back_is_whole(void **state)
{
	const struct rig_shape shape = {256, 64, 1 << 14, 0, 1};
	struct fabric_wr hold = {.op = FABRIC_HOLD_BACK, .length = 2};
	struct rig r;

	(void)state;
	for (uint32_t first = 0; first <= FABRIC_WORD_MAX; first += FABRIC_WORD_MAX) {
		uint64_t sent = 1;

		rig_open(&r, fabric, &shape);
		assert_int_equal(link_put(r.link[LEFT], sent, first, 0), 1);
		rig_take(&r, RIGHT, sent++, first);
		link_flush_totals(r.link[RIGHT]); /* the log is empty, and its end elsewhere */
		rig_quiet(&r);
		hold.length = 2;
		assert_int_equal(bond_fabric.post(r.link[LEFT], &hold), 1);
		lossy_mute(&r.wire[0], RIGHT, 0, INT_MAX); /* no acknowledgement */
		for (; link_put(r.link[LEFT], sent, 0, 0) == 1; sent++)
			rig_take(&r, RIGHT, sent, 0);
		assert_true(sent > 400);
		while (hold.length--) {
			assert_int_equal(bond_fabric.post(r.link[LEFT], &hold), 1);
			assert_int_equal(link_put(r.link[LEFT], sent, FABRIC_WORD_MAX, 0), 1);
			rig_take(&r, RIGHT, sent++, FABRIC_WORD_MAX);
		}
		rig_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(full_log_refuses_and_moves_on),  FABRIC_TEST(too_long_is_refused),
		FABRIC_TEST(built_packets_stay_until_taken), FABRIC_TEST(reservation_is_given_back),
		FABRIC_TEST(room_held_back_is_there),        FABRIC_TEST(room_held_back_is_whole),
	};

	return FABRIC_SUITE(tests);
}
