/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/* libs: -lcrypto */
/*
 * Strangers who connect by the hundred, and say nothing: at a listener of shared memory and at one
 * of TCP so many are let in at a time, in small memory, and an honest peer works on. Over TCP the
 * oldest makes room after a while; who has proved itself does not, nor does anybody keep out those
 * of this machine.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/honest.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/raw_proof.h"
#include "tests/lib/settings.h"
#include "tests/lib/stranger.h"
#include "tests/lib/stream_liar.h"

#define CROWD     1000 /* at most */
#define HALF_OPEN 64   /* so many are let in at a time */
#define IDLE_MS   250  /* that long at least */

static char address[64]; /* without "shm:" */

/* What a crowd does at a listener of one fabric. */
struct door {
	int (*connect)(void);
	size_t (*hear)(int fd, void *packet, size_t room);
	int count;
	bool anew; /* in the place of the silent others are let in, after a while */
};

static int connect_memory(void)
{
	int64_t until = actor_now_ms() + STRANGER_BOUND_MS * actor_slow();
	int fd;

	while ((fd = raw_connect(address)) < 0) {
		CHECK(actor_now_ms() < until, "its queue stays full");
		(void)poll(NULL, 0, 1);
	}
	return fd;
}

static size_t hear_memory(int fd, void *packet, size_t room)
{
	return raw_hear(fd, packet, room, NULL);
}

static int connect_tcp(void)
{
	int fd = raw_stream_connect(stream_lie_port);

	CHECK(fd >= 0, "%s", strerror(errno));
	return fd;
}

static const struct door memory = {connect_memory, hear_memory, 300, false};
static const struct door tcp = {connect_tcp, raw_stream_hear, CROWD, true};

/* ---- by the hundred ---- */

/* Is it let in? */
static bool hears_hello(const struct door *door, int fd)
{
	union {
		struct wire_control_head head;
		struct wire_hello hello;
		struct wire_bye bye;
	} said = {.head.type = 0};

	CHECK(door->hear(fd, &said, sizeof(said)), "an end without a word");
	if (LITTLE_32(said.head.type) == WIRE_HELLO)
		return true;
	CHECK(LITTLE_32(said.head.type) == WIRE_BYE && strstr(said.bye.reason, "too many"),
	      "packet %u, \"%s\"", LITTLE_32(said.head.type), said.bye.reason);
	return false;
}

/* All stay until each has heard whether it is let in. */
static int crowd(void *arg)
{
	static int fds[CROWD];
	struct rlimit limit = {2 * CROWD, 2 * CROWD};
	const struct door *door = arg;
	int64_t began = actor_now_ms(), turns;
	int in = 0;

	(void)setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < door->count; i++)
		fds[i] = door->connect();
	for (int i = 0; i < door->count; i++)
		in += hears_hello(door, fds[i]);
	turns = door->anew ? (actor_now_ms() - began) / IDLE_MS : 0;
	CHECK(in >= HALF_OPEN && in <= HALF_OPEN * (turns + 1), "%d of %d were let in", in,
	      door->count);
	return 0;
}

static void half_open(const struct door *door, slmpm_listener listener, slmpm_peer honest,
		      char *url)
{
	struct holdings before = holdings_now();
	int64_t begin = actor_now_ms();
	pid_t pid = child_start(crowd, (void *)(uintptr_t)door, 30), late;
	slmpm_peer peer;

	while (!stranger_has_left(pid)) {
		EXPECT(slmpm_accept(listener, &peer, 1), -SLMPM_ETIMEOUT);
		honest_works(honest);
		CHECK(holdings_now().descriptors < before.descriptors + 3 * HALF_OPEN + 8,
		      "hundreds of half-open connections are kept");
		CHECK(actor_now_ms() < begin + 2 * STRANGER_BOUND_MS * actor_slow(),
		      "the crowd: no end");
	}
	CHECK(child_wait(pid) == 0, "the crowd: see above");
	late = child_start(honest_peer, url, 30);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	honest_works(peer);
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(late) == 0, "the honest latecomer");
	stranger_forgotten(listener, before, "half-open connections");
}

/* ---- and staying ---- */

static int word[2]; /* a pipe: let the slow one go on */

/* The first of them knows the secret, and is slow. */
static int stay(void *arg)
{
	struct raw_stream slow;
	char reason[112];
	int oldest;

	(void)arg;
	raw_stream_begin(&slow, stream_lie_port, stream_lie_secret);
	raw_stream_greet(&slow);
	oldest = connect_tcp();
	for (int i = 2; i < HALF_OPEN; i++)
		(void)connect_tcp();
	raw_stream_hear_end(oldest, reason);
	CHECK(strstr(reason, "others wait"), "the oldest: \"%s\"", reason);
	CHECK(read(word[0], reason, 1) == 1, "no word");
	raw_stream_claim(&slow, 99, 99);
	raw_stream_hear_end(slow.fd, reason);
	CHECK(strstr(reason, "control packet"), "the slow one had to go: \"%s\"", reason);
	return 0;
}

/* All of them know it: nobody has to go. */
static int stay_together(void *arg)
{
	struct raw_stream slow[HALF_OPEN];
	char reason[112];

	(void)arg;
	for (int i = 0; i < HALF_OPEN; i++) {
		raw_stream_begin(&slow[i], stream_lie_port, stream_lie_secret);
		raw_stream_greet(&slow[i]);
	}
	(void)poll(NULL, 0, 2 * IDLE_MS);
	raw_stream_hear_end(connect_tcp(), reason);
	CHECK(strstr(reason, "too many"), "one more: \"%s\"", reason);
	return 0;
}

static int come_later(void *url)
{
	slmpm_ctx none = {0};
	slmpm_peer peer;

	OK(slmpm_connect(&peer, none, url, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

static void let_come(slmpm_listener listener, slmpm_peer honest, const char *url)
{
	pid_t late = child_start(come_later, (void *)(uintptr_t)url, 30);
	slmpm_peer peer;

	OK(slmpm_accept(listener, &peer, PATIENCE));
	honest_works(honest);
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(late) == 0, "the honest latecomer: see above");
}

/* The silent ones would have all the time of a handshake, if nobody else came. */
static void make_room(slmpm_ctx ctx, slmpm_listener listener, slmpm_peer honest, const char *url)
{
	struct holdings before = holdings_now();
	int64_t begin = actor_now_ms();
	slmpm_listener memory_too;
	char here[64];
	slmpm_peer peer;
	pid_t silent;

	snprintf(here, sizeof(here), "shm:half-open-too-%d", (int)getpid());
	CHECK(pipe(word) == 0, "no pipe");
	silent = child_start(stay, NULL, 40);
	while (holdings_now().descriptors < before.descriptors + 2 + HALF_OPEN) {
		EXPECT(slmpm_accept(listener, &peer, 1), -SLMPM_ETIMEOUT);
		CHECK(actor_now_ms() - begin < 5000 * actor_slow(), "they do not come");
	}
	OK(slmpm_listen(&memory_too, ctx, here));
	let_come(memory_too, honest, here); /* while the door of TCP is full */
	OK(slmpm_unlisten(memory_too));
	let_come(listener, honest, url);
	CHECK(write(word[1], "", 1) == 1, "the silent ones have gone");
	while (!stranger_has_left(silent))
		honest_works(honest);
	CHECK(child_wait(silent) == 0, "the silent ones: see above");
	close(word[0]);
	close(word[1]);
	stranger_forgotten(listener, before, "silent connections");
}

/* ---- both ---- */

static void besiege(const struct door *door, slmpm_ctx ctx, slmpm_listener listener, char *url)
{
	pid_t pid = child_start(honest_peer, url, 60);
	slmpm_peer honest;

	OK(slmpm_accept(listener, &honest, PATIENCE));
	half_open(door, listener, honest, url);
	if (door->anew)
		stranger_visits("those who know the secret", stay_together, NULL, listener, honest);
	if (door->anew)
		make_room(ctx, listener, honest, url);
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "the honest peer");
}

static int at_memory(void *unused)
{
	slmpm_listener listener;
	slmpm_ctx ctx;
	char url[80];

	(void)unused;
	settings_one_link("shm");
	snprintf(address, sizeof(address), "half-open-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", address);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	besiege(&memory, ctx, listener, url);
	return 0;
}

static int at_tcp(void *unused)
{
	slmpm_listener listener;
	slmpm_ctx ctx;
	char url[80];

	(void)unused;
	setenv("SLMPM_HANDSHAKE_MS", "60000", 1); /* silence alone ends nothing here */
	stream_liar_begin();
	OK(slmpm_open(&ctx, NULL));
	stream_liar_listen(ctx, &listener, url);
	besiege(&tcp, ctx, listener, url);
	return 0;
}

int main(void)
{
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	setenv("SLMPM_HANDSHAKE_MS", "10000", 1);
	CHECK(child_run(at_memory, NULL, 50) == 0, "shared memory: see above");
	if (!fabric_find("tcp"))
		test_skip("this library has no fabric \"tcp\"");
	CHECK(child_run(at_tcp, NULL, 50) == 0, "TCP: see above");
	return 0;
}
