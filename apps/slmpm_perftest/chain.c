/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chain of entries that depend on each other: two channels of side 1's queue, each of which waits
 * for what the other one counts. A message sets it off, another one says that it has run; the same
 * without the chain takes what is to be taken off. Side 0 has a chain, too, of which it times what
 * posting and re-arming take, all entries being disabled.
 */
#include "apps/slmpm_perftest/program.h"

#define ENTRIES 1000 /* of a chain */
#define ENDS    3    /* entries that begin and end it: RECV, WAIT, SEND */
#define ARMINGS 20

/* Of two counts and two WAITs each, which take turns. */
static void add_chain(struct program *g, uint64_t entries)
{
	for (uint64_t i = 0; i < entries / 4; i++) {
		program_count(g, CHANNEL_MAIN, g->there);
		program_wait(g, CHANNEL_OTHER, g->there);
		program_count(g, CHANNEL_OTHER, g->back);
		program_wait(g, CHANNEL_MAIN, g->back);
	}
}

/* ---- side 1 ---- */

static int start(struct program *g, uint64_t entries)
{
	if (g->posted)
		return slmpm_wq_arm(g->wq);
	g->posted = true;
	g->out = g->in;
	program_receive(g);
	program_wait(g, CHANNEL_MAIN, g->came);
	add_chain(g, entries);
	program_send(g);
	return g->rc < 0 ? g->rc : 0;
}

static int run(struct program *g, uint64_t entries, struct round *r)
{
	int rc = start(g, entries);

	if (rc >= 0)
		rc = round_say(g->pair, r);
	if (rc >= 0)
		rc = program_finish(g);
	return rc;
}

static uint64_t rounds_of(const struct job *j)
{
	return (j->count + ENTRIES - 1) / ENTRIES;
}

static int follow(struct pair *p, const struct job *j)
{
	struct round r = {.thread = program_has_thread(p)};
	struct program chain, bare;
	int rc = program_make(&chain, p, j->size, ENTRIES + ENDS, SLMPM_WQ_KEPT);
	int rc2 = program_make(&bare, p, j->size, ENDS, SLMPM_WQ_KEPT);

	rc = rc < 0 ? rc : rc2;
	for (uint64_t i = 0; i < rounds_of(j) && rc >= 0; i++) {
		rc = run(&chain, ENTRIES, &r);
		r.by_engine = program_by_engine(&chain);
		if (rc >= 0)
			rc = run(&bare, 0, &r);
	}
	if (rc >= 0)
		rc = round_say(p, &r);
	program_end(&bare);
	program_end(&chain);
	return rc;
}

/* ---- side 0 ---- */

/* What a call of slmpm_post takes, and one of slmpm_wq_arm. */
static int time_arming(struct pair *p, const struct job *j)
{
	uint64_t begin, arming = 0;
	struct program g;
	int rc = program_make(&g, p, j->size, ENTRIES, SLMPM_WQ_KEPT | SLMPM_WQ_MANAGED);

	begin = now_ns();
	if (rc >= 0)
		add_chain(&g, ENTRIES);
	p->extra.post_ns = (double)(now_ns() - begin) / ENTRIES;
	for (uint64_t i = 1; i <= ARMINGS && rc >= 0; i++) {
		rc = slmpm_wq_enable(g.wq, i * ENTRIES);
		if (rc >= 0)
			rc = program_finish(&g);
		begin = now_ns();
		if (rc >= 0)
			rc = slmpm_wq_arm(g.wq);
		arming += now_ns() - begin;
	}
	p->extra.arm_ns = (double)arming / ARMINGS;
	program_end(&g);
	return rc;
}

static int lead(struct pair *p, const struct job *j, struct hist *stamps)
{
	double with = 0, without = 0, a = 0, b = 0, all = (double)(rounds_of(j) * ENTRIES);
	struct round r = {.thread = false};
	int rc = time_arming(p, j);

	for (uint64_t i = 0; i < rounds_of(j) && rc >= 0; i++) {
		rc = round_hear(p, &r);
		if (rc >= 0)
			rc = round_trips(p, j, 1, &a);
		if (rc >= 0)
			rc = round_hear(p, &r);
		if (rc >= 0)
			rc = round_trips(p, j, 1, &b);
		with += a;
		without += b;
		if (stamps)
			hist_add(stamps, a > b ? (uint64_t)((a - b) / ENTRIES + 0.5) : 0);
	}
	if (rc >= 0)
		rc = round_hear(p, &r);
	p->extra.by_engine = r.by_engine;
	p->extra.each_ns = with > without ? (with - without) / all : 1e-3;
	return rc;
}

int loop_wq_chain(struct pair *p, const struct job *j, struct hist *stamps)
{
	return p->side ? follow(p, j) : lead(p, j, stamps);
}
