/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Two threads call slmpm_group_split while an operation before it is under way: one is refused, and
 * the other's is the call that it was.
 */
#include <pthread.h>
#include <stdio.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"

#define TAG 5

enum { GO = 1, DONE };

struct caller {
	slmpm_group group, part;
	slmpm_peer founder;
	int rc;
};

/* Who is refused lets the other member come. */
static void *call(void *arg)
{
	struct caller *c = arg;

	c->rc = slmpm_group_split(&c->part, c->group, 0, 0, PATIENCE);
	if (c->rc == -SLMPM_EBUSY)
		actor_tell(c->founder, GO);
	return NULL;
}

static void two_threads(slmpm_group g, slmpm_peer founder)
{
	struct caller own = {.group = g, .founder = founder}, other = own;
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, call, &other) == 0, "a thread");
	(void)call(&own);
	CHECK(pthread_join(thread, NULL) == 0, "a thread");
	CHECK((own.rc == 0 && other.rc == -SLMPM_EBUSY) ||
		      (own.rc == -SLMPM_EBUSY && other.rc == 0),
	      "%d and %d", own.rc, other.rc);
	OK(slmpm_group_destroy(own.rc == 0 ? own.part : other.part));
}

static void member(slmpm_peer founder, int i, void *unused)
{
	const int64_t one = 1;
	int64_t sum = 0;
	slmpm_group g, part;
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_ALLREDUCE,
			       .type = SLMPM_INT64,
			       .op = SLMPM_CALC_SUM,
			       .from = &one,
			       .to = &sum,
			       .count = 1};
	slmpm_req req;

	(void)unused;
	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	if (i == 0) {
		OK(slmpm_collective_start(g, &c, NULL, &req));
		two_threads(g, founder);
		OK(slmpm_wait(&req, 1, NULL, PATIENCE));
	} else {
		actor_hear(founder, GO);
		OK(slmpm_collective(g, &c, PATIENCE));
		OK(slmpm_group_split(&part, g, 0, 0, PATIENCE));
		OK(slmpm_group_destroy(part));
	}
	EXPECT(sum, 2);
	actor_tell(founder, DONE);
	OK(slmpm_group_destroy(g));
}

static int play(void *unused)
{
	struct circle c = {.flags = SLMPM_THREADS};
	slmpm_group g;

	(void)unused;
	circle_begin(&c, 2, member, NULL, 30);
	OK(slmpm_group_create(&g, c.ctx, c.peers, c.n, TAG, PATIENCE));
	actor_hear(c.peers[0], GO);
	actor_tell(c.peers[1], GO);
	for (int i = 0; i < c.n; i++)
		actor_hear(c.peers[i], DONE);
	OK(slmpm_group_destroy(g));
	circle_end(&c);
	return 0;
}

int main(void)
{
	EXPECT(child_run(play, NULL, 60), 0);
	return 0;
}
