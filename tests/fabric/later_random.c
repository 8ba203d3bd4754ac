/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* one-thread */
/*
 * The storm of tests/fabric/onesided_random.c over a fabric that begins operations on memory, does
 * them in another order, and tells of them by a later poll.
 */
#include <stdlib.h>

#include "tests/fabric/masked.h"

#define main onesided_main
int onesided_main(int argc, char **argv);
#include "tests/fabric/onesided_random.c"
#undef main

int main(int argc, char **argv)
{
	int failed;

	CHECK(setenv("SLMPM_TEST_WAY", "begun by the fabric", 0) == 0, "setenv");
	failed = onesided_main(argc, argv);
	if (!strcmp(getenv("SLMPM_TEST_WAY"), "begun by the fabric")) {
		CHECK(setenv("SLMPM_TEST_WAY", "begun by it, asleep", 1) == 0, "setenv");
		failed |= way_each(body, 20);
	}
	return failed;
}
