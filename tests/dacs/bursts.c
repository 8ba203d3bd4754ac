/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts of exchanges after a pause: dacs_wait polls through them, for both sides would else fall
 * asleep just before the other answers, message by message. Sleeps are counted, not time.
 */
#include <limits.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/dacs/pair.h"

#define BURSTS 1200 /* at most: beside other work few are quiet */
#define LONG   100  /* exchanges */
#define FEW    10   /* sleeps in the quietest burst */

#define THINK_NS 100000
#define POLL_US  "1000"

/* Longer than it takes to fall asleep, and shorter than is polled here. */
static void think(void)
{
	struct timespec t, now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - t.tv_sec) * 1000000000 + now.tv_nsec - t.tv_nsec < THINK_NS);
}

static int role_answers(int argc, char **argv)
{
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	do {
		OK(pair_recv(pair_parent(), 0, &word, sizeof(word), DACS_BYTE_SWAP_WORD));
		think();
		OK(pair_send(pair_parent(), 0, &word, sizeof(word), DACS_BYTE_SWAP_WORD));
	} while (word);
	OK(dacs_exit());
	return 0;
}

static void exchange(struct child c, uint32_t word)
{
	uint32_t back = ~word;

	OK(pair_send(c, 0, &word, sizeof(word), DACS_BYTE_SWAP_WORD));
	OK(pair_recv(c, 0, &back, sizeof(back), DACS_BYTE_SWAP_WORD));
	CHECK(back == word, "%u came back as %u", word, back);
}

static long slept_so_far(void)
{
	struct rusage u;

	CHECK(getrusage(RUSAGE_SELF, &u) == 0, "getrusage");
	return u.ru_nvcsw;
}

static int bursts_are_polled_through(int argc, char **argv)
{
	long least = LONG_MAX, before;
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("answers", NULL);
	exchange(c, 1);
	for (int b = 0; b < BURSTS && least > FEW; b++) {
		usleep(2000);
		before = slept_so_far();
		for (uint32_t i = 1; i <= LONG; i++)
			exchange(c, i);
		before = slept_so_far() - before;
		least = before < least ? before : least;
	}
	exchange(c, 0);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	CHECK(least <= FEW, "slept %ld times in %d exchanges, at least", least, LONG);
	OK(dacs_exit());
	return 0;
}

int main(int argc, char **argv)
{
	static const struct pair_entry cases[] = {
		{"bursts are polled through", bursts_are_polled_through}, {NULL, NULL}};
	static const struct pair_entry roles[] = {{"answers", role_answers}, {NULL, NULL}};

	CHECK(setenv("SLMPM_SPIN_US", POLL_US, 1) == 0, "setenv");
	/* Who computes beside is no part of this. */
	(void)setpriority(PRIO_PROCESS, 0, -10);
	return pair_main(argc, argv, cases, roles);
}
