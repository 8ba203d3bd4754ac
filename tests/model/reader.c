/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader: what it takes, holds and compares, how it waits for packets. */
#include "tests/model/play.h"

SHALLOW static void check_packet(const struct ring_packet *p)
{
	const struct sent *sent = &sides.sent[SEGMENT(p->total)];

	if (sent->total != p->total || sent->bytes != p->length || sent->kind != p->kind)
		model_fault("a packet that was never sent");
	if (p->data != machine_segments + SEGMENT(p->total) * SEGMENT_BYTES + RING_WORD)
		model_fault("a packet that lies elsewhere");
	for (uint32_t i = 0; i < p->segments; i++) {
		unsigned at = SEGMENT(p->total + i);

		if (i && model_read_payload(at, true) != sides.word[at])
			model_fault("torn: the first word of a segment");
		if (model_read_payload(at, false) != p->total + i)
			model_fault("torn: the payload of a segment");
	}
}

static void look_at_sleeping_writer(void)
{
	if (has(WRITER_SLEEPS))
		doorbell_check(&sides.reader_bell);
}

SHALLOW static void release(uint32_t i)
{
	struct ring_packet p = sides.held[i];
	struct ring_reader *r = &sides.r;
	uint64_t published = r->published;

	check_packet(&p); /* still */
	sides.held[i] = sides.held[--sides.held_count];
	sides.held[sides.held_count] = (struct ring_packet){0};
	sides.kept = false;
	sides.sent[SEGMENT(p.total)] = (struct sent){0};
	ring_release(r, &p);
	if (r->consumed - r->published >= r->batch && r->read - r->published >= r->threshold)
		model_fault("a publication of K is overdue");
	if (r->published != published && ORDER_RULE(check_release))
		look_at_sleeping_writer();
}

SHALLOW static void take(const struct ring_packet *p)
{
	check_packet(p);
	sides.got = p->total + p->segments - 1;
	sides.held[sides.held_count++] = *p;
	if (!has(HOLD)) {
		release(0);
		return;
	}
	while (sides.held_count == HELD_MAX || (sides.held_count && model_choose(2)))
		release(model_choose(sides.held_count));
}

SHALLOW static bool inspect(void)
{
	struct ring_packet p;
	uint64_t counted = sides.r.read;
	uint64_t published = sides.r.published;
	int rc;

	if (has(COUNT) && model_choose(2)) {
		(void)ring_unread(&sides.r);
		counted = sides.r.produced;
	}
	rc = ring_peek(&sides.r, &p);
	if (rc < 0 || sides.r.violation)
		model_fault("the reader calls the writer's words impossible");
	if (sides.r.published != published && ORDER_RULE(check_peek)) /* it took a pad */
		look_at_sleeping_writer();
	if (!rc && (int64_t)(counted - sides.r.read) > 0)
		model_fault("a total that counts a packet which is not there");
	if (rc)
		take(&p);
	return rc;
}

/* J as a reader that has looked at everything knows it at the most. */
static uint64_t known_total(void)
{
	uint64_t j = model_newest(WORD_PRODUCED);

	return (int64_t)(j - sides.r.read) > 0 ? j : sides.r.read;
}

SHALLOW static void settle(void)
{
	uint64_t published = sides.r.published;

	if (ORDER_RULE(publish_asleep))
		ring_settle(&sides.r);
	if (sides.r.published != published && known_total() - published < sides.r.threshold)
		model_fault("a publication of K that nobody waits for");
}

/* An application may keep a quarter of the ring while it waits for more. */
static bool may_keep(void)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < sides.held_count; i++)
		kept += sides.held[i].segments;
	if (sides.kept || kept > scenario->segments / 4 || !has(READER_SLEEPS))
		return false;
	sides.kept = model_choose(2);
	return sides.kept;
}

/* Nothing there: false when there will never be anything. */
SHALLOW static bool rest(void)
{
	uint64_t unpublished, published;

	if (sides.held_count && !may_keep()) {
		release(model_choose(sides.held_count));
		return true;
	}
	if (!has(READER_SLEEPS)) {
		sides.doing[READER] = WAITS;
		model_wait(machine_segments + SEGMENT(sides.r.read + 1) * SEGMENT_BYTES);
		sides.doing[READER] = RUNS;
		return true;
	}
	published = sides.r.published;
	settle();
	unpublished = sides.r.consumed - sides.r.published;
	if (sides.r.published != published && ORDER_RULE(check_asleep))
		look_at_sleeping_writer();
	doorbell_announce(&sides.reader_bell);
	if (has(TWICE))
		doorbell_announce(&sides.reader_bell);
	sides_announced(&sides.reader_bell);
	if (!ORDER_RULE(look_again) || !inspect()) {
		/* A pad taken by that look, the last of all, may stay unpublished. */
		if (unpublished && sides.r.read - sides.r.published >= sides.r.threshold &&
		    sides.r.consumed - sides.r.published == unpublished)
			model_fault("the reader sleeps with its total unpublished");
		sides.doing[READER] = SLEEPS;
		if (model_sleep() && !inspect())
			return false;
		sides.doing[READER] = RUNS;
	}
	doorbell_retract(&sides.reader_bell);
	sides_retracted(&sides.reader_bell);
	return true;
}

void play_reader(void)
{
	struct ring_setup setup = common_setup();

	setup.bits = &sides.done;
	setup.out = &machine_words[WORD_CONSUMED];
	setup.in = &machine_words[WORD_PRODUCED];
	if (has(THRESHOLDS)) {
		setup.threshold = model_choose(scenario->segments + 1);
		setup.batch = 1 + model_choose(scenario->segments);
	}
	ring_reader_init(&sides.r, &setup);
	sides.reader_bell.asleep_in = &machine_words[WORD_WRITER_ASLEEP];
	sides.reader_bell.asleep_out = &machine_words[WORD_READER_ASLEEP];
	sides.reader_bell.no_membarrier = sides.reader_bell.fence = !has(MEMBARRIER);

	if (has(LATE))
		doorbell_retract(&sides.reader_bell);
	sides.got = scenario->start;
	while (!all_sent(sides.got)) {
		if (!inspect() && !rest())
			break;
	}
	while (sides.held_count)
		release(model_choose(sides.held_count));
	if (ORDER_RULE(publish_closing))
		ring_publish_consumed(&sides.r, RING_FLUSH);
	look_at_sleeping_writer();
	end_of(READER);
}
