/* SPDX-License-Identifier: BSD-3-Clause */
/* A bond of a path that stores into the other side's memory and one that does not: what is stored
 * is not kept; and while room is held back for words, what is posted is soon read next. */
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

#define LENGTH 200
#define WORD   8
#define ONLY   ((uint16_t)(FABRIC_BY(1) | FABRIC_ONLY))

static const struct rig_shape one = {256, 64, 1 << 14, 0, 1};
static const struct rig_shape two = {256, 64, 1 << 14, 0, 2};

static void put_by(struct rig *r, uint64_t seed, int path)
{
	assert_int_equal(link_put(r->link[LEFT], seed, LENGTH, (uint16_t)FABRIC_BY(path)), 1);
	assert_int_equal(bond_path(r->link[LEFT]), path);
}

static void hold_back(struct rig *r, uint32_t segments)
{
	struct fabric_wr wr = {.op = FABRIC_HOLD_BACK, .length = segments};

	assert_int_equal(bond_fabric.post(r->link[LEFT], &wr), 1);
}

/* RIGHT sees it without a call of LEFT's. */
static void is_there(struct rig *r, uint64_t seed, uint32_t length)
{
	struct fabric_arrival a;

	assert_int_equal(bond_fabric.poll(r->link[RIGHT], &a, 1), 1);
	link_check(&a, seed, length);
	bond_fabric.release(r->link[RIGHT], &a);
}

static void scan(struct rig *r, int side)
{
	struct fabric_arrival a;

	for (int i = 0; i < 20; i++)
		assert_int_equal(bond_fabric.poll(r->link[side], &a, 1), 0);
}

/* Nothing else has to be said for that. */
static void comes_next(struct rig *r)
{
	scan(r, RIGHT);
	scan(r, LEFT);
	assert_true(bond_is_read_next(r->link[LEFT]));
}

/* The word that a segment was held back for. */
static void put_word(struct rig *r, uint64_t seed)
{
	hold_back(r, 0);
	assert_int_equal(link_put(r->link[LEFT], seed, WORD, 0), 1);
	assert_int_equal(bond_path(r->link[LEFT]), 0);
}

static void words_are_read_next(void **state)
{
	struct rig r;

	(void)state;
	rig_open_stored(&r, fabric, &two);
	assert_true(bond_is_read_next(r.link[LEFT]));
	put_by(&r, 1, 1);
	assert_false(bond_is_read_next(r.link[LEFT]));
	hold_back(&r, 1); /* it goes back */
	assert_int_equal(bond_path(r.link[LEFT]), 0);
	scan(&r, LEFT);
	assert_false(bond_is_read_next(r.link[LEFT])); /* RIGHT has yet to read the other path */
	rig_take(&r, RIGHT, 1, LENGTH);
	comes_next(&r);
	put_word(&r, 2);
	is_there(&r, 2, WORD);
	put_by(&r, 3, 1);
	rig_take(&r, RIGHT, 3, LENGTH);
	rig_close(&r);
}

/* While room is held back for words, the other path is for what asks for it, one packet for each
 * time that they had their chance. */
static void words_have_their_chance(void **state)
{
	uint64_t by = 0;
	struct rig r;

	(void)state;
	rig_open_stored(&r, fabric, &two);
	assert_int_equal(bond_use(r.link[LEFT], 1), 0);
	hold_back(&r, 1);
	scan(&r, LEFT);
	comes_next(&r);
	for (uint64_t i = 1; i < 40; i += 3) {
		uint16_t flags = i & 1 ? ONLY : FABRIC_BY(1);

		assert_int_equal(link_put(r.link[LEFT], i, LENGTH, 0), 1);
		assert_int_equal(bond_path(r.link[LEFT]), 0);
		assert_int_equal(link_put(r.link[LEFT], i + 1, LENGTH, flags), 1);
		assert_int_equal(bond_path(r.link[LEFT]), 0); /* behind it, again */
		assert_true(r.wire[1].posted[LEFT] > by);
		by = r.wire[1].posted[LEFT];
		for (int turn = 0; turn < 5; turn++)
			assert_int_equal(link_put(r.link[LEFT], i + 2, LENGTH, flags), -EAGAIN);
		rig_take(&r, RIGHT, i, LENGTH);
		rig_take(&r, RIGHT, i + 1, LENGTH);
		comes_next(&r);
		put_word(&r, i + 2);
		is_there(&r, i + 2, WORD);
		hold_back(&r, 1);
	}
	hold_back(&r, 0);
	assert_int_equal(link_put(r.link[LEFT], 40, LENGTH, 0), 1);
	assert_int_equal(bond_path(r.link[LEFT]), 1);
	rig_take(&r, RIGHT, 40, LENGTH);
	rig_close(&r);
}

/* Of a path that is lost what has been stored beside it is not asked for again. */
static void survives_the_other(void **state)
{
	struct rng chance = {rng_run_seed(0x5708)};

	(void)state;
	for (int turn = 0; turn < 400; turn++) {
		uint64_t sent = 1, taken = 1, end = 8 + rng_below(&chance, 24);
		uint64_t cut = rng_below(&chance, (uint32_t)end);
		bool whole = true;
		struct rig r;

		rig_open_stored(&r, fabric, &two);
		while (taken < end) {
			bool other = whole && rng_one_in(&chance, 3);

			if (whole && sent > cut) {
				rig_cut(&r, 1, rng_one_in(&chance, 2));
				whole = false;
			}
			if (rng_one_in(&chance, 4))
				hold_back(&r, rng_below(&chance, 2));
			sent += sent < end &&
				link_put(r.link[LEFT], sent, LENGTH, other ? FABRIC_BY(1) : 0) == 1;
			if (taken < sent && rng_one_in(&chance, 2)) {
				rig_take(&r, RIGHT, taken, LENGTH);
				taken++;
			}
			if (taken == sent)
				scan(&r, RIGHT);
			if (rng_one_in(&chance, 3))
				scan(&r, LEFT);
		}
		rig_quiet(&r);
		rig_close(&r);
	}
}

/* And one more path that stores, of which LEFT alone knows: its number. */
static int open_with_more(struct rig *r, const struct rig_shape *shape)
{
	int path;

	rig_open_stored(r, fabric, shape);
	path = rig_path(r, fabric, shape);
	rig_add_stored(r, path, LEFT);
	return path;
}

/* What a link has taken that never joins at the other side goes again by another: the other side
 * has not come to it, whatever it says meanwhile. */
static void is_kept_for_who_has_not_joined(void **state)
{
	struct fabric_wr flush = {.op = FABRIC_FLUSH};
	struct rig r;

	(void)state;
	(void)open_with_more(&r, &one);
	assert_int_equal(link_put(r.link[LEFT], 1, LENGTH, 0), 1);
	put_by(&r, 2, 1);
	rig_take(&r, RIGHT, 1, LENGTH);
	scan(&r, RIGHT);
	(void)bond_fabric.post(r.link[RIGHT], &flush); /* says that 1 has come */
	scan(&r, LEFT);
	put_by(&r, 3, 1);
	assert_false(bond_is_read_next(r.link[LEFT]));
	bond_reject(r.link[RIGHT], 1);
	for (uint64_t i = 2; i <= 3; i++)
		rig_take(&r, RIGHT, i, LENGTH);
	assert_null(r.link[LEFT]->violation);
	rig_quiet(&r);
	rig_close(&r);
}

/* Once it has joined there, too, it is as good as the first. */
static void any_that_stores_will_do(void **state)
{
	struct rig r;
	int path = open_with_more(&r, &two);

	(void)state;
	put_by(&r, 1, path);
	hold_back(&r, 1);
	assert_int_equal(bond_path(r.link[LEFT]), path);
	scan(&r, RIGHT);
	scan(&r, LEFT);
	assert_false(bond_is_read_next(r.link[LEFT]));
	rig_add_stored(&r, path, RIGHT);
	rig_take(&r, RIGHT, 1, LENGTH);
	comes_next(&r);
	assert_int_equal(bond_path(r.link[LEFT]), path);
	rig_close(&r);
}

/* What was to be read next by the first stays there, although another one that stores is to be the
 * usual one. */
static void stays_where_it_is_read_next(void **state)
{
	struct rig r;
	int path = open_with_more(&r, &two);

	(void)state;
	assert_int_equal(bond_use(r.link[LEFT], (uint32_t)path), 0);
	scan(&r, LEFT);
	put_by(&r, 1, 0);
	rig_add_stored(&r, path, RIGHT);
	rig_take(&r, RIGHT, 1, LENGTH);
	hold_back(&r, 1);
	comes_next(&r);
	assert_int_equal(bond_path(r.link[LEFT]), 0);
	assert_int_equal(link_put(r.link[LEFT], 2, LENGTH, 0), 1);
	is_there(&r, 2, LENGTH);
	assert_int_equal(bond_path(r.link[LEFT]), 0);
	rig_close(&r);
}

/* That RIGHT has come to a part is known although what it says by the other path vanishes. */
static void acknowledgement_is_not_lost(void **state)
{
	struct rig r;

	(void)state;
	rig_open_stored(&r, fabric, &two);
	assert_int_equal(link_put(r.link[RIGHT], 1, LENGTH, FABRIC_BY(1)), 1);
	rig_take(&r, LEFT, 1, LENGTH);
	assert_int_equal(bond_path(r.link[RIGHT]), 1);
	put_by(&r, 1, 1);
	hold_back(&r, 1);
	lossy_mute(&r.wire[1], RIGHT, 0, 100);
	rig_take(&r, RIGHT, 1, LENGTH);
	comes_next(&r);
	rig_close(&r);
}

/* The path that packets go by: EMPTY ones, and then others; the next seed. */
static uint64_t fill(struct rig *r, int side, uint64_t empty)
{
	uint64_t seed = 1;

	while (link_put(r->link[side], seed, seed <= empty ? 0 : WORD, 0) == 1)
		seed++;
	return seed;
}

/* A segment held back is the word's for which it was: not the bond's own, which asks now and then
 * what has come, nor what it has to say of a loss. */
static void has_its_segment(void **state)
{
	(void)state;
	for (uint64_t turn = 0; turn < 400; turn++) {
		uint64_t seed, empty = turn / 2;
		struct rig r;

		rig_open_stored(&r, fabric, &two);
		hold_back(&r, 1);
		seed = fill(&r, LEFT, empty);
		if (turn & 1) {
			rig_cut(&r, 1, false);
			scan(&r, LEFT);
		}
		assert_true(bond_is_read_next(r.link[LEFT]));
		put_word(&r, seed);
		for (uint64_t i = 1; i <= seed; i++)
			is_there(&r, i, i <= empty ? 0 : WORD);
		rig_close(&r);
	}
}

static bool take_any(struct rig *r, int side)
{
	struct fabric_arrival a;

	if (bond_fabric.poll(r->link[side], &a, 1) != 1)
		return false;
	bond_fabric.release(r->link[side], &a);
	return true;
}

/* What is stored takes no room in the log: LEFT has sent it several times over, and RIGHT cannot
 * say what it has, for its ring is full. WORDS: each has been promised its room. */
static void log_stays_empty(bool words)
{
	uint64_t seed, sum = 0;
	struct rig r;

	rig_open_stored(&r, fabric, &two);
	rig_cut(&r, 1, false);
	scan(&r, LEFT);
	scan(&r, RIGHT);
	(void)fill(&r, RIGHT, 0);
	for (seed = 1; sum < 4 * two.log; seed++) {
		uint32_t length = words ? WORD : LENGTH;

		hold_back(&r, words);
		hold_back(&r, 0);
		assert_int_equal(link_put(r.link[LEFT], seed, length, 0), 1);
		is_there(&r, seed, length);
		sum += length;
	}
	rig_close(&r);
}

static void stored_is_not_kept(void **state)
{
	(void)state;
	log_stays_empty(false);
	log_stays_empty(true);
}

/* Words alone, kept in a log that none of them asks to empty: the one that finds no room does. */
static void words_alone_empty_the_log(void **state)
{
	static const struct rig_shape shape = {1024, 64, 4096, 0, 2};
	int64_t end = actor_now_ms() + PATIENCE;
	uint64_t sent = 1;
	struct rig r;

	(void)state;
	rig_open(&r, fabric, &shape);
	while (sent < 5000) {
		int rc;

		hold_back(&r, 1);
		hold_back(&r, 0);
		rc = link_put(r.link[LEFT], sent, WORD, 0);
		sent += rc == 1;
		while (rc != 1 && take_any(&r, RIGHT))
			;
		CHECK(actor_now_ms() < end, "the log stays full behind %llu words",
		      (unsigned long long)sent - 1);
	}
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(words_are_read_next),
		FABRIC_TEST(words_have_their_chance),
		FABRIC_TEST(survives_the_other),
		FABRIC_TEST(is_kept_for_who_has_not_joined),
		FABRIC_TEST(any_that_stores_will_do),
		FABRIC_TEST(acknowledgement_is_not_lost),
		FABRIC_TEST(stays_where_it_is_read_next),
		FABRIC_TEST(has_its_segment),
		FABRIC_TEST(stored_is_not_kept),
		FABRIC_TEST(words_alone_empty_the_log),
	};

	return FABRIC_SUITE(tests);
}
