/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ways and what they have cost (choice.h). */
#include "slmpm/choice.h"

#define FIRST_PAUSE 2    /* turns before the longer way is tried again; then eight times as many, */
#define LAST_PAUSE  512  /* ... to so many: tries are to stay below the 99th percentile, */
#define LONG_PAUSE  2048 /* or, where it takes longer by half, so many */
#define MISSED      256  /* turns without the other way after it came to nothing; twice as many, */
#define MOST_MISSED 8192 /* ... and so on, to so many */
#define SAMPLE      8    /* one turn in so many is timed, and those around a try */

struct choice *choice_of(struct choice *choices, uint64_t length)
{
	int class = 63 - __builtin_clzll(length >> 14 | 1);

	return &choices[class < CHOICE_CLASSES ? class : CHOICE_CLASSES - 1];
}

static bool is_known(const struct choice *c)
{
	return c->cost[0] && c->cost[1];
}

/* The other way. */
static bool is_shorter(const struct choice *c)
{
	return c->cost[1] <= c->cost[0];
}

bool choice_is_trial(const struct choice *c)
{
	/* In turns: what one costs may not be told. */
	return is_known(c) ? !c->left : c->left % 2 == 0;
}

static uint32_t longest_pause(const struct choice *c)
{
	uint64_t least = c->cost[is_shorter(c)], most = c->cost[!is_shorter(c)];

	return 2 * most > 3 * least ? LONG_PAUSE : LAST_PAUSE;
}

bool choice_taken(struct choice *c)
{
	uint32_t longest = longest_pause(c);

	if (c->without) {
		c->without--;
		return false;
	}
	if (c->left) {
		c->left--;
		return c->left < SAMPLE || c->left % SAMPLE == 0;
	}
	if (!is_known(c)) {
		c->left = 1;
		return true;
	}
	c->pause = c->pause ? 8 * c->pause : FIRST_PAUSE;
	if (c->pause > longest)
		c->pause = longest;
	c->left = c->pause;
	return true;
}

/* Good news at once, bad news with doubt: what delayed one need not delay the next. A wrong belief in
 * the shorter way so lasts for some turns, one in the longer for no more than a pause. */
void choice_learn(struct choice *c, bool other, uint64_t took, uint64_t length)
{
	uint64_t cost = took * 1000 / length + 1, had = c->cost[other] ? c->cost[other] : cost;

	if (cost > 2 * had)
		cost = 2 * had;
	had = cost < had ? cost : had + (cost - had) / 8;
	c->cost[other] = had > UINT32_MAX ? UINT32_MAX : (uint32_t)had;
}

void choice_missed(struct choice *c)
{
	c->missed = c->missed < MISSED ? MISSED : 2 * c->missed;
	if (c->missed > MOST_MISSED)
		c->missed = MOST_MISSED;
	c->without = c->missed;
}

void choice_met(struct choice *c)
{
	c->missed -= c->missed / 4;
}
