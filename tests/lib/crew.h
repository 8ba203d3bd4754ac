/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are all members of the same groups, and what each does with them. */
#ifndef TESTS_LIB_CREW_H
#define TESTS_LIB_CREW_H

#include <slmpm_group.h>

#include "tests/lib/actor.h"

#define CREW_GROUPS 4

struct crew;
typedef void crew_body(const struct crew *crew, int rank);

struct crew {
	int members, groups;
	uint32_t flags; /* of the contexts */
	uint64_t apart; /* a bit for each rank from 1 on: it is connected by TCP */
	crew_body *body;
	const void *arg;
	int victim,
		code; /* a rank above 0 that ends so, as child_wait says; else all leave with 0 */
	/* In a body: */
	slmpm_ctx ctx;
	slmpm_group group[CREW_GROUPS];
};

/* In SECONDS at most; under sanitizers longer. */
void crew_run(const struct crew *crew, unsigned seconds);

#endif
