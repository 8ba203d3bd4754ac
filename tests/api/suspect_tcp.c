/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer over TCP from an address of this machine that stops is suspect at once: the kernel does
 * not say which process it is, but the handshake has.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"

static const slmpm_ctx none;

/* Beside the inherited socket. */
static int role_call(slmpm_peer host, char **words)
{
	slmpm_peer peer;

	(void)host;
	OK(slmpm_connect(&peer, none, words[0], PATIENCE));
	EXPECT(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"call", role_call}, {NULL, NULL}};
	struct slmpm_listener_info there = {.size = sizeof(there)};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_listener listener;
	slmpm_peer child, peer;
	char url[400];

	CHECK(setenv("SLMPM_FABRIC", "tcp", 1) == 0, "setenv");
	actor_begin(argc, argv, roles);
	OK(slmpm_listen(&listener, none, "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(listener, &there));
	snprintf(url, sizeof(url), "%s#%s", there.url, there.secret);
	child = actor_spawn("call", url, NULL);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_peer_query(child, &info));
	EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, 20), -SLMPM_ETIMEOUT);
	CHECK(!strstr(slmpm_error_detail(), "suspect"), "\"%s\"", slmpm_error_detail());
	for (int i = 0; i < 2; i++) {
		EXPECT(actor_events(none, SLMPM_EVENT_SUSPECT), 0);
		OK(kill(info.pid, SIGSTOP));
		actor_await_state(info.pid, "T");
		REFUSED(slmpm_recv(peer, 1, NULL, 0, NULL, 20), SLMPM_ETIMEOUT,
			"suspect: its process is stopped");
		EXPECT(actor_events(none, SLMPM_EVENT_SUSPECT), 1);
		OK(kill(info.pid, SIGCONT));
		actor_await_state(info.pid, "SR");
		EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, 20), -SLMPM_ETIMEOUT);
	}
	OK(slmpm_send(peer, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE), -SLMPM_ECLOSED);
	actor_join(child, 0);
	return 0;
}
