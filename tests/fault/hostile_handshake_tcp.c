/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* libs: -lcrypto */
/*
 * Strangers on the network at a listener: who does not know the secret, lies, is slow, breaks off or
 * keeps silent is refused with the reason in bounded time, in small memory, and an honest peer works
 * on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabrics/fabric.h"
#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/honest.h"
#include "tests/lib/raw_proof.h"
#include "tests/lib/raw_stream.h"
#include "tests/lib/settings.h"
#include "tests/lib/stranger.h"

/* The deadline: silence meets it soon; who speaks must not, however busy the machine is. */
#define SOON_MS  "400"
#define LATER_MS "10000"

struct lie {
	const char *name;
	void (*tell)(struct raw_stream *s);
	const char *word; /* of the answer; NULL: none, or it may be lost with the connection */
};

static uint16_t port;
static char secret[33];

/* ---- who knows nothing ---- */

static void say_hello(struct raw_stream *s)
{
	raw_stream_say_packet(s->fd, WIRE_HELLO, &s->hello, sizeof(s->hello));
}

static void say_noise(struct raw_stream *s)
{
	unsigned char noise[64];

	actor_fill(noise, 77, sizeof(noise));
	raw_stream_say(s->fd, noise, sizeof(noise));
}

static void say_http(struct raw_stream *s)
{
	static const char get[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

	raw_stream_say(s->fd, get, sizeof(get) - 1);
}

static void say_megabytes(struct raw_stream *s)
{
	static unsigned char much[1 << 16];

	for (int i = 0; i < 256 && raw_stream_say(s->fd, much, sizeof(much)); i++)
		;
}

static void claim(struct raw_stream *s, uint32_t type, uint32_t length)
{
	struct wire_control_head head = {LITTLE_32(type), LITTLE_32(length)};

	raw_stream_say(s->fd, &head, sizeof(head));
}

static void hello_too_long(struct raw_stream *s)
{
	claim(s, WIRE_HELLO, UINT32_MAX);
}

static void hello_of_nothing(struct raw_stream *s)
{
	claim(s, WIRE_HELLO, 0);
}

static void hello_without_end(struct raw_stream *s)
{
	claim(s, WIRE_HELLO, sizeof(struct wire_hello) - 1);
}

static void unknown_type(struct raw_stream *s)
{
	claim(s, 99, 120);
}

static void type_zero(struct raw_stream *s)
{
	claim(s, 0, 8);
}

static void nonce(struct raw_stream *s)
{
	claim(s, WIRE_NONCE, sizeof(struct wire_nonce));
}

static void area(struct raw_stream *s)
{
	claim(s, WIRE_AREA, sizeof(struct wire_area));
}

static void wrong_magic(struct raw_stream *s)
{
	s->hello.magic ^= 1;
	say_hello(s);
}

static void wrong_version(struct raw_stream *s)
{
	s->hello.major = LITTLE_16(9);
	memset(s->hello.version, 'x', sizeof(s->hello.version)); /* no end */
	say_hello(s);
}

static void require_unknown(struct raw_stream *s)
{
	s->hello.required = LITTLE_64(UINT64_C(1) << 40);
	say_hello(s);
}

static void hello_twice(struct raw_stream *s)
{
	raw_stream_meet(s);
	say_hello(s);
}

static void round_without_proof(struct raw_stream *s)
{
	struct wire_round round = {.blob_length = 0};

	raw_stream_meet(s);
	raw_stream_say_packet(s->fd, WIRE_ROUND, &round, sizeof(round));
}

static void proof_at_once(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	raw_stream_say_packet(s->fd, WIRE_PROOF, &proof, sizeof(proof));
}

/* ---- who does not know the secret ---- */

static void say_proof(struct raw_stream *s, struct wire_proof *proof)
{
	raw_stream_say_packet(s->fd, WIRE_PROOF, proof, sizeof(*proof));
}

static void no_proof(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	raw_stream_meet(s);
	say_proof(s, &proof);
}

static void another_secret(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	s->secret[15] ^= 1;
	raw_stream_meet(s);
	raw_prove(s, 1, &proof);
	say_proof(s, &proof);
}

static void proof_of_other_side(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	raw_stream_meet(s);
	raw_prove(s, 2, &proof);
	say_proof(s, &proof);
}

/* Somebody who listened in says what an honest peer said. */
static void proof_of_yesterday(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};
	struct raw_stream honest;

	raw_stream_begin(&honest, port, secret);
	raw_stream_meet(&honest);
	raw_prove(&honest, 1, &proof);
	close(honest.fd);
	s->hello = honest.hello;
	raw_stream_meet(s);
	say_proof(s, &proof);
}

static void changed_hello(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	raw_stream_meet(s);
	s->hello.features = ~s->hello.features; /* as somebody on the way would */
	raw_prove(s, 1, &proof);
	say_proof(s, &proof);
}

/* ---- who does, and lies ---- */

static void other_fabric(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	memset(s->hello.fabric, 'f', sizeof(s->hello.fabric));
	raw_stream_meet(s);
	raw_prove(s, 1, &proof);
	say_proof(s, &proof);
}

static void no_credit(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	s->hello.eager_credit = 0;
	raw_stream_meet(s);
	raw_prove(s, 1, &proof);
	say_proof(s, &proof);
}

static void proof_twice(struct raw_stream *s)
{
	struct wire_proof proof = {.head.type = 0};

	raw_stream_greet(s);
	raw_prove(s, 1, &proof);
	say_proof(s, &proof);
}

static void say_round(struct raw_stream *s, uint32_t number, uint32_t length)
{
	struct wire_round round = {.round = LITTLE_32(number), .blob_length = LITTLE_32(length)};

	raw_stream_greet(s);
	raw_stream_say_packet(s->fd, WIRE_ROUND, &round, sizeof(round));
}

static void empty_round(struct raw_stream *s)
{
	say_round(s, 0, 0);
}

static void round_of_zeros(struct raw_stream *s)
{
	say_round(s, 0, 124);
}

static void long_blob(struct raw_stream *s)
{
	say_round(s, 0, UINT32_MAX);
}

static void later_round(struct raw_stream *s)
{
	say_round(s, 7, 0);
}

static void grant(struct raw_stream *s)
{
	raw_stream_greet(s);
	claim(s, WIRE_GRANT, sizeof(struct wire_grant));
}

static void refuse_oddly(struct raw_stream *s)
{
	struct wire_bye bye;

	memset(&bye, 0x1b, sizeof(bye)); /* no end, and nothing to print */
	raw_stream_greet(s);
	raw_stream_say_packet(s->fd, WIRE_BYE, &bye, sizeof(bye));
}

/* ---- who leaves ---- */

static void leave_at_once(struct raw_stream *s)
{
	(void)shutdown(s->fd, SHUT_WR);
}

static void leave_within_a_word(struct raw_stream *s)
{
	s->hello.head = (struct wire_control_head){LITTLE_32(WIRE_HELLO), LITTLE_32(120)};
	raw_stream_say(s->fd, &s->hello, 60);
	(void)shutdown(s->fd, SHUT_WR);
}

static void leave_after_proof(struct raw_stream *s)
{
	raw_stream_greet(s);
	(void)shutdown(s->fd, SHUT_WR);
}

/* Without a last word. */
static void reset(struct raw_stream *s)
{
	struct linger at_once = {1, 0};

	raw_stream_greet(s);
	CHECK(setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0, "linger");
	close(s->fd);
	s->fd = -1;
}

/* ---- who is slow ---- */

static void say_nothing(struct raw_stream *s)
{
	(void)s;
}

static void four_bytes(struct raw_stream *s)
{
	raw_stream_say(s->fd, &s->hello, 4);
}

static void silent_after_hello(struct raw_stream *s)
{
	raw_stream_meet(s);
}

static void silent_after_proof(struct raw_stream *s)
{
	raw_stream_greet(s);
}

static void too_slow(struct raw_stream *s)
{
	s->hello.head = (struct wire_control_head){LITTLE_32(WIRE_HELLO), LITTLE_32(120)};
	(void)raw_stream_say_slowly(s->fd, &s->hello, sizeof(s->hello), 20);
}

/* Byte by byte, but in time: right until it lies. */
static void slow_and_right(struct raw_stream *s)
{
	struct wire_proof proof = {.head = {LITTLE_32(WIRE_PROOF), LITTLE_32(sizeof(proof))}};

	s->hello.head = (struct wire_control_head){LITTLE_32(WIRE_HELLO), LITTLE_32(120)};
	CHECK(raw_stream_say_slowly(s->fd, &s->hello, sizeof(s->hello), 1), "gone");
	CHECK(raw_stream_hear(s->fd, &s->heard, sizeof(s->heard)) == 120, "no hello");
	raw_prove(s, 1, &proof);
	CHECK(raw_stream_say_slowly(s->fd, &proof, sizeof(proof), 1), "gone");
	CHECK(raw_stream_hear(s->fd, &proof, sizeof(proof)) == sizeof(proof), "no proof");
	claim(s, 99, 99);
}

static const struct lie lies[] = {
	{"noise", say_noise, "control packet"},
	{"HTTP", say_http, "control packet"},
	{"sixteen megabytes", say_megabytes, NULL},
	{"a hello of 4 GiB", hello_too_long, "control packet"},
	{"a hello of nothing", hello_of_nothing, "control packet"},
	{"a hello cut short", hello_without_end, "control packet"},
	{"an unknown type", unknown_type, "control packet"},
	{"type zero", type_zero, "control packet"},
	{"a nonce", nonce, "control packet"},
	{"an area", area, "control packet"},
	{"another magic", wrong_magic, "does not speak SLMPM"},
	{"another version", wrong_version, "wire version 9.0"},
	{"an unknown feature", require_unknown, "requires"},
	{"hello twice", hello_twice, "out of turn"},
	{"a round without proof", round_without_proof, "out of turn"},
	{"a proof at once", proof_at_once, "out of turn"},
	{"no proof", no_proof, "secrets of the two sides differ"},
	{"another secret", another_secret, "secrets of the two sides differ"},
	{"the other side's proof", proof_of_other_side, "secrets of the two sides differ"},
	{"another day's proof", proof_of_yesterday, "secrets of the two sides differ"},
	{"a hello that was changed", changed_hello, "secrets of the two sides differ"},
	{"another fabric", other_fabric, "another fabric"},
	{"no credit", no_credit, "limits"},
	{"proof twice", proof_twice, "out of turn"},
	{"an empty round", empty_round, "impossible"},
	{"a round of zeros", round_of_zeros, "impossible"},
	{"a blob without end", long_blob, "malformed"},
	{"a later round", later_round, "malformed"},
	{"a grant", grant, "control packet"},
	{"a strange goodbye", refuse_oddly, "it says: ?"},
	{"leaving at once", leave_at_once, NULL},
	{"leaving within a word", leave_within_a_word, NULL},
	{"leaving after the proof", leave_after_proof, NULL},
	{"a reset", reset, NULL},
	{"byte by byte", slow_and_right, "control packet"},
};

static const struct lie silences[] = {
	{"silence", say_nothing, "in time"},
	{"four bytes", four_bytes, "in time"},
	{"silence after the hello", silent_after_hello, "in time"},
	{"silence after the proof", silent_after_proof, "in time"},
	{"too slow", too_slow, "in time"},
};

/* Tells it and hears what comes of it. */
static int tell(void *arg)
{
	const struct lie *lie = arg;
	struct raw_stream s;
	char reason[112] = "";

	raw_stream_begin(&s, port, secret);
	lie->tell(&s);
	if (s.fd >= 0)
		raw_stream_hear_end(s.fd, reason);
	CHECK(!lie->word || strstr(reason, lie->word), "%s: the answer was \"%s\"", lie->name,
	      reason);
	close(s.fd);
	return 0;
}

/* ---- half-open by the thousand ---- */

#define CROWD     1000
#define HALF_OPEN 64 /* so many are let in at a time; in their place others, after a while */

/* All stay until each has heard whether it is let in. */
static int crowd(void *arg)
{
	static int fds[CROWD];
	struct rlimit limit = {2 * CROWD, 2 * CROWD};
	int in = 0;

	(void)arg;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < CROWD; i++) {
		fds[i] = raw_stream_connect(port);
		CHECK(fds[i] >= 0, "no. %d: %s", i, strerror(errno));
	}
	for (int i = 0; i < CROWD; i++) {
		union {
			struct wire_control_head head;
			struct wire_hello hello;
			struct wire_bye bye;
		} said = {.head.type = 0};

		CHECK(raw_stream_hear(fds[i], &said, sizeof(said)), "no. %d: not a word", i);
		if (LITTLE_32(said.head.type) == WIRE_HELLO)
			in++;
		else
			CHECK(LITTLE_32(said.head.type) == WIRE_BYE &&
				      strstr(said.bye.reason, "too many"),
			      "packet %u, \"%s\"", LITTLE_32(said.head.type), said.bye.reason);
	}
	CHECK(in >= HALF_OPEN, "%d of %d were let in", in, CROWD);
	return 0;
}

static void half_open(slmpm_listener listener, slmpm_peer honest, char *url)
{
	struct holdings before = holdings_now();
	int64_t begin = actor_now_ms();
	pid_t pid = child_start(crowd, NULL, 30), late;
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

/* ---- half-open, and staying ---- */

static int stay(void *arg)
{
	(void)arg;
	for (int i = 0; i < HALF_OPEN; i++)
		CHECK(raw_stream_connect(port) >= 0, "no. %d: %s", i, strerror(errno));
	for (;;)
		(void)pause();
}

static int come_later(void *url)
{
	slmpm_ctx none = {0};
	slmpm_peer peer;

	OK(slmpm_connect(&peer, none, url, PATIENCE));
	OK(slmpm_close(peer, PATIENCE));
	return 0;
}

/* The silent ones would have all the time of a handshake, if nobody else came. */
static void make_room(slmpm_listener listener, slmpm_peer honest, char *url)
{
	struct holdings before = holdings_now();
	int64_t begin = actor_now_ms();
	pid_t silent = child_start(stay, NULL, 30), late;
	slmpm_peer peer;

	while (holdings_now().descriptors < before.descriptors + HALF_OPEN) {
		EXPECT(slmpm_accept(listener, &peer, 1), -SLMPM_ETIMEOUT);
		CHECK(actor_now_ms() - begin < 5000 * actor_slow(), "they do not come");
	}
	late = child_start(come_later, url, 30);
	OK(slmpm_accept(listener, &peer, PATIENCE));
	honest_works(honest);
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(late) == 0, "the honest latecomer: see above");
	CHECK(kill(silent, SIGKILL) == 0 && child_wait(silent) == -SIGKILL, "they are gone");
	stranger_forgotten(listener, before, "silent connections");
}

/* ---- everything, by deadline ---- */

static uint64_t violations(const char *rule)
{
	const char *name;
	uint64_t count;

	for (int i = 0; slmpm_violation_at(i, &name, &count) == 0; i++)
		if (!strcmp(name, rule))
			return count;
	return 0;
}

static void begin_listening(slmpm_ctx ctx, slmpm_listener *listener)
{
	struct slmpm_listener_info info = {.size = sizeof(info)};

	OK(slmpm_listen(listener, ctx, "tcp://127.0.0.1:0"));
	OK(slmpm_listener_query(*listener, &info));
	port = (uint16_t)info.port;
	memcpy(secret, info.secret, sizeof(secret));
}

static int tell_all(void *handshake_ms)
{
	bool soon = !strcmp(handshake_ms, SOON_MS);
	const struct lie *all = soon ? silences : lies;
	size_t count = soon ? sizeof(silences) / sizeof(*silences) : sizeof(lies) / sizeof(*lies);
	slmpm_listener listener;
	slmpm_peer honest;
	char url[80];
	slmpm_ctx ctx;
	pid_t pid;

	setenv("SLMPM_HANDSHAKE_MS", handshake_ms, 1);
	OK(slmpm_open(&ctx, NULL));
	begin_listening(ctx, &listener);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%u#%s", port, secret);
	pid = child_start(honest_peer, url, 60);
	OK(slmpm_accept(listener, &honest, PATIENCE));
	for (size_t i = 0; i < count; i++) {
		stranger_visits(all[i].name, tell, (void *)(uintptr_t)&all[i], listener, honest);
		printf("%-28s refused\n", all[i].name);
	}
	CHECK(soon || violations("secret") == 5, "%d without the secret were counted",
	      (int)violations("secret"));
	if (!soon)
		half_open(listener, honest, url);
	if (!soon)
		make_room(listener, honest, url);
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(pid) == 0, "the honest peer");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{NULL, NULL}};

	settings_one_link(NULL);
	actor_begin(argc, argv, roles);
	if (!fabric_find("tcp"))
		test_skip("this library has no fabric \"tcp\"");
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	unsetenv("SLMPM_SECRET");
	setenv("SLMPM_FABRIC", "tcp", 1); /* else both ends, on one machine, leave the network */
	CHECK(child_run(tell_all, LATER_MS, 50) == 0, "those who speak: see above");
	CHECK(child_run(tell_all, SOON_MS, 50) == 0, "those who fall silent: see above");
	return 0;
}
