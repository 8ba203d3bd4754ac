/* SPDX-License-Identifier: BSD-3-Clause */
/* A scenario as a search: what both sides have in common, and what must hold when they rest. */
#include "tests/model/sides.h"

#include <string.h>

#include "tests/model/play.h"

struct sides sides;
const struct scenario *scenario;

struct ring_setup common_setup(void)
{
	return (struct ring_setup){
		.shape = {scenario->segments, SEGMENT_BYTES},
		.epoch = scenario->epoch,
		.start = scenario->start,
		.segments = machine_segments,
		.threshold = scenario->threshold,
		.batch = scenario->batch,
	};
}

void sides_announced(const struct doorbell *b)
{
	doorbell_announced();
	if (doorbell_unfenced(b))
		barrier_all();
}

void sides_retracted(struct doorbell *b)
{
	doorbell_retracted();
	doorbell_resume(b);
}

_Noreturn void end_of(int side)
{
	sides.doing[side] = ENDED;
	model_end();
}

/* The system calls of doorbell.c. */
void barrier_all(void)
{
	model_barrier();
}

void doorbell_ring(struct doorbell *b, uint64_t announcement)
{
	b->rung = announcement;
	model_bell();
}

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
	/* What is kept may be in the writer's way; what has been given back may not. */
	if (sides.held_count && sides.doing[READER] == SLEEPS &&
	    sides.r.published == sides.r.consumed)
		return NULL;
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
	if (s->flags & DUPLEX)
		return duplex_search(s);
	if (s->flags & LOCK)
		return lock_search(s);
	scenario = s;
	return (struct search){
		.entry = {play_writer, play_reader},
		.segments = s->segments,
		.start = s->start,
		.private = &sides,
		.private_size = sizeof(sides),
		.canonical = forget_statistics,
		.settled = settled,
		.hurry = !(s->flags & (MEMBARRIER | KILL | EACH_STORE)),
		.kill = s->flags & KILL,
		.states_max = 20000000,
	};
}
