/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/* libs: -lcrypto */
/*
 * Strangers on the network at a listener: who lies before it has proven anything, is slow, breaks
 * off or keeps silent is refused with the reason in bounded time.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/raw_proof.h"
#include "tests/lib/stream_liar.h"

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

static void hello_too_long(struct raw_stream *s)
{
	raw_stream_claim(s, WIRE_HELLO, UINT32_MAX);
}

static void hello_of_nothing(struct raw_stream *s)
{
	raw_stream_claim(s, WIRE_HELLO, 0);
}

static void hello_without_end(struct raw_stream *s)
{
	raw_stream_claim(s, WIRE_HELLO, sizeof(struct wire_hello) - 1);
}

static void unknown_type(struct raw_stream *s)
{
	raw_stream_claim(s, 99, 120);
}

static void type_zero(struct raw_stream *s)
{
	raw_stream_claim(s, 0, 8);
}

static void nonce(struct raw_stream *s)
{
	raw_stream_claim(s, WIRE_NONCE, sizeof(struct wire_nonce));
}

static void area(struct raw_stream *s)
{
	raw_stream_claim(s, WIRE_AREA, sizeof(struct wire_area));
}

static void wrong_magic(struct raw_stream *s)
{
	s->hello.magic ^= 1;
	raw_stream_say_hello(s);
}

static void wrong_version(struct raw_stream *s)
{
	s->hello.major = LITTLE_16(9);
	memset(s->hello.version, 'x', sizeof(s->hello.version)); /* no end */
	raw_stream_say_hello(s);
}

static void require_unknown(struct raw_stream *s)
{
	s->hello.required = LITTLE_64(UINT64_C(1) << 40);
	raw_stream_say_hello(s);
}

static void hello_twice(struct raw_stream *s)
{
	raw_stream_meet(s);
	raw_stream_say_hello(s);
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
	raw_stream_claim(s, 99, 99);
}

static const struct stream_lie lies[] = {
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
	{"leaving at once", leave_at_once, NULL},
	{"leaving within a word", leave_within_a_word, NULL},
	{"leaving after the proof", leave_after_proof, NULL},
	{"a reset", reset, NULL},
	{"byte by byte", slow_and_right, "control packet"},
};

static const struct stream_lie silences[] = {
	{"silence", say_nothing, "in time"},
	{"four bytes", four_bytes, "in time"},
	{"silence after the hello", silent_after_hello, "in time"},
	{"silence after the proof", silent_after_proof, "in time"},
	{"too slow", too_slow, "in time"},
};

int main(void)
{
	stream_liar_begin();
	stream_liar_tell(&(struct stream_lies){
		.lies = lies, .count = sizeof(lies) / sizeof(*lies), .secrets = 0});
	stream_liar_tell(&(struct stream_lies){
		.lies = silences, .count = sizeof(silences) / sizeof(*silences), .silent = true});
	return 0;
}
