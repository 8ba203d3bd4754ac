/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * Groups that do not form, and groups that break: a member that never comes, one that gives up, one
 * that dies or leaves, before and after; each of the others learns who it was.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define SHORT 300 /* ms: what never comes */

enum { GO = 1, DONE };

/* ---- it does not form ----------------------------------------------------------------------- */

/* The second never comes. */
static void join_but_one(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;

	(void)unused;
	if (i == 1) {
		actor_hear(founder, DONE);
		return;
	}
	REFUSED(slmpm_group_join(&group, founder, 4, PATIENCE), SLMPM_ETIMEOUT, "rank 1 (");
	CHECK(strstr(slmpm_error_detail(), "has not come; 2 of 3 are there"), "%s",
	      slmpm_error_detail());
	actor_hear(founder, DONE);
}

static int missing(void *unused)
{
	slmpm_group group;
	struct circle c = {0};
	int before;

	(void)unused;
	circle_begin(&c, 3, join_but_one, NULL, 30);
	before = actor_descriptors();
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, 3, 4, SHORT * actor_slow()),
		SLMPM_ETIMEOUT, "rank 1 (");
	CHECK(strstr(slmpm_error_detail(), "pid") || strstr(slmpm_error_detail(), "group_ends"),
	      "%s", slmpm_error_detail());
	CHECK(actor_descriptors() <= before, "%d descriptors, %d before", actor_descriptors(),
	      before);
	for (int i = 0; i < 3; i++)
		actor_tell(c.peers[i], DONE);
	circle_end(&c);
	return 0;
}

/* No process founds it; then one does, which the next join waits for. */
static void give_up(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;

	(void)i;
	(void)unused;
	for (int k = 0; k < 20; k++) /* more than may be under way */
		REFUSED(slmpm_group_join(&group, founder, 9, 1), SLMPM_ETIMEOUT,
			"group 9 is forming");
	REFUSED(slmpm_group_join(&group, founder, 9, 0), SLMPM_EAGAIN, "founds group 9");
	actor_tell(founder, GO);
	OK(slmpm_group_join(&group, founder, 9, PATIENCE));
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int given_up(void *unused)
{
	slmpm_group group;
	struct circle c = {0};

	(void)unused;
	circle_begin(&c, 1, give_up, NULL, 30);
	actor_hear(c.peers[0], GO);
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, 1, 9, 0), SLMPM_EAGAIN, "answer");
	OK(slmpm_group_create(&group, c.ctx, c.peers, 1, 9, PATIENCE));
	actor_tell(c.peers[0], DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* One gives up while others are missing: it may come again, as long as the group waits. */
static void join_shortly(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;

	(void)unused;
	if (i == 0) {
		actor_hear(founder, GO);
		REFUSED(slmpm_group_join(&group, founder, 3, SHORT), SLMPM_ETIMEOUT,
			"has not all members");
	} else if (i == 1) {
		REFUSED(slmpm_group_join(&group, founder, 3, PATIENCE), SLMPM_ETIMEOUT, "rank 2 (");
	}
	actor_hear(founder, DONE);
}

static int withdrawn(void *unused)
{
	slmpm_group group;
	struct circle c = {0};

	(void)unused;
	circle_begin(&c, 3, join_shortly, NULL, 30);
	actor_tell(c.peers[0], GO);
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, 3, 3, 3 * SHORT * actor_slow()),
		SLMPM_ETIMEOUT, "rank 2 (");
	for (int i = 0; i < 3; i++)
		actor_tell(c.peers[i], DONE);
	circle_end(&c);
	return 0;
}

/* One dies, or leaves its connection, while the group forms. */
static void end_before(slmpm_peer founder, int i, void *kills)
{
	slmpm_group group;

	if (i == 2) { /* once the others have joined */
		usleep(SHORT * 1000 * (unsigned)actor_slow());
		if (kills)
			raise(SIGKILL);
		return;
	}
	REFUSED(slmpm_group_join(&group, founder, 3, PATIENCE), kills ? SLMPM_EDEAD : SLMPM_ECLOSED,
		"rank 2 (");
	actor_hear(founder, DONE);
}

static int ends_before(void *kills)
{
	slmpm_group group;
	struct circle c = {0};

	circle_begin(&c, 3, end_before, kills, 30);
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, 3, 3, PATIENCE),
		kills ? SLMPM_EDEAD : SLMPM_ECLOSED, kills ? "ended" : "closed");
	for (int i = 0; i < 2; i++)
		actor_tell(c.peers[i], DONE);
	if (kills)
		EXPECT(circle_wait(&c, 2), -SIGKILL);
	circle_end(&c);
	return 0;
}

struct late {
	bool known, apart; /* the founder sees its death before it begins */
	_Atomic int *told;
};

/* Rank 1 joins when the group has failed already, whose founder makes no progress by then; and once
 * more, with those that live. */
static void join_after(slmpm_peer founder, int i, void *arg)
{
	_Atomic int *told = ((struct late *)arg)->told;
	slmpm_group group;

	if (i == 2) {
		actor_hear(founder, GO);
		raise(SIGKILL);
	}
	if (i == 1)
		actor_hear(founder, GO);
	REFUSED(slmpm_group_join(&group, founder, 3, PATIENCE), SLMPM_EDEAD, "rank 2");
	if (i == 1)
		*told = 1;
	OK(slmpm_group_join(&group, founder, 3, PATIENCE));
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int joins_after(void *arg)
{
	struct late *late = arg;
	struct circle c = {.apart = late->apart ? 7 : 0};
	slmpm_group group;

	late->told = child_common(sizeof(*late->told));
	circle_begin(&c, 3, join_after, late, 30);
	actor_tell(c.peers[2], GO);
	if (late->known)
		EXPECT(slmpm_recv(c.peers[2], GO, NULL, 0, NULL, PATIENCE), -SLMPM_EDEAD);
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, 3, 3, PATIENCE), SLMPM_EDEAD, "rank 2");
	actor_tell(c.peers[1], GO);
	for (int i = 0; i < 1000 * actor_slow() && !*late->told; i++)
		usleep(1000);
	CHECK(*late->told, "it waits for the founder");
	OK(slmpm_group_create(&group, c.ctx, c.peers, 2, 3, PATIENCE));
	for (int i = 0; i < 2; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	EXPECT(circle_wait(&c, 2), -SIGKILL);
	circle_end(&c);
	return 0;
}

/* Two groups have failed at who founds, which keeps the last one; a member learns of the first as
 * its join is under way, and joins again. */
static void join_crossing(slmpm_peer founder, int i, void *arg)
{
	_Atomic int *both = arg;
	slmpm_group group;

	actor_hear(founder, GO);
	if (i == 1)
		raise(SIGKILL);
	*both = 1;
	while (*both == 1)
		usleep(1000);
	REFUSED(slmpm_group_join(&group, founder, 3, PATIENCE), SLMPM_EDEAD, "rank 1");
	REFUSED(slmpm_group_join(&group, founder, 4, PATIENCE), SLMPM_EDEAD, "rank 1");
	actor_tell(founder, GO);
	OK(slmpm_group_join(&group, founder, 3, PATIENCE));
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int crossing(void *unused)
{
	_Atomic int *both = child_common(sizeof(*both));
	slmpm_group group;
	struct circle c = {0};

	(void)unused;
	circle_begin(&c, 2, join_crossing, both, 30);
	actor_tell(c.peers[1], GO);
	EXPECT(slmpm_recv(c.peers[1], GO, NULL, 0, NULL, PATIENCE), -SLMPM_EDEAD);
	actor_tell(c.peers[0], GO);
	while (!*both)
		usleep(1000);
	for (uint32_t tag = 3; tag <= 4; tag++)
		REFUSED(slmpm_group_create(&group, c.ctx, c.peers, 2, tag, PATIENCE), SLMPM_EDEAD,
			"rank 1");
	*both = 2;
	actor_hear(c.peers[0], GO);
	OK(slmpm_group_create(&group, c.ctx, c.peers, 1, 3, 3000 * actor_slow()));
	actor_tell(c.peers[0], DONE);
	OK(slmpm_group_destroy(group));
	EXPECT(circle_wait(&c, 1), -SIGKILL);
	circle_end(&c);
	return 0;
}

/* One has no descriptors left: for the boards of the others. */
static void join_exhausted(slmpm_peer founder, int i, void *unused)
{
	struct rlimit limit, before;
	slmpm_group group;

	(void)unused;
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
	limit = before;
	limit.rlim_cur = (rlim_t)actor_descriptors() + 6;
	if (i == 1)
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit");
	REFUSED(slmpm_group_join(&group, founder, 3, PATIENCE), SLMPM_ENOFILE,
		i == 1 ? "the board of rank" : "rank 1 (");
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
	OK(slmpm_group_join(&group, founder, 3, PATIENCE));
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int exhausted(void *unused)
{
	slmpm_group group;
	struct circle c = {0};

	(void)unused;
	circle_begin(&c, 8, join_exhausted, NULL, 30);
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, 8, 3, PATIENCE), SLMPM_ENOFILE,
		"rank 1 (");
	OK(slmpm_group_create(&group, c.ctx, c.peers, 8, 3, PATIENCE));
	for (int i = 0; i < 8; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* One has nothing to come with, before or while it is waited for; it may try again. */
struct want {
	int resource; /* RLIMIT_ */
	bool early;
	int error;
};

static void join_in_want(slmpm_peer founder, int i, void *arg)
{
	const struct want *w = arg;
	struct rlimit limit, before;
	slmpm_group group;

	(void)i;
	CHECK(getrlimit((__rlimit_resource_t)w->resource, &before) == 0, "limit");
	limit = before;
	limit.rlim_cur = w->resource == RLIMIT_NOFILE ? (rlim_t)actor_descriptors() : 4096;
	(void)signal(SIGXFSZ, SIG_IGN);
	if (!w->early)
		usleep(SHORT * 1000 * (unsigned)actor_slow());
	CHECK(setrlimit((__rlimit_resource_t)w->resource, &limit) == 0, "limit");
	REFUSED(slmpm_group_join(&group, founder, 3, PATIENCE), w->error, "board or bell");
	CHECK(setrlimit((__rlimit_resource_t)w->resource, &before) == 0, "limit");
	if (w->early)
		actor_tell(founder, GO);
	actor_hear(founder, DONE);
	OK(slmpm_group_join(&group, founder, 3, PATIENCE));
	OK(slmpm_group_destroy(group));
}

static int in_want(void *arg)
{
	const struct want *w = arg;
	slmpm_peer members[2] = {{0}};
	slmpm_group group;
	struct circle c = {0};

	circle_begin(&c, 1, join_in_want, arg, 30);
	members[1] = c.peers[0];
	if (w->early)
		actor_hear(c.peers[0], GO);
	REFUSED(slmpm_group_create(&group, c.ctx, members, 2, 3, PATIENCE), w->error, "rank 1 (");
	actor_tell(c.peers[0], DONE);
	OK(slmpm_group_create(&group, c.ctx, members, 2, 3, PATIENCE));
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* Of two that have come by then, one with nothing: the other learns it, and both try again. */
static void join_beside_want(slmpm_peer founder, int i, void *unused)
{
	struct rlimit limit, before;
	slmpm_group group;

	(void)unused;
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
	limit = before;
	limit.rlim_cur = (rlim_t)actor_descriptors();
	if (i == 0) {
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit");
		REFUSED(slmpm_group_join(&group, founder, 3, PATIENCE), SLMPM_ENOFILE, "board");
		CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
		actor_tell(founder, GO);
	} else {
		OK(slmpm_group_join_start(&group, founder, 3));
		actor_tell(founder, GO);
		for (int k = 0;
		     k < 3000 * actor_slow() && circle_query(group).status == -SLMPM_EAGAIN; k++)
			usleep(1000);
		EXPECT(circle_query(group).status, -SLMPM_ENOFILE);
		OK(slmpm_group_destroy(group));
	}
	actor_hear(founder, DONE);
	OK(slmpm_group_join(&group, founder, 3, PATIENCE));
	OK(slmpm_group_destroy(group));
}

static int beside_want(void *unused)
{
	slmpm_group group;
	struct circle c = {0};

	(void)unused;
	circle_begin(&c, 2, join_beside_want, NULL, 30);
	for (int i = 0; i < 2; i++)
		actor_hear(c.peers[i], GO);
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, 2, 3, PATIENCE), SLMPM_ENOFILE,
		"rank 0 (");
	for (int i = 0; i < 2; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_create(&group, c.ctx, c.peers, 2, 3, PATIENCE));
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* Who founds dies: before, and as soon as it has founded it. */
static void die_founding(slmpm_peer member, int i, void *founds)
{
	slmpm_group group;

	(void)i;
	if (founds)
		OK(slmpm_group_create(&group, circle_own, &member, 1, 3, PATIENCE));
	else
		usleep(100000);
	raise(SIGKILL);
}

static int founder_dies(void *founds)
{
	struct circle c = {0};
	slmpm_group group;

	circle_begin(&c, 1, die_founding, founds, 30);
	if (founds)
		OK(slmpm_group_join(&group, c.peers[0], 3, PATIENCE));
	else
		REFUSED(slmpm_group_join(&group, c.peers[0], 3, PATIENCE), SLMPM_EDEAD,
			"before the group had formed");
	EXPECT(circle_wait(&c, 0), -SIGKILL);
	circle_end(&c);
	return 0;
}

/* ---- it breaks ------------------------------------------------------------------------------ */

struct breach {
	bool leaves;
	int status;
};

/* Asleep in the application's own loop. */
static void sleep_until_broken(slmpm_group group)
{
	struct pollfd p = {.fd = slmpm_fd(circle_own), .events = POLLIN};

	while (!circle_query(group).status) {
		int rc = slmpm_arm(circle_own);

		CHECK(rc >= 0, "%s", slmpm_error_detail());
		if (rc == 0)
			CHECK(poll(&p, 1, PATIENCE) == 1, "asleep for ever");
	}
}

static void break_it(slmpm_peer founder, int i, void *arg)
{
	const struct breach *b = arg;
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, 3, PATIENCE));
	actor_hear(founder, GO);
	if (i == 1)
		usleep(50000); /* the others may sleep by then */
	if (i == 1 && !b->leaves)
		raise(SIGKILL);
	if (i == 0)
		sleep_until_broken(group);
	if (i == 1)
		OK(slmpm_group_destroy(group));
	else
		circle_breaks(group, b->status, 2);
	actor_tell(founder, GO); /* all have seen it before one of them leaves */
	actor_hear(founder, DONE);
	if (i != 1)
		OK(slmpm_group_destroy(group));
}

static int breaks(void *arg)
{
	struct breach *b = arg;
	slmpm_peer members[4] = {{0}};
	slmpm_group group;
	struct circle c = {0};

	circle_begin(&c, 3, break_it, b, 30);
	memcpy(members + 1, c.peers, 3 * sizeof(c.peers[0]));
	OK(slmpm_group_create(&group, c.ctx, members, 4, 3, PATIENCE));
	for (int i = 0; i < 3; i++)
		actor_tell(c.peers[i], GO);
	circle_breaks(group, b->status, 2);
	for (int i = 0; i < 3; i++)
		if (i != 1 || b->leaves)
			actor_hear(c.peers[i], GO);
	for (int i = 0; i < 3; i++)
		if (i != 1 || b->leaves)
			actor_tell(c.peers[i], DONE);
	if (!b->leaves)
		EXPECT(circle_wait(&c, 1), -SIGKILL);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* The connections are closed, by which it has formed, and who founded it has gone. */
static void outlive(slmpm_peer founder, int i, void *arg)
{
	int *common = arg;
	struct slmpm_group_info info;
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, 3, PATIENCE));
	OK(slmpm_close(founder, PATIENCE));
	info = circle_query(group);
	CHECK(!info.status && info.rank == i, "status %d", info.status);
	__atomic_add_fetch(common, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(common, __ATOMIC_SEQ_CST) < 3)
		usleep(1000);
	info = circle_query(group);
	CHECK(!info.status, "status %d by %d", info.status, info.culprit);
	__atomic_add_fetch(common, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(common, __ATOMIC_SEQ_CST) < 6)
		usleep(1000);
	OK(slmpm_group_destroy(group));
}

static int outlived(void *unused)
{
	int *common = child_common(sizeof(*common));
	slmpm_group group;
	struct circle c = {0};

	(void)unused;
	circle_begin(&c, 3, outlive, common, 30);
	OK(slmpm_group_create(&group, c.ctx, c.peers, 3, 3, PATIENCE));
	circle_end(&c); /* with the group open: who founds it is no member */
	return 0;
}

/* ---- what is refused at once ---------------------------------------------------------------- */

static int bad_calls(void *unused)
{
	slmpm_peer a, b, twice[3], self = {0};
	slmpm_ctx ctx, other;
	slmpm_group group;

	(void)unused;
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_open(&other, NULL));
	actor_pair(ctx, &a, &b);
	twice[0] = twice[2] = a;
	twice[1] = b;
	REFUSED(slmpm_group_create(NULL, ctx, &a, 1, 1, 0), SLMPM_EINVAL, "place");
	REFUSED(slmpm_group_create(&group, ctx, NULL, 1, 1, 0), SLMPM_EINVAL, "members");
	REFUSED(slmpm_group_create(&group, ctx, &a, 0, 1, 0), SLMPM_EINVAL, "member");
	REFUSED(slmpm_group_create(&group, ctx, &a, SLMPM_GROUP_MAX + 1, 1, 0), SLMPM_ELIMIT,
		"1024");
	REFUSED(slmpm_group_create(&group, ctx, twice, 3, 1, 0), SLMPM_EINVAL, "0 and 2");
	REFUSED(slmpm_group_create(&group, other, &a, 1, 1, 0), SLMPM_EINVAL, "another context");
	REFUSED(slmpm_group_create(&group, ctx, &(slmpm_peer){77}, 1, 1, 0), SLMPM_EHANDLE, "");
	REFUSED(slmpm_group_join(NULL, a, 1, 0), SLMPM_EINVAL, "place");
	REFUSED(slmpm_group_join(&group, self, 1, 0), SLMPM_EHANDLE, "");
	REFUSED(slmpm_group_query((slmpm_group){0}, NULL), SLMPM_EHANDLE, "");
	REFUSED(slmpm_group_destroy((slmpm_group){0}), SLMPM_EHANDLE, "");
	OK(slmpm_group_create(&group, ctx, &self, 1, 1, 0));
	REFUSED(slmpm_group_query(group, NULL), SLMPM_EINVAL, "");
	OK(slmpm_close(a, PATIENCE));
	REFUSED(slmpm_group_join(&group, b, 1, PATIENCE), SLMPM_ECLOSED, "");
	REFUSED(slmpm_group_create(&group, ctx, &b, 1, 1, PATIENCE), SLMPM_ECLOSED, "");
	OK(slmpm_shut(ctx, PATIENCE)); /* with a group open */
	REFUSED(slmpm_group_destroy(group), SLMPM_EHANDLE, "");
	return 0;
}

static int use_forked(void *group)
{
	struct slmpm_group_info info = {.size = sizeof(info)};

	REFUSED(slmpm_group_query(*(slmpm_group *)group, &info), SLMPM_EFORKED, "");
	REFUSED(slmpm_group_destroy(*(slmpm_group *)group), SLMPM_EFORKED, "");
	return 0;
}

/* A child of a member is none: it holds nothing open, and its end breaks nothing. */
static void fork_it(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;

	(void)i;
	(void)unused;
	OK(slmpm_group_join(&group, founder, 3, PATIENCE));
	EXPECT(child_run(use_forked, &group, 10), 0);
	CHECK(!circle_query(group).status, "broken");
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int forked(void *unused)
{
	slmpm_peer members[3] = {{0}};
	struct circle c = {0};
	slmpm_group group;

	(void)unused;
	circle_begin(&c, 2, fork_it, NULL, 30);
	memcpy(members + 1, c.peers, 2 * sizeof(members[0]));
	OK(slmpm_group_create(&group, c.ctx, members, 3, 3, PATIENCE));
	for (int i = 0; i < 2; i++)
		actor_hear(c.peers[i], GO);
	CHECK(!circle_query(group).status, "broken");
	for (int i = 0; i < 2; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

int main(void)
{
	static struct breach dies = {.status = -SLMPM_EDEAD};
	static struct breach leaves = {.leaves = true, .status = -SLMPM_ECLOSED};
	static struct want wants[] = {{RLIMIT_NOFILE, true, SLMPM_ENOFILE},
				      {RLIMIT_NOFILE, false, SLMPM_ENOFILE},
				      {RLIMIT_FSIZE, true, SLMPM_EFBIG},
				      {RLIMIT_FSIZE, false, SLMPM_EFBIG}};
	static int kills;

	settings_one_link("shm");
	EXPECT(child_run(missing, NULL, 30), 0);
	EXPECT(child_run(given_up, NULL, 30), 0);
	EXPECT(child_run(withdrawn, NULL, 30), 0);
	EXPECT(child_run(ends_before, NULL, 30), 0);
	EXPECT(child_run(ends_before, &kills, 30), 0);
	for (unsigned i = 0; i < 4; i++)
		EXPECT(child_run(joins_after, &(struct late){.known = i & 1, .apart = i & 2}, 30),
		       0);
	EXPECT(child_run(crossing, NULL, 30), 0);
	EXPECT(child_run(exhausted, NULL, 30), 0);
	for (unsigned i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		EXPECT(child_run(in_want, &wants[i], 30), 0);
	EXPECT(child_run(beside_want, NULL, 30), 0);
	EXPECT(child_run(breaks, &dies, 30), 0);
	EXPECT(child_run(breaks, &leaves, 30), 0);
	EXPECT(child_run(outlived, NULL, 30), 0);
	EXPECT(child_run(founder_dies, NULL, 30), 0);
	for (int i = 0; i < 20; i++)
		EXPECT(child_run(founder_dies, &kills, 30), 0);
	EXPECT(child_run(bad_calls, NULL, 30), 0);
	EXPECT(child_run(forked, NULL, 30), 0);
	return 0;
}
