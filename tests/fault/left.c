/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * An accelerator ends without closing: by its exit status, by another program in its place, by
 * closing and dying right after. What it had sent arrives; the end is CLOSED or DEAD, and says why.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/death.h"

#define LONG_MESSAGE ((size_t)1 << 20)

struct departure {
	const char *name;
	int (*leave)(slmpm_peer host);
	enum slmpm_event_type type;
	int error;
	const char *word;
	int code; /* of slmpm_join */
};

static unsigned char buffer[LONG_MESSAGE];

static void send_some(slmpm_peer host)
{
	for (size_t n = 0; n <= 30000; n += 10000) {
		actor_fill(buffer, n, n);
		OK(slmpm_send(host, 1, buffer, n, PATIENCE));
	}
}

static void get_some(slmpm_peer peer)
{
	for (size_t n = 0; n <= 30000; n += 10000) {
		EXPECT(slmpm_recv(peer, 1, buffer, sizeof(buffer), NULL, PATIENCE), n);
		CHECK(actor_filled(buffer, n, n), "%zu bytes are damaged", n);
	}
}

static int leave_well(slmpm_peer host)
{
	(void)host;
	return 0;
}

static int leave_badly(slmpm_peer host)
{
	(void)host;
	return 3;
}

static int leave_at_once(slmpm_peer host)
{
	(void)host;
	_exit(0);
}

static int leave_by_signal(slmpm_peer host)
{
	(void)host;
	raise(SIGTERM);
	return 0;
}

/* The long message has no receive yet: only its announcement is out. */
static int leave_unsent(slmpm_peer host)
{
	struct slmpm_iov iov = {buffer, sizeof(buffer)};
	slmpm_req request;

	OK(slmpm_sendv(host, 2, &iov, 1, NULL, &request));
	return 0;
}

static int close_and_die(slmpm_peer host)
{
	OK(slmpm_close(host, PATIENCE));
	death_now();
}

/* In a child's place runs a program that has never heard of us. */
static int become_another(slmpm_peer host)
{
	(void)host;
	execlp("sleep", "sleep", "100", (char *)NULL);
	return 99;
}

static const struct departure departures[] = {
	{"exit 0", leave_well, SLMPM_EVENT_CLOSED, SLMPM_ECLOSED, "exited with status 0", 0},
	{"_exit 0", leave_at_once, SLMPM_EVENT_CLOSED, SLMPM_ECLOSED, "exited with status 0", 0},
	{"exit 3", leave_badly, SLMPM_EVENT_DEAD, SLMPM_EDEAD, "exited with status 3", 3},
	{"a signal", leave_by_signal, SLMPM_EVENT_DEAD, SLMPM_EDEAD, "killed by signal 15", 143},
	{"exit 0, a message under way", leave_unsent, SLMPM_EVENT_CLOSED, SLMPM_ECLOSED,
	 "exited with status 0", 0},
	{"closed, then killed", close_and_die, SLMPM_EVENT_CLOSED, SLMPM_ECLOSED,
	 "closed the connection", 128 + SIGKILL},
	{"another program", become_another, SLMPM_EVENT_DEAD, SLMPM_EDEAD, "left the connection",
	 128 + SIGKILL},
};
#define DEPARTURES (sizeof(departures) / sizeof(*departures))

static int play(slmpm_peer host, char **words)
{
	alarm(60);
	send_some(host);
	if (words[1]) /* the host shall have read it all, and sleep */
		EXPECT(slmpm_recv(host, 7, buffer, 2, NULL, PATIENCE), 2);
	return departures[atoi(words[0])].leave(host);
}

static void see_off(int i, bool asleep)
{
	const struct departure *d = &departures[i];
	struct slmpm_spawn_options options = {.size = sizeof(options)};
	struct slmpm_event up = {.size = sizeof(up)};
	struct holdings before;
	char number[16];
	slmpm_peer peer;
	slmpm_ctx ctx;

	OK(slmpm_open(&ctx, NULL));
	before = holdings_now();
	options.ctx = ctx;
	snprintf(number, sizeof(number), "%d", i);
	peer = actor_spawn_with(&options, "play", number, asleep ? "wait" : NULL);
	EXPECT(slmpm_next_event(ctx, &up, PATIENCE), 1);
	if (!asleep && d->leave != become_another)
		actor_await_state(pid_of(peer), "ZX"); /* all over before we look */
	get_some(peer);
	if (asleep)
		OK(slmpm_send(peer, 7, "go", 2, PATIENCE));
	EXPECT(slmpm_recv(peer, 2, buffer, sizeof(buffer), NULL, PATIENCE), -d->error);
	death_expect(ctx, peer, d->type, d->error, d->word);
	if (d->leave == become_another)
		OK(slmpm_kill(peer, 0)); /* what is left of it is still ours to end */
	EXPECT(slmpm_join(peer, NULL, PATIENCE), d->code);
	holdings_expect(before, d->name);
	OK(slmpm_shut(ctx, PATIENCE));
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"play", play}, {NULL, NULL}};

	/* Fetched, a message could come whole while its process is on its way out. */
	CHECK(setenv("SLMPM_FETCH", "never", 1) == 0, "no environment");
	actor_begin(argc, argv, roles);
	for (int i = 0; i < (int)DEPARTURES; i++) {
		see_off(i, false);
		see_off(i, true);
		printf("%s: %s\n", departures[i].name, departures[i].word);
	}
	return 0;
}
