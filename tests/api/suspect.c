/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that stops, goes on and stops again is suspect twice; and whoever waits for one is
 * told. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/actor.h"

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

int main(int argc, char **argv)
{
	static const struct actor roles[] = {
		{"idle", role_idle}, {"follow", role_follow}, {NULL, NULL}};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	slmpm_peer child;

	actor_begin(argc, argv, roles);
	child = actor_spawn("idle", NULL, NULL);
	OK(slmpm_peer_query(child, &info));
	EXPECT(slmpm_recv(child, 1, NULL, 0, NULL, 20), -SLMPM_ETIMEOUT);
	for (int i = 0; i < 3; i++) {
		EXPECT(actor_events(none, SLMPM_EVENT_SUSPECT), 0);
		OK(kill(info.pid, SIGSTOP));
		actor_await_state(info.pid, "T");
		REFUSED(slmpm_recv(child, 1, NULL, 0, NULL, 20), SLMPM_ETIMEOUT, "suspect");
		REFUSED(slmpm_recv(child, 1, NULL, 0, NULL, 20), SLMPM_ETIMEOUT, "suspect");
		EXPECT(actor_events(none, SLMPM_EVENT_SUSPECT), 1); /* a stop is told once */
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
