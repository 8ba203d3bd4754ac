/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two cables that are unlike, as a model: pieces go by the one that the selector says and come in
 * order, into rings and on a credit that are limited. Together they are never worse than the
 * quicker one alone.
 */
#include "slmpm/mode/mode.h"

#include "tests/lib/test.h"

#define GIGABIT  125000 /* bytes a millisecond */
#define PATIENCE 200    /* us */
#define PIECES   4000
#define RING     1048576 /* bytes that each link takes and its reader has not had */
#define CREDIT   1048576 /* and all of them */
#define LINKS    2
#define ALIKE    5 /* times as fast: both carry what they can */
#define UNLIKE   40

static struct {
	uint64_t given, arrived, returned; /* us; in order, and the credit for it */
	int link;
} piece[PIECES];

/* When what was given before piece N leaves room for it on LINK (-1: in the credit). */
static uint64_t room_at(int n, int link, uint64_t length)
{
	uint64_t taken = length, most = link < 0 ? CREDIT : RING;

	for (int i = n - 1; i >= 0; i--) {
		if (link >= 0 && piece[i].link != link)
			continue;
		taken += length;
		if (taken > most)
			return link < 0 ? piece[i].returned : piece[i].arrived;
	}
	return 0;
}

/* The peer sends as much: what returns the credit stands behind what it has just given. */
static uint64_t returned(int n, bool both_ways)
{
	int k = n;

	while (both_ways && k && piece[k].given > piece[n].arrived)
		k--;
	return piece[n].arrived + (both_ways ? piece[k].arrived - piece[k].given : 0);
}

static struct mode_load load_of(uint64_t us, uint64_t rate)
{
	return (struct mode_load){.able = rate, .in_flight = us * rate / 1000, .rate = rate};
}

/* KB/s of pieces of LENGTH in order over cables of such rates, the first in use; 0: there is
 * none. */
static uint64_t carried(const uint64_t *rate, uint64_t length, bool both_ways)
{
	uint64_t now = 0, room, free[LINKS] = {0};
	int present = !rate[0];

	for (int n = 0; n < PIECES; n++) {
		struct mode_load loads[LINKS];

		room = room_at(n, -1, length);
		now = room > now ? room : now;
		for (int i = 0; i < LINKS; i++)
			loads[i] = load_of(free[i] > now ? free[i] - now : 0, rate[i]);
		present = mode_spread(loads, LINKS, present, length, PATIENCE);
		room = room_at(n, present, length);
		now = room > now ? room : now;
		free[present] =
			(free[present] > now ? free[present] : now) + length * 1000 / rate[present];
		piece[n].link = present;
		piece[n].given = now;
		piece[n].arrived = n && piece[n - 1].arrived > free[present] ?
					   piece[n - 1].arrived :
					   free[present];
		piece[n].returned = returned(n, both_ways);
	}
	return PIECES * length * 1000 / piece[PIECES - 1].arrived;
}

static void compare(uint64_t slow, bool both_ways, bool slow_first)
{
	uint64_t rate[LINKS] = {slow_first ? slow : GIGABIT, slow_first ? GIGABIT : slow};
	uint64_t quick[LINKS] = {GIGABIT, 0};
	uint64_t both = carried(rate, MODE_SPREAD_PACKET, both_ways);
	uint64_t alone = carried(quick, MODE_SPREAD_PACKET, both_ways);

	CHECK(both >= alone * 97 / 100, "with one of %d KB/s, %s: %d KB/s, and %d without",
	      (int)slow, both_ways ? "both ways" : "one way", (int)both, (int)alone);
	CHECK(both_ways || slow * ALIKE < GIGABIT || both >= (GIGABIT + slow) * 99 / 100,
	      "with one of %d KB/s: %d KB/s", (int)slow, (int)both);
}

int main(void)
{
	for (uint64_t times = 1; times <= UNLIKE; times++)
		for (int order = 0; order < 2; order++) {
			compare(GIGABIT / times, false, order);
			compare(GIGABIT / times, true, order);
		}
	return 0;
}
