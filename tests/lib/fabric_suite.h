/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running tests over every fabric that is built in, each in rings of many shapes, and seeing that
 * none leaves a descriptor or a mapping behind.
 */
#ifndef TESTS_LIB_FABRIC_SUITE_H
#define TESTS_LIB_FABRIC_SUITE_H

#include <stddef.h>

#include "tests/lib/link_pair.h"
#include "tests/lib/test.h"

extern const struct fabric *fabric; /* under test */

/* From now on bonds (bonded.h) come behind the fabrics. */
void fabric_suite_bonds(void);
/* Fabric I of those built in becomes `fabric`: 1; one that cannot run here: 0, and it says why;
 * behind the last: -1. SLMPM_TEST_FABRIC names the only one to try. */
int fabric_suite_choose(int i);

/* Around each test: what a process holds is the same afterwards. */
int fabric_suite_before(void **state);
int fabric_suite_after(void **state);

#define FABRIC_TEST(f) cmocka_unit_test_setup_teardown(f, fabric_suite_before, fabric_suite_after)

/* TESTS once a fabric: what main returns. */
#define FABRIC_SUITE(tests)                                                                        \
	__extension__({                                                                            \
		int failed_ = 0, ran_ = 0, can_;                                                   \
		for (int i_ = 0; (can_ = fabric_suite_choose(i_)) >= 0; i_++) {                    \
			ran_ += can_;                                                              \
			failed_ += can_ ? cmocka_run_group_tests(tests, NULL, NULL) : 0;           \
		}                                                                                  \
		ran_ ? failed_ : TEST_SKIPPED;                                                     \
	})

struct fabric_shape {
	uint32_t segments, size;
};

/* From two segments up; {0, 0} behind the last. Fewer for bonds. */
extern const struct fabric_shape *fabric_shapes;
/* BODY over a connected pair of each. */
void fabric_each_shape(void (*body)(struct link_pair *p));

#endif
