/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/* native-only */
/*
 * What members learn of one another, whatever they do: of a death behind one that has left, of a
 * group that is broken while another member is waited for, and in a loop of their own; though their
 * bells are out of order; and from a handler none leaves.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG     3
#define MOMENT  100 /* ms: the others sleep by then, or have come to wait */
#define AT_ONCE 800 /* beyond that */
#define LONG    1500
#define HANDLER 1

typedef void act(slmpm_group g, int rank);

static void pause_ms(int ms)
{
	usleep((unsigned)ms * 1000 * (unsigned)actor_slow());
}

static void in_time(int64_t since)
{
	int64_t ms = actor_now_ms() - since;

	CHECK(ms < (2 * MOMENT + AT_ONCE) * actor_slow(), "after %lld ms", (long long)ms);
}

/* Rank 2 does its part and leaves; rank 1 dies, before it has done its own. */
static void masked(slmpm_group g, int rank)
{
	int64_t before = actor_now_ms();
	uint64_t mine = 1, all[3];

	if (rank == 1) {
		pause_ms(2 * MOMENT);
		raise(SIGKILL);
	}
	if (rank == 2) {
		OK(slmpm_gather(g, &mine, NULL, 1, SLMPM_UINT64, 0, PATIENCE));
		return;
	}
	REFUSED(slmpm_gather(g, &mine, all, 1, SLMPM_UINT64, 0, PATIENCE), SLMPM_EDEAD, "rank 1 (");
	in_time(before);
	CHECK(circle_query(g).status == -SLMPM_EDEAD && circle_query(g).culprit == 1, "by %d",
	      circle_query(g).culprit);
}

/* Who has left may end. */
static void left_and_ended(slmpm_group g, int rank)
{
	uint64_t mine = 1, all[3];

	if (rank == 1)
		pause_ms(2 * MOMENT);
	if (rank != 2)
		OK(slmpm_gather(g, &mine, all, 1, SLMPM_UINT64, 0, PATIENCE));
	else
		OK(slmpm_gather(g, &mine, NULL, 1, SLMPM_UINT64, 0, PATIENCE));
}

/* Rank 2 gives up, while rank 0 waits for rank 1, which computes. */
static void of_another(slmpm_group g, int rank)
{
	int64_t before = actor_now_ms();

	if (rank == 1)
		pause_ms(LONG);
	if (rank == 2) {
		pause_ms(MOMENT);
		REFUSED(slmpm_barrier(g, 2), SLMPM_ETIMEOUT, "");
		return;
	}
	REFUSED(slmpm_barrier(g, PATIENCE), SLMPM_ETIMEOUT, "rank 2 (");
	if (rank == 0)
		in_time(before);
}

/* Rank 1 has left before rank 2 needs it, which breaks the group; rank 0 waits for rank 3. */
static void left_too_early(slmpm_group g, int rank)
{
	int64_t before = actor_now_ms();
	uint64_t mine = 1, all[4];
	int rc;

	if (rank == 1)
		return;
	if (rank)
		pause_ms(rank == 3 ? LONG : MOMENT);
	rc = slmpm_gather(g, &mine, rank == 2 ? all : NULL, 1, SLMPM_UINT64, 2, PATIENCE);
	if (rank == 0) {
		OK(rc);
		rc = slmpm_broadcast(g, &mine, 1, SLMPM_UINT64, 3, PATIENCE);
	}
	REFUSED(rc, SLMPM_ECLOSED, "rank 1 (");
	if (rank != 3)
		in_time(before);
}

/* Rank 1 leaves, and lives on; rank 0 waits in a loop of the application's. */
static void in_own_loop(slmpm_group g, int rank)
{
	struct pollfd p = {.events = POLLIN};
	int64_t before = actor_now_ms();

	if (rank) {
		pause_ms(MOMENT * rank);
		return;
	}
	p.fd = slmpm_fd(circle_own);
	while (!circle_query(g).status)
		if (slmpm_arm(circle_own) == 0)
			(void)poll(&p, 1, LONG * actor_slow());
	in_time(before);
	CHECK(circle_query(g).status == -SLMPM_ECLOSED && circle_query(g).culprit == 1, "by %d",
	      circle_query(g).culprit);
}

/* All bells that this process holds are out of order, for all. */
static void silence_bells(void)
{
	for (int fd = 3; fd < 256; fd++) {
		int type = 0;
		socklen_t size = sizeof(type);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM)
			(void)shutdown(fd, SHUT_WR);
	}
}

/* Rank 0 sleeps when rank 1 comes. */
static void silenced(slmpm_group g, int rank)
{
	int64_t before = actor_now_ms();

	if (rank == 2)
		silence_bells();
	if (rank == 1)
		pause_ms(2 * MOMENT);
	OK(slmpm_barrier(g, PATIENCE));
	in_time(before);
	before = actor_now_ms();
	if (rank == 1)
		pause_ms(2 * MOMENT);
	OK(slmpm_group_meet(g, PATIENCE));
	in_time(before);
}

/* And so in what survivors agree on. */
static void silenced_shrinking(slmpm_group g, int rank)
{
	int64_t before = actor_now_ms();

	if (rank == 3) {
		silence_bells();
		raise(SIGKILL);
	}
	if (rank == 1)
		pause_ms(2 * MOMENT);
	circle_breaks(g, -SLMPM_EDEAD, 3);
	OK(slmpm_group_shrink(g, PATIENCE));
	in_time(before);
	OK(slmpm_barrier(g, PATIENCE));
}

static slmpm_group handled;

static void leave_in_handler(const struct slmpm_am *am, void *arg)
{
	(void)am;
	REFUSED(slmpm_group_destroy(handled), SLMPM_ESTATE, "slmpm_group_destroy");
	++*(int *)arg;
}

/* ---- scenes ---------------------------------------------------------------------------------- */

struct scene {
	const char *name;
	act *act;
	int members;
	int kills; /* a rank, or 0 */
};

static void join(slmpm_peer founder, int i, void *arg)
{
	const struct scene *s = arg;
	slmpm_group g;

	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	s->act(g, i + 1);
	OK(slmpm_group_destroy(g));
	if (s->act == in_own_loop || (i && (s->act == of_another || s->act == left_too_early)))
		pause_ms(LONG); /* its process's end does not say it */
}

static int found(void *arg)
{
	const struct scene *s = arg;
	slmpm_peer members[4] = {{0}};
	struct circle c = {0};
	slmpm_group g;

	circle_begin(&c, s->members - 1, join, arg, 30);
	circle_own = c.ctx;
	memcpy(members + 1, c.peers, (size_t)(s->members - 1) * sizeof(c.peers[0]));
	OK(slmpm_group_create(&g, c.ctx, members, s->members, TAG, PATIENCE));
	s->act(g, 0);
	OK(slmpm_group_destroy(g));
	if (s->kills)
		EXPECT(circle_wait(&c, s->kills - 1), -SIGKILL);
	circle_end(&c);
	return 0;
}

/* A member sends, and dies: what it has sent runs where its end is seen, amid the descriptors. */
static void send_and_die(slmpm_peer founder, int i, void *arg)
{
	slmpm_group g;

	(void)i;
	(void)arg;
	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	for (int k = 0; k < 100; k++)
		OK(slmpm_am(founder, HANDLER, NULL, 0, NULL, 0, NULL, NULL));
	raise(SIGKILL);
}

static int in_handler(void *unused)
{
	slmpm_peer members[2] = {{0}};
	struct circle c = {0};
	int calls = 0;

	(void)unused;
	circle_begin(&c, 1, send_and_die, NULL, 30);
	OK(slmpm_am_handler(c.ctx, HANDLER, leave_in_handler, &calls));
	members[1] = c.peers[0];
	OK(slmpm_group_create(&handled, c.ctx, members, 2, TAG, PATIENCE));
	circle_breaks(handled, -SLMPM_EDEAD, 1);
	while (calls < 100)
		OK(slmpm_progress(c.ctx) < 0 ? -1 : 0);
	OK(slmpm_group_destroy(handled));
	EXPECT(circle_wait(&c, 0), -SIGKILL);
	circle_end(&c);
	return 0;
}

int main(void)
{
	static struct scene scenes[] = {
		{"death behind one that has left", masked, 3, 1},
		{"left, and ended", left_and_ended, 3, 0},
		{"broken by another", of_another, 3, 0},
		{"left too early", left_too_early, 4, 0},
		{"in an own loop", in_own_loop, 3, 0},
		{"bells out of order", silenced, 3, 0},
		{"bells out of order, shrinking", silenced_shrinking, 4, 3},
	};
	static const char *const ways[] = {"adaptive", "block", "spin"};

	for (unsigned w = 0; w < 3; w++) {
		setenv("SLMPM_WAIT", ways[w], 1);
		for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
			printf("%s, %s\n", scenes[i].name, ways[w]);
			fflush(stdout);
			EXPECT(child_run(found, &scenes[i], 30), 0);
		}
	}
	EXPECT(child_run(in_handler, NULL, 30), 0);
	return 0;
}
