/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A peer that breaks the rules of the stream: the link says which, and nothing else happens. And
 * whoever else finds the socket that a link listens on: he is closed, and the peer still gets
 * through.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/random.h"
#include "tests/lib/stream_peer.h"
#include "tests/lib/stream_relay.h"

#define CREDITS 4096 /* more than a look takes in: of 8 KiB, and so few at once */

/* ---- frames --------------------------------------------------------------------------------- */

/* After SOUND packets have come, poll says -EPROTO and RULE. */
static void expect_violation(struct stream_peer *p, int sound, const char *rule)
{
	const struct fabric *f = p->end.domain->fabric;
	struct fabric_wr wr = {.op = FABRIC_SEND, .kind = 1};
	struct fabric_arrival a;
	int n, came = 0;

	while ((n = f->poll(p->end.link, &a, 1)) >= 0) {
		came += n;
		if (n == 0)
			assert_true(link_await(p->end.domain));
	}
	assert_int_equal(n, -EPROTO);
	assert_int_equal(came, sound);
	if (strcmp(p->end.link->violation, rule) != 0)
		fail_msg("\"%s\", not \"%s\"", p->end.link->violation, rule);
	/* It stays so. */
	assert_int_equal(f->poll(p->end.link, &a, 1), -EPROTO);
	assert_int_equal(f->post(p->end.link, &wr), -EPROTO);
	stream_peer_close(p);
}

static void wrong_checks_are_refused(void **state)
{
	struct stream_peer p;

	(void)state;
	for (int bit = 0; bit < 64; bit++) {
		stream_peer_open(&p, 64, 64);
		stream_peer_frame(&p, stream_word(0, 8, 1), 0, 64);
		stream_peer_frame(&p, stream_word(0, 8, 1) ^ UINT64_C(1) << bit, 0, 64);
		expect_violation(&p, 1, "frame header");
	}
}

static void packets_may_not_be_too_long(void **state)
{
	struct stream_peer p;

	(void)state;
	stream_peer_open(&p, 64, 64);
	stream_peer_frame(&p, stream_word(0, 16 * 64 - 32, 1), 0, 16 * 64);
	stream_peer_frame(&p, stream_word(0, 16 * 64 - 31, 1), 0, 17 * 64);
	expect_violation(&p, 1, "packet length");
	stream_peer_open(&p, 64, 64);
	stream_peer_frame(&p, stream_word(0, (1 << 22) - 1, 1), 0, 64);
	expect_violation(&p, 0, "packet length");
}

/* More than the ring has, none of it known to be read. */
static void nothing_beyond_the_ring(void **state)
{
	struct stream_peer p;

	(void)state;
	stream_peer_open(&p, 64, 64);
	for (int i = 0; i < 64; i++)
		stream_peer_frame(&p, stream_word(0, 8, 1), 0, 64);
	stream_peer_frame(&p, stream_word(0, 8, 1), 0, 64);
	expect_violation(&p, 64, "produced total");
}

static void nothing_is_read_that_was_not_sent(void **state)
{
	static const uint64_t totals[] = {3, 1000, (1 << 25) - 1, 1 << 24};
	struct stream_peer p;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		for (int with = 0; with < 2; with++) { /* in a packet, in a credit */
			stream_peer_open(&p, 64, 64);
			link_send(p.end.link, 1, 8, 0);
			link_send(p.end.link, 2, 8, 0);
			stream_peer_frame(&p, stream_word(2, 8, 1), 0, 64);
			stream_peer_frame(&p, stream_word(totals[i], with ? 8 : 0, with ? 1 : 0), 0,
					  64);
			expect_violation(&p, 1, "consumed total");
		}
	}
	stream_peer_open(&p, 64, 64);
	for (uint64_t n = 1; n <= 4; n++)
		link_send(p.end.link, n, 8, 0);
	stream_peer_frame(&p, stream_word(4, 8, 1), 0, 64);
	stream_peer_frame(&p, stream_word(3, 0, 0), 0, 64); /* and none is unread again */
	expect_violation(&p, 1, "consumed total");
}

static void credits_say_nothing_else(void **state)
{
	struct stream_peer p;

	(void)state;
	stream_peer_open(&p, 64, 64);
	stream_peer_frame(&p, stream_word(0, 0, 0), 1, 64);
	expect_violation(&p, 0, "credit");
	stream_peer_open(&p, 64, 64);
	stream_peer_frame(&p, stream_word(0, 5, 0), 0, 64);
	expect_violation(&p, 0, "credit");
}

/* Credits among packets, however many and wherever they are cut: what lies behind moves up. */
static void credits_take_no_room(void **state)
{
	struct stream_peer p;
	struct fabric_arrival a;
	uint64_t number = 0, taken = 0;

	(void)state;
	stream_peer_open(&p, 64, 64);
	for (int lap = 0; lap < 40; lap++) {
		for (int i = 0; i < lap; i++)
			stream_peer_frame(&p, stream_word(0, 0, 0), 0, 64);
		for (int i = 0; i < 10; i++) {
			stream_peer_frame(&p, stream_word(0, 90, 1), ++number, 128);
			for (int j = 0; j < i % 3; j++)
				stream_peer_frame(&p, stream_word(0, 0, 0), 0, 64);
		}
		while (taken < number) {
			int n = link_poll(p.end.link, &a, 1);

			assert_true(n == 1 || (n == 0 && link_await(p.end.domain)));
			if (!n)
				continue;
			assert_true(a.head[0] == ++taken && a.head[2] == taken && a.length == 90);
			p.end.domain->fabric->release(p.end.link, &a);
		}
		link_flush_totals(p.end.link);
	}
	stream_peer_close(&p);
}

/* Who looks for room takes in so much, and no more: a peer could go on with what is known
 * already. */
static void credits_keep_nobody(void **state)
{
	struct stream_peer p;
	uint64_t sent = 0;
	int64_t until;

	(void)state;
	stream_peer_open(&p, 64, 64);
	while (link_put(p.end.link, sent + 1, 8, 0) == 1)
		sent++;
	for (int i = 0; i < CREDITS; i++)
		stream_peer_frame(&p, stream_word(0, 0, 0), 0, 64);
	stream_peer_frame(&p, stream_word(sent, 0, 0), 0, 64);
	assert_int_equal(link_put(p.end.link, sent + 1, 8, 0), -EAGAIN);
	until = actor_now_ms() + PATIENCE;
	while (link_put(p.end.link, sent + 1, 8, 0) != 1)
		assert_true(actor_now_ms() < until);
	stream_peer_close(&p);
}

#define TURNS 100 /* more than the credits that may wait */

/* The last frame that has come, if it is a credit: its total. */
static uint64_t last_credit(struct stream_peer *p)
{
	static unsigned char bytes[64 + 65536];
	static size_t got;
	ssize_t n;

	while ((n = recv(p->socket, bytes + got, sizeof(bytes) - got, MSG_DONTWAIT)) > 0) {
		got += (size_t)n;
		if (got > 64)
			memmove(bytes, bytes + got - 64, 64);
		got = got < 64 ? got : 64;
	}
	return (bytes[5] >> 7 | (bytes[6] & 0x7f)) ? 0 : bytes[0] | (uint64_t)bytes[1] << 8;
}

/* Who reads nothing keeps them waiting: so many at most, and in the end one tells it all. */
static void credits_that_wait_are_few(void **state)
{
	const struct fabric *f = stream_fabric();
	struct fabric_wr flush = {.op = FABRIC_FLUSH};
	const struct fabric_counts *counts;
	uint64_t sent = 0, frames;
	struct stream_peer p;
	struct fabric_arrival a;
	int64_t until = actor_now_ms() + PATIENCE;

	(void)state;
	stream_peer_open(&p, 16384, 1024);
	counts = &p.end.link->counts;
	while (link_put(p.end.link, sent + 1, 8, 0) == 1)
		sent++;
	assert_true(sent < 16384);
	assert_int_equal(f->post(p.end.link, &flush), -EAGAIN);
	frames = counts->remote_writes;
	for (uint64_t i = 1; i <= TURNS; i++) {
		stream_peer_frame(&p, stream_word(0, 8, 1), i, 1024);
		while (link_poll(p.end.link, &a, 1) != 1)
			assert_true(link_await(p.end.domain));
		f->release(p.end.link, &a);
		assert_int_equal(f->post(p.end.link, &flush), -EAGAIN);
	}
	assert_true(counts->remote_writes > frames && counts->remote_writes <= frames + 64);
	while (last_credit(&p) != TURNS) {
		assert_int_equal(link_poll(p.end.link, &a, 1), 0);
		assert_true(actor_now_ms() < until);
	}
	stream_peer_close(&p);
}

static void garbage_is_a_violation(void **state)
{
	struct rng chance = {rng_run_seed(0x6a)};
	unsigned char bytes[4096];
	struct stream_peer p;
	struct fabric_arrival a;

	(void)state;
	for (int lap = 0; lap < 300 / actor_slow(); lap++) {
		int n;

		stream_peer_open(&p, 64, 64);
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (unsigned char)rng_next(&chance);
		stream_peer_say(p.socket, bytes, sizeof(bytes));
		shutdown(p.socket, SHUT_WR);
		while ((n = link_poll(p.end.link, &a, 1)) >= 0)
			if (n == 0)
				assert_true(link_await(p.end.domain));
		assert_true(n == -EPROTO || n == -EPIPE);
		stream_peer_close(&p);
	}
}

/* ---- strangers ------------------------------------------------------------------------------ */

#define UNAUTHENTICATED 200

static int connect_again(struct stream_peer *p)
{
	return p->end.domain->fabric->connect(p->end.link, 0, NULL);
}

static void heard_out(struct stream_peer *p, const void *bytes, size_t n)
{
	char end;
	int s = stream_peer_call(p);

	stream_peer_say(s, bytes, n);
	while (recv(s, &end, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		assert_int_equal(connect_again(p), 2);
	close(s);
}

static void then_comes_the_peer(struct stream_peer *p)
{
	struct fabric_blob again;
	int rc = 2;

	p->socket = stream_peer_call(p);
	stream_peer_say(p->socket, p->hello, sizeof(p->hello));
	while (rc == 2 && link_await(p->end.domain))
		rc = connect_again(p);
	assert_int_equal(rc, 0);
	link_send(p->end.link, 1, 8, 0);
	assert_int_equal(connect_again(p), -EPROTO); /* it has come */
	assert_int_equal(p->end.domain->fabric->address(p->end.link, 0, &again), -EINVAL);
	stream_peer_close(p);
}

static void strangers_are_closed(void **state)
{
	unsigned char wrong[STREAM_HELLO];
	struct stream_peer p;

	(void)state;
	for (int byte = 0; byte < 24; byte++) {
		stream_peer_begin(&p, 64, 64);
		memcpy(wrong, p.hello, sizeof(wrong));
		wrong[byte] ^= 1;
		heard_out(&p, wrong, sizeof(wrong));
		then_comes_the_peer(&p);
	}
	stream_peer_begin(&p, 64, 64);
	heard_out(&p, "GET / HTTP/1.1\r\n\r\n", 18);
	heard_out(&p, "\0", 1);
	then_comes_the_peer(&p);
	/* The right door and the wrong name: two links of the same peer were mixed up. */
	stream_peer_begin(&p, 64, 64);
	p.socket = stream_peer_call(&p);
	memcpy(wrong, p.hello, sizeof(wrong));
	wrong[30] ^= 1;
	stream_peer_say(p.socket, wrong, sizeof(wrong));
	assert_true(link_await(p.end.domain));
	assert_int_equal(connect_again(&p), -EPROTO);
	stream_peer_close(&p);
}

/* They hold the door, and say nothing, or never all of it. */
static void half_open_connections_are_few(void **state)
{
	int sockets[UNAUTHENTICATED], before = actor_descriptors();
	struct stream_peer p;

	(void)state;
	for (int said = 0; said < STREAM_HELLO; said += 13) {
		stream_peer_begin(&p, 64, 64);
		for (int i = 0; i < UNAUTHENTICATED; i++) {
			sockets[i] = stream_peer_call(&p);
			stream_peer_say(sockets[i], p.hello, (size_t)said);
			assert_int_equal(connect_again(&p), 2);
		}
		assert_true(actor_descriptors() < before + UNAUTHENTICATED + 20);
		then_comes_the_peer(&p);
		for (int i = 0; i < UNAUTHENTICATED; i++)
			close(sockets[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(wrong_checks_are_refused),
		FABRIC_TEST(packets_may_not_be_too_long),
		FABRIC_TEST(nothing_beyond_the_ring),
		FABRIC_TEST(nothing_is_read_that_was_not_sent),
		FABRIC_TEST(credits_say_nothing_else),
		FABRIC_TEST(credits_take_no_room),
		FABRIC_TEST(credits_keep_nobody),
		FABRIC_TEST(credits_that_wait_are_few),
		FABRIC_TEST(garbage_is_a_violation),
		FABRIC_TEST(strangers_are_closed),
		FABRIC_TEST(half_open_connections_are_few),
	};

	(void)stream_fabric();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
