/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that has left the connection while its process lives on. */
#include <signal.h>
#include <string.h>

#include "tests/lib/actor.h"

static const slmpm_ctx none;

static slmpm_peer ready_child(const char *role)
{
	slmpm_peer child = actor_spawn(role, NULL, NULL);

	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, PATIENCE), 0);
	return child;
}

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

/* The grace in which a status may still come is nobody's to wait for. */
static void left_but_alive(void)
{
	int64_t shortest = PATIENCE;

	for (int i = 0; i < 6 && shortest >= 10; i++) {
		slmpm_peer child = ready_child("other");
		int64_t took = longest_call(child);

		shortest = took < shortest ? took : shortest;
		OK(slmpm_kill(child, 0));
		EXPECT(slmpm_join(child, NULL, PATIENCE), 128 + SIGKILL);
	}
	CHECK(shortest < 10, "progress was held up for %d ms", (int)shortest);
}

static const struct actor roles[] = {{"other", role_other}, {NULL, NULL}};

int main(int argc, char **argv)
{
	actor_begin(argc, argv, roles);
	left_but_alive();
	return 0;
}
