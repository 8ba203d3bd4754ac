/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The selector among links of a network that is slower than who writes (mode.h): what goes by one
 * that has much to do waits there, and the others stand idle. So each packet goes where it arrives
 * first.
 */
#include "slmpm/mode/mode.h"

#define MUCH 262144 /* bytes: of a link that nobody knows */
#define SLOW 6      /* times slower: such a link would hold up more than it carries */

bool mode_is_loaded(const struct mode_load *l, uint64_t patience_us)
{
	if (!l->able)
		return false;
	return l->rate ? l->in_flight * 1000 / l->rate >= patience_us : l->in_flight >= MUCH;
}

/* What is not known yet is taken to be like the others, or to carry MUCH in a millisecond. */
static uint64_t rate_of(const struct mode_load *loads, int n, int i)
{
	uint64_t most = 0;

	if (loads[i].rate)
		return loads[i].rate;
	for (int k = 0; k < n; k++)
		if (loads[k].able && loads[k].rate > most)
			most = loads[k].rate;
	return most ? most : MUCH;
}

static uint64_t time_of(const struct mode_load *loads, int n, int i, uint64_t length)
{
	return (loads[i].in_flight + length) * 1000 / rate_of(loads, n, i);
}

static bool is_worth_it(const struct mode_load *one, const struct mode_load *present)
{
	return one->able && (!one->rate || one->rate * SLOW >= present->rate);
}

int mode_spread(const struct mode_load *loads, int n, int present, uint64_t length,
		uint64_t patience_us)
{
	uint64_t least, one;
	int best = present;

	if (!mode_is_loaded(&loads[present], patience_us))
		return present;
	least = time_of(loads, n, present, length);
	least -= least < patience_us ? least : patience_us;
	for (int i = 0; i < n; i++) {
		if (i == present || !is_worth_it(&loads[i], &loads[present]))
			continue;
		one = time_of(loads, n, i, length);
		if (one < least) {
			least = one;
			best = i;
		}
	}
	return best;
}
