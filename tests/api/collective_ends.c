/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * What ends collective operations before they are done: a member that is killed, or stopped until
 * the deadline, that leaves, or does another one: all learn it, polling or asleep, and who.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG     3
#define MEMBERS 4
#define VICTIM  2 /* a rank */
#define AT_ONCE 1000
#define MOMENT  300

typedef void act(slmpm_group g, int rank);

static void refused(int rc, int error, const char *part)
{
	CHECK(rc == -error && strstr(slmpm_error_detail(), part), "%d (%s), expected %d, %s", rc,
	      slmpm_error_detail(), -error, part);
}

static void barrier_fails(slmpm_group g, int error, const char *part, int most)
{
	int64_t before = actor_now_ms();
	struct slmpm_group_info info;

	refused(slmpm_barrier(g, PATIENCE), error, part);
	CHECK(actor_now_ms() - before < most * actor_slow(), "after %lld ms",
	      (long long)(actor_now_ms() - before));
	info = circle_query(g);
	CHECK(info.status == -error && info.culprit == VICTIM && info.begun == info.done,
	      "status %d by %d", info.status, info.culprit);
	refused(slmpm_barrier(g, PATIENCE), error, part);
}

static void killed(slmpm_group g, int rank)
{
	OK(slmpm_barrier(g, PATIENCE));
	if (rank == VICTIM) {
		usleep(MOMENT * 1000); /* the others sleep */
		_exit(0);              /* without a word */
	}
	barrier_fails(g, SLMPM_EDEAD, "rank 2", MOMENT + AT_ONCE);
}

static void left(slmpm_group g, int rank)
{
	int64_t one = 1, sum;

	OK(slmpm_allreduce(g, &one, &sum, 1, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
	CHECK(sum == MEMBERS, "%lld", (long long)sum);
	if (rank == VICTIM) {
		usleep(MOMENT * 1000);
		return;
	}
	barrier_fails(g, SLMPM_ECLOSED, "rank 2", MOMENT + AT_ONCE);
}

/* What it has done for the others before it left counts. */
static void left_behind(slmpm_group g, int rank)
{
	int64_t one = rank, got[MEMBERS];

	if (!rank)
		usleep(MOMENT * 1000);
	OK(slmpm_gather(g, &one, got, 1, SLMPM_INT64, 0, PATIENCE));
	for (int r = 0; r < MEMBERS && !rank; r++)
		CHECK(got[r] == r, "%lld of %d", (long long)got[r], r);
}

static void stopped(slmpm_group g, int rank)
{
	OK(slmpm_barrier(g, PATIENCE));
	if (rank == VICTIM) {
		raise(SIGSTOP);
		_exit(0);
	}
	if (!rank) {
		refused(slmpm_barrier(g, MOMENT), SLMPM_ETIMEOUT,
			" s, suspect: its process is stopped; ranks at operation 2, ");
		refused(slmpm_barrier(g, MOMENT), SLMPM_ETIMEOUT,
			"group 3, operation 2, barrier: nothing yet from rank 2 (process ");
		return;
	}
	barrier_fails(g, SLMPM_ETIMEOUT, "rank 2", MOMENT + AT_ONCE);
}

static void other_count(slmpm_group g, int rank)
{
	int64_t from[5] = {0}, to[5];
	int rc;

	OK(slmpm_barrier(g, PATIENCE));
	rc = slmpm_allreduce(g, from, to, rank == VICTIM ? 5 : 4, SLMPM_INT64, SLMPM_CALC_SUM,
			     PATIENCE);
	if (rank == VICTIM)
		refused(rc, SLMPM_EINVAL, ") has count 5, rank 0 (process ");
	else
		refused(rc, SLMPM_EINVAL, "group 3, operation 2, allreduce: rank 2 (process ");
	refused(slmpm_barrier(g, PATIENCE), SLMPM_EINVAL, ") count 4");
	CHECK(circle_query(g).culprit == VICTIM, "by %d", circle_query(g).culprit);
}

static void other_kind(slmpm_group g, int rank)
{
	int64_t from[4] = {0}, to[4 * MEMBERS];

	if (rank == VICTIM)
		refused(slmpm_barrier(g, PATIENCE), SLMPM_EINVAL, "allgather");
	else
		refused(slmpm_allgather(g, from, to, 4, SLMPM_INT64, PATIENCE), SLMPM_EINVAL,
			"rank");
}

/* ---- roots that differ ----------------------------------------------------------------------- */

/* At once, or later: by an operation in which all wait for all, or many others. */
static void fails_by(slmpm_group g, int rc, uint32_t kind, uint64_t count, int root)
{
	static int64_t from[MEMBERS * 100000], to[MEMBERS * 100000];

	for (int i = 0; i < 80 && rc == 0; i++)
		rc = slmpm_collect(g, kind, from, to, count, SLMPM_INT64, SLMPM_CALC_SUM, root,
				   PATIENCE);
	refused(rc, SLMPM_EINVAL, " root ");
	refused(slmpm_barrier(g, PATIENCE), SLMPM_EINVAL, "group 3, operation ");
}

#define ROOTS(name, kind, count, ROOT)                                                             \
	static void name(slmpm_group g, int rank)                                                  \
	{                                                                                          \
		fails_by(g, 0, kind, count, ROOT);                                                 \
	}

#define TWO  (rank == VICTIM ? VICTIM : 0) /* think that they are the root */
#define NONE (rank == VICTIM ? 0 : VICTIM) /* thinks so */

ROOTS(two_broadcast, SLMPM_COLL_BROADCAST, 1, TWO)
ROOTS(two_broadcast_much, SLMPM_COLL_BROADCAST, 100000, TWO)
ROOTS(two_scatter, SLMPM_COLL_SCATTER, 1, TWO)
ROOTS(two_scatter_much, SLMPM_COLL_SCATTER, 100000, TWO)
ROOTS(two_reduce, SLMPM_COLL_REDUCE, 1, TWO)
ROOTS(two_gather, SLMPM_COLL_GATHER, 1, TWO)
ROOTS(no_broadcast, SLMPM_COLL_BROADCAST, 1, NONE)
ROOTS(no_scatter_much, SLMPM_COLL_SCATTER, 100000, NONE)
ROOTS(no_reduce, SLMPM_COLL_REDUCE, 1, NONE)
ROOTS(no_reduce_much, SLMPM_COLL_REDUCE, 100000, NONE)
ROOTS(no_gather, SLMPM_COLL_GATHER, 1, NONE)
ROOTS(no_gather_much, SLMPM_COLL_GATHER, 100000, NONE)

/* By the next operation in which all wait for all. */
static void two_then_barrier(slmpm_group g, int rank)
{
	int64_t x = 0;
	int rc = slmpm_broadcast(g, &x, 1, SLMPM_INT64, TWO, PATIENCE);

	if (rc == 0)
		rc = slmpm_barrier(g, PATIENCE);
	refused(rc, SLMPM_EINVAL, "group 3, operation 1, broadcast: ");
	refused(slmpm_barrier(g, PATIENCE), SLMPM_EINVAL, "rank 2 (process ");
	CHECK(circle_query(g).culprit == VICTIM, "by %d", circle_query(g).culprit);
}

/* ---- too late -------------------------------------------------------------------------------- */

/* The others have given up by then, and all that it needs of them is there. */
static void too_late(slmpm_group g, int rank, uint32_t kind, uint64_t count, int root)
{
	static int64_t from[MEMBERS * 100000], to[MEMBERS * 100000];
	int rc;

	OK(slmpm_barrier(g, PATIENCE));
	if (rank == VICTIM)
		usleep(2 * MOMENT * 1000 * (useconds_t)actor_slow());
	do { /* of what need not wait for it others follow, until one does */
		rc = slmpm_collect(g, kind, from, to, count, SLMPM_INT64, SLMPM_CALC_SUM, root,
				   MOMENT);
	} while (rc == 0);
	refused(rc, SLMPM_ETIMEOUT, "nothing yet from rank 2 (process ");
	refused(slmpm_barrier(g, PATIENCE), SLMPM_ETIMEOUT, "nothing yet from rank 2 (process ");
	CHECK(circle_query(g).culprit == VICTIM, "by %d", circle_query(g).culprit);
}

#define LATE_FOR(root, name, kind, count)                                                          \
	static void name(slmpm_group g, int rank)                                                  \
	{                                                                                          \
		too_late(g, rank, kind, count, root);                                              \
	}
#define LATE(name, kind, count) LATE_FOR(VICTIM, name, kind, count)

LATE(late_barrier, SLMPM_COLL_BARRIER, 0)
LATE(late_broadcast, SLMPM_COLL_BROADCAST, 1)
LATE(late_broadcast_much, SLMPM_COLL_BROADCAST, 100000)
LATE(late_scatter, SLMPM_COLL_SCATTER, 1)
LATE(late_allgather, SLMPM_COLL_ALLGATHER, 1)
LATE(late_alltoall, SLMPM_COLL_ALLTOALL, 1)
LATE(late_allgather_much, SLMPM_COLL_ALLGATHER, 8000)
/* The root waits for the late one, the others for the root. */
LATE_FOR(1, late_for_the_root, SLMPM_COLL_BROADCAST, 100000)
LATE_FOR(1, late_for_the_root_scatter, SLMPM_COLL_SCATTER, 20000)
LATE_FOR(1, late_for_the_root_gather, SLMPM_COLL_GATHER, 1)
LATE_FOR(1, late_for_the_root_gather_much, SLMPM_COLL_GATHER, 20000)

/* It was stopped in the operation that the others have given up, and goes on. */
static void stopped_for_long(slmpm_group g, int rank)
{
	int32_t mine = (int32_t)getpid(), pids[MEMBERS];

	OK(slmpm_allgather(g, &mine, pids, 1, SLMPM_INT32, PATIENCE));
	if (rank == 3) /* does not come in time */
		usleep(3 * MOMENT * 1000 * (useconds_t)actor_slow());
	if (!rank)
		usleep(MOMENT * 1000 / 2);
	CHECK(rank || kill(pids[VICTIM], SIGSTOP) == 0, "%d cannot be stopped", pids[VICTIM]);
	refused(slmpm_barrier(g, rank == VICTIM ? PATIENCE : MOMENT), SLMPM_ETIMEOUT,
		"nothing yet from rank");
	if (!rank)
		(void)kill(pids[VICTIM], SIGCONT);
}

static void arguments(slmpm_group g, int rank)
{
	struct slmpm_coll c = {.size = sizeof(c), .kind = 99};
	int64_t x[MEMBERS] = {0}, y[MEMBERS], z[2 * MEMBERS] = {0};
	uint64_t every_other[MEMBERS] = {0, 2, 4, 6};
	uint64_t counts[MEMBERS] = {1, 1, 1, 1}, own[MEMBERS] = {1, 1, 1, 1};
	slmpm_group none = {0};
	const uint32_t type = SLMPM_INT64, op = SLMPM_CALC_SUM;

	REFUSED(slmpm_collective(g, NULL, PATIENCE), SLMPM_EINVAL, "slmpm_collective");
	REFUSED(slmpm_collective(none, &c, PATIENCE), SLMPM_EHANDLE, "group");
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "no kind 99");
	c.kind = SLMPM_COLL_BARRIER;
	c.flags = 1;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "flags");
	REFUSED(slmpm_barrier(g, 0), SLMPM_EAGAIN, "timeout of 0");
	REFUSED(slmpm_collect(g, 12, x, y, 1, type, op, 0, PATIENCE), SLMPM_EINVAL, "no kind 12");
	REFUSED(slmpm_allreduce(g, x, y, 1, 77, op, PATIENCE), SLMPM_EINVAL, "no type 77");
	REFUSED(slmpm_allreduce(g, x, (void *)(uintptr_t)SLMPM_IN_PLACE, 1, type, op, PATIENCE),
		SLMPM_EINVAL, ".to is SLMPM_IN_PLACE");
	REFUSED(slmpm_allreduce(g, x, y, 1, SLMPM_DOUBLE, SLMPM_CALC_XOR, PATIENCE), SLMPM_EINVAL,
		"no operation 7 of type 10");
	REFUSED(slmpm_allreduce(g, NULL, y, 1, type, op, PATIENCE), SLMPM_EINVAL, ".from is NULL");
	REFUSED(slmpm_allreduce(g, y, y, 1, type, op, PATIENCE), SLMPM_EINVAL, "SLMPM_IN_PLACE");
	REFUSED(slmpm_allreduce(g, z, z + 1, 2, type, op, PATIENCE), SLMPM_EINVAL,
		".from and .to overlap");
	REFUSED(slmpm_scan(g, z + 1, z, 2, type, op, PATIENCE), SLMPM_EINVAL, "overlap");
	REFUSED(slmpm_allgather(g, z + MEMBERS - 1, z, 1, type, PATIENCE), SLMPM_EINVAL, "overlap");
	REFUSED(slmpm_alltoall(g, z, z + MEMBERS - 1, 1, type, PATIENCE), SLMPM_EINVAL, "overlap");
	REFUSED(slmpm_reduce_scatter(g, z, z + MEMBERS - 1, 1, type, op, PATIENCE), SLMPM_EINVAL,
		"overlap");
	REFUSED(slmpm_scatter(g, z, z + MEMBERS - 1, 1, type, rank, PATIENCE), SLMPM_EINVAL,
		"overlap");
	REFUSED(slmpm_gather(g, z, z, 1, type, rank, PATIENCE), SLMPM_EINVAL, "overlap");
	REFUSED(slmpm_reduce(g, z, z + 1, 2, type, op, rank, PATIENCE), SLMPM_EINVAL, "overlap");
	REFUSED(slmpm_broadcast(g, x, 1, type, MEMBERS, PATIENCE), SLMPM_EINVAL, "no root 4");
	REFUSED(slmpm_broadcast(g, NULL, 1, type, 0, PATIENCE), SLMPM_EINVAL, "is NULL");
	REFUSED(slmpm_collect(g, SLMPM_COLL_BROADCAST, SLMPM_IN_PLACE, y, 1, type, 0, !rank,
			      PATIENCE),
		SLMPM_EINVAL, "in place is at the root alone");
	REFUSED(slmpm_reduce(g, x, y, 1, type, op, -1, PATIENCE), SLMPM_EINVAL, "no root -1");
	REFUSED(slmpm_scatter(g, x, NULL, 1, type, 0, PATIENCE), SLMPM_EINVAL, ".to is NULL");
	REFUSED(slmpm_gather(g, NULL, y, 1, type, 0, PATIENCE), SLMPM_EINVAL, ".from is NULL");
	REFUSED(slmpm_allgather(g, x, NULL, 1, type, PATIENCE), SLMPM_EINVAL, ".to is NULL");
	REFUSED(slmpm_alltoall(g, x, y, UINT64_MAX / 2, type, PATIENCE), SLMPM_EINVAL,
		"in no memory");
	REFUSED(slmpm_reduce_scatter(g, x, y, 1, type, 0, PATIENCE), SLMPM_EINVAL,
		"no operation 0");
	REFUSED(slmpm_scan(g, x, NULL, 1, type, op, PATIENCE), SLMPM_EINVAL, ".to is NULL");
	REFUSED(slmpm_exscan(g, NULL, y, 1, type, op, PATIENCE), SLMPM_EINVAL, ".from is NULL");
	c = (struct slmpm_coll){.size = sizeof(c), .kind = SLMPM_COLL_ALLTOALL, .type = type};
	c.from = x;
	c.to = y;
	c.counts = counts;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "go together");
	c.to_counts = own;
	own[rank] = 0;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "differ for the member itself");
	c.to_counts = NULL;
	c.kind = SLMPM_COLL_ALLREDUCE;
	c.op = op;
	REFUSED(slmpm_collective(g, &c, PATIENCE), SLMPM_EINVAL, "no counts");
	OK(slmpm_alltoall(g, x, y, 1, type, PATIENCE));           /* nothing has come of all that */
	OK(slmpm_alltoall(g, z, z + MEMBERS, 1, type, PATIENCE)); /* side by side */
	OK(slmpm_allgather(g, z + MEMBERS, z, 1, type, PATIENCE));
	OK(slmpm_allreduce(g, z + 1, z, 1, type, op, PATIENCE));
	OK(slmpm_allreduce(g, z, z, 0, type, op, PATIENCE));
	c = (struct slmpm_coll){.size = sizeof(c), .kind = SLMPM_COLL_ALLTOALL, .type = type};
	c.from = z;
	c.to = z + 1; /* in the gaps */
	c.counts = c.to_counts = counts;
	c.places = c.to_places = every_other;
	OK(slmpm_collective(g, &c, PATIENCE));
}

struct scene {
	const char *name;
	act *act;
	int code; /* of the victim's process: as child_wait says */
};

static void join(slmpm_peer founder, int i, void *arg)
{
	const struct scene *s = arg;
	slmpm_group g;

	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	s->act(g, i + 1);
	OK(slmpm_group_destroy(g));
}

static int found(void *arg)
{
	struct scene *s = arg;
	slmpm_peer members[CIRCLE_MAX] = {{0}};
	struct circle c = {0};
	slmpm_group g;

	circle_begin(&c, MEMBERS - 1, join, s, 30);
	memcpy(&members[1], c.peers, sizeof(c.peers[0]) * (MEMBERS - 1));
	OK(slmpm_group_create(&g, c.ctx, members, MEMBERS, TAG, PATIENCE));
	s->act(g, 0);
	OK(slmpm_group_destroy(g));
	if (s->act == stopped)
		(void)kill(c.pids[VICTIM - 1], SIGKILL);
	if (s->code)
		EXPECT(circle_wait(&c, VICTIM - 1), s->code);
	circle_end(&c);
	return 0;
}

int main(void)
{
	static struct scene scenes[] = {
		{"killed", killed, 0},
		{"left", left, 0},
		{"left behind", left_behind, 0},
		{"stopped", stopped, -SIGKILL},
		{"count", other_count, 0},
		{"kind", other_kind, 0},
		{"arguments", arguments, 0},
		{"two roots", two_then_barrier, 0},
		{"two roots of broadcast", two_broadcast, 0},
		{"of a long broadcast", two_broadcast_much, 0},
		{"two roots of scatter", two_scatter, 0},
		{"of a long scatter", two_scatter_much, 0},
		{"two roots of reduce", two_reduce, 0},
		{"two roots of gather", two_gather, 0},
		{"no root of broadcast", no_broadcast, 0},
		{"no root of a long scatter", no_scatter_much, 0},
		{"no root of reduce", no_reduce, 0},
		{"no root of a long reduce", no_reduce_much, 0},
		{"no root of gather", no_gather, 0},
		{"no root of a long gather", no_gather_much, 0},
		{"late to a barrier", late_barrier, 0},
		{"late to a broadcast", late_broadcast, 0},
		{"late to a long broadcast", late_broadcast_much, 0},
		{"late to a scatter", late_scatter, 0},
		{"late to an allgather", late_allgather, 0},
		{"late to an alltoall", late_alltoall, 0},
		{"late to a long allgather", late_allgather_much, 0},
		{"late for the root of a long broadcast", late_for_the_root, 0},
		{"late for the root of a long scatter", late_for_the_root_scatter, 0},
		{"late for the root of gathers", late_for_the_root_gather, 0},
		{"late for the root of long gathers", late_for_the_root_gather_much, 0},
		{"stopped for long", stopped_for_long, 0},
	};
	static const char *const ways[] = {"adaptive", "block"};

	for (unsigned w = 0; w < (actor_slow() > 1 ? 1u : 2u); w++) {
		setenv("SLMPM_WAIT", ways[w], 1);
		for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
			printf("%s, %s\n", scenes[i].name, ways[w]);
			fflush(stdout);
			EXPECT(child_run(found, &scenes[i], 30), 0);
		}
	}
	return 0;
}
