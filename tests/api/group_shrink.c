/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * A broken group goes on without those that are gone: who has died, polling or asleep, has left, or
 * was stopped and is killed or goes on; what those that are left do together then is right.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/settings.h"
#include "tests/lib/survivors.h"

#define TAG    5
#define MOMENT 300

struct scene {
	const char *name;
	void (*act)(slmpm_group g, int rank);
	int members;
	uint32_t flags; /* of the contexts */
	int others;     /* members that the test itself is to end: by rank, a bit each */
};

static pid_t *pids; /* by rank, of all */
static slmpm_peer host;

/* It has N members, of which this one is RANK, and works. */
static void works(slmpm_group g, int n, int rank, unsigned generation)
{
	static int64_t from[40000], to[40000];

	survivors_sum(g, n, rank, generation, 40); /* more than a board has slots */
	for (int root = 0; root < n; root++) {     /* and more than its ring */
		for (int i = 0; i < 40000; i++)
			from[i] = root * 100000 + i;
		memset(to, 0, sizeof(to));
		OK(slmpm_broadcast(g, rank == root ? from : to, 40000, SLMPM_INT64, root,
				   PATIENCE));
		CHECK(rank == root || !memcmp(from, to, sizeof(to)), "of rank %d: others", root);
	}
	for (int r = 0; r < n; r++)
		for (int i = 0; i < 2000; i++)
			from[r * 2000 + i] = (rank * 100 + r) * 2000 + i;
	OK(slmpm_alltoall(g, from, to, 2000, SLMPM_INT64, PATIENCE));
	for (int r = 0; r < n; r++)
		for (int i = 0; i < 2000; i++)
			CHECK(to[r * 2000 + i] == (r * 100 + rank) * 2000 + i, "of rank %d", r);
	OK(slmpm_barrier(g, PATIENCE));
}

/* The others are through with what came before. */
static void die_later(void)
{
	usleep(MOMENT * 1000 * (unsigned)actor_slow());
	_exit(0);
}

/* ---- scenes ---------------------------------------------------------------------------------- */

/* Connections made before and after are those of the same members. */
static void talk(slmpm_group g, int rank, int with)
{
	slmpm_peer peer;
	int word = rank, other = -1;

	OK(slmpm_group_peer(g, with, &peer, PATIENCE));
	OK(slmpm_send(peer, 3, &word, sizeof(word), PATIENCE));
	EXPECT(slmpm_recv(peer, 3, &other, sizeof(other), NULL, PATIENCE), sizeof(other));
	CHECK(other == with, "%d, not %d", other, with);
}

static void dies(slmpm_group g, int rank)
{
	struct slmpm_coll barrier = {.size = sizeof(barrier), .kind = SLMPM_COLL_BARRIER};
	slmpm_prepared prepared;

	works(g, 4, rank, 0);
	OK(slmpm_collective_prepare(&prepared, g, &barrier));
	if (rank == 1 || rank == 3)
		talk(g, rank, 4 - rank);
	if (rank == 2)
		die_later(); /* the others sleep */
	survivors_fail(slmpm_barrier(g, PATIENCE), SLMPM_EDEAD, "rank 2");
	survivors_shrink(g);
	REFUSED(slmpm_prepared_start(prepared, NULL, NULL), SLMPM_ESTATE, "other members");
	rank -= rank > 2;
	works(g, 3, rank, 1);
	if (rank)
		talk(g, rank, 3 - rank);
	if (rank < 2)
		talk(g, rank, 1 - rank);
	survivors_fail(slmpm_group_meet(g, PATIENCE), SLMPM_EDEAD,
		       "former member"); /* it came to none */
	OK(slmpm_group_meet(g, PATIENCE));
}

/* They may be agreed on in one step or in two. */
static void die_at_once(slmpm_group g, int rank)
{
	if (rank == 1 || rank == 2)
		_exit(0);
	do {
		survivors_break(g);
		survivors_shrink(g);
	} while (circle_query(g).members > 2);
	works(g, 2, rank == 3, (unsigned)circle_query(g).generation);
}

/* One after the other, down to one. */
static void die_out(slmpm_group g, int rank)
{
	for (int n = 8; n > 1; n--) {
		works(g, n, rank - (8 - n), (unsigned)(8 - n));
		if (rank == 8 - n)
			die_later();
		survivors_break(g);
		survivors_shrink(g);
	}
	works(g, 1, 0, 7);
}

static void dies_of_two(slmpm_group g, int rank)
{
	works(g, 2, rank, 0);
	if (rank == 0)
		die_later();
	survivors_break(g);
	survivors_shrink(g);
	works(g, 1, 0, 1);
	survivors_fail(slmpm_group_shrink(g, PATIENCE), SLMPM_ESTATE, "not broken");
}

static void leaves(slmpm_group g, int rank)
{
	works(g, 4, rank, 0);
	if (rank == 1) { /* the others are through with what came before */
		usleep(MOMENT * 1000 * (unsigned)actor_slow());
		return;
	}
	survivors_fail(slmpm_barrier(g, PATIENCE), SLMPM_ECLOSED, "rank 1");
	survivors_shrink(g);
	works(g, 3, rank - (rank > 1), 1);
}

/* It lives, and has left while the group was broken; the others wait for no word of it. */
static void leaves_broken(slmpm_group g, int rank)
{
	if (rank == 2)
		_exit(0);
	survivors_break(g);
	if (rank == 1)
		return;
	survivors_shrink(g);
	works(g, 2, rank == 3, 1);
}

static void stopped(slmpm_group g, int rank)
{
	if (rank == 2) {
		raise(SIGSTOP);
		_exit(0);
	}
	if (rank == 0)
		actor_await_state(pids[2], "T");
	survivors_fail(slmpm_barrier(g, rank ? PATIENCE : MOMENT), SLMPM_ETIMEOUT, "rank 2");
	survivors_fail(slmpm_group_shrink(g, MOMENT), SLMPM_ETIMEOUT, "rank");
	survivors_fail(slmpm_group_shrink(g, 0), SLMPM_EAGAIN, "rank");
	survivors_fail(slmpm_barrier(g, PATIENCE), SLMPM_ETIMEOUT, "rank 2");
	if (rank == 0) {
		usleep(2 * MOMENT * 1000); /* all others wait for none but rank 2, and 0 */
		survivors_fail(slmpm_group_shrink(g, 3 * MOMENT), SLMPM_ETIMEOUT,
			       "rank 2 (process ");
		(void)kill(pids[2], SIGKILL);
	}
	survivors_shrink(g);
	works(g, 3, rank - (rank > 2), 1);
}

static void goes_on(slmpm_group g, int rank)
{
	if (rank == 2)
		raise(SIGSTOP);
	if (rank >= 2) { /* rank 3 may still see it come */
		survivors_break(g);
	} else {
		if (rank == 0)
			actor_await_state(pids[2], "T");
		survivors_fail(slmpm_barrier(g, rank ? PATIENCE : MOMENT), SLMPM_ETIMEOUT,
			       "rank 2");
		if (rank == 1)
			(void)kill(pids[2], SIGCONT);
	}
	survivors_shrink(g);
	works(g, 4, rank, 1); /* none has gone */
}

static void suspects(slmpm_group g, int rank)
{
	survivors_suspects(g, rank, pids[2]);
}

static int64_t used_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Who waits for one that comes late sleeps, and is woken by it; and by a death. */
static void sleeps(slmpm_group g, int rank)
{
	int64_t begun, used;

	if (rank == 3)
		_exit(0);
	survivors_break(g);
	if (rank == 1)
		usleep(5 * MOMENT * 1000);
	if (rank == 2) {
		usleep(4 * MOMENT * 1000);
		_exit(0);
	}
	begun = actor_now_ms();
	used = used_ms();
	survivors_shrink(g);
	begun = actor_now_ms() - begun;
	used = used_ms() - used;
	CHECK(used < MOMENT * actor_slow(), "%lld ms of processor time", (long long)used);
	CHECK(begun < (rank ? 3 : 8) * MOMENT * actor_slow(), "%lld ms", (long long)begun);
	works(g, 2, rank, 1);
}

/* Of two threads one does it, and the other waits for something else: it polls. */
static void *shrink_beside(void *arg)
{
	slmpm_group *g = arg;

	survivors_shrink(*g);
	return NULL;
}

static void in_threads(slmpm_group g, int rank)
{
	pthread_t thread;
	int word;

	if (rank == 2)
		_exit(0);
	survivors_break(g);
	CHECK(pthread_create(&thread, NULL, shrink_beside, &g) == 0, "no thread");
	if (rank == 0)
		usleep(MOMENT * 1000); /* the thread sleeps, or polls */
	EXPECT(slmpm_recv(host, 1, &word, sizeof(word), NULL, MOMENT), -SLMPM_ETIMEOUT);
	CHECK(pthread_join(thread, NULL) == 0, "no thread");
	works(g, 2, rank, 1);
}

/* Once a member has come to shrink, no operation of its own begins, though one has merely left: not
 * after the call, nor while another thread waits in it; nor is a connection looked for then. */
static void none_begins(slmpm_group g, int rank)
{
	int64_t word = 0;
	pthread_t thread;
	slmpm_peer other;

	works(g, 3, rank, 0);
	if (rank == 2)
		return;
	while (circle_query(g).status != -SLMPM_ECLOSED)
		usleep(1000);
	OK(slmpm_group_peer(g, 1 - rank, &other, PATIENCE));
	if (rank == 0) {
		survivors_fail(slmpm_group_shrink(g, 0), SLMPM_EAGAIN, "rank 1");
		survivors_fail(slmpm_broadcast(g, &word, 1, SLMPM_INT64, 0, PATIENCE),
			       SLMPM_ECLOSED, "rank 2");
		CHECK(pthread_create(&thread, NULL, shrink_beside, &g) == 0, "no thread");
		usleep(MOMENT * 1000 * (unsigned)actor_slow());
		survivors_fail(slmpm_broadcast(g, &word, 1, SLMPM_INT64, 0, PATIENCE),
			       SLMPM_ECLOSED, "rank 2");
		survivors_fail(slmpm_group_peer(g, 2, &(slmpm_peer){0}, PATIENCE), SLMPM_EBUSY,
			       "shrink");
		OK(slmpm_send(other, 3, &word, sizeof(word), PATIENCE));
		CHECK(pthread_join(thread, NULL) == 0, "no thread");
	} else {
		EXPECT(slmpm_recv(other, 3, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
		survivors_shrink(g);
	}
	works(g, 2, rank, 1);
}

static void refused(slmpm_group g, int rank)
{
	REFUSED(slmpm_group_shrink((slmpm_group){0}, PATIENCE), SLMPM_EHANDLE, "group");
	REFUSED(slmpm_group_shrink(g, PATIENCE), SLMPM_ESTATE, "not broken");
	works(g, 3, rank, 0);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void join(slmpm_peer founder, int i, void *arg)
{
	const struct scene *s = arg;
	slmpm_group g;

	host = founder;
	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	s->act(g, i);
	OK(slmpm_group_destroy(g));
}

static int found(void *arg)
{
	struct scene *s = arg;
	struct circle c = {.flags = s->flags};
	slmpm_group g;

	pids = child_common(CIRCLE_MAX * sizeof(*pids));
	circle_begin(&c, s->members, join, s, 60);
	memcpy(pids, c.pids, sizeof(c.pids[0]) * (size_t)s->members);
	OK(slmpm_group_create(&g, c.ctx, c.peers, s->members, TAG, PATIENCE));
	REFUSED(slmpm_group_shrink(g, PATIENCE), SLMPM_ESTATE, "no member");
	for (int i = 0; i < s->members; i++) {
		int rc = circle_wait(&c, i);

		CHECK(rc == 0 || (rc == -SIGKILL && s->others >> i & 1), "member %d: %d", i, rc);
	}
	circle_end(&c);
	return 0;
}

int main(void)
{
	static struct scene scenes[] = {
		{"dies", dies, 4, 0, 0},
		{"die at once", die_at_once, 4, 0, 0},
		{"die out", die_out, 8, 0, 0},
		{"dies of two", dies_of_two, 2, 0, 0},
		{"leaves", leaves, 4, 0, 0},
		{"leaves the broken one", leaves_broken, 4, 0, 0},
		{"stopped", stopped, 4, 0, 1 << 2},
		{"goes on", goes_on, 4, 0, 0},
		{"suspects", suspects, 4, 0, 1 << 3},
		{"sleeps", sleeps, 4, 0, 0},
		{"in threads", in_threads, 3, SLMPM_THREADS, 0},
		{"none begins", none_begins, 3, SLMPM_THREADS, 0},
		{"refused", refused, 3, 0, 0},
	};
	static const char *const ways[] = {"adaptive", "block"};

	settings_one_link("shm");
	for (unsigned w = 0; w < (actor_slow() > 1 ? 1u : 2u); w++) {
		setenv("SLMPM_WAIT", ways[w], 1);
		for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
			if (TEST_THREADS_ALONE && !(scenes[i].flags & SLMPM_THREADS))
				continue;
			printf("%s, %s\n", scenes[i].name, ways[w]);
			fflush(stdout);
			EXPECT(child_run(found, &scenes[i], 60), 0);
		}
	}
	return 0;
}
