/* SPDX-License-Identifier: BSD-3-Clause */
/* Reservations: refused, shortened, given back, replaced; and nothing of them stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/ring_pair.h"

static void open_eager(struct ring_pair *p, uint32_t segments, uint64_t start)
{
	struct ring_setup setup = {.shape = {segments, 64}, .epoch = 0x9d1c77e3, .start = start};

	ring_pair_open(p, &setup);
}

/* A copy of all that a refused call could have touched. */
struct picture {
	struct ring_writer w;
	uint64_t stale[4];
	unsigned char object[4096 + 16 * 64];
};

static void take_picture(struct picture *image, const struct ring_pair *p)
{
	memset(image, 0, sizeof(*image));
	memcpy(&image->w, &p->w, sizeof(p->w));
	memcpy(image->stale, p->stale, ring_bits_size(&p->shape));
	memcpy(image->object, p->inbound, ring_size(&p->shape));
}

static void a_packet_over_the_longest_is_refused_without_a_trace(void **state)
{
	static const uint32_t too_long[] = {4 * 64 - 7,  4 * 64,          16 * 64,
					    16 * 64 - 8, RING_LENGTH_MAX, RING_LENGTH_MAX + 1,
					    1u << 31,    UINT32_MAX - 71, UINT32_MAX - 8,
					    UINT32_MAX};
	static struct picture before, after;
	struct ring_pair p;

	(void)state;
	open_eager(&p, 16, 0);
	for (uint32_t used = 0; used < 16; used++) {
		take_picture(&before, &p);
		for (size_t i = 0; i < sizeof(too_long) / sizeof(*too_long); i++)
			assert_null(ring_reserve(&p.w, too_long[i]));
		take_picture(&after, &p);
		assert_memory_equal(&before, &after, sizeof(before));
		assert_true(ring_put(&p.w, used, 1));
		ring_take(&p.r, used, 1);
	}
	ring_pair_close(&p);
}

static void a_full_ring_refuses_without_a_trace(void **state)
{
	static struct picture before, after;
	struct ring_pair p;

	(void)state;
	open_eager(&p, 16, 0);
	for (uint32_t i = 0; i < 16; i++)
		assert_true(ring_put(&p.w, i, 56));
	take_picture(&before, &p);
	assert_null(ring_reserve(&p.w, 0));
	assert_null(ring_reserve(&p.w, 4 * 64 - 8));
	take_picture(&after, &p);
	assert_memory_equal(&before, &after, sizeof(before));
	ring_pair_close(&p);
}

/* How a forged reservation of four segments ends. */
enum ending { COMMIT_SHORT, ABORT, RESERVE_LESS, RESERVE_MORE, RESERVE_REFUSED, ENDINGS };

static void end_reservation(struct ring_pair *p, enum ending ending, uint64_t seed)
{
	unsigned char *data = ring_reserve(&p->w, 4 * 64 - 8);

	assert_non_null(data);
	ring_forge(&p->w, data, 4 * 64 - 8, 0);
	switch (ending) {
	case COMMIT_SHORT:
		ring_fill(data, seed, 5);
		ring_commit(&p->w, 5, (uint8_t)(seed % 255 + 1));
		return;
	case RESERVE_LESS:
		data = ring_reserve(&p->w, 56);
		assert_non_null(data);
		ring_fill(data, seed, 5);
		ring_commit(&p->w, 5, (uint8_t)(seed % 255 + 1));
		return;
	case RESERVE_MORE:
		ring_forge(&p->w, data, 4 * 64 - 8, 0);
		assert_non_null(ring_reserve(&p->w, 3 * 64 - 8));
		assert_non_null(ring_reserve(&p->w, 8));
		assert_true(ring_put(&p->w, seed, 5));
		return;
	case RESERVE_REFUSED:
		assert_null(ring_reserve(&p->w, 5 * 64));
		assert_true(ring_put(&p->w, seed, 5));
		return;
	default: ring_abort(&p->w); assert_true(ring_put(&p->w, seed, 5));
	}
}

static void what_a_dropped_reservation_left_never_looks_committed(void **state)
{
	(void)state;
	for (enum ending ending = 0; ending < ENDINGS; ending++)
		for (uint64_t start = 0; start < 16; start++) {
			struct ring_pair p;

			open_eager(&p, 16, start);
			for (uint32_t i = 0; i < 64; i++) {
				end_reservation(&p, ending, i);
				ring_take(&p.r, i, 5);
				ring_expect_none(&p.r);
			}
			ring_pair_close(&p);
		}
}

static void a_short_commit_gives_the_rest_back(void **state)
{
	struct ring_pair p;
	void *data;

	(void)state;
	open_eager(&p, 16, 0);
	data = ring_reserve(&p.w, 4 * 64 - 8);
	ring_fill(data, 0, 100);
	ring_commit(&p.w, 100, 1);
	assert_true(p.w.produced == 2);
	ring_take(&p.r, 0, 100);
	assert_ptr_equal(ring_reserve(&p.w, 1), p.inbound + RING_SEGMENTS_OFFSET + 3 * 64 + 8);
	ring_pair_close(&p);
}

/* Whatever is written and read: once a packet went out under it, each word of what is held back
 * does. */
static void what_is_held_back_stays_free(void **state)
{
	for (uint64_t start = 0; start < 16; start++)
		for (uint32_t held = 0; held <= 4; held++)
			for (uint32_t length = 8; length < 4 * 64; length += 64) {
				struct ring_pair p;
				uint32_t out = 0, words = held;

				(void)state;
				open_eager(&p, 16, start);
				ring_hold_back(&p.w, held);
				while (ring_put(&p.w, out, length))
					out++;
				assert_true(out > 0);
				assert_true(16 - (p.w.produced - start) >= held);
				assert_int_equal(ring_room(&p.w), 16 - (p.w.produced - start));
				for (uint32_t i = 0; i < words; i++) {
					ring_hold_back(&p.w, --held);
					assert_true(ring_put(&p.w, out + i, 32));
				}
				for (uint32_t i = 0; i < out; i++)
					ring_take(&p.r, i, length);
				for (uint32_t i = 0; i < words; i++)
					ring_take(&p.r, out + i, 32);
				ring_publish_consumed(&p.r, RING_FLUSH);
				ring_hold_back(&p.w, words);
				assert_true(ring_put(&p.w, 0, length));
				ring_take(&p.r, 0, length);
				held = words;
				ring_pair_close(&p);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_over_the_longest_is_refused_without_a_trace),
		cmocka_unit_test(a_full_ring_refuses_without_a_trace),
		cmocka_unit_test(what_a_dropped_reservation_left_never_looks_committed),
		cmocka_unit_test(a_short_commit_gives_the_rest_back),
		cmocka_unit_test(what_is_held_back_stays_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
