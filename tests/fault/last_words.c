/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has closed its connection in order may end at once, whatever it has not read, and however late its
 * peer reads: all that it sent arrives.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/message.h"

#define WORDS  12
#define LENGTH 30000
#define LATE   150 /* ms */

/* Leaves without a look at what came. */
static int leave(slmpm_peer host, char **words)
{
	(void)words;
	for (uint64_t i = 0; i < WORDS; i++)
		message_send(host, 1, i, LENGTH, 0);
	OK(slmpm_close(host, PATIENCE));
	return 0;
}

static int listen_late(void *fabric)
{
	struct timespec late = {0, LATE * 1000000L};
	slmpm_peer peer;
	char byte;

	setenv("SLMPM_FABRIC", fabric, 1);
	peer = actor_spawn("leave", NULL, NULL);
	for (int i = 0; i < WORDS; i++) {
		int rc = slmpm_send(peer, 2, &i, sizeof(i), PATIENCE);

		CHECK(rc == 0 || rc == -SLMPM_ECLOSED, "a word nobody hears: %d", rc);
	}
	nanosleep(&late, NULL); /* not in a call: nothing of ours is read meanwhile */
	for (uint64_t i = 0; i < WORDS; i++)
		message_take(peer, 1, i, LENGTH);
	REFUSED(slmpm_recv(peer, 1, &byte, 1, NULL, PATIENCE), SLMPM_ECLOSED, "");
	actor_join(peer, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"leave", leave}, {NULL, NULL}};
	static const char *const fabrics[] = {"shm", "tcp"};
	int failed = 0;

	actor_begin(argc, argv, roles);
	for (int i = 0; i < 2; i++) {
		int rc = child_run(listen_late, (void *)(uintptr_t)fabrics[i],
				   10 * (unsigned)actor_slow());

		printf("%s: %s\n", fabrics[i], rc ? "FAILED" : "ok");
		failed |= rc;
	}
	return failed ? 1 : 0;
}
