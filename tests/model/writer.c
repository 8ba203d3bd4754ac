/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer: what it sends, how it waits for room. */
#include "tests/model/play.h"

#define ABORTS_MAX 2
#define MIMIC_KIND 0x7f /* no packet has it */

static uint32_t longest(uint32_t k)
{
	return k * SEGMENT_BYTES - RING_WORD;
}

static uint64_t mimicked(uint64_t total)
{
	uint64_t lap = scenario->segments;
	uint64_t word = (uint64_t)MIMIC_KIND << 54 | UINT64_C(40) << 32;

	switch (has(MIMIC) ? model_choose(4) : 1) {
	case 0: return word | ring_tag(total, scenario->epoch);
	case 1: return word | ring_tag(total + lap, scenario->epoch);
	case 2: return RING_PAD | ring_tag(total + lap, scenario->epoch);
	default: return word | ring_tag(total - lap, scenario->epoch);
	}
}

SHALLOW static void write_payload(uint32_t k, bool real)
{
	for (uint32_t i = 0; i < k; i++) {
		uint64_t total = sides.w.produced + 1 + i;

		if (i) {
			sides.word[SEGMENT(total)] = mimicked(total);
			model_write_payload(SEGMENT(total), true, sides.word[SEGMENT(total)]);
		}
		model_write_payload(SEGMENT(total), false, real ? total : ~total);
	}
}

static void look_at_sleeper(void)
{
	if (has(READER_SLEEPS))
		doorbell_check(&sides.writer_bell);
}

/* Each time that there is nothing to be had: what a waiting writer has deferred. */
static bool owing(void)
{
	if (sides.w.violation)
		model_fault("the writer calls the reader's total impossible");
	if (ORDER_RULE(publish_waiting))
		ring_publish_produced(&sides.w);
	sides.quiet = false;
	if (ORDER_RULE(check_waiting)) /* a burst may have ended, a pad been put */
		look_at_sleeper();
	return false;
}

static bool has_room(uint32_t bytes)
{
	return ring_reserve(&sides.w, bytes) || owing();
}

static void wait_or_sleep(bool sleep)
{
	sides.doing[WRITER] = sleep ? SLEEPS : WAITS;
	if (sleep)
		model_sleep();
	else
		model_wait(&machine_words[WORD_CONSUMED]);
	sides.doing[WRITER] = RUNS;
}

/* Until IT is so: polling, or asleep and awake again. */
SHALLOW static void await(bool (*it)(uint32_t), uint32_t bytes)
{
	bool so;

	while (!it(bytes)) {
		if (!has(WRITER_SLEEPS)) {
			wait_or_sleep(false);
			continue;
		}
		doorbell_announce(&sides.writer_bell);
		sides_announced(&sides.writer_bell);
		so = ORDER_RULE(look_again) && it(bytes);
		if (!so) {
			if (model_newest(WORD_PRODUCED) != sides.w.produced)
				model_fault("the writer sleeps with its total unpublished");
			wait_or_sleep(true);
		}
		doorbell_retract(&sides.writer_bell);
		sides_retracted(&sides.writer_bell);
		if (so)
			return;
	}
}

SHALLOW static void give_up_some(void)
{
	while (sides.aborts < ABORTS_MAX && model_choose(2)) {
		uint32_t k = 1 + model_choose(sides.w.max);

		sides.aborts++;
		await(has_room, longest(k));
		write_payload(k, false);
		if (model_choose(2))
			ring_abort(&sides.w);
	}
}

static uint32_t some_length(unsigned i)
{
	uint64_t lap = (sides.w.produced + 1 - scenario->start) / scenario->segments;

	if (has(SECOND_LAP))
		return lap == 1 && model_choose(2) ? sides.w.max : 1;
	if (has(LENGTHS))
		return 1 + model_choose(sides.w.max);
	return i & 1 ? sides.w.max : 1;
}

SHALLOW static void send_one(unsigned i)
{
	uint32_t k = some_length(i);
	uint32_t bytes = has(BYTES) ? model_choose(longest(sides.w.max) + 1) : longest(k);
	uint64_t total;

	if (has(ABORT))
		give_up_some();
	if (has(SHORTEN)) {
		await(has_room, longest(sides.w.max));
		write_payload(sides.w.max, false);
	} else {
		await(has_room, bytes);
	}
	k = ring_span(bytes, sides.w.shift);
	write_payload(k, true);
	total = sides.w.produced + 1;
	sides.sent[SEGMENT(total)] = (struct sent){total, bytes, (uint8_t)(1 + i % 3)};
	ring_commit(&sides.w, bytes, (uint8_t)(1 + i % 3));
	if (sides.w.produced - sides.w.announced >= sides.w.lag)
		model_fault("a publication of J is overdue");
	sides.quiet = has(MORE) && model_choose(2);
	if (!sides.quiet && ORDER_RULE(check_commit))
		look_at_sleeper();
}

void play_writer(void)
{
	struct ring_setup setup = common_setup();

	setup.bits = &sides.stale;
	setup.out = &machine_words[WORD_PRODUCED];
	setup.in = &machine_words[WORD_CONSUMED];
	ring_writer_init(&sides.w, &setup);
	if (scenario->lag)
		sides.w.lag = scenario->lag;
	sides.writer_bell.asleep_in = &machine_words[WORD_READER_ASLEEP];
	sides.writer_bell.asleep_out = &machine_words[WORD_WRITER_ASLEEP];
	sides.writer_bell.no_membarrier = sides.writer_bell.fence = !has(MEMBARRIER);

	for (unsigned i = 0; !all_sent(sides.w.produced); i++)
		send_one(i);
	if (ORDER_RULE(publish_closing))
		ring_publish_produced(&sides.w);
	if (sides.quiet && ORDER_RULE(check_quiet))
		look_at_sleeper();
	end_of(WRITER);
}
