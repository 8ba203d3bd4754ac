/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has closed its connection in order may end at once, whatever it has not read, and however
 * late its peer reads: all that it sent arrives. Who hears the last word confirms it at once, for
 * the closing side waits for that.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/* ---- the last word is confirmed -------------------------------------------------------------- */

#define TURNS   20 /* a process that stands still may leave it to the kernel, now and then */
#define SOCKETS 1024

static bool confirmed[SOCKETS];

/* In place of the C library's: which sockets confirm what they have at once. */
int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
	if (level == IPPROTO_TCP && name == TCP_QUICKACK && socket >= 0 && socket < SOCKETS)
		confirmed[socket] = true;
	return (int)syscall(SYS_setsockopt, socket, level, name, value, length);
}

static int sockets_confirmed(void)
{
	int n = 0;

	for (int i = 0; i < SOCKETS; i++)
		n += confirmed[i];
	memset(confirmed, 0, sizeof(confirmed));
	return n;
}

/* Both ends are here: who closes does for its own, too. */
static int confirm(void *links)
{
	slmpm_peer closes, hears;
	slmpm_ctx ctx;
	int most = 0;

	setenv("SLMPM_FABRIC", "tcp", 1);
	setenv("SLMPM_LINKS", links, 1);
	unsetenv("SLMPM_LINK");
	OK(slmpm_open(&ctx, NULL));
	for (int i = 0; i < TURNS && most < 2; i++) {
		int n;

		actor_pair(ctx, &closes, &hears);
		(void)sockets_confirmed();
		OK(slmpm_close(closes, PATIENCE));
		n = sockets_confirmed();
		most = n > most ? n : most;
		OK(slmpm_close(hears, PATIENCE));
	}
	CHECK(most == 2, "%d of two sockets confirmed the last word", most);
	OK(slmpm_shut(ctx, PATIENCE));
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
	EXPECT(child_run(confirm, (void *)(uintptr_t) "1", 10 * (unsigned)actor_slow()), 0);
	EXPECT(child_run(confirm, (void *)(uintptr_t) "2", 10 * (unsigned)actor_slow()), 0);
	return failed ? 1 : 0;
}
