/* SPDX-License-Identifier: BSD-3-Clause */
/* Held packets: released in any order, K follows the released prefix and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/ring_pair.h"

#define HELD 5

static void open_eager(struct ring_pair *p, uint32_t segments, uint64_t start)
{
	struct ring_setup setup = {.shape = {segments, 64}, .epoch = 77, .start = start};

	ring_pair_open(p, &setup);
}

static uint64_t published(const struct ring_pair *p)
{
	return LITTLE_64(atomic_load(&ring_words_of(p->back)->consumed));
}

/* The next order of ORDER, lexically; false after the last. */
static bool next_order(int *order)
{
	int i = HELD - 2, j = HELD - 1, swap;

	while (i >= 0 && order[i] > order[i + 1])
		i--;
	if (i < 0)
		return false;
	while (order[j] < order[i])
		j--;
	swap = order[i], order[i] = order[j], order[j] = swap;
	for (i++, j = HELD - 1; i < j; i++, j--)
		swap = order[i], order[i] = order[j], order[j] = swap;
	return true;
}

static void release_in_order(struct ring_pair *p, const int *order, uint64_t seed)
{
	static const uint32_t lengths[HELD] = {10, 100, 56, 200, 57};
	struct ring_packet held[HELD];
	bool released[HELD] = {false};
	for (uint32_t i = 0; i < HELD; i++) {
		assert_true(ring_put(&p->w, seed + i, lengths[i]));
		ring_expect(&p->r, &held[i], seed + i, lengths[i]);
	}
	/* A pad in front is given back at once, one between with the packet before it. */
	assert_true(p->r.consumed == held[0].total - 1);
	for (int i = 0; i < HELD; i++) {
		uint64_t prefix = held[0].total - 1;

		ring_release(&p->r, &held[order[i]]);
		released[order[i]] = true;
		for (int j = 0; j < HELD && released[j]; j++)
			prefix = j + 1 < HELD ? held[j + 1].total - 1 : p->w.produced;
		assert_true(p->r.consumed == prefix);
		assert_true(published(p) == prefix);
		/* What is held still reads as it came. */
		for (uint32_t j = 0; j < HELD; j++)
			assert_true(released[j] || ring_filled(held[j].data, seed + j, lengths[j]));
	}
	assert_true(p->r.consumed == p->w.produced);
	assert_int_equal(p->r.gaps, 0);
}

static void every_order_of_release_ends_the_same(void **state)
{
	static const uint64_t starts[] = {0, UINT32_MAX - 500, UINT64_MAX - 500};

	(void)state;
	for (size_t s = 0; s < 3; s++) {
		int order[HELD] = {0, 1, 2, 3, 4};
		struct ring_pair p;
		uint64_t seed = 0;

		open_eager(&p, 64, starts[s]);
		do
			release_in_order(&p, order, seed += 100);
		while (next_order(order));
		ring_pair_close(&p);
	}
}

static void a_held_packet_keeps_the_writer_out_of_its_place(void **state)
{
	struct ring_packet held, other;
	struct ring_pair p;

	(void)state;
	open_eager(&p, 8, 0);
	assert_true(ring_put(&p.w, 0, 56));
	ring_expect(&p.r, &held, 0, 56);
	for (uint32_t i = 1; i < 8; i++) {
		assert_true(ring_put(&p.w, i, 56));
		ring_expect(&p.r, &other, i, 56);
		ring_release(&p.r, &other);
	}
	assert_false(ring_put(&p.w, 8, 0));
	assert_int_equal(ring_peek(&p.r, &other), 0);
	assert_int_equal(p.r.violation, RING_SOUND);
	assert_true(ring_filled(held.data, 0, 56));
	ring_release(&p.r, &held);
	assert_int_equal(ring_room(&p.w), 8);
	assert_true(ring_put(&p.w, 8, 0));
	ring_take(&p.r, 8, 0);
	ring_pair_close(&p);
}

static void a_pad_behind_a_held_packet_is_given_back_with_it(void **state)
{
	struct ring_packet held, next;
	struct ring_pair p;

	(void)state;
	open_eager(&p, 8, 5);
	assert_true(ring_put(&p.w, 1, 8));   /* at 6 */
	assert_true(ring_put(&p.w, 2, 100)); /* 7 becomes a pad; at 0 and 1 */
	ring_expect(&p.r, &held, 1, 8);
	ring_expect(&p.r, &next, 2, 100);
	assert_true(next.total == 8);
	assert_true(p.r.consumed == 5);
	ring_release(&p.r, &next);
	assert_true(p.r.consumed == 5);
	ring_release(&p.r, &held);
	assert_true(p.r.consumed == 9);
	ring_pair_close(&p);
}

/* Who reads them in a row may release them as one, and they go round the end. */
static void run_around_the_end(uint32_t segments, uint32_t before, uint32_t run)
{
	struct ring_packet held, first, next;
	struct ring_pair p;

	open_eager(&p, segments, segments - before);
	assert_true(ring_put(&p.w, 0, 56));
	ring_expect(&p.r, &held, 0, 56);
	for (uint32_t i = 1; i <= run; i++) {
		assert_true(ring_put(&p.w, i, 56));
		ring_expect(&p.r, i == 1 ? &first : &next, i, 56);
	}
	first.segments = run;
	ring_release(&p.r, &first);
	assert_true(p.r.consumed == segments - before);
	assert_int_equal(p.r.gaps, run);
	ring_release(&p.r, &held);
	assert_true(p.r.consumed == p.w.produced);
	assert_int_equal(p.r.gaps, 0);
	for (uint32_t i = 0; i < segments; i++) { /* nothing is left marked */
		assert_true(ring_put(&p.w, i, 56));
		ring_take(&p.r, i, 56);
	}
	assert_true(p.r.consumed == p.w.produced);
	ring_pair_close(&p);
}

static void runs_go_round_the_end(void **state)
{
	(void)state;
	run_around_the_end(8, 3, 4);
	run_around_the_end(64, 20, 40);
	run_around_the_end(256, 100, 200);
	run_around_the_end(256, 3, 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_order_of_release_ends_the_same),
		cmocka_unit_test(a_held_packet_keeps_the_writer_out_of_its_place),
		cmocka_unit_test(a_pad_behind_a_held_packet_is_given_back_with_it),
		cmocka_unit_test(runs_go_round_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
