/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer and the reader, and what is asked of them at each step and at the end. */
#include "tests/model/sides.h"

#include <string.h>

#include "shm/doorbell.h"
#include "shm/ring.h"

#define HELD_MAX       2
#define ABORTS_MAX     2
#define MIMIC_KIND     0x7f /* no packet has it */
#define SEGMENT(total) ((unsigned)((total) & (scenario->segments - 1)))

/* What the writer sent: for the reader to compare with, not shared memory. */
struct sent {
	uint64_t total;
	uint32_t bytes;
	uint8_t kind;
};

/* What a function leaves in its frame must not outlive it: it would tell states apart. */
#define SHALLOW __attribute__((noinline))

enum { RUNS, WAITS, SLEEPS, ENDED };

static struct sides {
	struct ring_writer w;
	struct ring_reader r;
	struct doorbell writer_bell, reader_bell;
	uint64_t stale, done; /* the ring's private bits */
	struct sent sent[MACHINE_SEGMENTS];
	uint64_t word[MACHINE_SEGMENTS]; /* payload in a first word */
	struct ring_packet held[HELD_MAX];
	uint64_t got; /* total behind the last packet, pads not counted */
	uint32_t held_count;
	uint32_t aborts;
	uint32_t hostile; /* enum ring_violation that must come */
	uint16_t doing[THREADS];
	bool quiet;
} sides;

static const struct scenario *scenario;

static bool has(unsigned flag)
{
	return scenario->flags & flag;
}

/* ---- the system calls of doorbell.c ---- */

void doorbell_barrier(void)
{
	model_barrier();
}

void doorbell_ring(struct doorbell *b, uint64_t announcement)
{
	b->rung = announcement;
	model_bell();
}

/* ---- the writer ---- */

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

/* Room for so many bytes, waited for as long as it takes. */
SHALLOW static void obtain(uint32_t bytes)
{
	while (!ring_reserve(&sides.w, bytes)) {
		if (sides.w.violation)
			model_fault("the writer calls the reader's total impossible");
		if (ORDER_RULE(publish_waiting))
			ring_publish_produced(&sides.w);
		sides.quiet = false;
		if (ORDER_RULE(check_waiting)) /* a pad may have been put */
			look_at_sleeper();
		if (!has(WRITER_SLEEPS)) {
			sides.doing[WRITER] = WAITS;
			model_wait(&machine_words[WORD_CONSUMED]);
			sides.doing[WRITER] = RUNS;
			continue;
		}
		doorbell_announce(&sides.writer_bell);
		if (has(MEMBARRIER))
			doorbell_barrier();
		if (!ORDER_RULE(look_again) || !ring_reserve(&sides.w, bytes)) {
			if (model_newest(WORD_PRODUCED) != sides.w.produced)
				model_fault("the writer sleeps with its total unpublished");
			sides.doing[WRITER] = SLEEPS;
			model_sleep();
			sides.doing[WRITER] = RUNS;
			doorbell_retract(&sides.writer_bell);
			continue;
		}
		doorbell_retract(&sides.writer_bell);
		return;
	}
}

SHALLOW static void give_up_some(void)
{
	while (sides.aborts < ABORTS_MAX && model_choose(2)) {
		uint32_t k = 1 + model_choose(sides.w.max);

		sides.aborts++;
		obtain(longest(k));
		write_payload(k, false);
		if (model_choose(2))
			ring_abort(&sides.w);
	}
}

SHALLOW static void wait_for_all_read(void)
{
	while (ring_room(&sides.w) != scenario->segments) {
		if (sides.w.violation)
			model_fault("the writer calls the reader's total impossible");
		sides.doing[WRITER] = WAITS;
		model_wait(&machine_words[WORD_CONSUMED]);
		sides.doing[WRITER] = RUNS;
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
	bool ask = has(ASK) && model_choose(2);
	uint64_t total;

	if (has(ABORT))
		give_up_some();
	if (has(SHORTEN)) {
		obtain(longest(sides.w.max));
		write_payload(sides.w.max, false);
	} else {
		obtain(bytes);
	}
	k = ring_span(bytes, sides.w.shift);
	write_payload(k, true);
	total = sides.w.produced + 1;
	sides.sent[SEGMENT(total)] = (struct sent){total, bytes, (uint8_t)(1 + i % 3)};
	ring_commit(&sides.w, bytes, (uint8_t)(1 + i % 3), ask ? RING_ASK : 0);
	if (sides.w.produced - sides.w.announced >= sides.w.lag)
		model_fault("a publication of J is overdue");
	sides.quiet = has(MORE) && model_choose(2);
	if (!sides.quiet && ORDER_RULE(check_commit))
		look_at_sleeper();
	if (ask)
		wait_for_all_read();
}

static bool all_sent(uint64_t total)
{
	return total - scenario->start >= scenario->send;
}

static void set_up(struct ring_setup *setup)
{
	*setup = (struct ring_setup){
		.shape = {scenario->segments, SEGMENT_BYTES},
		.epoch = scenario->epoch,
		.start = scenario->start,
		.segments = machine_segments,
		.threshold = scenario->threshold,
		.batch = scenario->batch,
	};
}

static void end(int t)
{
	sides.doing[t] = ENDED;
	model_end();
}

static void writer(void)
{
	struct ring_setup setup;

	set_up(&setup);
	setup.bits = &sides.stale;
	setup.out = &machine_words[WORD_PRODUCED];
	setup.in = &machine_words[WORD_CONSUMED];
	ring_writer_init(&sides.w, &setup);
	if (scenario->lag)
		sides.w.lag = scenario->lag;
	sides.writer_bell.asleep_in = &machine_words[WORD_READER_ASLEEP];
	sides.writer_bell.asleep_out = &machine_words[WORD_WRITER_ASLEEP];
	sides.writer_bell.fence = !has(MEMBARRIER);

	for (unsigned i = 0; !all_sent(sides.w.produced); i++)
		send_one(i);
	if (ORDER_RULE(publish_closing))
		ring_publish_produced(&sides.w);
	if (sides.quiet && ORDER_RULE(check_quiet))
		look_at_sleeper();
	end(WRITER);
}

/* ---- the reader ---- */

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

SHALLOW static bool look(void)
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

/* Nothing there: false when there will never be anything. */
SHALLOW static bool rest(void)
{
	uint64_t consumed;

	if (sides.held_count) {
		release(model_choose(sides.held_count));
		return true;
	}
	if (!has(READER_SLEEPS)) {
		sides.doing[READER] = WAITS;
		model_wait(machine_segments + SEGMENT(sides.r.read + 1) * SEGMENT_BYTES);
		sides.doing[READER] = RUNS;
		return true;
	}
	consumed = sides.r.consumed;
	if (ORDER_RULE(publish_asleep))
		ring_publish_consumed(&sides.r, RING_SLEEP);
	if (ORDER_RULE(check_asleep))
		look_at_sleeping_writer();
	doorbell_announce(&sides.reader_bell);
	if (has(MEMBARRIER))
		doorbell_barrier();
	if (!ORDER_RULE(look_again) || !look()) {
		/* A pad taken by that look, the last of all, may stay unpublished. */
		if ((int64_t)(model_newest(WORD_CONSUMED) - consumed) < 0)
			model_fault("the reader sleeps with its total unpublished");
		sides.doing[READER] = SLEEPS;
		if (model_sleep() && !look())
			return false;
		sides.doing[READER] = RUNS;
	}
	doorbell_retract(&sides.reader_bell);
	return true;
}

static void reader(void)
{
	struct ring_setup setup;

	set_up(&setup);
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
	sides.reader_bell.fence = !has(MEMBARRIER);

	sides.got = scenario->start;
	while (!all_sent(sides.got)) {
		if (!look() && !rest())
			break;
	}
	while (sides.held_count)
		release(model_choose(sides.held_count));
	if (ORDER_RULE(publish_closing))
		ring_publish_consumed(&sides.r, RING_FLUSH);
	look_at_sleeping_writer();
	end(READER);
}

/* ---- what must hold ---- */

/* Counters of what happened decide nothing: states that differ in them alone are one. */
static void forget_statistics(void)
{
	sides.w.writes = sides.w.publications = sides.r.writes = 0;
	memset(sides.r.publications, 0, sizeof(sides.r.publications));
	sides.writer_bell.writes = sides.writer_bell.bells = 0;
	sides.reader_bell.writes = sides.reader_bell.bells = 0;
}

/* The writer is dead: whatever it committed must have been read. */
static const char *check_prefix(void)
{
	uint64_t next = sides.r.read + 1;
	uint64_t word = model_newest(WORDS + (int)SEGMENT(next));

	if (word && (uint32_t)word == ring_tag(next, scenario->epoch))
		return "the writer was killed and a committed packet is lost";
	return sides.held_count ? "packets held for ever" : NULL;
}

static const char *settled(void)
{
	bool writer_sleeps = sides.doing[WRITER] == SLEEPS;

	if (explore_writer_dead())
		return check_prefix();
	if (sides.doing[READER] == SLEEPS)
		return writer_sleeps ? "stuck: both asleep" : "stuck: the reader is never woken";
	if (writer_sleeps)
		return "stuck: the writer is never woken";
	if (sides.doing[WRITER] == WAITS)
		return "stuck: the writer waits for room that was made";
	if (sides.doing[READER] == WAITS)
		return "stuck: the reader waits for packets that were sent";
	if (sides.r.consumed != sides.w.produced)
		return "something sent was never read";
	if (model_newest(WORD_PRODUCED) != sides.w.produced ||
	    model_newest(WORD_CONSUMED) != sides.r.consumed)
		return "closed with a total unpublished";
	if (model_newest(WORD_WRITER_ASLEEP) & 1 || model_newest(WORD_READER_ASLEEP) & 1)
		return "awake, but announced as asleep";
	return NULL;
}

struct search scenario_search(const struct scenario *s)
{
	if (s->flags & (HOSTILE_WRITER | HOSTILE_READER))
		return hostile_search(s);
	scenario = s;
	return (struct search){
		.entry = {writer, reader},
		.segments = s->segments,
		.start = s->start,
		.private = &sides,
		.private_size = sizeof(sides),
		.canonical = forget_statistics,
		.settled = settled,
		.hurry = !(s->flags & (MEMBARRIER | KILL)),
		.kill = s->flags & KILL,
		.states_max = 20000000,
	};
}
