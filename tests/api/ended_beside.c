/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 100 */
/* native-only */
/*
 * Peers that have ended and nobody has closed, 150 of them: messages with another peer cost not an
 * instruction more, received from that or from any.
 */
#include <stdlib.h>

#include "tests/lib/settings.h"
#include "tests/lib/step.h"
#include "tests/lib/trips.h"

#define ENDED 150

static void end_some(slmpm_ctx ctx, int n)
{
	slmpm_peer ends[2];

	for (int i = 0; i < n; i++) {
		struct slmpm_peer_info info = {.size = sizeof(info)};

		actor_pair(ctx, &ends[0], &ends[1]);
		OK(slmpm_close(ends[i % 2], PATIENCE));
		do {
			(void)slmpm_progress(ctx);
			OK(slmpm_peer_query(ends[(i + 1) % 2], &info));
		} while (info.state == SLMPM_PEER_UP);
	}
	actor_nap(ctx);
}

static long cost(int n, bool any)
{
	const struct trips t = {.beside = end_some, .n = n, .any = any};
	long instructions;

	CHECK(trips_count(&t, &instructions), "a round trip has no end");
	return instructions;
}

static int beside(void *arg)
{
	bool any = arg != NULL;
	long none = cost(0, any), many = cost(ENDED, any);

	printf("%s: %ld instructions, with %d that have ended %ld\n", any ? "from any" : "from one",
	       none, ENDED, many);
	CHECK(many * 100 <= none * 102, "ended peers slow another");
	return 0;
}

static void beside_over(const char *fabric)
{
	settings_one_link(fabric);
	settings_run(fabric, beside, NULL);
	settings_run(fabric, beside, fabric);
}

int main(void)
{
	if (!step_possible(STEP_INSTRUCTION))
		test_skip("instructions cannot be counted here");
	OK(setenv("SLMPM_WAIT", "spin", 1));
	beside_over("shm");
	beside_over("tcp");
	return 0;
}
