/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes that become one: the same as a byte for each byte says, whatever is added and removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "slmpm/track/dirty.h"
#include "tests/lib/random.h"

#define SIZE 20000

static unsigned char model[SIZE];

static void expect_same(const struct dirty *d)
{
	uint64_t at = 0, lo, hi, n = 0;

	for (uint64_t from = 0; dirty_next(d, from, &lo, &hi); from = hi) {
		assert_true(lo >= from && hi > lo && hi <= SIZE);
		for (; at < lo; at++)
			assert_int_equal(model[at], 0);
		for (; at < hi; at++)
			assert_int_equal(model[at], 1);
		assert_true(hi == SIZE || !model[hi]); /* whole runs */
		n += hi - lo;
	}
	for (; at < SIZE; at++)
		assert_int_equal(model[at], 0);
	assert_int_equal(dirty_count(d), n);
	assert_int_equal(dirty_is_empty(d), n == 0);
}

static void add(struct dirty *d, uint64_t lo, uint64_t hi)
{
	dirty_add(d, lo, hi);
	memset(model + lo, 1, hi - lo);
}

static void remove_run(struct dirty *d, uint64_t lo, uint64_t hi)
{
	dirty_remove(d, lo, hi);
	memset(model + lo, 0, hi - lo);
}

static void open_set(struct dirty *d)
{
	memset(model, 0, sizeof(model));
	assert_int_equal(dirty_init(d, SIZE), 0);
	expect_same(d);
}

/* Many stores to one place, and a row of them, stay one run, of which no bit is written. */
static void one_run(void **state)
{
	struct dirty d;

	(void)state;
	open_set(&d);
	for (int i = 0; i < 1000; i++)
		add(&d, 4096, 4104);
	expect_same(&d);
	for (uint64_t i = 0; i < 100; i++)
		add(&d, 4104 + 8 * i, 4112 + 8 * i);
	add(&d, 4088, 4096);
	assert_false(d.many);
	assert_int_equal(d.hi - d.lo, 816);
	remove_run(&d, 4088, 4200); /* from the front, as sending does */
	assert_false(d.many);
	remove_run(&d, 4800, 4904);
	expect_same(&d);
	remove_run(&d, 0, SIZE);
	expect_same(&d);
	dirty_free(&d);
}

static void edges(void **state)
{
	static const uint64_t at[] = {0, 1, 63, 64, 4095, 4096, 16384, SIZE - 1};
	struct dirty d;

	(void)state;
	open_set(&d);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		add(&d, at[i], at[i] + 1);
	expect_same(&d);
	add(&d, 0, SIZE);
	expect_same(&d);
	remove_run(&d, 64, SIZE - 1);
	expect_same(&d);
	remove_run(&d, 0, 1);
	remove_run(&d, SIZE - 1, SIZE);
	expect_same(&d);
	remove_run(&d, 1, 64);
	expect_same(&d);
	assert_false(d.many); /* empty: the next one is one run again */
	dirty_free(&d);
}

static void any_order(void **state)
{
	struct rng g = {17};
	struct dirty d;

	(void)state;
	open_set(&d);
	for (int round = 0; round < 3000; round++) {
		uint64_t n = 1 + rng_below(&g, round % 7 ? 40 : 3000);
		uint64_t lo = rng_below(&g, (uint32_t)(SIZE - n + 1));

		if (rng_below(&g, 5) < 2)
			add(&d, lo, lo + n);
		else
			remove_run(&d, lo, lo + n);
		if (round % 8 == 0)
			expect_same(&d);
		if (round % 500 == 499)
			remove_run(&d, 0, SIZE);
	}
	expect_same(&d);
	dirty_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_run),
		cmocka_unit_test(edges),
		cmocka_unit_test(any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
