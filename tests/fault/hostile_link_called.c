/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/*
 * Lies about links by who was connected to: answers out of turn or of nothing, and links wanted
 * without end. Each ends the channel by its name; an honest peer of two links works on.
 */
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/raw_link.h"
#include "tests/lib/raw_link_trial.h"

#define STORM 600
#define LIVES 10
#define TURNS 30
#define LINKS 2

static int door = -1; /* where the offender is called */

/* ---- who is called, and asked ---------------------------------------------------------------- */

static unsigned life_heard(struct raw_peer *p)
{
	return LITTLE_16(raw_link_hear_round(p, 0).life);
}

static void answer_later(struct raw_peer *p)
{
	raw_link_say_plain(p, 1, 1, life_heard(p));
}

static void answer_nothing(struct raw_peer *p)
{
	raw_link_say_plain(p, 0, 1, life_heard(p));
}

static void answer_twice(struct raw_peer *p)
{
	unsigned life = life_heard(p);

	raw_link_begin(p, 1, life);
	raw_link_begin(p, 1, life);
}

static void ask_beyond(struct raw_peer *p)
{
	raw_link_say_plain(p, WIRE_ROUND_ASK, 2, 0);
}

/* In one breath with what makes it stand, and later. */
static void ask_for_what_stands(struct raw_peer *p)
{
	struct wire_round w = raw_link_hear_round(p, 0);

	raw_link_begin(p, 1, 0);
	raw_link_finish(p, raw_link_epoch(&w));
	raw_link_say_plain(p, WIRE_ROUND_ASK, 1, 0);
	raw_link_await_read(p);
	(void)poll(NULL, 0, 10); /* in which there is time for a try */
	raw_link_say_plain(p, WIRE_ROUND_ASK, 1, 0);
	raw_link_await_read(p);
	(void)poll(NULL, 0, 10);
	CHECK(raw_link_unread(p) == 0, "it is tried again");
	raw_link_go_on(p);
}

static void storm_of_wishes(struct raw_peer *p)
{
	for (int i = 0; i < STORM; i++)
		raw_link_say_plain(p, WIRE_ROUND_ASK, 1, 0);
	raw_link_go_on(p);
}

/* Each is refused, and wanted again. */
static void storm_of_lives(struct raw_peer *p)
{
	for (int i = 0; i < 20; i++) {
		unsigned life = life_heard(p);

		raw_link_say_plain(p, WIRE_ROUND_NOT, 1, life);
		raw_link_say_plain(p, WIRE_ROUND_ASK, 1, 0);
	}
	raw_link_go_on(p);
}

/* The same, and nothing is read: each try's descriptor would lie in the socket, and be a ring. */
static void storm_of_lives_unread(struct raw_peer *p)
{
	unsigned rings;

	for (int turn = 0; turn < TURNS; turn++) {
		for (unsigned life = 0; life < LIVES; life++)
			raw_link_say_plain(p, WIRE_ROUND_NOT, 1, life);
		raw_link_say_plain(p, WIRE_ROUND_ASK, 1, 0);
		raw_link_await_read(p);
		(void)poll(NULL, 0, 10); /* in which there is time for a try */
	}
	rings = raw_link_unread(p);
	CHECK(rings >= 1 && rings <= LINKS + 1, "%u rings were given", rings);
	raw_link_go_on(p);
}

static const struct offence answers[] = {
	{"R8", "a later round as answer", answer_later, LINK_RULE, 0},
	{"R5", "an answer of nothing", answer_nothing, LINK_RULE, 0},
	{"R8", "an answer twice", answer_twice, LINK_RULE, 0},
	{"R6", "a hint for a link beyond", ask_beyond, LINK_RULE, 0},
	{"R10", "a storm of hints", storm_of_wishes, LINK_STILL},
	{"R10", "a storm of lives", storm_of_lives, LINK_STILL},
	{"R10", "a storm of lives, unread", storm_of_lives_unread, LINK_STILL},
};

static const struct offence standing[] = {
	{"R8", "a hint for what stands", ask_for_what_stands, LINK_STILL},
};

/* ---- how they meet --------------------------------------------------------------------------- */

static void be_called(struct raw_peer *p, const char *at)
{
	struct pollfd calls = {.fd = door, .events = POLLIN};

	(void)at;
	CHECK(poll(&calls, 1, PATIENCE) == 1, "nobody calls");
	raw_begin(p, accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	p->hello.features = LITTLE_64(WIRE_FEATURES | WIRE_FEATURE_LINKS);
	raw_steps(p, RAW_HELLO, RAW_UP);
	raw_await_packet(p); /* its call has returned */
}

static slmpm_peer call(const struct victim *v, const struct offence *o, int (*body)(void *),
		       void *arg, pid_t *pid)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char name[64], url[80];
	slmpm_peer peer;
	int n;

	(void)o;
	snprintf(name, sizeof(name), "hostile-door-%d", (int)getpid());
	n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "slmpm/%u/%s", getuid(), name);
	door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(door >= 0 &&
		      bind(door, (struct sockaddr *)&sa,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ==
			      0 &&
		      listen(door, 1) == 0,
	      "no door");
	*pid = child_start(body, arg, 30);
	close(door);
	snprintf(url, sizeof(url), "shm:%s", name);
	OK(slmpm_connect(&peer, v->ctx, url, PATIENCE));
	OK(slmpm_send(peer, 1, "here", 4, PATIENCE));
	return peer;
}

int main(void)
{
	static const struct trial trial = {.come = be_called,
					   .leave = link_trial_leave,
					   .meet = call,
					   .inspect = link_trial_look,
					   .see = link_trial_see};
	static const struct trial seen = {.come = be_called,
					  .leave = link_trial_leave,
					  .meet = call,
					  .inspect = link_trial_look,
					  .see = link_trial_see_standing};
	struct victim v;

	link_victim_begin(&v, "hostile-called");
	SURVIVE(&v, &trial, answers);
	SURVIVE(&v, &seen, standing);
	link_victim_end(&v);
	return 0;
}
