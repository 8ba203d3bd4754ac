/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for the signal. */
#include "tests/lib/nudge.h"

#include <time.h>

#include "tests/lib/actor.h"

void nudge_await(void)
{
	const struct timespec most = {PATIENCE / 1000, 0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, NUDGE);
	CHECK(sigtimedwait(&set, NULL, &most) == NUDGE, "nobody has seen it");
}

void nudge_block(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, NUDGE);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0, "sigprocmask");
}
