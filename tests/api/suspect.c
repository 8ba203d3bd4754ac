/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that stops, goes on and stops again is suspect twice; and whoever waits for one is
 * told. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

static const slmpm_ctx none;

#define BYTES (8 << 20) /* more than there is room for */

static unsigned char memory[BYTES];

static slmpm_mirror mirror(slmpm_peer peer, uint32_t how)
{
	slmpm_mirror m;

	OK(slmpm_mirror_create(none, memory, sizeof(memory), NULL, &m));
	OK(slmpm_mirror_attach(m, peer, 1, how, PATIENCE));
	return m;
}

static int role_idle(slmpm_peer host, char **words)
{
	(void)words;
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), 0);
	return 0;
}

static int role_follow(slmpm_peer host, char **words)
{
	(void)words;
	(void)mirror(host, SLMPM_MIRROR_FOLLOW | SLMPM_MIRROR_BOTH);
	OK(slmpm_send(host, 0, NULL, 0, PATIENCE));
	return role_idle(host, words);
}

/* Over TCP, beside the inherited socket. */
static int role_call(slmpm_peer host, char **words)
{
	slmpm_peer peer;

	(void)host;
	OK(slmpm_connect(&peer, none, words[0], PATIENCE));
	EXPECT(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE), 0);
	OK(slmpm_close(peer, PATIENCE));
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

/* Calls of a mirror say for whom they have waited. */
static void mirrored(void)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer child = actor_spawn("follow", NULL, NULL);
	const struct slmpm_span span = {0, 8};
	uint64_t sequence = 0, word;
	slmpm_mirror m = mirror(child, SLMPM_MIRROR_LEAD | SLMPM_MIRROR_BOTH);
	char who[32];
	int rc;

	OK(slmpm_peer_query(child, &info));
	snprintf(who, sizeof(who), "(pid %d)", info.pid);
	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, PATIENCE), 0);
	REFUSED(slmpm_mirror_wait(m, child, &sequence, 0), SLMPM_EAGAIN, who);
	OK(kill(info.pid, SIGSTOP));
	actor_await_state(info.pid, "T");
	REFUSED(slmpm_mirror_wait(m, child, &sequence, 20), SLMPM_ETIMEOUT, "suspect");
	CHECK(strstr(slmpm_error_detail(), who), "\"%s\"", slmpm_error_detail());
	REFUSED(slmpm_mirror_snapshot(m, child, &span, 1, &word, &sequence, 20), SLMPM_ETIMEOUT,
		"suspect");
	/* Over a network a few go into sockets. */
	for (int i = 0; i < 10; i++) {
		OK(slmpm_mirror_set(m, memory, i, sizeof(memory)));
		if ((rc = slmpm_mirror_flush(m, 50)) < 0)
			break;
	}
	EXPECT(rc, -SLMPM_ETIMEOUT);
	CHECK(strstr(slmpm_error_detail(), who) && strstr(slmpm_error_detail(), "flush") &&
		      strstr(slmpm_error_detail(), "suspect"),
	      "\"%s\"", slmpm_error_detail());
	REFUSED(slmpm_mirror_begin(m, 20), SLMPM_ETIMEOUT, "begin");
	OK(kill(info.pid, SIGKILL));
	do
		rc = slmpm_mirror_wait(m, child, &sequence, PATIENCE);
	while (rc == 0);
	EXPECT(rc, -SLMPM_EDEAD);
	CHECK(strstr(slmpm_error_detail(), who), "\"%s\"", slmpm_error_detail());
	(void)slmpm_join(child, NULL, PATIENCE);
	OK(slmpm_mirror_destroy(m));
}

/* Of a stranger over TCP the kernel does not know the process, but the handshake has told it. */
static int over_tcp(void *unused)
{
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer child, peer;
	slmpm_listener listener;
	struct slmpm_listener_info there = {.size = sizeof(there)};
	char url[400];

	(void)unused;
	CHECK(setenv("SLMPM_FABRIC", "tcp", 1) == 0, "setenv");
	OK(slmpm_listen(&listener, none, "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(listener, &there));
	snprintf(url, sizeof(url), "%s#%s", there.url, there.secret);
	child = actor_spawn("call", url, NULL);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_peer_query(child, &info));
	EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, 20), -SLMPM_ETIMEOUT);
	CHECK(!strstr(slmpm_error_detail(), "suspect"), "\"%s\"", slmpm_error_detail());
	for (int i = 0; i < 2; i++) {
		EXPECT(suspicions(), 0);
		OK(kill(info.pid, SIGSTOP));
		actor_await_state(info.pid, "T");
		REFUSED(slmpm_recv(peer, 1, NULL, 0, NULL, 20), SLMPM_ETIMEOUT,
			"suspect: its process is stopped");
		EXPECT(suspicions(), 1);
		OK(kill(info.pid, SIGCONT));
		actor_await_state(info.pid, "SR");
		EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, 20), -SLMPM_ETIMEOUT);
	}
	OK(slmpm_send(peer, 0, NULL, 0, PATIENCE));
	EXPECT(slmpm_recv(peer, 0, NULL, 0, NULL, PATIENCE), -SLMPM_ECLOSED);
	actor_join(child, 0);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"idle", role_idle}, {"follow", role_follow}, {"call", role_call}, {NULL, NULL}};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer child;

	actor_begin(argc, argv, roles);
	EXPECT(child_run(over_tcp, NULL, 30), 0);
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
	mirrored();
	return 0;
}
