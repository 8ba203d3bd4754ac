/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ways and what they have cost (choice.h). */
#include "slmpm/choice/choice.h"

#define UNIT_SHIFT   16 /* costs are of 64 KiB */
#define RUN          4  /* turns of a try, ... */
#define RUN_MOST     16 /* ... and of one that ends well: the last is shorter than all before, ... */
#define FALL         8  /* ... by this part, ... */
#define CLOSE        4  /* ... or one of them is hardly longer than the usual way, by this one */
#define FEW          3  /* turns that tell what a way costs after a change ... */
#define MANY         8 /* ... and later on: the least of them, for what delays one spares another */
#define SAMPLE       8 /* one turn in so many is timed, and so many after a change */
#define FIRST_PAUSE  8 /* turns before the longer way is tried again; then four times as many, */
#define LAST_PAUSE   1024    /* ... to so many, and besides ... */
#define BUDGET       100     /* ... so many times what tries have lost */
#define MOST_BUDGET  1048576 /* turns of the usual way: who was stopped for a minute is no measure */
#define PROBE_BUDGET 262144  /* of them are waited for later where there is reason to: ... */
#define LEAST_BUDGET 3072    /* ... all but so many */
#define MISSED       256  /* turns without the other way after it came to nothing; twice as many, */
#define MOST_MISSED  8192 /* ... and so on, to so many */
#define HOPELESS     8    /* times the usual cost: the rest of a run would change nothing */
#define MARGIN       32   /* the usual way stays so while no other is shorter by this part */

struct choice *choice_of(struct choice *choices, uint64_t length)
{
	int class = 63 - __builtin_clzll(length >> 14 | 1);

	return &choices[class < CHOICE_CLASSES ? class : CHOICE_CLASSES - 1];
}

static bool choice_is_known(const struct choice *c)
{
	return c->cost[0] && c->cost[1];
}

/* Of the usual way a little less than it costs. */
static uint32_t seeming(const struct choice *c, bool other)
{
	uint32_t cost = c->cost[other];

	return choice_is_known(c) && c->usual == other ? cost - cost / MARGIN : cost;
}

/* The other one; as the selector compares them. */
static bool is_shorter(const struct choice *c)
{
	return seeming(c, true) <= seeming(c, false);
}

void choice_view(const struct choice *c, struct mode_view *v)
{
	v->cost[0] = seeming(c, false);
	v->cost[1] = seeming(c, true);
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

static void expect(struct choice *c, bool other, uint8_t enough)
{
	c->least[other] = UINT32_MAX;
	c->seen[other] = 0;
	c->enough[other] = enough;
}

/* One more than are wanted: what the last of them took is known when the next one is taken. */
static void begin_run(struct choice *c)
{
	c->run = RUN + 1;
	c->more = RUN_MOST - RUN;
	c->tried = UINT32_MAX;
}

static void end_run(struct choice *c)
{
	c->run = 0;
	c->pause = c->pause ? 4 * c->pause : FIRST_PAUSE;
	if (c->pause > LAST_PAUSE)
		c->pause = LAST_PAUSE;
	c->left = c->pause;
	c->then = c->cost[c->usual];
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
	else if (usual)
		begin_run(c);
}

enum choice_note choice_taken(struct choice *c, bool other)
{
	bool changes = c->last != other, timed = changes || c->fresh || c->run || !c->cost[other];

	if (c->without) {
		c->without--;
		refresh(c);
		return CHOICE_UNTIMED;
	}
	c->last = other;
	c->fresh = c->fresh ? (uint8_t)(c->fresh - 1) : 0;
	if (changes) {
		expect(c, other, FEW);
		c->fresh = SAMPLE;
	}
	choice_count(c);
	refresh(c);
	if (!timed && ++c->turn % SAMPLE)
		return CHOICE_UNTIMED;
	return changes ? CHOICE_FIRST : CHOICE_TIMED;
}

/* ---- what they took ------------------------------------------------------------------------- */

/* What a way costs after a change falls for as long as data lies with the wrong processor. */
static bool falls(uint32_t cost, uint32_t least)
{
	return cost < least - least / FALL;
}

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

/* Is the try under way worth another turn? */
static bool goes_on(struct choice *c, uint32_t cost)
{
	uint32_t usual = c->cost[c->usual];
	bool better = falls(cost, c->tried);

	if (cost < c->tried)
		c->tried = cost;
	if (cost / HOPELESS > usual)
		return false; /* no further turn could change that */
	if (c->run > 1)
		return true;
	if (!c->more || (!better && c->tried > usual + usual / CLOSE))
		return false;
	c->more--;
	c->run++;
	return true;
}

/* No more than so much is waited for, and the rest later: what is put off so is limited, or the tries would
 * take more than their part where each of them is spared. */
static void choice_spare(struct choice *c)
{
	uint64_t most = c->cost[c->usual] * (uint64_t)LEAST_BUDGET;
	uint64_t left = c->cost[c->usual] * (uint64_t)PROBE_BUDGET, part;

	if (c->deferred <= most || c->spared >= left)
		return;
	left -= c->spared;
	part = c->deferred - most < left ? c->deferred - most : left;
	c->deferred -= part;
	c->spared += part;
}

/* What has delayed a try may be chance, or gone when all else has changed. */
static void forgive(struct choice *c)
{
	uint64_t now = c->cost[c->usual], then = c->then;

	if (c->cost[!c->usual] / 4 < now)
		choice_spare(c);
	if (2 * now <= 3 * then && 2 * then <= 3 * now)
		return;
	c->then = (uint32_t)now;
	c->left = c->pause = 0;
	limit(c);
	choice_spare(c);
}

/* Good news at once, bad news when several agree: what falls from turn to turn does not yet. */
static void estimate(struct choice *c, bool other, uint32_t cost)
{
	if (!c->enough[other])
		expect(c, other, FEW);
	if (falls(cost, c->least[other]))
		c->seen[other] = 0;
	if (cost < c->least[other])
		c->least[other] = cost;
	if (!c->cost[other] || cost < c->cost[other])
		c->cost[other] = cost;
	if (++c->seen[other] < c->enough[other])
		return;
	c->cost[other] = c->least[other];
	expect(c, other, MANY);
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
	if (choice_is_known(c) && c->usual != is_shorter(c)) {
		c->usual = !c->usual;
		if (c->run)
			end_run(c);
	} else if (c->run && other != c->usual && note == CHOICE_TIMED && !goes_on(c, cost)) {
		end_run(c);
	}
	refresh(c);
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
