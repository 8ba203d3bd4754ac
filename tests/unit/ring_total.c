/* SPDX-License-Identifier: BSD-3-Clause */
/* The totals that each side may store, and that any other is named and never believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/ring_pair.h"

#define N     16
#define EPOCH 0x51f0a7c9u

static const uint64_t starts[] = {0, UINT32_MAX - 3, UINT64_MAX - 3};
#define STARTS (sizeof(starts) / sizeof(*starts))

static void open_at(struct ring_pair *p, uint64_t start)
{
	struct ring_setup setup = {.shape = {N, 64}, .epoch = EPOCH, .start = start};

	ring_pair_open(p, &setup);
}

static void plant_produced(struct ring_pair *p, uint64_t value)
{
	atomic_store(&ring_words_of(p->inbound)->produced, LITTLE_64(value));
}

static void plant_consumed(struct ring_pair *p, uint64_t value)
{
	atomic_store(&ring_words_of(p->back)->consumed, LITTLE_64(value));
}

/* R2: what does a reader with K at START and J known as START + SEEN make of VALUE? */
static bool produced_sound(uint64_t start, uint64_t seen, uint64_t value)
{
	struct ring_pair p;
	bool sound;

	open_at(&p, start);
	plant_produced(&p, start + seen);
	assert_int_equal(ring_unread(&p.r), seen);
	assert_int_equal(p.r.violation, RING_SOUND);
	plant_produced(&p, value);
	(void)ring_unread(&p.r);
	sound = p.r.violation == RING_SOUND;
	assert_true(sound || p.r.violation == RING_BAD_PRODUCED);
	assert_true(p.r.produced == (sound ? value : start + seen)); /* a bad one is not kept */
	ring_pair_close(&p);
	return sound;
}

static void produced_goes_forward_and_within_the_ring(void **state)
{
	(void)state;
	for (size_t s = 0; s < STARTS; s++)
		for (uint64_t seen = 0; seen <= N; seen++) {
			for (uint64_t to = 0; to <= 3 * N; to++)
				assert_int_equal(produced_sound(starts[s], seen, starts[s] + to),
						 to >= seen && to <= N);
			assert_false(produced_sound(starts[s], seen, starts[s] - 1));
			assert_false(produced_sound(starts[s], seen, starts[s] + (1ull << 32)));
			assert_false(produced_sound(starts[s], seen, starts[s] + (1ull << 63)));
		}
}

static void a_reader_ahead_of_produced_is_sound(void **state)
{
	struct ring_pair p;

	(void)state;
	open_at(&p, UINT64_MAX - 5);
	p.w.lag = UINT32_MAX; /* never by itself */
	for (uint64_t i = 0; i < 3 * N; i++) {
		assert_true(ring_put(&p.w, i, 8));
		ring_take(&p.r, i, 8);
		assert_int_equal(ring_unread(&p.r), 0);
	}
	assert_int_equal(p.r.violation, RING_SOUND);
	ring_publish_produced(&p.w);
	assert_int_equal(ring_unread(&p.r), 0);
	assert_int_equal(p.r.violation, RING_SOUND);
	ring_pair_close(&p);
}

/* A lazy reader looks at J in the middle of a release; a bad one must not make it publish. */
static void a_bad_produced_is_found_by_the_lazy_reader(void **state)
{
	struct ring_setup setup = {.shape = {N, 64}, .threshold = 12, .batch = 1};
	struct ring_pair p;

	(void)state;
	ring_pair_open(&p, &setup);
	assert_true(ring_put(&p.w, 0, 8));
	plant_produced(&p, N + 2);
	ring_take(&p.r, 0, 8);
	assert_int_equal(p.r.violation, RING_BAD_PRODUCED);
	assert_true(p.r.published == 0);
	ring_pair_close(&p);
}

/* R3: the writer wrote SENT, knows of TAKEN and meets VALUE. */
static bool consumed_sound(uint64_t start, uint64_t sent, uint64_t taken, uint64_t value)
{
	struct ring_pair p;
	bool sound;

	open_at(&p, start);
	for (uint64_t i = 0; i < sent; i++)
		assert_true(ring_put(&p.w, i, 8));
	plant_consumed(&p, start + taken);
	assert_int_equal(ring_room(&p.w), N - sent + taken);
	plant_consumed(&p, value);
	(void)ring_room(&p.w);
	sound = p.w.violation == RING_SOUND;
	assert_true(sound || p.w.violation == RING_BAD_CONSUMED);
	assert_true(p.w.consumed == (sound ? value : start + taken));
	ring_pair_close(&p);
	return sound;
}

static void consumed_goes_forward_and_not_beyond_what_was_written(void **state)
{
	(void)state;
	for (size_t s = 0; s < STARTS; s++)
		for (uint64_t sent = 0; sent <= N; sent += 4)
			for (uint64_t taken = 0; taken <= sent; taken++) {
				uint64_t base = starts[s];

				for (uint64_t to = 0; to <= 2 * N; to++)
					assert_int_equal(consumed_sound(base, sent, taken,
									base + to),
							 to >= taken && to <= sent);
				assert_false(consumed_sound(base, sent, taken, base - 1));
				assert_false(
					consumed_sound(base, sent, taken, base + (1ull << 32)));
				assert_false(
					consumed_sound(base, sent, taken, base + (1ull << 63)));
			}
}

static void a_bad_consumed_never_makes_room(void **state)
{
	struct ring_pair p;

	(void)state;
	open_at(&p, 0);
	for (uint64_t i = 0; i < N; i++)
		assert_true(ring_put(&p.w, i, 8));
	plant_consumed(&p, N + 1);
	assert_null(ring_reserve(&p.w, 8));
	assert_int_equal(p.w.violation, RING_BAD_CONSUMED);
	plant_consumed(&p, N); /* sound again, but the channel stays poisoned */
	assert_null(ring_reserve(&p.w, 8));
	assert_int_equal(p.w.violation, RING_BAD_CONSUMED);
	ring_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(produced_goes_forward_and_within_the_ring),
		cmocka_unit_test(a_reader_ahead_of_produced_is_sound),
		cmocka_unit_test(a_bad_produced_is_found_by_the_lazy_reader),
		cmocka_unit_test(consumed_goes_forward_and_not_beyond_what_was_written),
		cmocka_unit_test(a_bad_consumed_never_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
