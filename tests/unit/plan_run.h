/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of all members, run against each other: messages may be slow, and a send may not be
 * done before its receive is posted; memory knows what has not been written, is being sent or
 * received into.
 */
#ifndef TESTS_UNIT_PLAN_RUN_H
#define TESTS_UNIT_PLAN_RUN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/random.h"
#include "tests/unit/plan_trial.h"

/* ---- memory ---------------------------------------------------------------------------------- */

enum { UNDEFINED, DEFINED, COMING }; /* state of an element */

struct memory {
	uint64_t *at, len;
	uint8_t *state;
	uint8_t *sent; /* by so many sends under way */
};

struct lane {
	uint64_t posted, came, waited;
	uint64_t known;
};

struct member {
	struct plan plan;
	struct plan_step *step;
	uint32_t steps, room;
	uint32_t next;    /* step */
	uint32_t sending; /* sends under way, */
	uint32_t target;  /* to this rank */
	uint32_t inbox;   /* messages for it that have not met their receive */
	uint64_t known;   /* the ranks whose entering is known */
	struct memory area[4];
	struct lane lane[PLAN_LANES];
	uint64_t counts[MOST], places[MOST], to_counts[MOST], to_places[MOST];
};

struct message {
	struct message *next;
	const struct plan_step *step;
	uint64_t known;
	uint64_t *data; /* NULL: a rendezvous, it lies at its sender */
};

struct posted {
	struct posted *next;
	const struct plan_step *step;
};

static struct member members[MOST];
static struct message *messages[MOST][MOST]; /* from, to */
static struct posted *receives[MOST][MOST];
static char failure[200];

static bool wrong(uint32_t rank, uint32_t step, const char *why)
{
	if (!failure[0])
		snprintf(failure, sizeof(failure), "rank %u, step %u: %s", rank, step, why);
	return false;
}

static void memory_make(struct memory *m, uint64_t len)
{
	m->len = len;
	m->at = calloc(len + 1, sizeof(*m->at));
	m->state = calloc(len + 1, 1);
	m->sent = calloc(len + 1, 1);
}

static void memory_free(struct memory *m)
{
	free(m->at);
	free(m->state);
	free(m->sent);
	*m = (struct memory){0};
}

static bool reads(uint32_t rank, uint32_t i, uint8_t area, uint64_t first, uint64_t count)
{
	const struct memory *m = &members[rank].area[area];

	if (area < PLAN_FROM || area > PLAN_SCRATCH || first > m->len || count > m->len - first)
		return wrong(rank, i, "reads beyond an area");
	for (uint64_t e = first; e < first + count; e++)
		if (m->state[e] != DEFINED)
			return wrong(rank, i,
				     m->state[e] == COMING ? "reads what has not come" :
							     "reads what nothing wrote");
	return true;
}

static bool writes(uint32_t rank, uint32_t i, uint8_t area, uint64_t first, uint64_t count)
{
	const struct memory *m = &members[rank].area[area];

	if (area == PLAN_FROM && count)
		return wrong(rank, i, "writes the contribution");
	if (area < PLAN_FROM || area > PLAN_SCRATCH || first > m->len || count > m->len - first)
		return wrong(rank, i, "writes beyond an area");
	for (uint64_t e = first; e < first + count; e++)
		if (m->state[e] == COMING || m->sent[e])
			return wrong(rank, i, "writes what is under way");
	return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void append(struct message **list, struct message *m)
{
	while (*list)
		list = &(*list)->next;
	*list = m;
}

static bool send_begin(uint32_t rank, uint32_t i)
{
	struct member *me = &members[rank];
	const struct plan_step *s = &me->step[i];
	struct memory *m = &me->area[s->at_area];
	struct message *message;

	if (s->peer >= trial.size || s->peer == rank)
		return wrong(rank, i, "sends to no other member");
	if (!reads(rank, i, s->at_area, s->at, s->count))
		return false;
	message = calloc(1, sizeof(*message));
	message->step = s;
	message->known = me->known;
	if (trial.rendezvous) {
		for (uint64_t e = s->at; e < s->at + s->count; e++)
			m->sent[e]++;
	} else {
		message->data = malloc((s->count + 1) * sizeof(uint64_t));
		memcpy(message->data, m->at + s->at, s->count * sizeof(uint64_t));
	}
	append(&messages[rank][s->peer], message);
	me->sending += trial.rendezvous;
	members[s->peer].inbox++;
	me->target = s->peer;
	return true;
}

static bool recv_post(uint32_t rank, uint32_t i)
{
	struct member *me = &members[rank];
	const struct plan_step *s = &me->step[i];
	struct posted **list, *posted;

	if (s->peer >= trial.size || s->peer == rank || s->lane >= PLAN_LANES)
		return wrong(rank, i, "receives from no other member, or on no lane");
	if (!writes(rank, i, s->at_area, s->at, s->count))
		return false;
	memset(me->area[s->at_area].state + s->at, COMING, s->count);
	me->lane[s->lane].posted++;
	posted = calloc(1, sizeof(*posted));
	posted->step = s;
	for (list = &receives[s->peer][rank]; *list; list = &(*list)->next)
		;
	*list = posted;
	return true;
}

/* The first message from FROM meets the first receive for it. */
static bool deliver(uint32_t from, uint32_t to)
{
	struct message *m = messages[from][to];
	struct posted *r = receives[from][to];
	struct memory *there = &members[from].area[m->step->at_area];
	struct memory *here = &members[to].area[r->step->at_area];
	struct lane *lane = &members[to].lane[r->step->lane];
	const uint64_t count = m->step->count, *data = m->data ? m->data : there->at + m->step->at;

	messages[from][to] = m->next;
	receives[from][to] = r->next;
	if (count == r->step->count) {
		memcpy(here->at + r->step->at, data, count * sizeof(*data));
		memset(here->state + r->step->at, DEFINED, count);
	}
	for (uint64_t e = m->step->at; !m->data && e < m->step->at + count; e++)
		there->sent[e]--;
	members[to].inbox--;
	lane->came++;
	lane->known |= m->known;
	if (!m->data) {
		members[from].sending--;
	}
	if (count != r->step->count)
		wrong(to, (uint32_t)(r->step - members[to].step), "another length");
	free(m->data);
	free(m);
	free(r);
	return !failure[0];
}

static bool apart(uint8_t area, uint64_t at, uint8_t other_area, uint64_t other, uint64_t count)
{
	return area != other_area || at + count <= other || other + count <= at;
}

static bool fold(uint32_t rank, uint32_t i)
{
	struct member *me = &members[rank];
	const struct plan_step *s = &me->step[i];
	uint64_t *at, *left, *right;

	if (!reads(rank, i, s->left_area, s->left, s->count) ||
	    !reads(rank, i, s->right_area, s->right, s->count) ||
	    !writes(rank, i, s->at_area, s->at, s->count))
		return false;
	at = me->area[s->at_area].at + s->at;
	left = me->area[s->left_area].at + s->left;
	right = me->area[s->right_area].at + s->right;
	if ((at != left && !apart(s->at_area, s->at, s->left_area, s->left, s->count)) ||
	    (at != right && !apart(s->at_area, s->at, s->right_area, s->right, s->count)))
		return wrong(rank, i, "combines across itself");
	for (uint64_t e = 0; e < s->count; e++)
		at[e] = combine(trial.op, left[e], right[e]);
	memset(me->area[s->at_area].state + s->at, DEFINED, s->count);
	return true;
}

static bool copy(uint32_t rank, uint32_t i)
{
	struct member *me = &members[rank];
	const struct plan_step *s = &me->step[i];

	if (!reads(rank, i, s->left_area, s->left, s->count) ||
	    !writes(rank, i, s->at_area, s->at, s->count))
		return false;
	if (!apart(s->at_area, s->at, s->left_area, s->left, s->count))
		return wrong(rank, i, "copies across itself");
	memcpy(me->area[s->at_area].at + s->at, me->area[s->left_area].at + s->left,
	       s->count * sizeof(uint64_t));
	memset(me->area[s->at_area].state + s->at, DEFINED, s->count);
	return true;
}

static bool may_begin(const struct member *me, const struct plan_step *s)
{
	if (!me->sending)
		return true;
	if (trial.strict)
		return false;
	return s->op == PLAN_WAIT || (s->op == PLAN_RECV && s->flags & PLAN_AHEAD) ||
	       (s->op == PLAN_SEND && s->peer == me->target);
}

/* Of a lane all that is under way is waited for: 1 when it has come, or as step_next. */
static int wait_for(uint32_t rank, uint32_t i)
{
	struct member *me = &members[rank];
	struct lane *lane = &me->lane[me->step[i].lane];

	if (lane->posted != lane->waited + me->step[i].count)
		return wrong(rank, i, "waits for others than are under way") - 1;
	if (lane->came < lane->posted)
		return 0;
	lane->waited = lane->posted;
	me->known |= lane->known;
	return 1;
}

/* 1: it has been taken; 0: it waits, or there is none; -1: it is wrong. */
static int step_next(uint32_t rank)
{
	struct member *me = &members[rank];
	const uint32_t i = me->next;
	int rc;

	if (i == me->steps || !may_begin(me, &me->step[i]))
		return 0;
	switch (me->step[i].op) {
	case PLAN_SEND: rc = send_begin(rank, i) ? 1 : -1; break;
	case PLAN_RECV: rc = recv_post(rank, i) ? 1 : -1; break;
	case PLAN_WAIT: rc = wait_for(rank, i); break;
	case PLAN_FOLD: rc = fold(rank, i) ? 1 : -1; break;
	case PLAN_COPY: rc = copy(rank, i) ? 1 : -1; break;
	default: rc = wrong(rank, i, "no step") - 1;
	}
	me->next += rc > 0;
	return rc;
}

/* ---- running --------------------------------------------------------------------------------- */

static struct rng rng;

static uint32_t draw(uint32_t below)
{
	return rng_below(&rng, below);
}

/* What can come does, some of it now and some later. */
static bool deliver_some(uint32_t to, bool *moved)
{
	for (uint32_t from = 0; members[to].inbox && from < trial.size; from++)
		while (messages[from][to] && receives[from][to]) {
			*moved = true;
			if (draw(4) == 0)
				break;
			if (!deliver(from, to))
				return false;
		}
	return true;
}

/* False: something is wrong. */
static bool turn(uint32_t rank, bool *moved)
{
	int rc = 1;

	if (!deliver_some(rank, moved))
		return false;
	while (rc > 0 && draw(8)) {
		rc = step_next(rank);
		*moved |= rc > 0;
	}
	if (rc > 0) /* it might have gone on */
		*moved = true;
	return rc >= 0;
}

static bool ended(void)
{
	for (uint32_t r = 0; r < trial.size; r++) {
		const struct member *me = &members[r];

		if (me->next < me->steps)
			return wrong(r, me->next, "waits for ever");
		for (uint32_t k = 0; k < PLAN_LANES; k++)
			if (me->lane[k].waited != me->lane[k].posted)
				return wrong(r, k, "a receive that it does not wait for");
		for (uint32_t to = 0; to < trial.size; to++)
			if (messages[r][to] || receives[r][to])
				return wrong(r, 0, "a message without its receive");
	}
	return true;
}

static bool run_all(void)
{
	bool moved = true;

	while (moved) {
		const uint32_t first = draw(trial.size);

		moved = false;
		for (uint32_t r = 0; r < trial.size; r++) {
			if (!turn((first + r) % trial.size, &moved))
				return false;
		}
	}
	return ended();
}

#endif
