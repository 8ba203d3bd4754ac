/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* libs: -Wl,--wrap=slmpm_wq_reset */
/*
 * Several groups of the same processes at once, by tags, in the threads of one context; and several
 * of one tag, one after the other. And one that another thread would destroy as it is shrunk.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/crew.h"
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

/* ---- shrunk ---------------------------------------------------------------------------------- */

#define VICTIM 1

static struct {
	_Atomic int begun; /* of the others */
	_Atomic bool agrees;
} * common;
/* What is under way does not end, or by this thread alone. */
static _Atomic bool standing, shrinking, ends_here;
static pthread_t main_thread;

int __real_slmpm_wq_reset(slmpm_wq wq);
int __wrap_slmpm_wq_reset(slmpm_wq wq);

/* The library's, too. */
int __wrap_slmpm_wq_reset(slmpm_wq wq)
{
	bool here = pthread_equal(pthread_self(), main_thread);

	shrinking = shrinking || (standing && !here);
	if (standing && !(ends_here && here))
		return -SLMPM_EBUSY;
	return __real_slmpm_wq_reset(wq);
}

static void *shrink(void *group)
{
	OK(slmpm_group_shrink(*(slmpm_group *)group, PATIENCE));
	return NULL;
}

/* As it waits for what is under way to end, which this thread sees first. */
static void destroy_amidst(slmpm_ctx ctx, slmpm_group g)
{
	pthread_t other;
	struct slmpm_group_info info;

	CHECK(pthread_create(&other, NULL, shrink, &g) == 0, "no thread");
	while (!shrinking)
		usleep(1000);
	ends_here = true;
	do {
		(void)slmpm_progress(ctx);
		EXPECT(slmpm_group_destroy(g), -SLMPM_EBUSY);
		info = circle_query(g);
	} while (info.begun != info.done);
	EXPECT(slmpm_group_destroy(g), -SLMPM_EBUSY);
	common->agrees = true;
	CHECK(pthread_join(other, NULL) == 0, "no thread");
}

static void shrinks(const struct crew *crew, int rank)
{
	const struct slmpm_coll barrier = {.size = sizeof(barrier), .kind = SLMPM_COLL_BARRIER};
	slmpm_group g = crew->group[0];
	slmpm_req req;

	OK(slmpm_barrier(g, PATIENCE));
	if (rank == VICTIM) {
		while (common->begun < 2)
			usleep(1000);
		raise(SIGKILL);
	}
	main_thread = pthread_self();
	standing = !rank;
	OK(slmpm_collective_start(g, &barrier, NULL, &req));
	common->begun++;
	circle_breaks(g, -SLMPM_EDEAD, VICTIM);
	if (rank) {
		while (!common->agrees)
			usleep(1000);
		OK(slmpm_group_shrink(g, PATIENCE));
	} else {
		destroy_amidst(crew->ctx, g);
	}
	OK(slmpm_barrier(g, PATIENCE));
}

int main(void)
{
	const struct crew crew = {.members = 3,
				  .groups = 1,
				  .flags = SLMPM_THREADS,
				  .apart = 6,
				  .body = shrinks,
				  .victim = VICTIM,
				  .code = -SIGKILL};

	common = child_common(sizeof(*common));
	crew_run(&crew, 30);
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
