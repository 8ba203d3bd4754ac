/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ways and what they have cost (choice.h). */
#include "slmpm/choice/choice.h"

#define UNIT_SHIFT    16  /* costs are of 64 KiB */
#define RUN           12  /* turns of a try */
#define FALL          8   /* a cost that is shorter by this part still falls */
#define ENOUGH        4   /* turns, the least of which is a cost: what delays one spares another */
#define SAMPLE        8   /* one turn in so many is timed, and so many after a change */
#define PAUSE         512 /* turns before the longer way is tried again, and besides ... */
#define SELDOM        16  /* for each of a try's turns, where these are limited */
#define SELDOM_BUDGET 256 /* in place of LEAST_BUDGET, likewise */
#define BUDGET        100 /* ... so many times what tries have lost, ... */
#define MOST_BUDGET   262144 /* ... to so many turns of the usual way: ... */
#define LEAST_BUDGET  3072   /* ... all but these are waited for later where there is reason to */
#define MISSED        4 /* turns without the other way after it came to nothing; twice as many, */
#define MOST_MISSED   8192 /* ... and so on, to so many */
#define GAP           4    /* times what a turn takes: so much of the time until the next counts */
#define HOPELESS      8    /* times the usual cost: the rest of a run would change nothing, ... */
#define AGREED        2    /* ... nor where so many turns agree that it is a quarter more */
#define MARGIN        16   /* the other way is to be shorter by this part: else chance decides */
#define CHANGED       7    /* the usual cost by this part: the other's may have, too */

struct choice *choice_of(struct choice *choices, uint64_t length)
{
	int class = 63 - __builtin_clzll(length >> 14 | 1);

	return &choices[class < CHOICE_CLASSES ? class : CHOICE_CLASSES - 1];
}

static bool choice_is_known(const struct choice *c)
{
	return c->cost[0] && c->cost[1];
}

/* The other way is usual that costs no more than this. */
static uint32_t most_of_other(const struct choice *c)
{
	return c->cost[0] - c->cost[0] / MARGIN;
}

bool choice_takes_other(const struct choice *c)
{
	return c->run ? !c->usual : c->usual;
}

void choice_view(const struct choice *c, struct mode_view *v)
{
	v->cost[0] = most_of_other(c);
	v->cost[1] = c->cost[1];
	v->trial = c->run;
}

uint64_t choice_expected(const struct choice *c, bool other, uint64_t length)
{
	return c->cost[other] * length >> UNIT_SHIFT;
}

/* Nothing else is decided by. */
static void refresh(struct choice *c)
{
	uint8_t by = (uint8_t)(choice_is_known(c) | c->usual << 1 | (c->run > 0) << 2 |
			       (c->without > 0) << 3);

	if (c->by != by)
		c->decided.way = MODE_NONE;
	c->by = by;
}

struct mode choice_decided(const struct choice *c, uint8_t asked)
{
	return c->asked == asked ? c->decided : (struct mode){.way = MODE_NONE};
}

void choice_decide(struct choice *c, uint8_t asked, struct mode mode)
{
	c->asked = asked;
	c->decided = mode;
}

/* ---- turns ---------------------------------------------------------------------------------- */

static uint8_t tries_of(const struct choice *c)
{
	return c->tries ? c->tries : RUN;
}

static void end_run(struct choice *c)
{
	c->run = 0;
	c->tried = true;
	c->left = c->tries ? c->tries * SELDOM : PAUSE;
	c->then = c->cost[c->usual];
}

/* The first turns touch memory for the first time: to know the usual way takes as many as a try. */
static bool choice_begins(struct choice *c)
{
	if (choice_is_known(c) || c->begun >= tries_of(c))
		return false;
	c->begun++;
	return true;
}

static void choice_count(struct choice *c)
{
	uint32_t usual = c->cost[c->usual];

	if (c->run) {
		if (!--c->run)
			end_run(c);
		return;
	}
	if (c->deferred > usual) {
		c->deferred -= usual;
		return;
	}
	c->spared -= c->spared < usual ? c->spared : usual;
	if (c->left)
		c->left--;
	else if (usual && !choice_begins(c))
		c->run = tries_of(c) + 1; /* what the last one took is known at the next */
}

enum choice_note choice_taken(struct choice *c, bool other)
{
	bool changes = c->last != other;
	bool timed = changes || c->fresh || c->run || !choice_is_known(c);

	if (c->without) {
		c->without--;
		refresh(c);
		return CHOICE_UNTIMED;
	}
	c->last = other;
	c->fresh = c->fresh ? (uint8_t)(c->fresh - 1) : 0;
	if (changes) {
		c->seen[other] = 0;
		c->fresh = SAMPLE;
	}
	choice_count(c);
	refresh(c);
	if (!timed && ++c->turn % SAMPLE)
		return CHOICE_UNTIMED;
	return changes ? CHOICE_FIRST : CHOICE_TIMED;
}

/* ---- what they took ------------------------------------------------------------------------- */

static uint32_t cost_of(uint64_t took, uint64_t length)
{
	uint64_t cost = (took << UNIT_SHIFT) / length + 1;

	return cost < UINT32_MAX / 2 ? (uint32_t)cost : UINT32_MAX / 2;
}

/* Also of what was charged while the usual way cost more. */
static void limit(struct choice *c)
{
	uint64_t most = c->cost[c->usual] * (uint64_t)MOST_BUDGET;

	if (c->deferred > most)
		c->deferred = most;
}

/* A try, or some turn after the change back, took longer than the usual way would have. */
static void choice_charge(struct choice *c, uint32_t cost)
{
	uint64_t usual = c->cost[c->usual];

	if (usual && cost > usual)
		c->deferred += (cost - usual) * BUDGET;
	limit(c);
}

/* No more than so many TURNS are waited for, and the rest later: what is put off so is limited, or
 * the tries would take more than their part where each of them is spared. */
static void choice_spare(struct choice *c, uint64_t turns)
{
	uint64_t most = c->cost[c->usual] * turns;
	uint64_t left = c->cost[c->usual] * (uint64_t)MOST_BUDGET, part;

	if (c->deferred <= most || c->spared >= left)
		return;
	left -= c->spared;
	part = c->deferred - most < left ? c->deferred - most : left;
	c->deferred -= part;
	c->spared += part;
}

/* What has delayed a try may be chance; and when the usual way's cost has changed, the other's may
 * have, too. */
static void forgive(struct choice *c)
{
	uint64_t now = c->cost[c->usual], then = c->then;

	if (now - now / CHANGED <= then && then - then / CHANGED <= now) {
		if (c->cost[!c->usual] / 4 < now)
			choice_spare(c, c->tries ? SELDOM_BUDGET : LEAST_BUDGET);
		return;
	}
	if (then)
		c->left = 0;
	c->then = (uint32_t)now;
	limit(c);
	choice_spare(c, c->tries ? SELDOM_BUDGET : 0);
}

/* Good news at once, bad news when several agree: what falls from turn to turn, as a cost after a
 * change while data lies with the wrong processor, does not yet. */
static void estimate(struct choice *c, bool other, uint32_t cost)
{
	uint32_t *least = &c->least[other];

	if (cost < *least - *least / FALL)
		c->seen[other] = 0;
	if (!c->seen[other] || cost < *least)
		*least = cost;
	if (!c->cost[other] || cost < c->cost[other])
		c->cost[other] = cost;
	if (++c->seen[other] < ENOUGH)
		return;
	c->cost[other] = *least;
	c->seen[other] = 0;
}

/* The rest of a run would change nothing; the first one may touch memory for the first time. */
static bool is_lost(const struct choice *c, bool other, uint32_t cost)
{
	uint32_t usual = c->cost[c->usual];

	return cost / HOPELESS > usual || (c->tried && c->seen[other] >= AGREED &&
					   c->least[other] - c->least[other] / 5 > usual);
}

void choice_learn(struct choice *c, bool other, enum choice_note note, uint64_t took,
		  uint64_t length)
{
	uint32_t cost = cost_of(took, length);

	if (note == CHOICE_UNTIMED)
		return;
	if (c->fresh || other != c->usual)
		choice_charge(c, cost);
	if (note == CHOICE_TIMED || !c->cost[other])
		estimate(c, other, cost);
	if (!c->run && !c->fresh)
		forgive(c);
	if (choice_is_known(c) && c->usual != (c->cost[1] <= most_of_other(c))) {
		c->usual = !c->usual;
		end_run(c);
		c->then = 0; /* it settles first, and the one that was left has just been seen */
	} else if (c->run && other != c->usual && note == CHOICE_TIMED && is_lost(c, other, cost)) {
		end_run(c);
	}
	refresh(c);
}

void choice_conclude(struct choice_last *last, uint64_t now)
{
	uint64_t gap = now > last->since ? now - last->since : 0, most = GAP * last->took;

	if (!last->note)
		return;
	choice_learn(last->of, last->other, last->note, last->took + (gap < most ? gap : most),
		     last->length);
	last->note = CHOICE_UNTIMED;
}

/* ---- nobody there --------------------------------------------------------------------------- */

void choice_missed(struct choice *c)
{
	c->missed = c->missed < MISSED ? MISSED : 2 * c->missed;
	if (c->missed > MOST_MISSED)
		c->missed = MOST_MISSED;
	c->without = c->missed;
	if (c->run)
		end_run(c);
	refresh(c);
}

void choice_met(struct choice *c)
{
	c->missed -= c->missed / 4;
}
