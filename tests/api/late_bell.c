/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who sleeps takes the message first and reads the bell later. That bell is no news: a server that
 * polls behind its answer does not take it for the next request, which polling has brought.
 */
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/settings.h"

#define ROUNDS   50
#define PAUSE_US 3000 /* the other sleeps by then */
#define PASSES   2000 /* of progress: the descriptors are inspected meanwhile */

/* Answers each message with what the passes behind it have found. */
static int role_polls(slmpm_peer host, char **words)
{
	(void)words;
	for (int i = 0; i < ROUNDS; i++) {
		int word, found = 0;

		EXPECT(slmpm_recv(host, 0, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
		for (int n = 0; n < PASSES; n++)
			found += slmpm_progress((slmpm_ctx){0});
		OK(slmpm_send(host, 0, &found, sizeof(found), PATIENCE));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"polls", role_polls}, {NULL, NULL}};
	slmpm_peer peer;
	int quiet = 0;

	actor_begin(argc, argv, roles);
	settings_set("SLMPM_FABRIC", "shm");
	peer = actor_spawn("polls", NULL, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		int found;

		usleep(PAUSE_US);
		OK(slmpm_send(peer, 0, &i, sizeof(i), PATIENCE));
		EXPECT(slmpm_recv(peer, 0, &found, sizeof(found), NULL, PATIENCE), sizeof(found));
		quiet += found == 0;
	}
	/* Now and then there is something: looks at the links. */
	CHECK(quiet > ROUNDS / 2, "something was found in %d of %d", ROUNDS - quiet, ROUNDS);
	actor_join(peer, 0);
	return 0;
}
