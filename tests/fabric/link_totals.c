/* SPDX-License-Identifier: BSD-3-Clause */
/* What a link of any fabric tells about room and totals, and whom it wakes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/lib/actor.h"
#include "tests/lib/bonded.h"
#include "tests/lib/far.h"
#include "tests/lib/fabric_suite.h"

/* ---- totals ---------------------------------------------------------------------------------- */

static void counts_are_current_after_flush(void **state)
{
	uint64_t segments = bonded_is(fabric) ? 2 * 64 : 64; /* a bond's: of both links */
	const struct fabric_counts *out, *in;
	struct link_pair p;

	(void)state;
	link_pair_open(&p, fabric, 64, 64);
	out = &p.link[LEFT]->counts;
	in = &p.link[RIGHT]->counts;
	for (uint64_t i = 1; i <= 10; i++)
		link_send(p.link[LEFT], i, 100, 0);
	link_flush_totals(p.link[LEFT]);
	do
		link_flush_totals(p.link[RIGHT]);
	while (in->in_produced_seen != out->produced && link_await(p.domain[RIGHT]));
	assert_int_equal(out->out_segments, segments);
	assert_int_equal(in->in_segments, segments);
	assert_true(out->produced >= 10 && out->produced <= 64);
	assert_true(in->in_produced_seen == out->produced);
	assert_int_equal(in->consumed, 0);
	for (uint64_t i = 1; i <= 10; i++)
		link_take(p.link[RIGHT], i, 100);
	link_flush_totals(p.link[RIGHT]);
	link_await_totals(p.link[LEFT]);
	assert_true(in->consumed == out->produced);
	assert_true(out->consumed_seen == out->produced);
	assert_true(out->remote_writes > 0);
	link_pair_close(&p);
}

static void every_read_is_published_where_asked(void **state)
{
	struct fabric_config config[SIDES] = {link_config(64, 64), link_config(64, 64)};
	struct link_pair p;

	(void)state;
	config[RIGHT].threshold_permille = 0;
	link_pair_make(&p, fabric, config);
	link_pair_connect(&p);
	for (uint64_t i = 1; i <= 20; i++) {
		link_send(p.link[LEFT], i, 8, 0);
		link_take(p.link[RIGHT], i, 8);
		link_await_totals(p.link[LEFT]);
	}
	link_flush_totals(p.link[RIGHT]);
	assert_int_equal(p.link[RIGHT]->counts.publications[3], 20);
	link_pair_close(&p);
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* It has been, or is not: where the fabric itself sees what comes, that may take a moment. */
static bool rings(struct link_pair *p, int side)
{
	return link_awaits_bell(&p->end[side], p->domain[side]->fd >= 0 ? PATIENCE : 0);
}

static bool is_quiet(struct link_pair *p, int side)
{
	return !link_awaits_bell(&p->end[side], 0);
}

static void awake_peer_hears_nothing(void **state)
{
	struct link_pair p;

	(void)state;
	link_pair_open(&p, fabric, 64, 64);
	for (uint64_t i = 1; i < 100; i++) {
		link_send(p.link[LEFT], i, 8, 0);
		link_take(p.link[RIGHT], i, 8);
	}
	link_expect_nothing(p.link[LEFT]); /* what it has been told of room */
	assert_true(is_quiet(&p, RIGHT));
	assert_true(is_quiet(&p, LEFT));
	assert_int_equal(p.link[LEFT]->counts.bells, 0);
	link_pair_close(&p);
}

/* MORE: the bell may wait, until the sender looks around in any way. */
static void end_burst(struct link_pair *p, int how, uint64_t *seed)
{
	struct fabric_arrival a;

	switch (how) {
	case 0: link_send(p->link[LEFT], ++*seed, 8, 0); break;
	case 1: assert_int_equal(fabric->poll(p->link[LEFT], &a, 1), 0); break;
	case 2: link_flush_totals(p->link[LEFT]); break;
	default: fabric->arm(p->domain[LEFT], true); fabric->arm(p->domain[LEFT], false);
	}
}

static void bursts_wake_once_they_end(struct link_pair *p, uint64_t *seed)
{
	for (int how = 0; how < 4; how++) {
		uint64_t first = *seed;

		fabric->arm(p->domain[RIGHT], true);
		link_expect_nothing(p->link[RIGHT]);
		link_send(p->link[LEFT], *seed, 8, FABRIC_MORE);
		end_burst(p, how, seed);
		assert_true(rings(p, RIGHT));
		fabric->arm(p->domain[RIGHT], false);
		for (; first <= *seed; first++)
			link_take(p->link[RIGHT], first, 8);
		link_flush_totals(p->link[RIGHT]);
		++*seed;
	}
}

/* A writer that sleeps for want of room is woken by who makes it, at the latest before he
 * sleeps. */
static void room_wakes(struct link_pair *p, uint64_t *seed)
{
	uint64_t taken = *seed;

	while (link_put(p->link[LEFT], *seed, 8, 0) == 1)
		++*seed;
	fabric->arm(p->domain[LEFT], true);
	assert_int_equal(link_put(p->link[LEFT], *seed, 8, 0), -EAGAIN);
	while (taken < *seed)
		link_take(p->link[RIGHT], taken++, 8);
	link_expect_nothing(p->link[RIGHT]);
	fabric->arm(p->domain[RIGHT], true);
	assert_true(rings(p, LEFT));
	fabric->arm(p->domain[RIGHT], false);
	fabric->arm(p->domain[LEFT], false);
	link_send(p->link[LEFT], *seed, 8, 0);
	link_take(p->link[RIGHT], (*seed)++, 8);
}

/* Where no descriptor shows room that a poll has taken in, the link does: who was refused is not to
 * sleep. */
static void room_shows(struct link_pair *p, uint64_t *seed)
{
	uint64_t taken = *seed, before;

	if (p->domain[LEFT]->fd < 0 || bonded_is(fabric) || far_side() >= 0)
		return;
	while (link_put(p->link[LEFT], *seed, 8, 0) == 1)
		++*seed;
	fabric->arm(p->domain[LEFT], true);
	assert_int_equal(link_put(p->link[LEFT], *seed, 8, 0), -EAGAIN);
	before = p->link[LEFT]->room;
	link_expect_nothing(p->link[LEFT]);
	assert_true(p->link[LEFT]->room == before);
	while (taken < *seed)
		link_take(p->link[RIGHT], taken++, 8);
	link_flush_totals(p->link[RIGHT]);
	assert_true(rings(p, LEFT));
	link_expect_nothing(p->link[LEFT]);
	assert_true(p->link[LEFT]->room != before);
	fabric->arm(p->domain[LEFT], false);
	link_send(p->link[LEFT], *seed, 8, 0);
	link_take(p->link[RIGHT], (*seed)++, 8);
}

static void sleeper_is_woken(struct link_pair *p)
{
	uint64_t seed = 1;

	for (int lap = 0; lap < 3; lap++) {
		fabric->arm(p->domain[RIGHT], true);
		link_expect_nothing(p->link[RIGHT]);
		link_send(p->link[LEFT], seed, 8, 0);
		assert_true(rings(p, RIGHT));
		link_take(p->link[RIGHT], seed++, 8);
		fabric->arm(p->domain[RIGHT], false);
		/* Awake again: it hears nothing. */
		link_send(p->link[LEFT], seed, 8, 0);
		link_take(p->link[RIGHT], seed++, 8);
		assert_true(is_quiet(p, RIGHT));
		bursts_wake_once_they_end(p, &seed);
		room_wakes(p, &seed);
		room_shows(p, &seed);
	}
}

static void announced_sleep_is_answered(void **state)
{
	(void)state;
	fabric_each_shape(sleeper_is_woken);
}

static void sleep_without_membarrier(void **state)
{
	for (int who = 0; who < 4; who++) {
		struct fabric_config config[SIDES] = {link_config(64, 64), link_config(64, 64)};
		struct link_pair p;

		config[LEFT].membarrier = who & 1;
		config[RIGHT].membarrier = who & 2;
		link_pair_make(&p, fabric, config);
		link_pair_connect(&p);
		sleeper_is_woken(&p);
		link_pair_close(&p);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(counts_are_current_after_flush),
		FABRIC_TEST(every_read_is_published_where_asked),
		FABRIC_TEST(awake_peer_hears_nothing),
		FABRIC_TEST(announced_sleep_is_answered),
		FABRIC_TEST(sleep_without_membarrier),
	};

	fabric_suite_bonds();
	return FABRIC_SUITE(tests);
}
