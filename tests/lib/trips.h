/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages of one pair cost, in instructions of this process, which has both ends: on no
 * clock. */
#ifndef TESTS_LIB_TRIPS_H
#define TESTS_LIB_TRIPS_H

#include <stdbool.h>

#include "tests/lib/actor.h"

struct trips {
	void (*beside)(slmpm_ctx ctx, int n); /* what there is besides the pair, N of it */
	int n;
	bool any; /* received from any peer */
};

/* Of a round trip, the least of some tries. False where instructions cannot be counted here: skip
 * aloud. */
bool trips_count(const struct trips *t, long *instructions);

#endif
