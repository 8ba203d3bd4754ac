/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 150 */
/* Packets over a link of any fabric: every length at every place of the ring, the full ring and
 * after, batches, packets built in place, releases in any order. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/fabric_suite.h"
#include "tests/lib/random.h"

/* ---- lengths -------------------------------------------------------------------------------- */

static void send_lengths(struct link_pair *p)
{
	uint32_t most = p->link[LEFT]->payload_max;
	uint32_t stride = (most < 10000 ? 1 : 97) * (uint32_t)actor_slow();

	assert_true(most >= 64 - 8 - FABRIC_HEAD_SIZE);
	assert_int_equal(most, p->link[RIGHT]->payload_max_in);
	for (uint32_t n = 0; n <= most; n += n < 300 || n + 200 > most ? 1 : stride) {
		int side = (int)(n & 1);

		link_send(p->link[side], n, n, 0);
		link_take(p->link[!side], n, n);
		link_expect_nothing(p->link[!side]);
	}
}

static void every_length_arrives(void **state)
{
	(void)state;
	fabric_each_shape(send_lengths);
}

/* Each length at each distance from the ring's end: those that do not fit before it go behind. */
static void wrap_lengths(struct link_pair *p, uint32_t segments, uint32_t size)
{
	uint32_t most = p->link[LEFT]->payload_max;
	uint32_t around = size - most % size; /* what a packet carries besides */
	uint64_t seed = 1;

	for (uint32_t at = 0; at < segments; at++) {
		for (uint32_t k = 1; k * size - around <= most; k++) {
			uint32_t end = k * size - around;
			uint32_t lengths[] = {end < size ? 0 : end - size + 1, end - 1, end};

			for (int i = 0; i < 3 && lengths[i] <= most; i++) {
				link_send(p->link[LEFT], seed, lengths[i], 0);
				link_take(p->link[RIGHT], seed++, lengths[i]);
				link_expect_nothing(p->link[RIGHT]);
			}
		}
		/* Each round begins one segment further on. */
		link_flush_totals(p->link[LEFT]);
		while (p->link[LEFT]->counts.produced % segments != (at + 1) % segments) {
			link_send(p->link[LEFT], seed, 1, 0);
			link_take(p->link[RIGHT], seed++, 1);
			link_flush_totals(p->link[LEFT]);
		}
	}
}

static void every_length_wraps_everywhere(void **state)
{
	(void)state;
	for (const struct fabric_shape *s = fabric_shapes; s->segments; s++) {
		struct link_pair p;

		if (s->segments > 64)
			continue;
		link_pair_open(&p, fabric, s->segments, s->size);
		wrap_lengths(&p, s->segments, s->size);
		link_pair_close(&p);
	}
}

static void refuse_too_long(struct link_pair *p)
{
	uint32_t most = p->link[LEFT]->payload_max;
	uint64_t produced;

	link_flush_totals(p->link[LEFT]);
	produced = p->link[LEFT]->counts.produced;
	assert_int_equal(link_put(p->link[LEFT], 1, most + 1, 0), -EAGAIN);
	assert_null(fabric->reserve(p->link[LEFT], most + 1));
	assert_null(fabric->reserve(p->link[LEFT], UINT32_MAX));
	assert_null(fabric->reserve(p->link[LEFT], UINT32_MAX - FABRIC_HEAD_SIZE));
	link_expect_nothing(p->link[RIGHT]);
	link_flush_totals(p->link[LEFT]);
	assert_true(p->link[LEFT]->counts.produced == produced);
	link_send(p->link[LEFT], 2, most, 0);
	link_take(p->link[RIGHT], 2, most);
}

static void too_long_is_refused_without_trace(void **state)
{
	(void)state;
	fabric_each_shape(refuse_too_long);
}

/* More would leave no room at all. */
static void so_much_is_held_back(void **state)
{
	struct fabric_wr hold = {.op = FABRIC_HOLD_BACK};
	struct link_pair p;

	(void)state;
	link_pair_open(&p, fabric, 64, 64);
	hold.length = FABRIC_HOLD_MAX(64) + 1;
	assert_int_equal(fabric->post(p.link[LEFT], &hold), -EINVAL);
	hold.length = UINT32_MAX;
	assert_int_equal(fabric->post(p.link[LEFT], &hold), -EINVAL);
	hold.length = FABRIC_HOLD_MAX(64);
	assert_int_equal(fabric->post(p.link[LEFT], &hold), 1);
	link_send(p.link[LEFT], 1, 8, 0);
	link_take(p.link[RIGHT], 1, 8);
	link_pair_close(&p);
}

static void unknown_operation_is_refused(void **state)
{
	struct fabric_wr wr = {.op = 63, .kind = 1};
	struct link_pair p;

	(void)state;
	link_pair_open(&p, fabric, 64, 64);
	assert_true(fabric->post(p.link[LEFT], &wr) < 0);
	link_expect_nothing(p.link[RIGHT]);
	link_send(p.link[LEFT], 1, 8, 0);
	link_take(p.link[RIGHT], 1, 8);
	link_pair_close(&p);
}

/* ---- room ----------------------------------------------------------------------------------- */

/* Sends until refused: how many. Packets are numbered on from *SEED. */
static int fill_up(struct fabric_link *l, uint64_t *seed, uint32_t length)
{
	int n = 0, rc;

	while ((rc = link_put(l, *seed, length, 0)) == 1) {
		n++;
		++*seed;
	}
	assert_int_equal(rc, -EAGAIN);
	return n;
}

static void fill_and_empty(struct link_pair *p)
{
	uint64_t sent = 1, taken = 1;

	for (int lap = 0; lap < 7; lap++) {
		uint32_t length = lap % 2 ? p->link[LEFT]->payload_max : 5;

		link_await_totals(p->link[LEFT]);
		assert_true(fill_up(p->link[LEFT], &sent, length) > 0);
		/* Refused again and again, and not a byte of it arrives. */
		for (int i = 0; i < 5; i++) {
			assert_int_equal(link_put(p->link[LEFT], 999999, length, 0), -EAGAIN);
			assert_null(fabric->reserve(p->link[LEFT], length));
		}
		while (taken < sent)
			link_take(p->link[RIGHT], taken++, length);
		link_expect_nothing(p->link[RIGHT]);
		/* Room comes back by the reader's own rules, or its flush at the latest. */
		link_flush_totals(p->link[RIGHT]);
	}
}

static void refusal_leaves_no_trace(void **state)
{
	(void)state;
	fabric_each_shape(fill_and_empty);
}

/* Of N: fewer of long packets, and on slow machines. */
static uint64_t share_of(uint64_t n, const struct link_pair *p)
{
	return n / (uint64_t)actor_slow() / (p->link[LEFT]->payload_max > 65536 ? 5 : 1);
}

/* The writer keeps going on nothing but what release publishes. */
static void stream_of_lengths(struct link_pair *p)
{
	uint64_t sent = 1, taken = 1;

	while (taken < share_of(5000, p)) {
		link_fill_empty(p->link[LEFT], &sent); /* it takes any packet: never stuck */
		while (taken < sent)
			link_take_next(p->link[RIGHT], &taken);
	}
}

static void room_comes_back_without_flush(void **state)
{
	(void)state;
	fabric_each_shape(stream_of_lengths);
}

/* And one by one: each release may be the one that the writer waits for. */
static void stream_at_the_brim(struct link_pair *p)
{
	uint64_t sent = 1, taken = 1;

	for (uint64_t i = 0; i < share_of(5000, p); i++) {
		if (taken == sent)
			link_fill_empty(p->link[LEFT], &sent);
		else
			link_fill(p->link[LEFT], &sent);
		link_take_next(p->link[RIGHT], &taken);
	}
}

static void full_ring_moves_on_by_single_releases(void **state)
{
	(void)state;
	fabric_each_shape(stream_at_the_brim);
}

static void totals_wrap_around(void **state)
{
	static const uint64_t starts[] = {UINT64_C(0xffffffff) - 20, UINT64_C(0xfffffffffffffff0),
					  UINT64_MAX, UINT64_C(0x7fffffffffffffff)};

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		for (const struct fabric_shape *s = fabric_shapes; s->segments; s++) {
			struct fabric_config config[SIDES] = {link_config(s->segments, s->size),
							      link_config(s->segments, s->size)};
			struct link_pair p;
			uint64_t sent = 1, taken = 1;

			config[LEFT].start = starts[i];
			config[RIGHT].start = starts[(i + s->segments) % 4];
			link_pair_make(&p, fabric, config);
			link_pair_connect(&p);
			while (taken < share_of(400, &p)) {
				link_fill_empty(p.link[LEFT], &sent);
				while (taken < sent)
					link_take_next(p.link[RIGHT], &taken);
			}
			link_expect_nothing(p.link[RIGHT]); /* gives a last pad back */
			link_flush_totals(p.link[RIGHT]);
			link_await_totals(p.link[LEFT]);
			link_pair_close(&p);
		}
	}
}

/* ---- batches -------------------------------------------------------------------------------- */

/* One by one, or what lies one behind the other at once. */
static void release_all(struct fabric_link *l, const struct fabric_arrival *a, int n, bool run)
{
	struct fabric_arrival due = a[0];

	for (int i = 1; i < n; i++) {
		if (run && due.token + due.span == a[i].token) {
			due.span += a[i].span;
			continue;
		}
		fabric->release(l, &due);
		due = a[i];
	}
	fabric->release(l, &due);
}

/* A burst of MORE, polled in bites of N, released one by one or as runs. */
static void bite(struct link_pair *p, uint64_t *seed, int burst, int n, bool run)
{
	struct fabric_arrival a[16];
	uint64_t first = *seed;
	int got = 0;

	for (int i = 0; i < burst; i++)
		link_send(p->link[LEFT], first + (uint64_t)i, (uint32_t)i % 25,
			  i < burst - 1 ? FABRIC_MORE : 0);
	assert_int_equal(fabric->poll(p->link[RIGHT], a, 0), 0);
	while (got < burst) {
		int count;

		while ((count = link_poll(p->link[RIGHT], a, n)) == 0 &&
		       link_await(p->domain[RIGHT]))
			;
		assert_true(count > 0 && count <= n);
		for (int i = 0; i < count; i++)
			link_check(&a[i], first + (uint64_t)(got + i), (uint32_t)(got + i) % 25);
		release_all(p->link[RIGHT], a, count, run);
		got += count;
	}
	link_expect_nothing(p->link[RIGHT]);
	*seed += (uint64_t)burst;
}

static void batches_come_in_order(void **state)
{
	struct link_pair p;
	uint64_t seed = 1;

	(void)state;
	link_pair_open(&p, fabric, 256, 64);
	for (int burst = 1; burst <= 40; burst++)
		for (int n = 1; n <= 16; n++)
			bite(&p, &seed, burst, n, (burst + n) % 2);
	link_pair_close(&p);
}

/* ---- built in place ------------------------------------------------------------------------- */

static void build(struct link_pair *p)
{
	uint32_t most = p->link[LEFT]->payload_max;
	struct fabric_wr flush = {.op = FABRIC_FLUSH};

	for (uint64_t i = 1; i < 200; i++) {
		uint32_t room = (uint32_t)(i * 53 % (most + 1)),
			 used = room - room * (i % 3 == 0) / 2;
		unsigned char *at = fabric->reserve(p->link[LEFT], room);
		struct fabric_wr wr = {
			.op = FABRIC_SEND,
			.kind = (uint8_t)(i % 249 + 1),
			.flags = FABRIC_BUILT,
			.length = used,
			.head = {i, ~i, i << 40 | used},
		};

		assert_non_null(at);
		memset(at, 0xff, room); /* what is not sent must not look like anything */
		link_expect_nothing(p->link[RIGHT]);
		if (i % 5 == 0) { /* given back */
			assert_int_equal(fabric->post(p->link[LEFT], &flush), 1);
			link_expect_nothing(p->link[RIGHT]);
			link_send(p->link[LEFT], i, used, 0);
		} else {
			actor_fill(at, i, used);
			assert_int_equal(fabric->post(p->link[LEFT], &wr), 1);
		}
		link_take(p->link[RIGHT], i, used);
		link_expect_nothing(p->link[RIGHT]);
	}
}

static void payload_is_built_in_place(void **state)
{
	(void)state;
	fabric_each_shape(build);
}

/* ---- release -------------------------------------------------------------------------------- */

#define HELD 6

static struct rng chance;

static void hold_and_release(struct link_pair *p)
{
	struct fabric_arrival held[HELD];
	uint64_t seeds[HELD], sent = 1, taken = 1;
	int n = 0;

	for (int step = 0; step < 4000; step++) {
		link_fill(p->link[LEFT], &sent);
		if (n < HELD && taken < sent && rng_one_in(&chance, 2)) {
			seeds[n] = taken;
			link_expect_next(p->link[RIGHT], &held[n++], &taken);
		} else if (n) {
			int i = (int)rng_below(&chance, (uint32_t)n);

			/* Valid until released, whatever else was sent and released. */
			link_check(&held[i], seeds[i],
				   link_length(p->link[LEFT]->payload_max, seeds[i]));
			fabric->release(p->link[RIGHT], &held[i]);
			held[i] = held[--n];
			seeds[i] = seeds[n];
		}
	}
	assert_true(taken > 100);
}

static void releases_come_in_any_order(void **state)
{
	(void)state;
	chance.state = rng_run_seed(0x51);
	fabric_each_shape(hold_and_release);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(every_length_arrives),
		FABRIC_TEST(every_length_wraps_everywhere),
		FABRIC_TEST(too_long_is_refused_without_trace),
		FABRIC_TEST(so_much_is_held_back),
		FABRIC_TEST(unknown_operation_is_refused),
		FABRIC_TEST(refusal_leaves_no_trace),
		FABRIC_TEST(room_comes_back_without_flush),
		FABRIC_TEST(full_ring_moves_on_by_single_releases),
		FABRIC_TEST(totals_wrap_around),
		FABRIC_TEST(batches_come_in_order),
		FABRIC_TEST(payload_is_built_in_place),
		FABRIC_TEST(releases_come_in_any_order),
	};

	fabric_suite_bonds();
	return FABRIC_SUITE(tests);
}
