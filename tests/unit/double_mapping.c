/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory mapped twice in a row: the same bytes at both places, none left behind. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm/mapping.h"
#include "tests/lib/actor.h"
#include "tests/lib/child.h"

static void both_halves_are_one(void **state)
{
	static const size_t sizes[] = {1, 4096, 4097, 1 << 20};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct double_mapping m;
		unsigned char *at;

		assert_int_equal(double_mapping_create(&m, "slmpm-test", sizes[i]), 0);
		assert_true(m.size >= sizes[i] && m.size < sizes[i] + (size_t)getpagesize());
		at = m.base;
		for (size_t j = 0; j < m.size; j++)
			assert_int_equal(at[j], 0);
		actor_fill(at + m.size / 2, i, m.size); /* over the seam */
		assert_true(actor_filled(at + m.size / 2, i, m.size));
		assert_memory_equal(at, at + m.size, m.size);
		double_mapping_destroy(&m);
		double_mapping_destroy(&m);
	}
}

static void nothing_stays(void **state)
{
	int descriptors = actor_descriptors(), mappings = actor_mappings();
	struct double_mapping m;

	(void)state;
	assert_int_equal(double_mapping_create(&m, "slmpm-test", 8192), 0);
	assert_int_equal(actor_descriptors(), descriptors);
	assert_int_equal(actor_mappings(), mappings + 2);
	double_mapping_destroy(&m);
	assert_int_equal(actor_mappings(), mappings);
	assert_true(double_mapping_create(&m, "slmpm-test", (size_t)1 << 60) < 0);
	assert_null(m.base);
	double_mapping_destroy(&m);
	assert_int_equal(actor_descriptors(), descriptors);
	assert_int_equal(actor_mappings(), mappings);
}

static int inspect(void *at)
{
	(void)signal(SIGSEGV, SIG_DFL);
	return *(volatile unsigned char *)at;
}

static void a_child_has_none(void **state)
{
	const char *emulator = getenv("SLMPM_EMULATOR");
	struct double_mapping m;

	(void)state;
	if (emulator && *emulator) {
		print_message("an emulator need not know what a fork is to leave out\n");
		skip();
	}
	assert_int_equal(double_mapping_create(&m, "slmpm-test", 8192), 0);
	assert_true(child_run(inspect, m.base, 20) != 0);
	double_mapping_destroy(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_halves_are_one),
		cmocka_unit_test(nothing_stays),
		cmocka_unit_test(a_child_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
