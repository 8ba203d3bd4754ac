/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* Two sides that wait for each other stay asleep, whichever way each of them waits. */
#include <poll.h>
#include <string.h>

#include "tests/lib/actor.h"

enum { WINDOW_MS = 300, SLEEPS = 12, ROUNDS = 4, STREAM = 5 };

static const slmpm_ctx none;

static int sleeps_in_recv(slmpm_peer peer)
{
	uint64_t before = actor_stats(peer).sleeps;

	EXPECT(slmpm_recv(peer, STREAM, NULL, 0, NULL, WINDOW_MS), -SLMPM_ETIMEOUT);
	return (int)(actor_stats(peer).sleeps - before);
}

/* As a program with an event loop of its own. */
static int sleeps_in_loop(void)
{
	struct pollfd p = {.fd = slmpm_fd(none), .events = POLLIN};
	int64_t end = actor_now_ms() + WINDOW_MS, left;
	int sleeps = 0;

	while ((left = end - actor_now_ms()) > 0) {
		if (slmpm_arm(none) == 0) {
			sleeps++;
			(void)poll(&p, 1, (int)left);
		}
		while (slmpm_progress(none) > 0)
			;
	}
	return sleeps;
}

static int sleeps_in(const char *way, slmpm_peer peer)
{
	return strcmp(way, "recv") == 0 ? sleeps_in_recv(peer) : sleeps_in_loop();
}

static int role_rest(slmpm_peer host, char **words)
{
	for (int i = 0; i < ROUNDS; i++) {
		int32_t sleeps;

		EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), 0);
		OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
		sleeps = sleeps_in(words[0], host);
		OK(slmpm_send(host, 0, &sleeps, sizeof(sleeps), PATIENCE));
	}
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), 0); /* the other rests still */
	return 0;
}

static void rest_both(const char *mine, const char *theirs)
{
	slmpm_peer child = actor_spawn("rest", theirs, NULL);
	int32_t here, there;

	for (int i = 0; i < ROUNDS; i++) {
		OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
		EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, PATIENCE), 0);
		here = sleeps_in(mine, child);
		EXPECT(slmpm_recv(child, 0, &there, sizeof(there), NULL, PATIENCE), sizeof(there));
		CHECK(here <= SLEEPS && there <= SLEEPS,
		      "%s and %s: fell asleep %d and %d times in %d ms", mine, theirs, here, there,
		      WINDOW_MS);
	}
	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	actor_join(child, 0);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"rest", role_rest}, {NULL, NULL}};
	static const char *const ways[] = {"recv", "loop"};

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++)
			rest_both(ways[i], ways[k]);
	return 0;
}
