/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets: where they lie, every length, how many fit, pads, and what old payload must not do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/ring_pair.h"

/* Totals that pass 2^32 (the tag's width) and 2^64 within the test. */
static const uint64_t starts[] = {0, UINT32_MAX - 2, UINT64_C(3) << 32, UINT64_MAX - 2, 12345};
#define STARTS (sizeof(starts) / sizeof(*starts))

static struct ring_setup eager(uint32_t segments, uint32_t segment_size, uint64_t start)
{
	return (struct ring_setup){
		.shape = {segments, segment_size},
		.epoch = 0x9d1c77e3,
		.start = start,
	};
}

static void open_eager(struct ring_pair *p, uint32_t segments, uint64_t start)
{
	struct ring_setup setup = eager(segments, 64, start);

	ring_pair_open(p, &setup);
}

static uint64_t word_at(struct ring_pair *p, uint64_t at)
{
	return LITTLE_64(
		atomic_load(ring_first_word(p->inbound + RING_SEGMENTS_OFFSET, &p->shape, at)));
}

/* The word that a reader may scan by itself changes with the next packet, be it behind a pad. */
static void awaited_word_changes(void **state)
{
	(void)state;
	for (size_t s = 0; s < STARTS; s++) {
		struct ring_pair p;

		open_eager(&p, 16, starts[s]);
		for (uint64_t i = 0; i < 50; i++) {
			uint32_t bytes = i % 3 ? 8 : 150;
			uint64_t nothing;
			const _Atomic uint64_t *word = ring_awaited(&p.r, &nothing);

			assert_non_null(word);
			assert_true(atomic_load(word) == nothing);
			assert_true(ring_put(&p.w, i, bytes));
			assert_true(atomic_load(word) != nothing);
			assert_null(ring_awaited(&p.r, &nothing));
			ring_take(&p.r, i, bytes);
		}
		ring_pair_close(&p);
	}
}

static void segment_j_lies_at_j_mod_n(void **state)
{
	(void)state;
	for (size_t s = 0; s < STARTS; s++)
		for (uint32_t n = 2; n <= 16; n *= 2) {
			struct ring_pair p;

			open_eager(&p, n, starts[s]);
			for (uint64_t j = starts[s] + 1; j != starts[s] + 1 + 3 * n; j++) {
				unsigned char *data = ring_reserve(&p.w, 8);

				assert_ptr_equal(data, p.inbound + RING_SEGMENTS_OFFSET +
							       (j % n) * 64 + RING_WORD);
				ring_fill(data, j, 8);
				ring_commit(&p.w, 8, (uint8_t)(j % 255 + 1));
				assert_true(p.w.produced == j);
				ring_take(&p.r, j, 8);
				assert_true(p.r.consumed == j);
			}
			ring_pair_close(&p);
		}
}

static void the_commit_word_has_its_fields_in_place(void **state)
{
	struct ring_pair p;

	(void)state;
	open_eager(&p, 16, 0xfffffffc);
	assert_non_null(ring_reserve(&p.w, 99));
	ring_commit(&p.w, 99, 0x5a);
	assert_true(word_at(&p, 13) == (UINT64_C(0x5a) << 54 | UINT64_C(99) << 32 |
					(UINT32_C(0xfffffffd) ^ UINT32_C(0x9d1c77e3))));
	ring_pair_close(&p);
}

static void every_length_arrives_whole(void **state)
{
	static const struct ring_shape shapes[] = {{2, 64},  {4, 64},   {8, 64},  {16, 64},
						   {32, 64}, {16, 128}, {4, 1024}};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct ring_setup setup =
			eager(shapes[i].segments, shapes[i].segment_size, starts[i % STARTS]);
		uint32_t longest = ring_bytes_of(&shapes[i], ring_packet_max(&shapes[i]));
		struct ring_pair p;

		ring_pair_open(&p, &setup);
		for (uint32_t bytes = 0; bytes <= longest; bytes++) {
			/* Refused at most once, when a pad filled the room: then it must go. */
			if (!ring_put(&p.w, bytes, bytes)) {
				struct ring_packet none;

				assert_int_equal(ring_peek(&p.r, &none), 0);
				assert_true(ring_put(&p.w, bytes, bytes));
			}
			ring_take(&p.r, bytes, bytes);
		}
		assert_int_equal(p.w.violation, RING_SOUND);
		assert_true(p.r.consumed == p.w.produced);
		ring_pair_close(&p);
	}
}

static void all_n_segments_can_be_full_and_then_there_is_no_room(void **state)
{
	(void)state;
	for (size_t s = 0; s < STARTS; s++)
		for (uint32_t n = 2; n <= 64; n *= 2) {
			struct ring_pair p;

			open_eager(&p, n, starts[s]);
			for (uint32_t i = 0; i < n; i++)
				assert_true(ring_put(&p.w, i, 20));
			assert_false(ring_put(&p.w, n, 20));
			assert_int_equal(ring_room(&p.w), 0);
			ring_publish_produced(&p.w);
			assert_int_equal(ring_unread(&p.r), n);
			for (uint32_t i = 0; i < n; i++) {
				ring_take(&p.r, i, 20);
				assert_int_equal(ring_room(&p.w), i + 1);
			}
			assert_true(ring_put(&p.w, 77, 20));
			ring_take(&p.r, 77, 20);
			ring_pair_close(&p);
		}
}

/* The writer finds out for itself, and takes exactly what was given back. */
static void each_segment_given_back_is_room_for_one_more(void **state)
{
	(void)state;
	for (size_t s = 0; s < STARTS; s++)
		for (uint32_t n = 2; n <= 64; n *= 2) {
			struct ring_pair p;
			uint32_t sent = 0;

			open_eager(&p, n, starts[s]);
			while (ring_put(&p.w, sent, 20))
				sent++;
			assert_int_equal(sent, n);
			for (uint32_t got = 0; got < 3 * n; got++) {
				ring_take(&p.r, got, 20);
				assert_true(ring_put(&p.w, sent++, 20));
				assert_false(ring_put(&p.w, sent, 20));
			}
			ring_pair_close(&p);
		}
}

/* N 8: three packets of two segments fill 1..6; the fourth does not fit behind them. */
static void a_pad_fills_the_end_and_goes_out_before_its_packet_has_room(void **state)
{
	struct ring_packet none;
	struct ring_pair p;

	(void)state;
	for (size_t s = 0; s < STARTS; s++) {
		uint64_t base = starts[s] & ~UINT64_C(7);

		open_eager(&p, 8, base);
		for (uint32_t i = 0; i < 3; i++)
			assert_true(ring_put(&p.w, i, 100));
		assert_false(ring_put(&p.w, 3, 100));
		assert_true(word_at(&p, 7) == (RING_PAD | ring_tag(base + 7, p.w.epoch)));
		assert_true(p.w.produced == base + 7);
		assert_false(ring_put(&p.w, 3, 100)); /* and only once */
		assert_true(p.w.produced == base + 7);
		for (uint32_t i = 0; i < 3; i++)
			ring_take(&p.r, i, 100);
		assert_true(p.r.consumed == base + 6);
		assert_int_equal(ring_peek(&p.r, &none), 0);
		assert_true(p.r.consumed == base + 7);
		assert_true(ring_put(&p.w, 3, 100));
		assert_true(p.w.produced == base + 9);
		ring_take(&p.r, 3, 100);
		ring_pair_close(&p);
	}
}

static void a_pad_of_several_segments_is_one_packet(void **state)
{
	struct ring_pair p;

	(void)state;
	open_eager(&p, 16, 12);                     /* the next segment is 13 of 16 */
	assert_true(ring_put(&p.w, 1, 4 * 64 - 8)); /* three left: a pad of three */
	assert_true(p.w.produced == 12 + 3 + 4);
	assert_int_equal(p.w.writes, 2 + p.w.publications);
	ring_take(&p.r, 1, 4 * 64 - 8);
	assert_true(p.r.consumed == 12 + 3 + 4);
	ring_pair_close(&p);
}

/* Payload of one lap lies where commit words of the next are due, at every offset. */
static void old_payload_is_never_taken_for_a_commit(void **state)
{
	(void)state;
	for (uint32_t n = 4; n <= 128; n *= 2)
		for (uint32_t first = 1; first <= 3; first++) {
			struct ring_pair p;
			uint32_t longest;

			open_eager(&p, n, UINT32_MAX - n);
			longest = ring_packet_max(&p.shape);
			for (uint32_t i = 0; i < 8 * n; i++) {
				uint32_t k = (i * first) % longest + 1;
				uint32_t bytes = ring_bytes_of(&p.shape, k);
				struct ring_packet got;
				unsigned char *data = ring_reserve(&p.w, bytes);

				if (!data) {
					ring_expect_none(&p.r); /* but a pad */
					data = ring_reserve(&p.w, bytes);
				}
				assert_non_null(data);
				memset(data, 0xff, bytes);
				ring_forge(&p.w, data, bytes, 1);
				ring_commit(&p.w, bytes, 1);
				assert_int_equal(ring_peek(&p.r, &got), 1);
				assert_int_equal(got.length, bytes);
				ring_expect_none(&p.r);
				ring_release(&p.r, &got);
				ring_expect_none(&p.r);
			}
			ring_pair_close(&p);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(awaited_word_changes),
		cmocka_unit_test(segment_j_lies_at_j_mod_n),
		cmocka_unit_test(the_commit_word_has_its_fields_in_place),
		cmocka_unit_test(every_length_arrives_whole),
		cmocka_unit_test(all_n_segments_can_be_full_and_then_there_is_no_room),
		cmocka_unit_test(each_segment_given_back_is_room_for_one_more),
		cmocka_unit_test(a_pad_fills_the_end_and_goes_out_before_its_packet_has_room),
		cmocka_unit_test(a_pad_of_several_segments_is_one_packet),
		cmocka_unit_test(old_payload_is_never_taken_for_a_commit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
