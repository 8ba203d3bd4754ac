/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rings are allowed, how large they are, and what their set-up makes of odd thresholds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/ring_pair.h"

static int check(uint32_t segments, uint32_t segment_size)
{
	return ring_shape_check(&(struct ring_shape){segments, segment_size});
}

static void powers_of_two_from_two_up_are_allowed(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 1u << 24; n *= 2)
		assert_int_equal(check(n, 64), 0);
	for (uint32_t size = 64; size <= 1u << 20; size *= 2)
		assert_int_equal(check(16, size), 0);
	assert_int_equal(check(1u << 12, 1u << 20), 0);
}

static void any_other_shape_is_refused(void **state)
{
	static const uint32_t odd_counts[] = {0, 1,    3,    5,        6,        7,
					      9, 8191, 8193, 1u << 25, 1u << 31, UINT32_MAX};
	static const uint32_t odd_sizes[] = {0,  1,   8,        32,       63,        65,
					     96, 127, 1u << 21, 1u << 31, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(odd_counts) / sizeof(*odd_counts); i++)
		assert_int_equal(check(odd_counts[i], 64), -EINVAL);
	for (size_t i = 0; i < sizeof(odd_sizes) / sizeof(*odd_sizes); i++)
		assert_int_equal(check(16, odd_sizes[i]), -EINVAL);
	/* Each allowed alone, their product is not: beyond 4 GiB, and 2^44. */
	assert_int_equal(check(1u << 13, 1u << 20), -EINVAL);
	assert_int_equal(check(1u << 24, 1u << 20), -EINVAL);
}

static void sizes_follow_the_shape(void **state)
{
	struct ring_shape smallest = {2, 64}, usual = {16384, 64}, largest = {4096, 1u << 20};

	(void)state;
	assert_int_equal(ring_size(&smallest), 4096 + 128);
	assert_int_equal(ring_size(&usual), 4096 + 1024 * 1024);
	assert_true(ring_size(&largest) == 4096 + (UINT64_C(1) << 32));
	assert_int_equal(ring_bits_size(&smallest), 8);
	assert_int_equal(ring_bits_size(&(struct ring_shape){64, 64}), 8);
	assert_int_equal(ring_bits_size(&(struct ring_shape){128, 64}), 16);
	assert_int_equal(ring_bits_size(&usual), 2048);
}

static void the_longest_packet_is_a_quarter_or_half_of_the_smallest(void **state)
{
	(void)state;
	assert_int_equal(ring_packet_max(&(struct ring_shape){2, 64}), 1);
	assert_int_equal(ring_packet_max(&(struct ring_shape){4, 64}), 2);
	for (uint32_t n = 8; n <= 1u << 16; n *= 2)
		assert_int_equal(ring_packet_max(&(struct ring_shape){n, 64}), n / 4);
}

static void the_longest_packet_fits_the_length_field(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 1u << 24; n *= 2)
		for (uint32_t size = 64; size <= 1u << 20; size *= 2) {
			struct ring_shape shape = {n, size};
			uint64_t bytes;

			if (ring_shape_check(&shape) != 0)
				continue;
			bytes = (uint64_t)ring_packet_max(&shape) * size - RING_WORD;
			assert_true(bytes <= RING_LENGTH_MAX);
			assert_true(ring_packet_max(&shape) >= 1);
		}
}

static void a_length_spans_the_segments_that_hold_it_and_its_word(void **state)
{
	(void)state;
	assert_int_equal(ring_span(0, 6), 1);
	assert_int_equal(ring_span(56, 6), 1);
	assert_int_equal(ring_span(57, 6), 2);
	assert_int_equal(ring_span(120, 6), 2);
	assert_int_equal(ring_span(121, 6), 3);
	/* A sum that passes 2^32 must not come out short. */
	assert_int_equal(ring_span(UINT32_MAX, 6), UINT32_C(1) << 26 | 1);
	assert_int_equal(ring_span(UINT32_MAX, 20), 4097);
}

static void each_shared_word_has_lines_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(offsetof(struct ring_words, produced), 0);
	assert_int_equal(offsetof(struct ring_words, consumed), 128);
	assert_int_equal(offsetof(struct ring_words, asleep), 256);
	assert_true(sizeof(struct ring_words) <= RING_SEGMENTS_OFFSET);
}

static void thresholds_beyond_the_live_limit_are_brought_back(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 64; n *= 2) {
		struct ring_setup setup = {.shape = {n, 64}, .threshold = 10 * n, .batch = n};
		uint32_t live = n - ring_packet_max(&setup.shape) + 1;
		struct ring_reader r;

		ring_reader_init(&r, &setup);
		assert_int_equal(r.threshold, live);
		assert_true(r.batch <= live);
		setup.threshold = live;
		setup.batch = 0;
		ring_reader_init(&r, &setup);
		assert_int_equal(r.threshold, live);
		assert_int_equal(r.batch, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(powers_of_two_from_two_up_are_allowed),
		cmocka_unit_test(any_other_shape_is_refused),
		cmocka_unit_test(sizes_follow_the_shape),
		cmocka_unit_test(the_longest_packet_is_a_quarter_or_half_of_the_smallest),
		cmocka_unit_test(the_longest_packet_fits_the_length_field),
		cmocka_unit_test(a_length_spans_the_segments_that_hold_it_and_its_word),
		cmocka_unit_test(each_shared_word_has_lines_of_its_own),
		cmocka_unit_test(thresholds_beyond_the_live_limit_are_brought_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
