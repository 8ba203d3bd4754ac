/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* waits */
/*
 * A broken group whose members are connected by TCP goes on without those that are gone: who has
 * died, one or several at any time, also while the others agree; has left; or was stopped.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/crew.h"
#include "tests/lib/loopback.h"
#include "tests/lib/survivors.h"

#define TAG    5
#define MOMENT 60 /* ms */

struct scene {
	const char *name;
	void (*act)(slmpm_group g, int rank);
	int members;
	uint64_t apart; /* a bit each; the others are on the founder's machine */
	int killed;     /* members that end by a signal, a bit each */
};

static pid_t *pids; /* by rank, of all */

/* It has N members, of which this one is RANK, and works. */
static void works(slmpm_group g, int n, int rank, unsigned generation)
{
	int64_t from[5], to[5];

	survivors_sum(g, n, rank, generation, 1);
	for (int r = 0; r < n; r++)
		from[r] = rank * 10 + r;
	OK(slmpm_alltoall(g, from, to, 1, SLMPM_INT64, PATIENCE));
	for (int r = 0; r < n; r++)
		CHECK(to[r] == r * 10 + rank, "of rank %d: %lld", r, (long long)to[r]);
	OK(slmpm_barrier(g, PATIENCE));
}

/* The others are through with what came before. */
static void die_later(void)
{
	usleep(MOMENT * 1000 * (unsigned)actor_slow());
	raise(SIGKILL);
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static void dies(slmpm_group g, int rank)
{
	int64_t begun;

	survivors_fail(slmpm_group_shrink(g, PATIENCE), SLMPM_ESTATE, "not broken");
	works(g, 4, rank, 0);
	if (rank == 2)
		die_later(); /* the others sleep */
	begun = actor_now_ms();
	survivors_fail(slmpm_barrier(g, PATIENCE), SLMPM_EDEAD, "rank 2");
	begun = actor_now_ms() - begun;
	CHECK(begun < 1000 * actor_slow(), "%lld ms", (long long)begun);
	survivors_shrink(g);
	works(g, 3, rank - (rank > 2), 1);
}

/* One after the other, down to one. */
static void die_out(slmpm_group g, int rank)
{
	for (int n = 3; n > 1; n--) {
		works(g, n, rank - (3 - n), (unsigned)(3 - n));
		if (rank == 3 - n)
			die_later();
		survivors_break(g);
		survivors_shrink(g);
	}
	works(g, 1, 0, 2);
}

/* They may be agreed on in one step or in two; some pairs were never connected. */
static void die_at_once(slmpm_group g, int rank)
{
	if (rank == 1 || rank == 2)
		raise(SIGKILL);
	do {
		survivors_break(g);
		survivors_shrink(g);
	} while (circle_query(g).members > 2);
	works(g, 2, rank == 3, (unsigned)circle_query(g).generation);
}

/* Between two that live: the group is broken, and none has gone. */
static void lose(slmpm_group g, int rank)
{
	uint64_t before = loopback_connected(), cut;
	slmpm_peer peer;

	if (rank == 3) {
		OK(slmpm_group_peer(g, 0, &peer, PATIENCE));
		cut = loopback_connected() & ~before;
		CHECK(cut, "no connection among the first 64 descriptors");
		for (int fd = 0; fd < 64; fd++)
			if (cut >> fd & 1)
				(void)shutdown(fd, SHUT_RDWR);
	}
	survivors_break(g);
	survivors_shrink(g);
	works(g, 4, rank, 1);
}

/* What it had begun is given up in the middle of long messages, which none reads any more. */
static void long_ones(slmpm_group g, int rank)
{
	static int64_t from[200000], to[200000];
	int rc = 0;

	works(g, 4, rank, 0);
	if (rank == 3) {
		OK(slmpm_allreduce(g, from, to, 200000, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
		raise(SIGKILL);
	}
	for (int k = 0; rc == 0; k++)
		rc = slmpm_allreduce(g, from, to, 200000, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE);
	survivors_shrink(g);
	works(g, 3, rank, 1);
}

static void leaves(slmpm_group g, int rank)
{
	works(g, 4, rank, 0);
	if (rank == 1) {
		usleep(MOMENT * 1000 * (unsigned)actor_slow());
		return;
	}
	survivors_fail(slmpm_barrier(g, PATIENCE), SLMPM_ECLOSED, "rank 1");
	survivors_shrink(g);
	works(g, 3, rank - (rank > 1), 1);
}

/* It is waited for; and killed, or goes on. */
static void be_stopped(slmpm_group g, int rank, int signal)
{
	if (rank == 2)
		raise(SIGSTOP);
	if (rank == 0)
		actor_await_state(pids[2], "T");
	if (rank == 2) /* it goes on */
		survivors_break(g);
	else
		survivors_fail(slmpm_barrier(g, rank ? PATIENCE : MOMENT), SLMPM_ETIMEOUT,
			       "rank 2");
	if (rank == 0) {
		survivors_fail(slmpm_group_shrink(g, 3 * MOMENT), SLMPM_ETIMEOUT,
			       "rank 2 (process ");
		(void)kill(pids[2], signal);
	} else if (rank == 1) {
		survivors_fail(slmpm_group_shrink(g, 0), SLMPM_EAGAIN, "rank");
	}
	survivors_shrink(g);
}

static void stopped(slmpm_group g, int rank)
{
	be_stopped(g, rank, SIGKILL);
	works(g, 3, rank - (rank > 2), 1);
}

static void goes_on(slmpm_group g, int rank)
{
	be_stopped(g, rank, SIGCONT);
	works(g, 4, rank, 1); /* none has gone */
}

static void suspects(slmpm_group g, int rank)
{
	survivors_suspects(g, rank, pids[2]);
}

/* Rank 4 dies, and rank 3 at some time while the others agree, or after that. */
static void die_amidst(slmpm_group g, int rank)
{
	if (rank == 4)
		raise(SIGKILL);
	survivors_break(g);
	if (rank == 3) {
		srand((unsigned)getpid());
		if (fork() == 0) { /* not of the group: it alone outlives this process */
			usleep((unsigned)(rand() % 4000));
			(void)kill(getppid(), SIGKILL);
			_exit(0);
		}
	}
	do {
		survivors_shrink(g);
		if (circle_query(g).members > 3)
			survivors_break(g);
	} while (circle_query(g).members > 3);
	works(g, 3, rank, (unsigned)circle_query(g).generation);
}

/* Of one machine, and others: who founds it, and had the boards of the former, is a member, too. */
static void die_mixed(const struct crew *crew, int rank)
{
	dies(crew->group[0], rank);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void join(slmpm_peer founder, int i, void *arg)
{
	const struct scene *s = arg;
	slmpm_group g;

	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	s->act(g, i);
	OK(slmpm_group_destroy(g));
}

static int found(void *arg)
{
	struct scene *s = arg;
	struct circle c = {.apart = s->apart};
	slmpm_group g;

	pids = child_common(CIRCLE_MAX * sizeof(*pids));
	circle_begin(&c, s->members, join, s, 60);
	memcpy(pids, c.pids, sizeof(c.pids[0]) * (size_t)s->members);
	OK(slmpm_group_create(&g, c.ctx, c.peers, s->members, TAG, PATIENCE));
	for (int i = 0; i < s->members; i++)
		EXPECT(circle_wait(&c, i), s->killed >> i & 1 ? -SIGKILL : 0);
	circle_end(&c);
	return 0;
}

int main(void)
{
	static struct scene scenes[] = {
		{"dies", dies, 4, 0xf, 4},
		{"dies, of one machine", dies, 4, 2, 4},
		{"die out", die_out, 3, 7, 3},
		{"die at once", die_at_once, 4, 0xf, 6},
		{"lose a connection", lose, 4, 0xf, 0},
		{"long ones", long_ones, 4, 0xf, 8},
		{"leaves", leaves, 4, 0xf, 0},
		{"stopped", stopped, 4, 0xf, 4},
		{"goes on", goes_on, 4, 0xf, 0},
		{"suspects", suspects, 4, 0xf, 1 << 3},
		{"die amidst", die_amidst, 5, 0x1f, 24},
		{"die amidst", die_amidst, 5, 0x1f, 24},
	};
	static const struct crew mixed = {.members = 4,
					  .groups = 1,
					  .apart = 6,
					  .body = die_mixed,
					  .victim = 2,
					  .code = -SIGKILL};

	for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		int64_t begun = actor_now_ms();

		EXPECT(child_run(found, &scenes[i], 60), 0);
		printf("%s: %lld ms\n", scenes[i].name, (long long)(actor_now_ms() - begun));
		fflush(stdout);
	}
	crew_run(&mixed, 60);
	return 0;
}
