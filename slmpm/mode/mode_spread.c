/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The selector among links of a network that is slower than who writes (mode.h): what goes by one that
 * has much to do waits there, and the others stand idle. So each packet goes where it arrives first.
 */
#include "slmpm/mode/mode.h"

#define MUCH  262144 /* bytes: of a link that nobody knows */
#define SLOW  6      /* times slower: such a link would hold up more than it carries */
#define ALIKE 3      /* times at most: what it has been given holds up little */

bool mode_is_loaded(const struct mode_load *l, uint64_t patience_us)
{
	if (!l->able)
		return false;
	return l->rate ? l->under_way * 1000 / l->rate >= patience_us : l->under_way >= MUCH;
}

static uint64_t most_of(const struct mode_load *loads, int n)
{
	uint64_t most = 0;

	for (int i = 0; i < n; i++)
		if (loads[i].able && loads[i].rate > most)
			most = loads[i].rate;
	return most;
}

/* What is not known yet is taken to be like the others, or to carry MUCH in a millisecond. */
static uint64_t time_of(const struct mode_load *one, uint64_t most, uint64_t length)
{
	uint64_t rate = one->rate ? one->rate : most ? most : MUCH;

	return (one->under_way + length) * 1000 / rate;
}

/* What others bring meanwhile waits for what a slow one has been given: that is to be little. */
static bool may_have_more(const struct mode_load *one, uint64_t most, uint64_t length)
{
	if (!one->rate || one->rate * ALIKE >= most)
		return true;
	return one->rate * SLOW >= most && one->under_way * 2 <= length;
}

/* By which of all, or of those that may have more, the next LENGTH bytes arrive first; -1: there is none. */
static int earliest(const struct mode_load *loads, int n, int present, uint64_t length,
		    uint64_t patience_us, bool all)
{
	uint64_t least = UINT64_MAX, most = most_of(loads, n), one;
	int best = -1;

	for (int i = 0; i < n; i++) {
		if (!loads[i].able || (!all && !may_have_more(&loads[i], most, length)))
			continue;
		one = time_of(&loads[i], most, length);
		if (i == present)
			one -= one < patience_us ? one : patience_us;
		if (one < least || (i == present && one == least)) {
			least = one;
			best = i;
		}
	}
	return best;
}

int mode_spread(const struct mode_load *loads, int n, int present, uint64_t length,
		uint64_t patience_us)
{
	int best;

	if (!mode_is_loaded(&loads[present], patience_us) ||
	    time_of(&loads[present], most_of(loads, n), length) <= patience_us)
		return present;
	best = earliest(loads, n, present, length, patience_us, false);
	return best < 0 ? earliest(loads, n, present, length, patience_us, true) : best;
}
