/* SPDX-License-Identifier: BSD-3-Clause */
/* What is on its way to a leader: the same as a number for each byte says, whatever is sent and
 * stored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/mirror/intervals.h"
#include "tests/lib/random.h"

#define SIZE  4096
#define ROUND 0xffffff00u /* numbers go round soon */

static uint32_t model[SIZE]; /* the packet in which it was last changed */

static bool on_its_way(const struct intervals *f, uint64_t at)
{
	return (int32_t)(model[at] - f->stored) > 0;
}

static void expect_same(const struct intervals *f)
{
	uint64_t at = 0, lo, hi;

	for (uint64_t from = 0; intervals_next(f, from, SIZE, &lo, &hi); from = hi) {
		assert_true(lo >= from && hi > lo && hi <= SIZE);
		for (; at < lo; at++)
			assert_false(on_its_way(f, at));
		for (; at < hi; at++)
			assert_true(on_its_way(f, at));
	}
	for (; at < SIZE; at++)
		assert_false(on_its_way(f, at));
}

static void open_at(struct intervals *f, uint32_t number)
{
	*f = (struct intervals){.stored = number, .swept = number};
	assert_int_equal(intervals_init(f), 0);
	for (int i = 0; i < SIZE; i++)
		model[i] = number;
}

static void add(struct intervals *f, uint64_t lo, uint64_t hi, uint32_t number)
{
	assert_true(intervals_have_room(f, 1));
	intervals_add(f, lo, hi, number);
	for (; lo < hi; lo++)
		model[lo] = number;
}

static void edges(void **state)
{
	struct intervals f;
	uint64_t lo, hi;

	(void)state;
	open_at(&f, 0);
	assert_false(intervals_next(&f, 0, SIZE, &lo, &hi));
	add(&f, 100, 200, 1);
	add(&f, 140, 150, 2); /* within it */
	assert_int_equal(f.count, 3);
	expect_same(&f);
	assert_false(intervals_next(&f, 0, 100, &lo, &hi));
	assert_true(intervals_next(&f, 145, SIZE, &lo, &hi));
	assert_int_equal(lo, 145);
	assert_int_equal(hi, 150);
	intervals_stored(&f, 1, 2);
	expect_same(&f);
	assert_true(intervals_next(&f, 0, SIZE, &lo, &hi));
	assert_int_equal(lo, 140);
	add(&f, 0, SIZE, 3); /* over all */
	assert_int_equal(f.count, 1);
	intervals_stored(&f, 3, 3);
	assert_int_equal(f.count, 0);
	expect_same(&f);
	intervals_free(&f);
}

/* Few places, however often and however late it is heard that they are stored. */
static void few_places(void **state)
{
	struct rng g = {7};
	struct intervals f;

	(void)state;
	open_at(&f, 0);
	for (uint32_t n = 1; n <= 100000; n++) {
		uint64_t at = 8 * rng_below(&g, 64);

		add(&f, at, at + 8, n);
		assert_true(f.count <= 64);
	}
	expect_same(&f);
	intervals_free(&f);
}

/* Room for it ends, and is there again when what counts no more may go. */
static void room(void **state)
{
	struct intervals f;
	uint32_t n = 0;

	(void)state;
	open_at(&f, 0);
	while (intervals_have_room(&f, 1)) {
		n++;
		intervals_add(&f, 2 * n, 2 * n + 1, n);
	}
	assert_true(f.count <= INTERVALS_MAX && f.count >= INTERVALS_MAX - 2);
	intervals_stored(&f, n / 2, n);
	assert_true(intervals_have_room(&f, INTERVALS_MAX / 4));
	assert_int_equal(f.count, n - n / 2);
	intervals_free(&f);
}

/* What was stored long ago does not come back when numbers have gone round. */
static void round_about(void **state)
{
	struct intervals f;
	uint32_t n = 0;

	(void)state;
	open_at(&f, 0);
	add(&f, 0, 8, ++n);
	for (uint64_t i = 0; i < (UINT64_C(1) << 32) / 1000; i++) {
		n += 1000;
		add(&f, 64, 72, n);
		intervals_stored(&f, n - 1, n);
		if (f.count == 1)
			break;
	}
	assert_int_equal(f.count, 1);
	intervals_free(&f);
}

static void any_order(void **state)
{
	struct rng g = {21};
	struct intervals f;
	uint32_t number = ROUND;

	(void)state;
	open_at(&f, number);
	for (int i = 0; i < 20000; i++) {
		uint64_t lo = rng_below(&g, SIZE - 1);
		uint64_t most = rng_one_in(&g, 20) ? SIZE - lo : 24;

		most = most < SIZE - lo ? most : SIZE - lo;
		number += rng_below(&g, 2);
		if (number == f.stored)
			number++;
		if (intervals_have_room(&f, 1))
			add(&f, lo, lo + 1 + rng_below(&g, (uint32_t)most), number);
		if (rng_one_in(&g, 30))
			intervals_stored(&f, f.stored + rng_below(&g, number - f.stored + 1),
					 number);
		if (rng_one_in(&g, 10))
			expect_same(&f);
	}
	intervals_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges),       cmocka_unit_test(few_places), cmocka_unit_test(room),
		cmocka_unit_test(round_about), cmocka_unit_test(any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
