/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that has left the connection while its process lives on. */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/lib/actor.h"

static const slmpm_ctx none;

static int role_other(slmpm_peer host, char **words)
{
	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), 0);
	execlp("sleep", "sleep", "60", (char *)NULL);
	return 1;
}

/* The longest that one call of progress took until the peer counted as dead. */
static int64_t longest_call(slmpm_peer child)
{
	struct slmpm_peer_info info = {.size = sizeof(info), .state = SLMPM_PEER_UP};
	int64_t longest = 0, end = actor_now_ms() + PATIENCE;

	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	while (info.state == SLMPM_PEER_UP) {
		int64_t begin = actor_now_ms();

		CHECK(begin < end, "it never counted as gone");
		(void)slmpm_progress(none);
		if (actor_now_ms() - begin > longest)
			longest = actor_now_ms() - begin;
		OK(slmpm_peer_query(child, &info));
	}
	EXPECT(info.state, SLMPM_PEER_DEAD);
	REFUSED(slmpm_send(child, 0, NULL, 0, 0), SLMPM_EDEAD, "it left the connection");
	return longest;
}

#define GRACE_MS 50

/* The grace in which a status may still come is nobody's to wait for. On a busy machine one call
 * may well take that long, but not each time. */
static void left_but_alive(void)
{
	int64_t shortest = PATIENCE;

	for (int i = 0; i < 20 && shortest >= GRACE_MS; i++) {
		slmpm_peer child = actor_spawn_ready("other");
		int64_t took = longest_call(child);

		shortest = took < shortest ? took : shortest;
		OK(slmpm_kill(child, 0));
		EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
	}
	CHECK(shortest < GRACE_MS, "progress was held up for %d ms", (int)shortest);
}

/* ---- a bell for a socket that is closed ---- */

static int role_asleep(slmpm_peer host, char **words)
{
	(void)words;
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	(void)slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE);
	return 1;
}

/* It dies with its announcement standing: whoever gets the number of its socket is not to be
 * rung. */
static void no_bell_for_strangers(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer child = actor_spawn_ready("asleep");
	char byte;
	int fds[2];

	OK(slmpm_peer_query(child, &info));
	actor_await_state(info.pid, "S");
	OK(slmpm_kill(child, 0));
	while (info.state == SLMPM_PEER_UP) {
		(void)slmpm_progress(none);
		OK(slmpm_peer_query(child, &info));
	}
	OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	(void)slmpm_arm(none);
	(void)slmpm_arm(none);
	for (int i = 0; i < 2; i++)
		CHECK(recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0, "a bell in socket %d", fds[i]);
	close(fds[0]);
	close(fds[1]);
	EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
}

static const struct actor roles[] = {{"other", role_other}, {"asleep", role_asleep}, {NULL, NULL}};

int main(int argc, char **argv)
{
	actor_begin(argc, argv, roles);
	left_but_alive();
	no_bell_for_strangers();
	return 0;
}
