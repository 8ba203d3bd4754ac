/* SPDX-License-Identifier: BSD-3-Clause */
/* The words that a reader accepts, and that any other is named and refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/random.h"
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

static void plant(struct ring_pair *p, uint64_t total, uint64_t word)
{
	atomic_store(ring_first_word(p->inbound + RING_SEGMENTS_OFFSET, &p->shape, total & (N - 1)),
		     LITTLE_64(word));
}

/* A reader at its first segment meets WORD: what does peek say? */
static void meets(uint64_t start, uint64_t word, int expected, enum ring_violation violation)
{
	struct ring_packet got;
	struct ring_pair p;

	open_at(&p, start);
	plant(&p, start + 1, word);
	assert_int_equal(ring_peek(&p.r, &got), expected);
	assert_int_equal(p.r.violation, violation);
	if (expected != 1) /* nothing was taken */
		assert_true(p.r.read == start && p.r.consumed == start);
	ring_pair_close(&p);
}

static void three_words_are_accepted(void **state)
{
	(void)state;
	for (size_t s = 0; s < STARTS; s++) {
		uint64_t total = starts[s] + 1;

		meets(starts[s], 0, 0, RING_SOUND);
		meets(starts[s], ring_word(total - N, EPOCH, 9, 1), 0, RING_SOUND);
		meets(starts[s], RING_PAD | ring_word(total - N, EPOCH, 0, 0), 0, RING_SOUND);
		meets(starts[s], ring_word(total, EPOCH, 9, 1), 1, RING_SOUND);
	}
}

/* The epoch decides where a tag is 0; the untouched word there must not pass for a packet. */
static void an_open_word_stays_open_where_the_tag_is_nothing(void **state)
{
	struct ring_packet none;
	struct ring_pair p;

	(void)state;
	open_at(&p, EPOCH - 1);
	assert_int_equal(ring_tag(EPOCH, EPOCH), 0);
	assert_int_equal(ring_peek(&p.r, &none), 0);
	assert_true(ring_put(&p.w, 3, 100));
	ring_take(&p.r, 3, 100);
	ring_pair_close(&p);
	open_at(&p, EPOCH - 3);
	for (uint64_t i = 0; i < 3 * N; i++) {
		assert_int_equal(ring_peek(&p.r, &none), 0);
		assert_true(
			ring_put(&p.w, i, (uint32_t)i % 3 * 60) ||
			(ring_peek(&p.r, &none) == 0 && ring_put(&p.w, i, (uint32_t)i % 3 * 60)));
		ring_take(&p.r, i, (uint32_t)i % 3 * 60);
	}
	ring_pair_close(&p);
}

static void a_packet_without_a_kind_is_a_violation(void **state)
{
	(void)state;
	for (size_t s = 0; s < STARTS; s++)
		meets(starts[s], ring_word(starts[s] + 1, EPOCH, 9, 0), -EPROTO, RING_BAD_TAG);
	meets(EPOCH - 1, ring_word(EPOCH, EPOCH, 9, 0), -EPROTO, RING_BAD_TAG);
}

static void any_other_tag_is_a_violation(void **state)
{
	struct rng g = {6};

	(void)state;
	for (size_t s = 0; s < STARTS; s++) {
		uint64_t total = starts[s] + 1;

		for (uint64_t off = 1; off <= 3 * N; off++) {
			meets(starts[s], ring_word(total + off, EPOCH, 9, 1), -EPROTO,
			      RING_BAD_TAG);
			if (off != N)
				meets(starts[s], ring_word(total - off, EPOCH, 9, 1), -EPROTO,
				      RING_BAD_TAG);
		}
		for (int bit = 0; bit < 32; bit++) {
			uint64_t flipped = total ^ UINT64_C(1) << bit;
			bool old = (uint32_t)flipped == (uint32_t)(total - N);

			meets(starts[s], ring_word(flipped, EPOCH, 9, 1), old ? 0 : -EPROTO,
			      old ? RING_SOUND : RING_BAD_TAG);
		}
		for (int i = 0; i < 1000; i++) {
			uint64_t word = rng_next(&g) | 1;

			if ((uint32_t)word != ring_tag(total, EPOCH) &&
			    (uint32_t)word != ring_tag(total - N, EPOCH))
				meets(starts[s], word, -EPROTO, RING_BAD_TAG);
		}
	}
}

static void another_connections_page_never_looks_committed(void **state)
{
	struct ring_packet got;
	struct ring_pair p;

	(void)state;
	open_at(&p, 0);
	for (uint64_t i = 0; i < N; i++)
		assert_true(ring_put(&p.w, i, 8));
	p.r.epoch ^= 1; /* a reader of the next connection on the same page */
	assert_int_equal(ring_peek(&p.r, &got), -EPROTO);
	assert_int_equal(p.r.violation, RING_BAD_TAG);
	ring_pair_close(&p);
}

static void a_packet_must_fit(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < N; at++) { /* the index of the packet's first segment */
		uint64_t start = (UINT64_MAX - 2 * N + at) & UINT64_MAX;
		uint64_t total = start + 1;
		uint64_t end = N - (total & (N - 1)); /* segments up to the ring's end */

		for (uint32_t k = 1; k <= 2 * N; k++) {
			bool fits = k <= N / 4 && k <= end;
			uint32_t least = k == 1 ? 0 : (k - 1) * 64 - 8 + 1, most = k * 64 - 8;

			meets(start, ring_word(total, EPOCH, least, 1), fits ? 1 : -EPROTO,
			      fits ? RING_SOUND : RING_BAD_LENGTH);
			meets(start, ring_word(total, EPOCH, most, 1), fits ? 1 : -EPROTO,
			      fits ? RING_SOUND : RING_BAD_LENGTH);
			meets(start, UINT64_C(1) << 62 | ring_word(total, EPOCH, most, 1), -EPROTO,
			      RING_BAD_LENGTH);
		}
		meets(start, ring_word(total, EPOCH, RING_LENGTH_MAX, 1), -EPROTO, RING_BAD_LENGTH);
	}
}

static void a_pad_has_no_length_no_kind_and_is_never_at_the_start(void **state)
{
	uint64_t pad = RING_PAD | ring_tag(3, EPOCH);
	struct ring_packet none;
	struct ring_pair p;

	(void)state;
	for (int bit = 32; bit < 63; bit++) /* length, kind, and what means nothing */
		meets(2, pad | UINT64_C(1) << bit, -EPROTO, RING_BAD_LENGTH);
	meets(N - 1, RING_PAD | ring_tag(N, EPOCH), -EPROTO, RING_BAD_LENGTH);
	open_at(&p, 2);
	plant(&p, 3, pad);
	assert_int_equal(ring_peek(&p.r, &none), 0);
	assert_int_equal(p.r.violation, RING_SOUND);
	assert_true(p.r.consumed == N - 1);
	/* A second pad right behind it would be a whole ring of nothing. */
	plant(&p, N, RING_PAD | ring_tag(N, EPOCH));
	assert_int_equal(ring_peek(&p.r, &none), -EPROTO);
	ring_pair_close(&p);
}

/* The reader holds 12 of 16 segments; a packet of 4 more is sound, then nothing fits. */
static void no_packet_may_overrun_what_is_held(void **state)
{
	struct ring_packet held[4], got;
	struct ring_pair p;

	(void)state;
	open_at(&p, N - 1);
	for (uint64_t i = 0; i < 4; i++) {
		plant(&p, N + 4 * i, ring_word(N + 4 * i, EPOCH, 4 * 64 - 8, 1));
		assert_int_equal(ring_peek(&p.r, &held[i]), 1);
	}
	plant(&p, 2 * N, ring_word(2 * N, EPOCH, 1, 1));
	assert_int_equal(ring_peek(&p.r, &got), -EPROTO);
	assert_int_equal(p.r.violation, RING_BAD_LENGTH);
	ring_release(&p.r, &held[0]);
	assert_int_equal(ring_peek(&p.r, &got), 1); /* its place was given back */
	plant(&p, 2 * N + 1, RING_PAD | ring_word(2 * N + 1, EPOCH, 0, 0));
	assert_int_equal(ring_peek(&p.r, &got), -EPROTO);
	ring_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_words_are_accepted),
		cmocka_unit_test(an_open_word_stays_open_where_the_tag_is_nothing),
		cmocka_unit_test(a_packet_without_a_kind_is_a_violation),
		cmocka_unit_test(any_other_tag_is_a_violation),
		cmocka_unit_test(another_connections_page_never_looks_committed),
		cmocka_unit_test(a_packet_must_fit),
		cmocka_unit_test(a_pad_has_no_length_no_kind_and_is_never_at_the_start),
		cmocka_unit_test(no_packet_may_overrun_what_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
