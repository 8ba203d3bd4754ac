/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring each way between two sides that both send, receive and sleep, with the one doorbell that
 * a link has: who sleeps may be waiting for packets and for room.
 */
#include "tests/model/sides.h"

#include "shm/doorbell.h"
#include "shm/ring.h"

/*
 * The ring of side 0 has the first N segments, that of side 1 the next N; two more segments lend
 * their first words to the totals of the second ring.
 */
#define SEGMENT(side, total)                                                                       \
	((unsigned)((unsigned)(side)*scenario->segments + ((total) & (scenario->segments - 1))))

static const struct scenario *scenario;

static struct end {
	struct ring_writer w;
	struct ring_reader r;
	struct doorbell bell;
	uint64_t stale, done;
	uint64_t settled; /* what was produced when this side last fell asleep */
	unsigned sent, got;
	bool ended;
} ends[THREADS];

static _Atomic uint64_t *spare_word(unsigned i)
{
	return (_Atomic uint64_t *)(void *)(machine_segments +
					    (2 * scenario->segments + i) * SEGMENT_BYTES);
}

/* Where the total of what side T produced, or has consumed, is stored. */
static _Atomic uint64_t *produced_word(int t)
{
	return t ? spare_word(0) : &machine_words[WORD_PRODUCED];
}

static _Atomic uint64_t *consumed_word(int t)
{
	return t ? &machine_words[WORD_CONSUMED] : spare_word(1);
}

static void set_up(int t)
{
	struct end *e = &ends[t];
	struct ring_setup setup = {
		.shape = {scenario->segments, SEGMENT_BYTES},
		.epoch = scenario->epoch,
		.start = scenario->start,
		.segments = machine_segments + SEGMENT(t, 0) * SEGMENT_BYTES,
		.bits = &e->stale,
		.out = produced_word(t),
		.in = consumed_word(!t),
		.threshold = scenario->threshold,
		.batch = scenario->batch,
	};

	ring_writer_init(&e->w, &setup);
	e->w.lag = scenario->lag;
	setup.segments = machine_segments + SEGMENT(!t, 0) * SEGMENT_BYTES;
	setup.bits = &e->done;
	setup.out = consumed_word(t);
	setup.in = produced_word(!t);
	ring_reader_init(&e->r, &setup);
	e->bell.asleep_out = &machine_words[t ? WORD_READER_ASLEEP : WORD_WRITER_ASLEEP];
	e->bell.asleep_in = &machine_words[t ? WORD_WRITER_ASLEEP : WORD_READER_ASLEEP];
	e->bell.no_membarrier = e->bell.fence = !(scenario->flags & MEMBARRIER);
}

static bool receive(int t)
{
	struct end *e = &ends[t];
	struct ring_packet p;
	uint64_t published = e->r.published;
	int rc = ring_peek(&e->r, &p);

	if (rc < 0)
		model_fault("the reader calls the writer's words impossible");
	if (rc) {
		if (model_read_payload(SEGMENT(!t, p.total), false) != p.total)
			model_fault("torn: the payload of a segment");
		e->got++;
		ring_release(&e->r, &p);
	}
	if (e->r.published != published)
		doorbell_check(&e->bell);
	return rc;
}

static bool send(int t)
{
	struct end *e = &ends[t];

	if (e->sent == scenario->send || !ring_reserve(&e->w, 8))
		return false;
	model_write_payload(SEGMENT(t, e->w.produced + 1), false, e->w.produced + 1);
	ring_commit(&e->w, 8, 1);
	doorbell_check(&e->bell);
	e->sent++;
	return true;
}

static bool progress(int t)
{
	return receive(t) || send(t);
}

static void publish(int t, bool closing)
{
	struct end *e = &ends[t];
	uint64_t published = e->r.published;
	bool news = e->w.produced != e->settled;

	ring_publish_produced(&e->w);
	if (closing)
		ring_publish_consumed(&e->r, RING_FLUSH);
	else
		ring_settle(&e->r);
	if (news || e->r.published != published)
		doorbell_check(&e->bell);
	e->settled = e->w.produced;
}

static void play(int t)
{
	struct end *e = &ends[t];

	set_up(t);
	while (e->sent < scenario->send || e->got < scenario->send) {
		if (progress(t))
			continue;
		publish(t, false);
		doorbell_announce(&e->bell);
		sides_announced(&e->bell);
		if (!progress(t))
			model_sleep();
		doorbell_retract(&e->bell);
		sides_retracted(&e->bell);
	}
	publish(t, true);
	e->ended = true;
	model_end();
}

static void play_first(void)
{
	play(WRITER);
}

static void play_second(void)
{
	play(READER);
}

static void forget_statistics(void)
{
	for (int t = 0; t < THREADS; t++) {
		struct end *e = &ends[t];

		e->w.writes = e->w.publications = e->r.writes = 0;
		e->bell.writes = e->bell.bells = 0;
		for (int i = 0; i < RING_CAUSES; i++)
			e->r.publications[i] = 0;
	}
}

static const char *settled(void)
{
	if (ends[0].ended && ends[1].ended)
		return NULL;
	return ends[0].ended || ends[1].ended ? "stuck: one is never woken" : "stuck: both asleep";
}

struct search duplex_search(const struct scenario *s)
{
	scenario = s;
	return (struct search){
		.entry = {play_first, play_second},
		.segments = 2 * s->segments + 2,
		.reverse = ((1u << s->segments) - 1) << s->segments | 1u << 2 * s->segments,
		.start = s->start,
		.private = ends,
		.private_size = sizeof(ends),
		.canonical = forget_statistics,
		.settled = settled,
		.hurry = !(s->flags & MEMBARRIER),
		.states_max = 20000000,
	};
}
