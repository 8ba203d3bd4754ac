/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes: each does the entries of its program, which are made when their turn comes. A SEND is done
 * when its last byte has left, and a node begins no message earlier than the injection rate allows.
 * A message that comes before its receive is posted is kept and costs nothing.
 */
#include "apps/slmpm_sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

enum node_state {
	NODE_RUNS,
	NODE_WAITS, /* for messages of a lane */
	NODE_SENDS, /* until the bytes have left; when that is is not known yet */
	NODE_SLEEPS /* for an event of its own */
};

struct node {
	struct slmpm_plan *plan;
	struct slmpm_plan_step step;
	bool has_step; /* that is yet to be done */
	bool sending;  /* a message, and when its last byte leaves is not known */
	enum node_state state;
	uint64_t ready;                  /* when the last step is done */
	uint64_t inject;                 /* when the next message may begin */
	uint32_t come[SLMPM_PLAN_LANES]; /* and not waited for yet */
};

static uint64_t width_of(const struct setting *set)
{
	return set->bytes % 8 ? 1 : 8;
}

static int open_plan(const struct sim *sim, uint32_t rank, struct slmpm_plan **plan)
{
	const struct setting *set = &sim->set;
	const uint64_t width = width_of(set);
	const struct slmpm_plan_spec spec = {.size = sizeof(spec),
					     .kind = set->kind,
					     .algorithm = set->algorithm,
					     .members = set->nodes,
					     .rank = rank,
					     .root = set->root,
					     .flags = SLMPM_PLAN_PROGRAM,
					     .width = (uint32_t)width,
					     .count = set->bytes / width,
					     .piece = (set->piece + width - 1) / width};

	if (set->text)
		return slmpm_plan_load(plan, &spec, set->text);
	return slmpm_plan_open(plan, &spec);
}

int nodes_open(struct sim *sim)
{
	struct slmpm_plan_info info = {.size = sizeof(info)};

	sim->nodes = calloc(sim->set.nodes, sizeof(*sim->nodes));
	if (!sim->nodes) {
		fprintf(stderr, "slmpm_sim: no memory for %u %s\n", sim->set.nodes,
			nodes_word(sim->set.nodes));
		return 1;
	}
	for (uint32_t i = 0; i < sim->set.nodes; i++) {
		struct node *n = &sim->nodes[i];

		n->step.size = sizeof(n->step);
		if (open_plan(sim, i, &n->plan) < 0)
			return slmpm_perror("slmpm_sim");
	}
	(void)slmpm_plan_query(sim->nodes[0].plan, &info);
	sim->result.algorithm = info.algorithm;
	return 0;
}

void nodes_close(struct sim *sim)
{
	for (uint32_t i = 0; sim->nodes && i < sim->set.nodes; i++)
		slmpm_plan_close(sim->nodes[i].plan);
	free(sim->nodes);
	match_drop(&sim->posted);
	match_drop(&sim->early);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* False: not yet; an event or the end of a SEND goes on with it. */
static bool is_free(struct sim *sim, struct node *n, uint64_t from)
{
	if (n->sending) {
		n->state = NODE_SENDS;
		return false;
	}
	if (from <= sim->now)
		return true;
	n->state = NODE_SLEEPS;
	events_add(&sim->events, from, EVENT_NODE, (uint32_t)(n - sim->nodes));
	return false;
}

static bool send(struct sim *sim, struct node *n)
{
	const struct slmpm_plan_step *s = &n->step;

	if (!is_free(sim, n, n->ready > n->inject ? n->ready : n->inject))
		return false;
	n->inject = clock_after(sim->now, sim->set.gap);
	n->sending = true;
	wires_send(sim, (uint32_t)(n - sim->nodes), s->peer, s->count * width_of(&sim->set));
	return true;
}

static bool compute(struct sim *sim, struct node *n, double byte)
{
	if (!is_free(sim, n, n->ready))
		return false;
	n->ready = clock_bytes(sim->now, n->step.count * width_of(&sim->set), byte);
	return true;
}

static bool wait(struct node *n)
{
	const struct slmpm_plan_step *s = &n->step;

	if (n->come[s->lane] < s->count) {
		n->state = NODE_WAITS;
		return false;
	}
	n->come[s->lane] -= (uint32_t)s->count;
	return true;
}

static void post(struct sim *sim, struct node *n)
{
	const struct slmpm_plan_step *s = &n->step;
	uint32_t rank = (uint32_t)(n - sim->nodes), unused;

	if (match_take(&sim->early, rank, s->peer, &unused))
		n->come[s->lane]++;
	else
		match_add(&sim->posted, rank, s->peer, s->lane);
}

/* True: it is done, or does itself, and the next one may be looked at. */
static bool do_step(struct sim *sim, struct node *n)
{
	switch (n->step.op) {
	case SLMPM_PLAN_SEND: return send(sim, n);
	case SLMPM_PLAN_RECV: post(sim, n); return true;
	case SLMPM_PLAN_WAIT: return wait(n);
	case SLMPM_PLAN_FOLD: return compute(sim, n, sim->set.fold);
	case SLMPM_PLAN_COPY: return compute(sim, n, sim->set.copy);
	default: return is_free(sim, n, n->ready);
	}
}

static void end_node(struct sim *sim, struct node *n)
{
	struct result *r = &sim->result;

	if (!is_free(sim, n, n->ready))
		return;
	r->first = sim->done ? r->first : sim->now;
	r->last = sim->now;
	n->state = NODE_WAITS; /* for nothing */
	sim->done++;
}

static void run_node(struct sim *sim, struct node *n)
{
	n->state = NODE_RUNS;
	for (;;) {
		if (!n->has_step && slmpm_plan_next(n->plan, &n->step) != 1) {
			end_node(sim, n);
			return;
		}
		n->has_step = true;
		if (!do_step(sim, n))
			return;
		n->has_step = false;
		sim->result.steps[n->step.op]++;
	}
}

/* ---- what happens to them -------------------------------------------------------------------- */

void nodes_start(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->set.nodes; i++)
		run_node(sim, &sim->nodes[i]);
}

void nodes_event(struct sim *sim, uint32_t rank)
{
	run_node(sim, &sim->nodes[rank]);
}

void nodes_sent(struct sim *sim, uint32_t rank, uint64_t when)
{
	struct node *n = &sim->nodes[rank];

	n->sending = false;
	if (n->ready < when)
		n->ready = when;
	if (n->state != NODE_SENDS)
		return;
	n->state = NODE_SLEEPS;
	events_add(&sim->events, when, EVENT_NODE, rank);
}

void nodes_arrived(struct sim *sim, uint32_t rank, uint32_t peer)
{
	struct node *n = &sim->nodes[rank];
	uint32_t lane;

	if (!match_take(&sim->posted, rank, peer, &lane)) {
		match_add(&sim->early, rank, peer, 0);
		return;
	}
	n->come[lane]++;
	if (n->state == NODE_WAITS && n->has_step && n->come[n->step.lane] >= n->step.count)
		run_node(sim, n);
}
