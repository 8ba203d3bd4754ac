/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that stops, goes on and stops again is suspect twice. */
#include <signal.h>
#include <string.h>

#include "tests/lib/actor.h"

static const slmpm_ctx none;

static int role_idle(slmpm_peer host, char **words)
{
	(void)words;
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), 0);
	return 0;
}

/* SUSPECT events queued. */
static int suspicions(void)
{
	struct slmpm_event e = {.size = sizeof(e)};
	int n = 0;

	while (slmpm_next_event(none, &e, 0) == 1)
		n += e.type == SLMPM_EVENT_SUSPECT;
	return n;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"idle", role_idle}, {NULL, NULL}};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer child;

	actor_begin(argc, argv, roles);
	child = actor_spawn("idle", NULL, NULL);
	OK(slmpm_peer_query(child, &info));
	EXPECT(slmpm_recv(child, 1, NULL, 0, NULL, 20), -SLMPM_ETIMEOUT);
	for (int i = 0; i < 3; i++) {
		EXPECT(suspicions(), 0);
		OK(kill(info.pid, SIGSTOP));
		actor_await_state(info.pid, "T");
		REFUSED(slmpm_recv(child, 1, NULL, 0, NULL, 20), SLMPM_ETIMEOUT, "suspect");
		REFUSED(slmpm_recv(child, 1, NULL, 0, NULL, 20), SLMPM_ETIMEOUT, "suspect");
		EXPECT(suspicions(), 1); /* a stop is told once */
		OK(kill(info.pid, SIGCONT));
		actor_await_state(info.pid, "SR");
		EXPECT(slmpm_recv(child, 1, NULL, 0, NULL, 20), -SLMPM_ETIMEOUT);
		CHECK(!strstr(slmpm_error_detail(), "suspect"), "\"%s\"", slmpm_error_detail());
	}
	OK(slmpm_send(child, 0, NULL, 0, PATIENCE));
	actor_join(child, 0);
	return 0;
}
