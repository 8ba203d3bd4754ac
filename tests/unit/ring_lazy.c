/* SPDX-License-Identifier: BSD-3-Clause */
/* When totals are published: exactly as often as the rule says, by cause, and never too late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/random.h"
#include "tests/lib/ring_pair.h"

#define N     64
#define BATCH (N / 16)

static void open_lazy(struct ring_pair *p, uint32_t n, uint32_t threshold, uint32_t batch,
		      uint64_t start)
{
	struct ring_setup setup = {
		.shape = {n, 64},
		.epoch = 0xabcdef01,
		.start = start,
		.threshold = threshold,
		.batch = batch,
	};

	ring_pair_open(p, &setup);
}

static uint64_t all_publications(const struct ring_reader *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < RING_CAUSES; i++)
		sum += r->publications[i];
	return sum;
}

/* One message at a time, read at once: J - K published grows by one a message. */
static void ping_pong(uint32_t threshold, uint64_t messages, uint64_t expected,
		      enum ring_cause cause)
{
	struct ring_pair p;

	open_lazy(&p, N, threshold, BATCH, UINT64_MAX - 100);
	for (uint64_t i = 0; i < messages; i++) {
		assert_true(ring_put(&p.w, i, 8));
		ring_take(&p.r, i, 8);
	}
	assert_true(p.r.publications[cause] == expected);
	assert_true(all_publications(&p.r) == expected);
	assert_true(p.r.writes == expected);
	ring_pair_close(&p);
}

static void an_idle_ring_publishes_once_a_threshold(void **state)
{
	(void)state;
	ping_pong(N / 3, 21 * 100 + 20, 100, RING_THRESHOLD);
	ping_pong(N / 2, 32 * 100 + 31, 100, RING_THRESHOLD);
	ping_pong(2 * N / 3, 42 * 100 + 41, 100, RING_THRESHOLD);
	ping_pong(3 * N / 4, 48 * 100 + 47, 100, RING_THRESHOLD);
	ping_pong(1, 4 * 100 + 3, 100, RING_THRESHOLD); /* the minimum batch holds it back */
}

static void after_every_read_means_after_every_read(void **state)
{
	(void)state;
	ping_pong(0, 1000, 1000, RING_EVERY);
}

/*
 * A full ring of N, all published, drained: J stays N, so K goes out at each batch until what the
 * writer believes unread falls below the threshold.
 */
static void drain_full(uint32_t threshold, uint64_t expected, uint64_t last)
{
	struct ring_pair p;

	open_lazy(&p, N, threshold, BATCH, 0);
	for (uint64_t i = 0; i < N; i++)
		assert_true(ring_put(&p.w, i, 8));
	for (uint64_t i = 0; i < N; i++)
		ring_take(&p.r, i, 8);
	assert_true(p.r.publications[RING_THRESHOLD] == expected);
	assert_true(all_publications(&p.r) == expected);
	assert_true(p.r.published == last);
	assert_true(LITTLE_64(atomic_load(&ring_words_of(p.back)->consumed)) == last);
	ring_pair_close(&p);
}

static void a_full_ring_publishes_by_batches_down_to_the_threshold(void **state)
{
	(void)state;
	drain_full(N / 3, 11, 44);    /* at 4, 8, ... while 64 - published >= 21 */
	drain_full(N / 2, 9, 36);     /* >= 32 */
	drain_full(2 * N / 3, 6, 24); /* >= 42 */
	drain_full(3 * N / 4, 5, 20); /* >= 48: from 16 unread it is 48 still */
}

/* The rule written down once more, naively, and compared step by step on random traffic. */
static void follow_rule(struct rng *g, uint32_t threshold, uint32_t batch, uint64_t start)
{
	uint64_t written = 0, read = 0, expected = 0, announced = 0, known = start, j_word = start;
	uint64_t k = start, k_out = start, j = start;
	struct ring_pair p;

	open_lazy(&p, N, threshold, batch, start);
	for (int step = 0; step < 20000; step++) {
		if (rng_one_in(g, 2)) {
			if (!ring_put(&p.w, written, 8))
				continue;
			written++, j++;
			if (++announced >= N / 16)
				j_word = j, announced = 0;
		} else if (read < written) {
			ring_take(&p.r, read++, 8);
			k++;
			known = (int64_t)(j_word - k) > 0 ? j_word : k;
			if (k - k_out >= (threshold ? batch : 1) && known - k_out >= threshold)
				k_out = k, expected++;
		}
		assert_true(p.r.published == k_out);
		assert_true(p.w.announced == j_word);
	}
	assert_true(all_publications(&p.r) == expected);
	assert_true(p.r.publications[threshold ? RING_THRESHOLD : RING_EVERY] == expected);
	ring_pair_close(&p);
}

static void random_traffic_follows_the_rule(void **state)
{
	static const uint64_t starts[] = {0, UINT32_MAX - 1000, UINT64_MAX - 1000};
	struct rng g = {4};

	(void)state;
	for (size_t s = 0; s < 3; s++)
		for (uint32_t p = 0; p <= 4; p++)
			follow_rule(&g, (const uint32_t[]){0, 21, 32, 42, 48}[p],
				    1 + rng_below(&g, 2 * BATCH), starts[s]);
}

static void publishing_an_old_figure_again_costs_nothing(void **state)
{
	struct ring_pair p;

	(void)state;
	open_lazy(&p, N, 3 * N / 4, BATCH, 0);
	ring_publish_consumed(&p.r, RING_SLEEP);
	ring_publish_produced(&p.w);
	assert_true(all_publications(&p.r) == 0 && p.r.writes == 0);
	assert_true(p.w.publications == 0 && p.w.writes == 0);
	assert_true(ring_put(&p.w, 0, 8));
	ring_publish_produced(&p.w);
	ring_publish_produced(&p.w);
	assert_true(p.w.publications == 1 && p.w.writes == 2);
	ring_take(&p.r, 0, 8);
	ring_publish_consumed(&p.r, RING_EVERY);
	ring_publish_consumed(&p.r, RING_SLEEP);
	assert_true(p.r.publications[RING_EVERY] == 1 && p.r.publications[RING_SLEEP] == 0);
	assert_true(ring_put(&p.w, 1, 8));
	ring_take(&p.r, 1, 8);
	ring_publish_consumed(&p.r, RING_SLEEP);
	ring_publish_consumed(&p.r, RING_FLUSH);
	assert_true(p.r.publications[RING_SLEEP] == 1 && p.r.publications[RING_FLUSH] == 0);
	ring_pair_close(&p);
}

/* Before sleep: what the writer may be waiting for, be it less than a batch, and nothing else. */
static void a_sleeper_publishes_what_its_writer_needs(void **state)
{
	struct ring_packet held, p;
	struct ring_pair r;

	(void)state;
	open_lazy(&r, N, N / 2, N / 2, 0);
	for (uint64_t i = 0; i < N / 2 - 1; i++) {
		assert_true(ring_put(&r.w, i, 8));
		ring_take(&r.r, i, 8);
		ring_settle(&r.r);
	}
	assert_true(all_publications(&r.r) == 0);
	assert_true(ring_put(&r.w, 0, 8) && ring_peek(&r.r, &held) == 1);
	assert_true(r.r.consumed - r.r.published < r.r.batch);
	ring_settle(&r.r);
	assert_true(r.r.publications[RING_SLEEP] == 1 && r.r.published == N / 2 - 1);
	ring_settle(&r.r);
	assert_true(all_publications(&r.r) == 1);
	/* The writer's total counts, too: it may be ahead of what has been read. */
	ring_release(&r.r, &held);
	for (uint64_t i = 0; i < N / 2 - 1; i++)
		assert_true(ring_put(&r.w, i, 8));
	ring_publish_produced(&r.w);
	assert_true(ring_peek(&r.r, &p) == 1);
	ring_settle(&r.r);
	assert_true(r.r.publications[RING_SLEEP] == 2 && all_publications(&r.r) == 2);
	ring_pair_close(&r);
}

static void the_writer_announces_every_sixteenth_of_the_ring(void **state)
{
	struct ring_pair p;

	(void)state;
	open_lazy(&p, 256, 0, 0, 0);
	for (uint64_t i = 0; i < 16 * 100 + 15; i++) {
		assert_true(ring_put(&p.w, i, 8));
		ring_take(&p.r, i, 8);
	}
	assert_true(p.w.publications == 100);
	assert_true(LITTLE_64(atomic_load(&ring_words_of(p.inbound)->produced)) == 1600);
	ring_pair_close(&p);
}

/* Neither side may wait for the other while the ring is drained, whatever is asked for. */
static void stay_live(struct rng *g, uint32_t n, uint32_t threshold, uint32_t batch)
{
	struct ring_pair p;
	uint32_t longest;

	open_lazy(&p, n, threshold, batch, rng_next(g));
	longest = ring_bytes_of(&p.shape, ring_packet_max(&p.shape));
	for (uint64_t laps = 0, sent = 0; laps < 40; laps++) {
		struct ring_packet got;
		uint32_t bytes = rng_below(g, longest + 1);
		uint64_t before = sent;

		while (ring_put(&p.w, sent, bytes))
			sent++, bytes = rng_below(g, longest + 1);
		ring_publish_produced(&p.w);
		/* A pad may have taken what was there; then draining it makes room. */
		assert_true(sent > before || p.r.read != p.w.produced);
		while (ring_peek(&p.r, &got) == 1)
			ring_release(&p.r, &got);
		if (!ring_put(&p.w, sent, bytes)) {
			assert_int_equal(ring_peek(&p.r, &got), 0);
			assert_true(ring_put(&p.w, sent, bytes));
		}
		sent++;
		assert_int_equal(p.r.violation, RING_SOUND);
		assert_int_equal(p.w.violation, RING_SOUND);
	}
	ring_pair_close(&p);
}

static void a_drained_ring_always_has_room_again(void **state)
{
	struct rng g = {5};

	(void)state;
	for (uint32_t n = 2; n <= 64; n *= 2)
		for (uint32_t threshold = 0; threshold <= n; threshold++)
			for (uint32_t batch = 0; batch <= n; batch += 1 + n / 8)
				stay_live(&g, n, threshold, batch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_ring_publishes_once_a_threshold),
		cmocka_unit_test(after_every_read_means_after_every_read),
		cmocka_unit_test(a_full_ring_publishes_by_batches_down_to_the_threshold),
		cmocka_unit_test(random_traffic_follows_the_rule),
		cmocka_unit_test(publishing_an_old_figure_again_costs_nothing),
		cmocka_unit_test(a_sleeper_publishes_what_its_writer_needs),
		cmocka_unit_test(the_writer_announces_every_sixteenth_of_the_ring),
		cmocka_unit_test(a_drained_ring_always_has_room_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
