/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/*
 * Several groups of the same processes at once, by tags, in the threads of one context; and several
 * of one tag, one after the other.
 */
#include <pthread.h>
#include <string.h>

#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define OTHERS  3
#define THREADS 4
#define ROUNDS  20

static struct circle c;
static slmpm_peer founder;

static void check_it(slmpm_group group, uint32_t tag, int rank)
{
	struct slmpm_group_info info = circle_query(group);

	/* Others may be in the next round by now. */
	CHECK(info.tag == tag && info.rank == rank && info.members == OTHERS + 1 &&
		      (!info.status || info.status == -SLMPM_ECLOSED),
	      "rank %d of %u, tag %u, status %d", info.rank, info.members, info.tag, info.status);
	OK(slmpm_group_destroy(group));
}

struct work {
	pthread_t thread;
	uint32_t tag;
	int rank; /* 0: who founds */
};

static void *take_part(void *arg)
{
	const struct work *w = arg;
	slmpm_peer members[OTHERS + 1] = {{0}};
	slmpm_group group;

	memcpy(members + 1, c.peers, OTHERS * sizeof(members[0]));
	for (int i = 0; i < ROUNDS; i++) {
		if (w->rank)
			OK(slmpm_group_join(&group, founder, w->tag, PATIENCE));
		else
			OK(slmpm_group_create(&group, c.ctx, members, OTHERS + 1, w->tag,
					      PATIENCE));
		check_it(group, w->tag, w->rank);
	}
	return NULL;
}

static void in_threads(int rank)
{
	struct work all[THREADS];

	for (uint32_t t = 0; t < THREADS; t++) {
		/* Two of one tag: which thread gets which group is all the same. */
		all[t] = (struct work){.tag = t / 2, .rank = rank};
		CHECK(pthread_create(&all[t].thread, NULL, take_part, &all[t]) == 0, "no thread");
	}
	for (uint32_t t = 0; t < THREADS; t++)
		CHECK(pthread_join(all[t].thread, NULL) == 0, "no thread");
}

static void others(slmpm_peer peer, int i, void *unused)
{
	(void)unused;
	founder = peer;
	in_threads(i + 1);
	actor_tell(peer, 1);
	actor_hear(peer, 2);
}

int main(void)
{
	settings_one_link("shm");
	c.flags = SLMPM_THREADS;
	circle_begin(&c, OTHERS, others, NULL, 60);
	in_threads(0);
	for (int i = 0; i < OTHERS; i++) {
		actor_hear(c.peers[i], 1);
		actor_tell(c.peers[i], 2);
	}
	circle_end(&c);
	return 0;
}
