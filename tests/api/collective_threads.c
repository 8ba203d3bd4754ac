/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Operations of several groups at once, each by a thread of its own, in one context at each of the
 * processes: whichever thread polls, or sleeps, does so for all; one more waits for other things.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define OTHERS  2
#define THREADS 3
#define ROUNDS  150
#define LONG    50000

static struct circle c;
static slmpm_peer founder;

struct work {
	pthread_t thread;
	slmpm_group group;
	uint32_t tag;
	int rank; /* 0: who founds */
};

static void round_of(const struct work *w, int64_t *at, int k)
{
	uint64_t n = k % 50 ? 1 + (uint64_t)k % 30 : LONG;

	for (uint64_t i = 0; i < n; i++)
		at[i] = (int64_t)i + w->rank;
	OK(slmpm_allreduce(w->group, SLMPM_IN_PLACE, at, n, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
	for (uint64_t i = 0; i < n; i++)
		CHECK(at[i] == (int64_t)i * (OTHERS + 1) + OTHERS * (OTHERS + 1) / 2,
		      "tag %u, element %llu: %lld", w->tag, (unsigned long long)i,
		      (long long)at[i]);
	OK(slmpm_barrier(w->group, PATIENCE));
}

static void *take_part(void *arg)
{
	struct work *w = arg;
	int64_t *at = malloc(LONG * sizeof(*at));

	CHECK(at, "no memory");
	for (int k = 0; k < ROUNDS; k++)
		round_of(w, at, k);
	free(at);
	return NULL;
}

static void *wait_for_word(void *arg)
{
	actor_hear(*(slmpm_peer *)arg, 3);
	return NULL;
}

static void in_threads(int rank, slmpm_peer *peer)
{
	slmpm_peer members[OTHERS + 1] = {{0}};
	struct work all[THREADS];
	pthread_t waits;

	memcpy(members + 1, c.peers, OTHERS * sizeof(members[0]));
	CHECK(pthread_create(&waits, NULL, wait_for_word, peer) == 0, "no thread");
	for (uint32_t t = 0; t < THREADS; t++) {
		all[t] = (struct work){.tag = t, .rank = rank};
		if (rank)
			OK(slmpm_group_join(&all[t].group, founder, t, PATIENCE));
		else
			OK(slmpm_group_create(&all[t].group, c.ctx, members, OTHERS + 1, t,
					      PATIENCE));
		CHECK(pthread_create(&all[t].thread, NULL, take_part, &all[t]) == 0, "no thread");
	}
	for (uint32_t t = 0; t < THREADS; t++) {
		CHECK(pthread_join(all[t].thread, NULL) == 0, "no thread");
		OK(slmpm_group_destroy(all[t].group));
	}
	for (int i = 0; i < (rank ? 1 : OTHERS); i++)
		actor_tell(rank ? founder : c.peers[i], 3);
	CHECK(pthread_join(waits, NULL) == 0, "no thread");
}

static void others(slmpm_peer peer, int i, void *unused)
{
	(void)unused;
	founder = peer;
	in_threads(i + 1, &founder);
	if (i)
		actor_hear(peer, 2);
	else
		actor_tell(peer, 1);
}

int main(void)
{
	static const char *const ways[] = {"adaptive", "block"};

	settings_one_link("shm");
	for (unsigned w = 0; w < 2; w++) {
		setenv("SLMPM_WAIT", ways[w], 1);
		c = (struct circle){.flags = SLMPM_THREADS};
		circle_begin(&c, OTHERS, others, NULL, 60);
		in_threads(0, &c.peers[0]);
		actor_hear(c.peers[1], 3);
		actor_hear(c.peers[0], 1);
		actor_tell(c.peers[1], 2);
		circle_end(&c);
		printf("%s\n", ways[w]);
		fflush(stdout);
	}
	return 0;
}
