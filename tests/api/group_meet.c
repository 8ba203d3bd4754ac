/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/* libs: -Wl,--wrap=connect */
/*
 * Groups that form while their processes go on, and meetings: none passes before all have come;
 * deadlines break nothing; who has left is not waited for; who dies ends one meeting, the same one
 * at all members.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/loopback.h"
#include "tests/lib/random.h"

#define TAG    6
#define SHORT  50 /* ms: what does not come */
#define MOMENT 60 /* ms */
#define ROUNDS 2000
#define MOST   6
#define KILLED 60 /* meetings of which some are the last of a member */

enum { GO = 1, DONE };

static struct shared {
	_Atomic int at[MOST];
	_Atomic int outcome[MOST][KILLED + 1]; /* of each meeting, at each; 1: none */
} * shared;

static bool apart; /* the others are connected by TCP */

static void begin(struct circle *c, int n, circle_part *part, void *arg)
{
	c->apart = apart ? 0xff : 0;
	circle_begin(c, n, part, arg, 60);
}

static int status_of(slmpm_group group)
{
	return circle_query(group).status;
}

static void await_status(slmpm_group group, int status)
{
	int64_t until = actor_now_ms() + PATIENCE;

	while (status_of(group) == -SLMPM_EAGAIN && actor_now_ms() < until)
		usleep(200);
	EXPECT(status_of(group), status);
}

/* Without waiting: the J-th of several meetings, as a loop of the application's own does it. */
static int meet_by_polls(slmpm_group group)
{
	int rc;

	do
		rc = slmpm_group_meet(group, 0);
	while (rc == -SLMPM_EAGAIN);
	return rc;
}

/* ---- none passes early ----------------------------------------------------------------------- */

static void go_round(slmpm_group group, int own, int n, bool polls)
{
	for (int r = 1; r <= (apart ? ROUNDS / 10 : ROUNDS); r++) {
		shared->at[own] = r;
		EXPECT(polls ? meet_by_polls(group) : slmpm_group_meet(group, PATIENCE), 0);
		for (int i = 0; i < n; i++)
			CHECK(shared->at[i] == r || shared->at[i] == r + 1, "%d in round %d",
			      shared->at[i], r);
	}
}

static void part_rounds(slmpm_peer founder, int i, void *n)
{
	slmpm_group group;

	OK(slmpm_group_join_start(&group, founder, TAG));
	go_round(group, i, *(const int *)n, i == 1);
	EXPECT(status_of(group), 0);
	actor_tell(founder, DONE);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int rounds(void *arg)
{
	slmpm_peer members[MOST] = {{0}};
	int n = *(const int *)arg;
	slmpm_group group;
	struct circle c = {0};

	begin(&c, n - 1, part_rounds, arg);
	memcpy(members, c.peers, (size_t)(n - 1) * sizeof(members[0]));
	OK(slmpm_group_create_start(&group, c.ctx, members, n, TAG));
	EXPECT(circle_query(group).rank, n - 1);
	CHECK(circle_query(group).members % (uint32_t)n == 0, "of others"); /* it may have formed */
	go_round(group, n - 1, n, false);
	for (int i = 0; i < n - 1; i++)
		actor_hear(c.peers[i], DONE);
	EXPECT(status_of(group), 0);
	for (int i = 0; i < n - 1; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* ---- deadlines, and members that leave ------------------------------------------------------ */

static void *meet_in_thread(void *group)
{
	int rc;

	do /* the other thread may be in it, for a moment */
		rc = slmpm_group_meet(*(slmpm_group *)group, PATIENCE);
	while (rc == -SLMPM_EBUSY);
	EXPECT(rc, 0);
	return NULL;
}

static void part_late(slmpm_peer founder, int i, void *unused)
{
	pthread_t thread;
	slmpm_group group;

	(void)unused;
	REFUSED(slmpm_group_join_start(NULL, founder, TAG), SLMPM_EINVAL, "no place");
	REFUSED(slmpm_group_join_start(&group, (slmpm_peer){0}, TAG), SLMPM_EHANDLE, "no such");
	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	if (i == 2) { /* leaves where the others are to meet */
		actor_hear(founder, GO);
		OK(slmpm_group_destroy(group));
		return;
	}
	if (i == 0) {
		REFUSED(slmpm_group_meet(group, SHORT), SLMPM_ETIMEOUT,
			"meeting 1 of group 6: rank ");
		CHECK(strstr(slmpm_error_detail(), ") has not come for "), "%s",
		      slmpm_error_detail());
		REFUSED(slmpm_group_meet(group, 0), SLMPM_EAGAIN, "has not come");
	} else {
		OK(pthread_create(&thread, NULL, meet_in_thread, &group));
		while (slmpm_group_meet(group, 0) != -SLMPM_EBUSY)
			usleep(1000);
		REFUSED(slmpm_group_destroy(group), SLMPM_EBUSY, "under way");
	}
	actor_tell(founder, GO);
	if (i == 0)
		EXPECT(slmpm_group_meet(group, PATIENCE), 0);
	else
		OK(pthread_join(thread, NULL));
	for (int k = 0; k < 10; k++)
		EXPECT(slmpm_group_meet(group, PATIENCE), 0);
	EXPECT(status_of(group), -SLMPM_ECLOSED);
	if (i == 0) { /* it has come to one more, and leaves */
		REFUSED(slmpm_group_meet(group, 0), SLMPM_EAGAIN, "rank 1");
		OK(slmpm_group_destroy(group));
		actor_tell(founder, DONE);
		return;
	}
	actor_hear(founder, DONE);
	EXPECT(slmpm_group_meet(group, PATIENCE), 0);
	EXPECT(meet_by_polls(group), 0); /* alone */
	OK(slmpm_group_destroy(group));
}

static int late(void *unused)
{
	slmpm_group group;
	struct circle c = {.flags = SLMPM_THREADS};

	(void)unused;
	begin(&c, 3, part_late, NULL);
	OK(slmpm_group_create(&group, c.ctx, c.peers, 3, TAG, PATIENCE));
	REFUSED(slmpm_group_meet(group, 0), SLMPM_ESTATE, "no member");
	OK(slmpm_group_destroy(group)); /* they do without it */
	actor_hear(c.peers[0], GO);
	actor_hear(c.peers[1], GO);
	actor_tell(c.peers[2], GO);
	actor_hear(c.peers[0], DONE);
	actor_tell(c.peers[1], DONE);
	circle_end(&c);
	return 0;
}

/* ---- it forms, or does not ------------------------------------------------------------------ */

/* Whether it has formed by then or not. */
static void leaver_is_not_missed(slmpm_group group, slmpm_peer founder)
{
	int rc = slmpm_group_meet(group, PATIENCE);

	CHECK(rc == 0 || rc == -SLMPM_ECLOSED || (apart && rc == -SLMPM_EDEAD), "%s",
	      slmpm_error_detail());
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static void part_forms(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;
	slmpm_peer peer;

	(void)unused;
	OK(slmpm_group_join_start(&group, founder, TAG));
	EXPECT(status_of(group), -SLMPM_EAGAIN);
	REFUSED(slmpm_barrier(group, PATIENCE), SLMPM_EAGAIN, "group 6 is forming");
	REFUSED(slmpm_group_peer(group, 0, &peer, PATIENCE), SLMPM_EAGAIN, "group 6 is forming");
	REFUSED(slmpm_group_meet(group, 0), SLMPM_EAGAIN, "group 6 is forming");
	REFUSED(slmpm_group_meet(group, SHORT), SLMPM_ETIMEOUT, "group 6 is forming");
	if (i == 0) { /* it gives up, and comes again */
		OK(slmpm_group_destroy(group));
		OK(slmpm_group_join_start(&group, founder, TAG));
	}
	actor_tell(founder, GO);
	/* The first is given up by who founds it. */
	await_status(group, -SLMPM_ECLOSED);
	REFUSED(slmpm_group_meet(group, PATIENCE), SLMPM_ECLOSED, "has given it up");
	REFUSED(slmpm_barrier(group, PATIENCE), SLMPM_ECLOSED, "has given it up");
	OK(slmpm_group_destroy(group));
	actor_tell(founder, GO);
	/* The second one forms. */
	OK(slmpm_group_join_start(&group, founder, TAG));
	await_status(group, 0);
	EXPECT(circle_query(group).rank, i);
	OK(slmpm_barrier(group, PATIENCE));
	OK(slmpm_group_meet(group, PATIENCE));
	/* In the third, one gives up when all have come to it. */
	OK(slmpm_group_join_start(&group, founder, TAG + 1));
	actor_tell(founder, GO);
	actor_hear(founder, GO);
	if (i == 1)
		OK(slmpm_group_destroy(group));
	else
		leaver_is_not_missed(group, founder);
	/* The context's end is the end of those that are forming. */
	OK(slmpm_group_join_start(&group, founder, 99));
	actor_tell(founder, DONE);
}

static int forms(void *unused)
{
	slmpm_group group, other;
	struct circle c = {0};

	(void)unused;
	begin(&c, 2, part_forms, NULL);
	REFUSED(slmpm_group_create_start(&group, c.ctx, c.peers, 0, TAG), SLMPM_EINVAL,
		"create_start: no member");
	for (int i = 0; i < 2; i++)
		actor_hear(c.peers[i], GO);
	OK(slmpm_group_create_start(&group, c.ctx, (slmpm_peer[]){c.peers[0], c.peers[1], {0}}, 3,
				    TAG));
	OK(slmpm_group_destroy(group));
	for (int i = 0; i < 2; i++)
		actor_hear(c.peers[i], GO);
	OK(slmpm_group_create_start(&group, c.ctx, c.peers, 2, TAG));
	await_status(group, 0);
	for (int i = 0; i < 2; i++)
		actor_hear(c.peers[i], GO);
	OK(slmpm_group_create_start(&other, c.ctx, c.peers, 2, TAG + 1));
	for (int i = 0; i < 2; i++)
		actor_tell(c.peers[i], GO);
	actor_hear(c.peers[1], DONE);
	CHECK(status_of(other) == -SLMPM_ECLOSED || status_of(other) == 0, "status %d",
	      status_of(other));
	actor_tell(c.peers[0], DONE);
	actor_hear(c.peers[0], DONE);
	OK(slmpm_group_destroy(group));
	OK(slmpm_group_destroy(other));
	circle_end(&c);
	return 0;
}

/* Who waits for a group that forms learns who is missing, and who has given it up. */
static void part_gives_up(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;

	(void)unused;
	if (i == 0) {
		OK(slmpm_group_join_start(&group, founder, TAG));
		actor_tell(founder, GO);
		REFUSED(slmpm_group_meet(group, SHORT), SLMPM_ETIMEOUT, "has not all members");
		actor_hear(founder, GO);
		OK(slmpm_group_destroy(group));
		actor_tell(founder, GO);
	}
	actor_hear(founder, DONE);
}

/* At last, for what has been sent may take its time. */
static void forming_says(slmpm_group group, const char *who, const char *what)
{
	int64_t end = actor_now_ms() + PATIENCE;

	do
		REFUSED(slmpm_group_meet(group, SHORT), SLMPM_ETIMEOUT, "group 6 is forming: ");
	while (!strstr(slmpm_error_detail(), what) && actor_now_ms() < end);
	CHECK(strstr(slmpm_error_detail(), who) && strstr(slmpm_error_detail(), what), "%s",
	      slmpm_error_detail());
}

static int gives_up(void *unused)
{
	struct circle c = {0};
	slmpm_group group;

	(void)unused;
	begin(&c, 2, part_gives_up, NULL);
	OK(slmpm_group_create_start(&group, c.ctx, (slmpm_peer[]){c.peers[0], c.peers[1], {0}}, 3,
				    TAG));
	actor_hear(c.peers[0], GO);
	forming_says(group, "group 6 is forming: rank 1 (", "has not come; 2 of 3 are there");
	actor_tell(c.peers[0], GO);
	actor_hear(c.peers[0], GO);
	REFUSED(slmpm_group_meet(group, PATIENCE), SLMPM_ECLOSED, "it says: it has given up");
	CHECK(strstr(slmpm_error_detail(), "rank 0 ("), "%s", slmpm_error_detail());
	for (int i = 0; i < 2; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* ---- death ----------------------------------------------------------------------------------- */

static void meet_and_note(slmpm_group group, int own, unsigned ends, bool kills)
{
	for (unsigned k = 1; k <= KILLED; k++) {
		int rc;

		if (k == ends && !kills)
			return;
		if (k == ends) {
			(void)slmpm_group_meet(group, 0); /* it may have come, or not */
			raise(SIGKILL);
		}
		rc = (k + (unsigned)own) % 3 ? slmpm_group_meet(group, PATIENCE) :
					       meet_by_polls(group);
		CHECK(rc == 0 || rc == -SLMPM_EDEAD, "%s", slmpm_error_detail());
		shared->outcome[own][k] = rc;
	}
}

static void part_dies(slmpm_peer founder, int i, void *seed)
{
	struct rng r = {*(const uint64_t *)seed + (uint64_t)i};
	slmpm_group group;

	OK(slmpm_group_join_start(&group, founder, TAG));
	/* The last one stays; some die, some leave. */
	meet_and_note(group, i, i < MOST - 1 ? 2 + rng_below(&r, KILLED - 1) : 0,
		      rng_below(&r, 3) > 0);
	OK(slmpm_group_destroy(group));
}

static void compare_outcomes(int *dead)
{
	for (int k = 1; k <= KILLED; k++) {
		int all = 1;

		for (int i = 0; i < MOST; i++) {
			int one = shared->outcome[i][k];

			CHECK(all == 1 || one == 1 || one == all,
			      "meeting %d ended as %d at rank %d, as %d before", k, one, i, all);
			all = one == 1 ? all : one;
		}
		*dead += all == -SLMPM_EDEAD;
	}
}

static int dies(void *seed)
{
	slmpm_group group;
	struct circle c = {0};
	int dead = 0, killed = 0;

	for (int i = 0; i < MOST; i++)
		for (int k = 0; k <= KILLED; k++)
			shared->outcome[i][k] = 1;
	begin(&c, MOST, part_dies, seed);
	OK(slmpm_group_create(&group, c.ctx, c.peers, MOST, TAG, PATIENCE));
	OK(slmpm_group_destroy(group));
	for (int i = 0; i < MOST; i++)
		killed += circle_wait(&c, i) != 0;
	compare_outcomes(&dead);
	CHECK(dead <= killed && (dead > 0) == (killed > 0), "%d meetings ended by %d", dead,
	      killed);
	printf("%d killed, %d meetings\n", killed, dead);
	OK(slmpm_shut(c.ctx, PATIENCE));
	return 0;
}

/* ---- what those that are left know of one that has died --------------------------------- */

static slmpm_group joined(slmpm_peer founder)
{
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	return group;
}

static void pair_with(slmpm_group group, int rank)
{
	slmpm_peer peer;

	OK(slmpm_group_peer(group, rank, &peer, PATIENCE));
}

static void ends_meeting(slmpm_group group)
{
	EXPECT(slmpm_group_meet(group, PATIENCE), -SLMPM_EDEAD);
	CHECK(strstr(slmpm_error_detail(), "rank 2"), "%s", slmpm_error_detail());
}

static void cut_all_but(uint64_t before)
{
	for (int fd = 0; fd < 64; fd++)
		if ((loopback_connected() & ~before) >> fd & 1)
			(void)shutdown(fd, SHUT_RDWR);
}

/* Rank 2 has come to the first one, which it has shown rank 0 alone; rank 1 waits for rank 0. */
static void part_shows_one(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	uint64_t before = loopback_connected();

	(void)unused;
	if (i == 0)
		pair_with(group, 2);
	if (i == 2) {
		actor_hear(founder, GO); /* rank 0 is connected, ... */
		before = loopback_connected();
		pair_with(group, 1);
		cut_all_but(before);
		(void)slmpm_group_meet(group, 0);
		raise(SIGKILL);
	}
	actor_tell(founder, GO);
	if (i == 0)
		usleep(MOMENT * 1000 * (unsigned)actor_slow());
	else
		actor_hear(founder, GO);
	EXPECT(slmpm_group_meet(group, PATIENCE), 0);
	ends_meeting(group);
	OK(slmpm_group_meet(group, PATIENCE));
	EXPECT(slmpm_group_shrink(group, PATIENCE), 0);
	OK(slmpm_group_meet(group, PATIENCE));
	OK(slmpm_group_destroy(group));
}

/* Rank 2 has come to the first one, which it has shown rank 0 alone, and dies when that has passed
 * it, and left: so it is passed. */
static void part_passes(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	uint64_t before;

	(void)unused;
	if (i == 0)
		pair_with(group, 2);
	if (i == 2) {
		actor_hear(founder, GO);
		before = loopback_connected();
		pair_with(group, 1);
		cut_all_but(before);
		(void)slmpm_group_meet(group, 0);
		raise(SIGSTOP);
	}
	if (i == 1)
		pair_with(group, 0);
	actor_tell(founder, GO);
	actor_hear(founder, GO); /* rank 2 is stopped */
	EXPECT(slmpm_group_meet(group, PATIENCE), 0);
	if (i == 1)
		EXPECT(slmpm_group_meet(group, PATIENCE), 0);
	OK(slmpm_group_destroy(group));
	actor_tell(founder, DONE);
}

static int passed(void *unused)
{
	slmpm_group group;
	struct circle c = {0};

	(void)unused;
	begin(&c, 3, part_passes, NULL);
	OK(slmpm_group_create(&group, c.ctx, c.peers, 3, TAG, PATIENCE));
	OK(slmpm_group_destroy(group));
	for (int i = 0; i < 2; i++)
		actor_hear(c.peers[i], GO);
	actor_tell(c.peers[2], GO);
	actor_await_state(c.pids[2], "T");
	for (int i = 0; i < 2; i++)
		actor_tell(c.peers[i], GO);
	actor_hear(c.peers[0], DONE);
	kill(c.pids[2], SIGKILL);
	EXPECT(circle_wait(&c, 2), -SIGKILL);
	actor_hear(c.peers[1], DONE);
	circle_end(&c);
	return 0;
}

/* Rank 3 has not come to the one that ends by the death of rank 2, with which it has no connection.
 */
static void part_is_asked(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);

	(void)unused;
	if (i < 2)
		pair_with(group, 2);
	if (i == 2) {
		actor_hear(founder, GO);
		raise(SIGKILL);
	}
	actor_tell(founder, GO);
	actor_hear(founder, GO);
	ends_meeting(group);
	if (i < 2)
		actor_tell(founder, DONE);
	OK(slmpm_group_meet(group, PATIENCE));
	OK(slmpm_group_destroy(group));
}

/* Rank 2 dies when the others are ready; those from rank 3 on go on when the first are through. */
static void kill_one(circle_part *part, int n)
{
	slmpm_group group;
	struct circle c = {0};

	begin(&c, n, part, NULL);
	OK(slmpm_group_create(&group, c.ctx, c.peers, n, TAG, PATIENCE));
	OK(slmpm_group_destroy(group));
	for (int i = 0; i < n; i++)
		if (i != 2)
			actor_hear(c.peers[i], GO);
	actor_tell(c.peers[2], GO);
	EXPECT(circle_wait(&c, 2), -SIGKILL);
	for (int i = n == 3; i < 2; i++)
		actor_tell(c.peers[i], GO);
	for (int i = 0; i < 2 && n > 3; i++)
		actor_hear(c.peers[i], DONE);
	for (int i = 3; i < n; i++)
		actor_tell(c.peers[i], GO);
	circle_end(&c);
}

static int killed(void *unused)
{
	(void)unused;
	kill_one(part_shows_one, 3);
	kill_one(part_is_asked, 4);
	return 0;
}

/* ---- no way to one another ------------------------------------------------------------------- */

static _Atomic bool cut;

int __real_connect(int fd, const struct sockaddr *to, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size);

/* The library's, too. */
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
	if (!cut)
		return __real_connect(fd, to, size);
	errno = EHOSTUNREACH;
	return -1;
}

static void meet_cut(slmpm_peer founder, int i, void *unused)
{
	int64_t until = actor_now_ms() + PATIENCE;
	char rank[16];
	slmpm_group g;

	(void)unused;
	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	cut = true;
	do /* until an attempt has been made */
		EXPECT(slmpm_group_meet(g, SHORT), -SLMPM_ETIMEOUT);
	while (!strstr(slmpm_error_detail(), "is not reached") && actor_now_ms() < until);
	snprintf(rank, sizeof(rank), "rank %d", !i);
	CHECK(strstr(slmpm_error_detail(), rank) && strstr(slmpm_error_detail(), "tcp://") &&
		      strstr(slmpm_error_detail(), strerror(EHOSTUNREACH)),
	      "%s", slmpm_error_detail());
	actor_tell(founder, GO);
	actor_hear(founder, GO); /* the other one has seen it, too */
	cut = false;
	OK(slmpm_group_meet(g, PATIENCE));
	OK(slmpm_group_destroy(g));
}

static int cut_off(void *unused)
{
	struct circle c = {0};
	slmpm_group g;

	(void)unused;
	apart = true;
	begin(&c, 2, meet_cut, NULL);
	OK(slmpm_group_create(&g, c.ctx, c.peers, 2, TAG, PATIENCE));
	for (int i = 0; i < 2; i++)
		actor_hear(c.peers[i], GO);
	for (int i = 0; i < 2; i++)
		actor_tell(c.peers[i], GO);
	OK(slmpm_group_destroy(g));
	circle_end(&c);
	return 0;
}

int main(int argc, char **argv)
{
	static int sizes[] = {2, 3, MOST};
	uint64_t seed = rng_run_seed(1);

	(void)argc, (void)argv;
	shared = child_common(sizeof(*shared));
	for (int over = 0; over < 2; over++) {
		apart = over;
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			EXPECT(child_run(rounds, &sizes[i], 60), 0);
		EXPECT(child_run(late, NULL, 60), 0);
		EXPECT(child_run(forms, NULL, 60), 0);
		EXPECT(child_run(gives_up, NULL, 60), 0);
		for (int k = 0; k < (over ? 5 : 12); k++, seed += MOST)
			EXPECT(child_run(dies, &seed, 60), 0);
	}
	EXPECT(child_run(killed, NULL, 60), 0);
	EXPECT(child_run(passed, NULL, 60), 0);
	EXPECT(child_run(cut_off, NULL, 60), 0);
	return 0;
}
