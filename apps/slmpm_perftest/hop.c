/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hop through a work queue: side 1's queue waits for a message and sends it on, in turns with the
 * same by hand; side 0 sends and receives in both. A round trip by hand is two equal hops, so the
 * queue's is what the other kind of round trip takes beyond one of them.
 */
#include "apps/slmpm_perftest/program.h"

#define HOPS 128 /* of a round: few enough for the caches */

static uint64_t hops_of(const struct job *j)
{
	return j->count < HOPS ? j->count : HOPS;
}

static uint64_t rounds_of(const struct job *j)
{
	return (j->count + hops_of(j) - 1) / hops_of(j);
}

static int start(struct program *g, uint64_t hops)
{
	if (g->posted)
		return slmpm_wq_arm(g->wq);
	g->posted = true;
	g->out = g->in; /* what came goes on */
	for (uint64_t i = 0; i < hops; i++) {
		program_receive(g);
		program_wait(g, CHANNEL_MAIN, g->came);
		program_send(g);
	}
	return g->rc < 0 ? g->rc : 0;
}

static int relay(struct pair *p, const struct job *j)
{
	uint64_t hops = hops_of(j);
	struct round by_queue = {.thread = program_has_thread(p)}, by_hand = {.thread = false};
	struct program g;
	int rc = program_make(&g, p, j->size, 3 * hops, SLMPM_WQ_KEPT);

	for (uint64_t i = 0; i < rounds_of(j) && rc >= 0; i++) {
		rc = round_say(p, &by_hand);
		if (rc >= 0)
			rc = round_relay(p, j, hops);
		if (rc >= 0)
			rc = start(&g, hops);
		if (rc >= 0)
			rc = round_say(p, &by_queue);
		if (rc >= 0)
			rc = program_finish(&g);
		by_queue.by_engine = program_by_engine(&g);
	}
	if (rc >= 0)
		rc = round_say(p, &by_queue);
	program_end(&g);
	return rc;
}

static int lead(struct pair *p, const struct job *j, struct hist *stamps)
{
	uint64_t hops = hops_of(j), rounds = rounds_of(j);
	double queue = 0, hand = 0, a = 0, b = 0, all = (double)(hops * rounds);
	struct round r = {.thread = false};
	int rc = 0;

	for (uint64_t i = 0; i < rounds && rc >= 0; i++) {
		rc = round_hear(p, &r);
		if (rc >= 0)
			rc = round_trips(p, j, hops, &b);
		if (rc >= 0)
			rc = round_hear(p, &r);
		if (rc >= 0) /* last: what is there when the loop ends is checked */
			rc = round_trips(p, j, hops, &a);
		queue += a;
		hand += b;
		if (stamps)
			hist_add(stamps,
				 a > b / 2 ? (uint64_t)((a - b / 2) / (double)hops + 0.5) : 0);
	}
	if (rc >= 0)
		rc = round_hear(p, &r);
	p->extra.by_engine = r.by_engine;
	p->extra.bare_ns = hand / 2 / all;
	p->extra.each_ns = queue > hand / 2 ? (queue - hand / 2) / all : 1e-3;
	return rc;
}

int loop_wq_hop(struct pair *p, const struct job *j, struct hist *stamps)
{
	return p->side ? relay(p, j) : lead(p, j, stamps);
}
