/* SPDX-License-Identifier: BSD-3-Clause */
/* Visits of strangers at a listener. */
#include "tests/lib/stranger.h"

#include <sys/wait.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/honest.h"

bool stranger_has_left(pid_t pid)
{
	siginfo_t info = {0};

	CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0, "waitid");
	return info.si_pid == pid;
}

void stranger_forgotten(slmpm_listener listener, struct holdings before, const char *what)
{
	int64_t until = actor_now_ms() + STRANGER_BOUND_MS * actor_slow();
	struct holdings now = holdings_now();
	slmpm_peer nobody;

	while ((now.descriptors > before.descriptors || now.mappings > before.mappings) &&
	       actor_now_ms() < until) {
		EXPECT(slmpm_accept(listener, &nobody, 2), -SLMPM_ETIMEOUT);
		now = holdings_now();
	}
	holdings_expect(before, what);
}

void stranger_visits(const char *name, int (*body)(void *), void *arg, slmpm_listener listener,
		     slmpm_peer honest)
{
	struct holdings before = holdings_now();
	int64_t begin = actor_now_ms();
	slmpm_peer nobody;
	pid_t pid = child_start(body, arg, 30);

	while (!stranger_has_left(pid)) {
		EXPECT(slmpm_accept(listener, &nobody, 2), -SLMPM_ETIMEOUT);
		honest_works(honest);
		CHECK(actor_now_ms() < begin + STRANGER_BOUND_MS * actor_slow(), "%s: no end",
		      name);
	}
	CHECK(child_wait(pid) == 0, "%s: see above", name);
	stranger_forgotten(listener, before, name);
}
