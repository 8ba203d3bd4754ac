/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that stores impossible words: the other side must name the violation, whenever it comes
 * upon them, and hand out nothing.
 */
#include "tests/model/sides.h"

#include "shm/ring.h"

#define SEGMENT(total) ((unsigned)((total) & (scenario->segments - 1)))
#define KIND           (UINT64_C(1) << 54)

static struct hostile {
	struct ring_writer w;
	struct ring_reader r;
	uint64_t stale, done;
	unsigned attack, before; /* which, after how many good packets */
	bool noticed;
} hostile;

static const struct scenario *scenario;

struct attack {
	uint64_t word;  /* on top of the new tag */
	int64_t laps;   /* added to the total that makes the tag */
	unsigned index; /* where the head must be, -1 anywhere */
	enum ring_violation violation;
	bool total; /* no word: a published total, off by LAPS laps and WORD */
};

#define BIT_62         (UINT64_C(1) << 62) /* means nothing */
#define ANYWHERE       (~0u)
#define LONG(segments) (KIND | (uint64_t)((segments)*SEGMENT_BYTES - RING_WORD) << 32)

/* Of a writer, in a ring of four where packets have up to two segments. */
static const struct attack writer_attacks[] = {
	{KIND, 1, ANYWHERE, RING_BAD_TAG, false},
	{KIND, -2, ANYWHERE, RING_BAD_TAG, false},
	{0, 0, ANYWHERE, RING_BAD_TAG, false},
	{BIT_62, 0, ANYWHERE, RING_BAD_TAG, false},
	{KIND | BIT_62, 0, ANYWHERE, RING_BAD_LENGTH, false},
	{LONG(3), 0, 1, RING_BAD_LENGTH, false},
	{LONG(2), 0, 3, RING_BAD_LENGTH, false},
	{KIND | (uint64_t)RING_LENGTH_MAX << 32, 0, ANYWHERE, RING_BAD_LENGTH, false},
	{RING_PAD, 0, 0, RING_BAD_LENGTH, false},
	{RING_PAD | KIND, 0, ANYWHERE, RING_BAD_LENGTH, false},
	{RING_PAD | BIT_62, 0, ANYWHERE, RING_BAD_LENGTH, false},
	{RING_PAD | UINT64_C(8) << 32, 0, ANYWHERE, RING_BAD_LENGTH, false},
	{1, 1, ANYWHERE, RING_BAD_PRODUCED, true},
	{0, -1, ANYWHERE, RING_BAD_PRODUCED, true},
	{0, INT64_C(1) << 61, ANYWHERE, RING_BAD_PRODUCED, true},
};
/* Of one that goes on in a ring of two where the reader still holds both. */
static const struct attack overruns[] = {
	{KIND, 0, ANYWHERE, RING_BAD_LENGTH, false},
	{RING_PAD, 0, 1, RING_BAD_LENGTH, false},
};
static const struct attack reader_attacks[] = {
	{1, 0, ANYWHERE, RING_BAD_CONSUMED, true},
	{0, 1, ANYWHERE, RING_BAD_CONSUMED, true},
	{0, -1, ANYWHERE, RING_BAD_CONSUMED, true},
	{0, INT64_C(1) << 61, ANYWHERE, RING_BAD_CONSUMED, true},
};
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static bool overrun(void)
{
	return scenario->flags & HOLD;
}

static const struct attack *attack(void)
{
	if (scenario->flags & HOSTILE_READER)
		return &reader_attacks[hostile.attack];
	return overrun() ? &overruns[hostile.attack] : &writer_attacks[hostile.attack];
}

static void set_up(void)
{
	struct ring_setup setup = {
		.shape = {scenario->segments, SEGMENT_BYTES},
		.epoch = scenario->epoch,
		.start = scenario->start,
		.segments = machine_segments,
		.threshold = scenario->threshold,
		.batch = scenario->batch,
	};

	setup.bits = &hostile.stale;
	setup.out = &machine_words[WORD_PRODUCED];
	setup.in = &machine_words[WORD_CONSUMED];
	ring_writer_init(&hostile.w, &setup);
	hostile.w.lag = UINT32_MAX;
	setup.bits = &hostile.done;
	setup.out = &machine_words[WORD_CONSUMED];
	setup.in = &machine_words[WORD_PRODUCED];
	ring_reader_init(&hostile.r, &setup);
}

static void send(void)
{
	if (!ring_reserve(&hostile.w, 8))
		model_fault("no room in an empty ring");
	ring_commit(&hostile.w, 8, 1);
}

/* Good packets up to the index where the attack makes sense, then the attack. */
static void writer(void)
{
	uint64_t total, word;

	set_up();
	if (overrun())
		hostile.attack = model_choose(COUNT_OF(overruns));
	else
		hostile.attack = model_choose(COUNT_OF(writer_attacks));
	if (overrun())
		hostile.before = scenario->segments;
	else if (attack()->index != ANYWHERE)
		hostile.before = SEGMENT(attack()->index - 1 - scenario->start);
	else
		hostile.before = model_choose(scenario->segments);
	for (unsigned i = 0; i < hostile.before; i++)
		send();
	total = hostile.w.produced + 1;
	if (attack()->total) {
		word = hostile.w.produced + attack()->word +
		       (uint64_t)attack()->laps * scenario->segments;
		model_store(SITE_hostile, &machine_words[WORD_PRODUCED], word,
			    memory_order_release);
	} else {
		word = attack()->word |
		       ring_tag(total + (uint64_t)attack()->laps * scenario->segments,
				scenario->epoch);
		model_store(SITE_hostile, machine_segments + SEGMENT(total) * SEGMENT_BYTES, word,
			    memory_order_release);
	}
	model_end();
}

static void notice(enum ring_violation violation)
{
	/* What is overrun may not have been read yet: there it is a tag too new. */
	if (violation != attack()->violation && !(overrun() && violation == RING_BAD_TAG))
		model_fault("an attack is taken for another one");
	hostile.noticed = true;
	model_end();
}

static void reader(void)
{
	struct ring_packet p;
	unsigned got = 0;
	int rc;

	for (;;) {
		if (attack()->total) {
			(void)ring_unread(&hostile.r);
			if (hostile.r.violation)
				notice(hostile.r.violation);
		}
		rc = ring_peek(&hostile.r, &p);
		if (rc < 0)
			notice(hostile.r.violation);
		if (rc > 0 && got++ == hostile.before)
			model_fault("the reader accepts a hostile word");
		if (rc > 0 && !overrun())
			ring_release(&hostile.r, &p);
		if (!rc && attack()->total && got == hostile.before)
			model_wait(&machine_words[WORD_PRODUCED]);
		else if (!rc)
			model_wait(machine_segments + SEGMENT(hostile.r.read + 1) * SEGMENT_BYTES);
	}
}

/* The reader's attack on a writer that has sent two. */
static void attacked_writer(void)
{
	set_up();
	send();
	send();
	for (;;) {
		(void)ring_room(&hostile.w);
		if (hostile.w.violation)
			notice(hostile.w.violation);
		if (hostile.w.consumed - scenario->start > 2)
			model_fault("the writer accepts a hostile total");
		model_wait(&machine_words[WORD_CONSUMED]);
	}
}

static void attacking_reader(void)
{
	hostile.attack = model_choose(COUNT_OF(reader_attacks));
	model_store(SITE_hostile, &machine_words[WORD_CONSUMED],
		    scenario->start + (attack()->word ? 3 : 0) +
			    (uint64_t)attack()->laps * scenario->segments,
		    memory_order_release);
	model_end();
}

static void forget_statistics(void)
{
	hostile.w.writes = hostile.r.writes = hostile.w.publications = 0;
	for (int i = 0; i < RING_CAUSES; i++)
		hostile.r.publications[i] = 0;
}

static const char *settled(void)
{
	return hostile.noticed ? NULL : "an attack is not noticed";
}

struct search hostile_search(const struct scenario *s)
{
	bool by_reader = s->flags & HOSTILE_READER;

	scenario = s;
	return (struct search){
		.entry = {by_reader ? attacked_writer : writer,
			  by_reader ? attacking_reader : reader},
		.segments = s->segments,
		.start = s->start,
		.private = &hostile,
		.private_size = sizeof(hostile),
		.canonical = forget_statistics,
		.settled = settled,
		.hurry = true,
		.states_max = 1000000,
	};
}
