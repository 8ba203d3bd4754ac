/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * A link whose bytes come as a network may bring them: one at a time, many packets at once, cut off
 * at any byte, altered.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/child.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/random.h"
#include "tests/lib/stream_relay.h"

static struct rng chance;

/* ---- pieces --------------------------------------------------------------------------------- */

static bool take_if_whole(struct link_pair *p, uint64_t seed, uint32_t length)
{
	struct fabric_arrival a;
	int n = link_poll(p->link[RIGHT], &a, 1);

	if (n == 0)
		return false;
	assert_int_equal(n, 1);
	link_check(&a, seed, length);
	p->domain[RIGHT]->fabric->release(p->link[RIGHT], &a);
	return true;
}

static void bytes_come_one_by_one(void **state)
{
	struct stream_relay r;
	struct link_pair p;

	(void)state;
	stream_relay_open(&r, &p, 64, 64);
	for (uint64_t i = 1; i < 60; i++) {
		uint32_t length = (uint32_t)(i * 11 % 200);

		link_send(p.link[LEFT], i, length, 0);
		while (!take_if_whole(&p, i, length)) {
			assert_int_equal(stream_relay_move(&r, LEFT, 1), 1);
			stream_relay_await(&r, &p, RIGHT);
		}
		assert_int_equal(r.got[LEFT] % 64, 0); /* with its last byte, not before */
		assert_int_equal(stream_relay_move(&r, LEFT, 1), 0);
		stream_relay_all(&r);
	}
	stream_relay_close(&r, &p);
}

/* Both ways, in pieces of any size up to MOST, short packets and long ones. */
static void in_pieces(uint32_t segments, uint64_t packets, uint32_t most)
{
	uint64_t sent[SIDES] = {1, 1}, taken[SIDES] = {1, 1};
	struct stream_relay r;
	struct link_pair p;

	stream_relay_open(&r, &p, segments, 64);
	while (taken[LEFT] < packets || taken[RIGHT] < packets) {
		int side = (int)rng_below(&chance, SIDES);

		link_fill(p.link[side], &sent[side]);
		for (int i = 0; i < 20; i++)
			(void)stream_relay_move(&r, (int)rng_below(&chance, SIDES),
						1 + rng_below(&chance, most));
		for (int s = 0; s < SIDES; s++) {
			struct fabric_arrival a;

			while (link_poll(p.link[s], &a, 1) == 1) {
				link_check(&a, taken[s],
					   link_length(p.link[s]->payload_max_in, taken[s]));
				p.domain[s]->fabric->release(p.link[s], &a);
				taken[s]++;
			}
		}
	}
	stream_relay_close(&r, &p);
}

static void pieces_may_be_of_any_size(void **state)
{
	(void)state;
	chance.state = rng_run_seed(0x57);
	in_pieces(2048, 1000, 9000);
	in_pieces(16384, 60, 90000); /* for what is very long a reader takes its time */
}

/* ---- ends ----------------------------------------------------------------------------------- */

static const uint32_t lengths[] = {0, 24, 33, 100, 8};
#define PACKETS 5

/* Bytes on the wire of the first N. */
static size_t wire(int n)
{
	size_t bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += (32 + lengths[i] + 63) / 64 * 64;
	return bytes;
}

/* All that was whole before the end is handed out, then the loss is told, and how. */
static void cut_at(size_t bytes, bool reset)
{
	struct fabric_arrival a;
	struct stream_relay r;
	struct link_pair p;
	int n, taken = 0;
	size_t rest = bytes;

	stream_relay_open(&r, &p, 64, 64);
	for (int i = 0; i < PACKETS; i++)
		link_send(p.link[LEFT], (uint64_t)i + 1, lengths[i], 0);
	while (rest)
		rest -= stream_relay_move(&r, LEFT, rest);
	if (reset)
		stream_relay_reset(&r, RIGHT);
	else
		stream_relay_end(&r, RIGHT);
	stream_relay_await(&r, &p, RIGHT);
	while ((n = link_poll(p.link[RIGHT], &a, 1)) >= 0) {
		if (n == 0) {
			assert_true(link_await(p.domain[RIGHT]));
			continue;
		}
		link_check(&a, (uint64_t)taken + 1, lengths[taken]);
		p.domain[RIGHT]->fabric->release(p.link[RIGHT], &a);
		taken++;
	}
	assert_true(link_is_lost(p.link[RIGHT], n));
	assert_int_equal(link_poll(p.link[RIGHT], &a, 1), -EPIPE);
	assert_int_equal(link_put(p.link[RIGHT], 9, 8, 0), -EPIPE);
	assert_null(p.domain[RIGHT]->fabric->reserve(p.link[RIGHT], 8));
	if (taken < PACKETS)
		assert_true(wire(taken + 1) > bytes);
	assert_true(wire(taken) <= bytes);
	if (!reset && bytes != wire(taken))
		assert_non_null(strstr(p.link[RIGHT]->lost, "within a packet"));
	stream_relay_close(&r, &p);
}

static void a_reset_at_any_byte(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes <= wire(PACKETS); bytes++)
		cut_at(bytes, true);
}

static void an_end_at_any_byte(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes <= wire(PACKETS); bytes++)
		cut_at(bytes, false);
}

/* Who only sends finds out, too, and at once. */
static void a_reset_is_told_to_the_sender(void **state)
{
	struct stream_relay r;
	struct link_pair p;
	int rc;

	(void)state;
	stream_relay_open(&r, &p, 64, 64);
	stream_relay_reset(&r, LEFT);
	while ((rc = link_put(p.link[LEFT], 1, 8, 0)) == 1 || rc == -EAGAIN)
		;
	assert_true(link_is_lost(p.link[LEFT], rc));
	stream_relay_close(&r, &p);
}

/* ---- altered bytes -------------------------------------------------------------------------- */

/* 1: came; 0: refused, as the header's check is wrong. */
static int alter(uint64_t byte, uint32_t length)
{
	struct fabric_arrival a;
	struct stream_relay r;
	struct link_pair p;
	int n;

	stream_relay_open(&r, &p, 64, 64);
	r.alter = byte;
	link_send(p.link[LEFT], 1, length, 0);
	while (r.got[LEFT] < (32 + length + 63) / 64 * 64)
		(void)stream_relay_move(&r, LEFT, SIZE_MAX);
	do
		stream_relay_await(&r, &p, RIGHT);
	while ((n = link_poll(p.link[RIGHT], &a, 1)) == 0);
	if (n == 1)
		assert_true(a.length == length && a.kind == 2);
	else
		assert_true(n == -EPROTO && !strcmp(p.link[RIGHT]->violation, "frame header"));
	stream_relay_close(&r, &p);
	return n == 1;
}

/* In the header they are noticed; the payload is the core's to check. None is waited for. */
static void altered_bytes_are_never_waited_for(void **state)
{
	(void)state;
	for (uint64_t byte = 1; byte <= 128; byte++)
		assert_int_equal(alter(byte, 70), byte > 32);
}

/* ---- forks ---------------------------------------------------------------------------------- */

static int leave(void *arg)
{
	struct link_pair *p = arg;

	for (int side = 0; side < SIDES; side++) {
		p->domain[side]->forked = true;
		p->domain[side]->fabric->disconnect(p->link[side]);
		p->domain[side]->fabric->close(p->domain[side]);
	}
	return 0;
}

/* A child that gives up its copy of a link takes nothing away from its parent's. */
static void a_child_leaves_quietly(void **state)
{
	struct link_pair p;

	(void)state;
	link_pair_open(&p, stream_fabric(), 64, 64);
	link_send(p.link[LEFT], 1, 8, FABRIC_MORE);
	assert_int_equal(child_run(leave, &p, 20), 0);
	link_send(p.link[LEFT], 2, 8, 0);
	assert_true(link_await(p.domain[RIGHT])); /* the set still watches */
	link_take(p.link[RIGHT], 1, 8);
	link_take(p.link[RIGHT], 2, 8);
	link_expect_nothing(p.link[RIGHT]);
	link_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(bytes_come_one_by_one),
		FABRIC_TEST(pieces_may_be_of_any_size),
		FABRIC_TEST(a_reset_at_any_byte),
		FABRIC_TEST(an_end_at_any_byte),
		FABRIC_TEST(a_reset_is_told_to_the_sender),
		FABRIC_TEST(altered_bytes_are_never_waited_for),
		FABRIC_TEST(a_child_leaves_quietly),
	};

	(void)stream_fabric();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
