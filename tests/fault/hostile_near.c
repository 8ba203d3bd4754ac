/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* libs: -lcrypto */
/*
 * Who has proved itself over TCP on this machine, and does not come by the door beside the network
 * as it was invited: by another listener's, under another name, or when it is past that. It is
 * shown out; who comes right is let in, and nobody else is moved.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/honest.h"
#include "tests/lib/raw_net.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/raw_proof.h"
#include "tests/lib/settings.h"
#include "tests/lib/stranger.h"

#define NAME  64
#define DOORS 2

static struct {
	slmpm_listener listener;
	char url[NAME];
} doors[DOORS];

static struct raw_net guest(int door, struct wire_near *invitation)
{
	struct raw_net n;

	raw_net_begin(&n, doors[door].url, 1);
	*invitation = raw_stream_invited(&n.control);
	CHECK(invitation->door && invitation->guest, "it is not invited");
	return n;
}

static void name(char to[NAME], const char *form, uint64_t door, uint64_t number)
{
	snprintf(to, NAME, form, (unsigned long long)LITTLE_64(door),
		 (unsigned long long)LITTLE_64(number));
}

/* At DOOR under the name OWN. */
static int knock(uint64_t door, const char *own)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX}, from = to;
	size_t head = offsetof(struct sockaddr_un, sun_path) + 1;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char at[NAME];

	name(at, "slmpm-near/%016llx", door, 0);
	memcpy(to.sun_path + 1, at, strlen(at));
	memcpy(from.sun_path + 1, own, strlen(own));
	CHECK(fd >= 0 && bind(fd, (void *)&from, (socklen_t)(head + strlen(own))) == 0 &&
		      connect(fd, (void *)&to, (socklen_t)(head + strlen(at))) == 0,
	      "the door is shut");
	return fd;
}

/* Has somebody been let in? */
static bool let_in(uint64_t door, const char *own)
{
	int fd = knock(door, own);
	struct wire_hello hello;
	bool in = raw_stream_read(fd, &hello, sizeof(hello)); /* as a packet */

	close(fd);
	return in;
}

/* Its own connection is where it was. */
static void still_there(struct raw_net *n)
{
	char reason[112];

	raw_stream_claim(&n->control, 99, 99);
	raw_stream_hear_end(n->control.fd, reason);
	CHECK(strstr(reason, "control packet"), "it has been moved: \"%s\"", reason);
	close(n->control.fd);
}

#define RIGHT "slmpm-near/%016llx/%016llx"

/* Two wait: each is let in as itself. */
static int one_of_two(void *arg)
{
	struct wire_near first, second;
	struct raw_net other = guest(0, &first), n = guest(0, &second);
	char own[NAME];

	(void)arg;
	name(own, RIGHT, second.door, second.guest);
	CHECK(let_in(second.door, own), "who comes as it was invited is shown out");
	still_there(&other);
	close(n.control.fd);
	return 0;
}

/* One who has moved is still at it when the next one comes. */
static int one_by_one(void *arg)
{
	struct wire_near first, second;
	struct raw_net before = guest(0, &first), n;
	struct raw_peer moved;
	char own[NAME];

	(void)arg;
	name(own, RIGHT, first.door, first.guest);
	raw_begin(&moved, knock(first.door, own));
	raw_steps(&moved, RAW_HELLO, RAW_NONCE);
	CHECK(raw_hear(moved.fd, &(struct wire_round){0}, sizeof(struct wire_round), NULL), "gone");
	n = guest(0, &second);
	name(own, RIGHT, second.door, second.guest);
	CHECK(let_in(second.door, own), "the second is shown out");
	close(moved.fd);
	close(before.control.fd);
	close(n.control.fd);
	return 0;
}

/* Did the door let in one more, who then stays? */
static bool comes_in(uint16_t port)
{
	union {
		struct wire_control_head head;
		struct wire_hello hello;
		struct wire_bye bye;
	} said = {.head.type = 0};
	int fd = raw_stream_connect(port);

	CHECK(fd >= 0 && raw_stream_hear(fd, &said, sizeof(said)), "an end without a word");
	if (LITTLE_32(said.head.type) == WIRE_HELLO)
		return true;
	close(fd);
	return false;
}

/* Who has moved has proved itself, and need not make room for strangers. */
static int keeps_its_place(void *arg)
{
	uint16_t port = (uint16_t)strtoul(strrchr(doors[0].url, ':') + 1, NULL, 10);
	int64_t until = actor_now_ms() + STRANGER_BOUND_MS * actor_slow();
	struct wire_near invited;
	struct raw_net n = guest(0, &invited);
	struct wire_hello hello;
	char own[NAME], reason[112];
	int moved, oldest;

	(void)arg;
	name(own, RIGHT, invited.door, invited.guest);
	moved = knock(invited.door, own);
	CHECK(raw_stream_read(moved, &hello, sizeof(hello)), "it is shown out");
	oldest = raw_stream_connect(port);
	CHECK(oldest >= 0 && raw_stream_hear(oldest, &hello, sizeof(hello)), "a stranger");
	while (comes_in(port)) /* until it is full */
		CHECK(actor_now_ms() < until, "the door does not get full");
	while (!comes_in(port))
		CHECK(actor_now_ms() < until, "nobody makes room");
	CHECK(recv(moved, reason, 1, MSG_DONTWAIT) < 0, "who has moved had to go");
	raw_stream_hear_end(oldest, reason);
	CHECK(strstr(reason, "others wait"), "the oldest: \"%s\"", reason);
	close(n.control.fd);
	return 0;
}

static int at_another_door(void *arg)
{
	struct wire_near here, there;
	struct raw_net n = guest(0, &here), other = guest(1, &there);
	char own[NAME];

	(void)arg;
	CHECK(here.door != there.door, "one door for both");
	name(own, RIGHT, there.door, here.guest);
	CHECK(!let_in(there.door, own), "let in at another listener's door");
	still_there(&n);
	still_there(&other);
	return 0;
}

/* The number is right, and the name is not. */
static int under_another_name(void *arg)
{
	static const char *const forms[] = {
		"slmpm-NEAR/%016llx/%016llx",  "slmpm-near/%016llX/%016llx",
		"slmpm-near/%016llx/%016llX",  "slmpm-near/%016llx-%016llx",
		"slmpm-near/%016llx/0%016llx", "slmpm-near//%016llx/%016llx",
	};
	struct wire_near invited, unknown;
	struct raw_net n = guest(0, &invited);
	char own[NAME];

	(void)arg;
	unknown = invited;
	unknown.door = LITTLE_64(LITTLE_64(invited.door) ^ 1);
	name(own, RIGHT, unknown.door, invited.guest);
	CHECK(!let_in(invited.door, own), "let in as \"%s\"", own);
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		char right[NAME];

		name(right, RIGHT, invited.door, invited.guest);
		name(own, forms[i], invited.door, invited.guest);
		CHECK(!strcmp(own, right) || !let_in(invited.door, own), "let in as \"%s\"", own);
	}
	still_there(&n);
	return 0;
}

static int as_nobody_invited(void *arg)
{
	struct wire_near invited;
	struct raw_net n = guest(0, &invited);
	char own[NAME];

	(void)arg;
	name(own, RIGHT, invited.door, LITTLE_64(LITTLE_64(invited.guest) ^ 1));
	CHECK(!let_in(invited.door, own), "let in as \"%s\"", own);
	still_there(&n);
	return 0;
}

/* By the network, and its connection has ended since; its link has not. */
static int has_come_already(void *arg)
{
	struct wire_near invited;
	struct raw_net n = guest(0, &invited);
	char own[NAME], end;

	(void)arg;
	raw_net_first(&n);
	raw_net_send(&n, "here", 4);
	(void)shutdown(n.control.fd, SHUT_WR);
	CHECK(!raw_stream_read(n.control.fd, &end, 1), "its end is no end");
	name(own, RIGHT, invited.door, invited.guest);
	CHECK(!let_in(invited.door, own), "let in although it has come already");
	close(n.data);
	return 0;
}

static void take_in(slmpm_peer honest)
{
	struct holdings before = holdings_now();
	pid_t pid = child_start(has_come_already, NULL, 30);
	char text[8];
	slmpm_peer peer;
	int64_t n;

	while (!stranger_has_left(pid)) /* and is not accepted before */
		honest_works(honest);
	CHECK(child_wait(pid) == 0, "has come already: see above");
	OK(slmpm_accept(doors[0].listener, &peer, PATIENCE));
	EXPECT(slmpm_recv(peer, 1, text, sizeof(text), NULL, PATIENCE), 4);
	n = slmpm_recv(peer, 1, text, sizeof(text), NULL, PATIENCE);
	CHECK(n == -SLMPM_EDEAD || n == -SLMPM_ECLOSED, "%lld (%s)", (long long)n,
	      slmpm_error_detail());
	OK(slmpm_close(peer, PATIENCE));
	stranger_forgotten(doors[0].listener, before, "has come already");
}

static void listen_at(int i, slmpm_ctx ctx)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};

	OK(slmpm_listen(&doors[i].listener, ctx, "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(doors[i].listener, &info));
	snprintf(doors[i].url, NAME, "tcp://127.0.0.1:%u#%.32s", info.port, info.secret);
}

int main(void)
{
	static const struct {
		const char *name;
		int (*visit)(void *arg);
	} visits[] = {
		{"one of two", one_of_two},
		{"one by one", one_by_one},
		{"keeps its place", keeps_its_place},
		{"at another door", at_another_door},
		{"under another name", under_another_name},
		{"as nobody invited", as_nobody_invited},
	};
	slmpm_peer honest;
	slmpm_ctx ctx;
	pid_t pid;

	settings_one_link("shm");
	if (!fabric_find("tcp"))
		test_skip("this library has no fabric \"tcp\"");
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	unsetenv("SLMPM_SECRET");
	OK(slmpm_open(&ctx, NULL));
	for (int i = 0; i < DOORS; i++)
		listen_at(i, ctx);
	pid = child_start(honest_peer, doors[1].url, 60);
	OK(slmpm_accept(doors[1].listener, &honest, PATIENCE));
	for (size_t i = 0; i < sizeof(visits) / sizeof(*visits); i++) {
		stranger_visits(visits[i].name, visits[i].visit, NULL, doors[0].listener, honest);
		printf("%s\n", visits[i].name);
	}
	take_in(honest);
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "the honest peer");
	return 0;
}
