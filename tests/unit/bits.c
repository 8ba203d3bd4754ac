/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of bits: set and taken as one by one, whole words among them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shm/bits.h"

#define WORDS 4
#define BITS  (64 * WORDS)

static void sets_each_run(void **state)
{
	(void)state;
	for (uint64_t from = 0; from < BITS; from++) {
		for (uint64_t count = 0; count <= BITS - from; count++) {
			uint64_t bits[WORDS] = {0}, model[WORDS] = {0};

			for (uint64_t i = from; i < from + count; i++)
				bit_set(model, i);
			bits_set(bits, from, count);
			assert_memory_equal(bits, model, sizeof(bits));
		}
	}
}

/* Up to a word's end, and the others stay. */
static void takes_each_run(void **state)
{
	(void)state;
	for (uint64_t from = 0; from < BITS; from++) {
		for (uint64_t count = 0; count <= BITS - from; count++) {
			uint64_t bits[WORDS] = {0}, model[WORDS], rest = 64 - (from & 63);
			uint64_t run = count < rest ? count : rest;

			bits_set(bits, 0, from ? from - 1 : 0);
			bits_set(bits, from, count);
			memcpy(model, bits, sizeof(bits));
			for (uint64_t i = from; i < from + run; i++)
				bit_clear(model, i);
			assert_int_equal(bits_take_run(bits, from), run);
			assert_memory_equal(bits, model, sizeof(bits));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_each_run),
		cmocka_unit_test(takes_each_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
