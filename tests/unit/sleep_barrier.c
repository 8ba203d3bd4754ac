/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -Wl,--wrap=barrier_all */
/*
 * Who goes to sleep says so to its peers and to the members of its groups: with one barrier, which
 * interrupts all processes that run, for all of them.
 */
#include <stdlib.h>
#include <unistd.h>

#include "slmpm/context.h"
#include "tests/lib/crew.h"

#define LATE_US 20000
#define ROUNDS  5

static uint64_t barriers;

void __real_barrier_all(void);
void __wrap_barrier_all(void);
void __wrap_barrier_all(void)
{
	barriers++;
	__real_barrier_all();
}

static void sleep_for_the_last(const struct crew *crew, int rank)
{
	const struct context *ctx;
	uint64_t sleeps;
	int rc = 0;

	ctx = context_get(crew->ctx, &rc);
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	barriers = 0;
	sleeps = ctx->sleeps;
	for (int i = 0; i < ROUNDS; i++) {
		if (rank)
			usleep(LATE_US);
		OK(slmpm_barrier(crew->group[0], PATIENCE));
	}
	sleeps = ctx->sleeps - sleeps;
	CHECK(rank || sleeps >= ROUNDS, "%llu sleeps", (unsigned long long)sleeps);
	/* One that is about to sleep as the last one comes has run one for nothing. */
	CHECK(barriers <= sleeps + ROUNDS / 2, "%llu barriers, %llu sleeps",
	      (unsigned long long)barriers, (unsigned long long)sleeps);
}

int main(void)
{
	struct crew crew = {.members = 2, .groups = 1, .body = sleep_for_the_last};

	setenv("SLMPM_WAIT", "block", 1);
	crew_run(&crew, 20);
	return 0;
}
