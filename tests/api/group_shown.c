/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* waits */
/*
 * Groups as other processes see them: operations under way, how far each member is, who is waited
 * for and since when; on one machine, by TCP, at a meeting; of one that has not waited; and
 * pages whose owner lies.
 */
#include <fcntl.h>
#include <signal.h>
#include <slmpm_monitor.h>
#include <slmpm_plan.h>
#include <slmpm_stats.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"

#define TAG     4
#define MEMBERS 4
#define VICTIM  2 /* a rank: it is stopped */
#define LONG    (1 << 20)

enum { GO = 1, READY };

static const uint64_t all_apart = 0xff;
static uint64_t begun_ns; /* what is seen is to be of a later time */

struct scene {
	uint64_t apart;
	void (*act)(slmpm_group group, int rank);
	void (*see)(const struct circle *c);
	bool amidst; /* the victim is stopped by ACT */
};

static void member(slmpm_peer founder, int i, void *arg)
{
	const struct scene *s = arg;
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	OK(slmpm_barrier(group, PATIENCE));
	actor_tell(founder, READY);
	actor_hear(founder, GO);
	if (i == VICTIM && !s->amidst)
		raise(SIGSTOP);
	s->act(group, i);
	actor_tell(founder, READY);
	actor_hear(founder, GO);
	OK(slmpm_group_destroy(group));
}

/* The victim is stopped before, or amidst, what all do; then SEE. */
static int play(void *arg)
{
	const struct scene *s = arg;
	struct circle c = {.apart = s->apart};
	struct slmpm_group_shown shown;
	slmpm_group group;

	circle_begin(&c, MEMBERS, member, arg, 40);
	OK(slmpm_group_create(&group, c.ctx, c.peers, MEMBERS, TAG, PATIENCE));
	for (int i = 0; i < MEMBERS; i++)
		actor_hear(c.peers[i], READY);
	for (int i = 0; i < MEMBERS; i++)
		actor_tell(c.peers[i], GO);
	begun_ns = (uint64_t)actor_now_ms() * 1000000;
	s->see(&c);
	EXPECT(kill(c.pids[VICTIM], SIGCONT), 0);
	for (int i = 0; i < MEMBERS; i++)
		actor_hear(c.peers[i], READY);
	OK(slmpm_groups_read(c.pids[0], 0, &shown, sizeof(shown)));
	for (int i = 0; i < MEMBERS; i++)
		actor_tell(c.peers[i], GO);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	REFUSED(slmpm_groups_read(c.pids[0], 0, &shown, sizeof(shown)), SLMPM_ENOENT,
		"shows no group 0");
	return 0;
}

/* What member I shows, once it has waited for rank WHO for MS: that one's row. */
static const struct slmpm_shown_member *await(const struct circle *c, int i, uint32_t who,
					      struct slmpm_group_shown *g, uint64_t ms)
{
	int64_t end = actor_now_ms() + PATIENCE;

	for (; actor_now_ms() < end; usleep(5000)) {
		memset(g, 0, sizeof(*g));
		if (slmpm_groups_read(c->pids[i], 0, g, sizeof(*g)) < 0)
			continue;
		if (g->taken_ns < begun_ns)
			continue;
		CHECK(g->size == sizeof(*g) && g->tag == TAG && g->members == MEMBERS, "whose");
		CHECK(g->rank == i && g->begun >= g->done && !g->status, "rank %d", g->rank);
		CHECK(!slmpm_plan_algorithm(g->algorithm) == !g->apart, "algorithm %u",
		      g->algorithm);
		for (uint32_t k = 0; k < g->member_count; k++)
			if (g->member[k].rank == who && g->member[k].since_ns &&
			    (uint64_t)actor_now_ms() >= g->member[k].since_ns / 1000000 + ms)
				return &g->member[k];
	}
	CHECK(0, "rank %u is not waited for by rank %d", who, i);
	return NULL;
}

static const struct slmpm_shown_member *row_of(const struct slmpm_group_shown *g, uint32_t rank)
{
	for (uint32_t k = 0; k < g->member_count; k++)
		if (g->member[k].rank == rank)
			return &g->member[k];
	CHECK(0, "no row of rank %u", rank);
	return NULL;
}

/* ---- on one machine -------------------------------------------------------------------------- */

static void allreduces(slmpm_group group, int rank)
{
	int64_t one = 1, sum[3] = {0};
	slmpm_req reqs[3];
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_ALLREDUCE,
			       .type = SLMPM_INT64,
			       .op = SLMPM_CALC_SUM,
			       .from = &one,
			       .count = 1};

	(void)rank;
	for (int i = 0; i < 3; i++) {
		c.to = &sum[i];
		OK(slmpm_collective_start(group, &c, NULL, &reqs[i]));
	}
	for (int i = 0; i < 3; i++) {
		struct slmpm_done done;

		EXPECT(slmpm_wait(&reqs[i], 1, &done, PATIENCE), 0);
		EXPECT(done.status, 0);
	}
	CHECK(sum[2] == MEMBERS, "%lld", (long long)sum[2]);
}

static void sees_allreduces(const struct circle *c)
{
	struct slmpm_group_shown g;
	const struct slmpm_shown_member *m = await(c, 0, VICTIM, &g, 0);
	uint64_t since = m->since_ns, step = m->step;

	m = await(c, 0, VICTIM, &g, 200);
	CHECK(m->since_ns == since && m == &g.member[0], "it waits since another time");
	CHECK(m->pid == c->pids[VICTIM] && !m->flags && !m->host[0], "process %d", m->pid);
	CHECK(step == 1 && m->step == 1 && m->kind == SLMPM_COLL_BARRIER, "step %llu, kind %u",
	      (unsigned long long)m->step, m->kind);
	CHECK(g.waiting == 1 && g.member_count == MEMBERS && !g.apart, "%u waited for", g.waiting);
	CHECK(g.begun == 4 && g.done == 1 && g.under_way == 3 && g.operation_count == 3,
	      "%u operations", g.operation_count);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(g.operation[i].number == 2 + i &&
			      g.operation[i].kind == SLMPM_COLL_ALLREDUCE &&
			      g.operation[i].since_ns <= since,
		      "operation %llu", (unsigned long long)g.operation[i].number);
	for (uint32_t r = 0; r < MEMBERS; r++)
		CHECK(r == VICTIM || (row_of(&g, r)->step == 2 && !row_of(&g, r)->since_ns),
		      "rank %u is at %llu", r, (unsigned long long)row_of(&g, r)->step);
}

/* Who has started the same is not waited for, though the others cannot know yet. */
static void tagged(slmpm_group group, int rank)
{
	int64_t one = 1, sum = 0;
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_ALLREDUCE,
			       .type = SLMPM_INT64,
			       .op = SLMPM_CALC_SUM,
			       .from = &one,
			       .to = &sum,
			       .count = 1,
			       .tag = 5};

	(void)rank;
	OK(slmpm_collective(group, &c, PATIENCE));
}

static void sees_tagged(const struct circle *c)
{
	struct slmpm_group_shown g = {.waiting = 0};

	for (int i = 0; i < 100 && g.waiting != 1; i++)
		(void)await(c, 0, VICTIM, &g, 100);
	CHECK(g.waiting == 1 && g.under_way == 1, "%u waited for", g.waiting);
}

/* Longer than a member's ring: it waits for its reader. */
static void gathers(slmpm_group group, int rank)
{
	unsigned char *all = calloc(MEMBERS + 1, LONG);

	OK(slmpm_gather(group, all, all + LONG, LONG, SLMPM_UINT8, VICTIM, PATIENCE));
	(void)rank;
	free(all);
}

static void sees_gathers(const struct circle *c)
{
	struct slmpm_group_shown g;
	const struct slmpm_shown_member *own;

	(void)await(c, 1, VICTIM, &g, 100);
	own = row_of(&g, 1);
	CHECK(own->step == 2 && own->length == LONG && own->present > LONG / 8 &&
		      own->present < LONG && own->kind == SLMPM_COLL_GATHER,
	      "%llu of %llu bytes", (unsigned long long)own->present,
	      (unsigned long long)own->length);
}

/* The victim has begun it, and does not read on. */
static void broadcasts(slmpm_group group, int rank)
{
	unsigned char *all = calloc(1, LONG);
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_BROADCAST,
			       .type = SLMPM_UINT8,
			       .from = all,
			       .to = all,
			       .count = LONG};
	struct slmpm_done done;
	slmpm_req req;

	OK(slmpm_collective_start(group, &c, NULL, &req));
	if (rank == VICTIM)
		raise(SIGSTOP);
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE), 0);
	EXPECT(done.status, 0);
	free(all);
}

static void sees_broadcasts(const struct circle *c)
{
	struct slmpm_group_shown g;
	const struct slmpm_shown_member *m = await(c, 0, VICTIM, &g, 200);

	CHECK(m->step == 2 && m->kind == SLMPM_COLL_BROADCAST, "step %llu, kind %u",
	      (unsigned long long)m->step, m->kind);
}

static void meets(slmpm_group group, int rank)
{
	(void)rank;
	OK(slmpm_group_meet(group, PATIENCE));
}

static void sees_meeting(const struct circle *c)
{
	struct slmpm_group_shown g;

	(void)await(c, 3, VICTIM, &g, 100);
	CHECK(g.under_way == 1 && g.operation[0].kind == SLMPM_SHOWN_MEET &&
		      g.operation[0].number == 1,
	      "%u under way", g.under_way);
}

/* ---- by TCP ---------------------------------------------------------------------------------- */

static void barriers(slmpm_group group, int rank)
{
	(void)rank;
	OK(slmpm_barrier(group, PATIENCE));
}

/* That by which its operations go is the library's own. */
static void shows_no_queue(int pid)
{
	const struct slmpm_stats_page *page;
	struct slmpm_stats_queue q;
	int contexts = 0;

	for (; slmpm_stats_attach(pid, contexts, &page) >= 0; contexts++) {
		for (uint32_t i = 0; i < page->queues; i++)
			CHECK(slmpm_stats_queue(page, i, &q, sizeof(q)) != 1, "a work queue");
		slmpm_stats_detach(page);
	}
	CHECK(contexts, "process %d shows nothing", pid);
}

static void sees_apart(const struct circle *c)
{
	struct slmpm_group_shown g;
	const struct slmpm_shown_member *m = await(c, 3, VICTIM, &g, 100);

	CHECK(g.apart && g.under_way == 1 && g.operation[0].kind == SLMPM_COLL_BARRIER &&
		      g.operation[0].number == 2,
	      "%u under way", g.under_way);
	CHECK(!strncmp(m->host, "tcp://127.0.0.1:", 16) && m->flags == SLMPM_SHOWN_CONNECTED &&
		      m->step == 1,
	      "at %s, flags %u, %llu have come", m->host, m->flags, (unsigned long long)m->step);
	/* Nothing comes of the victim here. */
	(void)await(c, 1, VICTIM, &g, 100);
	m = row_of(&g, 3);
	CHECK(g.waiting == 1 && !m->since_ns && m->flags & SLMPM_SHOWN_WAITS && m->present == 2 &&
		      m->length == VICTIM,
	      "%u waited for; rank 3, flags %u, in %llu for %llu", g.waiting, m->flags,
	      (unsigned long long)m->present, (unsigned long long)m->length);
	shows_no_queue(c->pids[3]);
}

/* ---- pages whose owner lies ------------------------------------------------------------------ */

#define MAGIC UINT64_C(0x31505247504d4c53)

struct forged {
	uint64_t magic;
	uint32_t version, size;
	uint64_t turn;
	struct slmpm_group_shown places[2];
};

static int show(const struct forged *f, size_t size, int seals)
{
	int fd = memfd_create("slmpm-group", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && write(fd, f, size) == (ssize_t)size, "no page");
	EXPECT(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void lies(const struct forged *f, size_t size, int seals, int error)
{
	int fd = show(f, size, seals);
	struct slmpm_group_shown g;

	EXPECT(slmpm_groups_read(getpid(), 0, &g, sizeof(g)), -error);
	close(fd);
}

static void lies_do_no_harm(void)
{
	static struct forged f = {.magic = MAGIC, .version = 1, .size = sizeof(f.places[0])};
	const int seals = F_SEAL_SHRINK;
	struct slmpm_group_shown g;
	int fd;

	REFUSED(slmpm_groups_read(getpid(), -1, &g, sizeof(g)), SLMPM_EINVAL, "group -1");
	REFUSED(slmpm_groups_read(getpid(), 0, NULL, sizeof(g)), SLMPM_EINVAL, ".size");
	REFUSED(slmpm_groups_read(INT32_MAX, 0, &g, sizeof(g)), SLMPM_ENOENT, "2147483647");
	lies(&f, sizeof(f), 0, SLMPM_ENOENT);
	lies(&f, sizeof(f) - 8, seals, SLMPM_ENOENT);
	lies(&f, sizeof(f), seals, SLMPM_EAGAIN); /* never shown */
	f.turn = 2;
	lies(&f, sizeof(f), seals, SLMPM_EAGAIN);
	f.places[0].size = sizeof(g);
	f.version = 2;
	lies(&f, sizeof(f), seals, SLMPM_EVERSION);
	f.version = 1;
	f.size -= 8;
	lies(&f, sizeof(f), seals, SLMPM_EVERSION);
	f.size += 8;
	f.magic++;
	lies(&f, sizeof(f), seals, SLMPM_EVERSION);
	f.magic--;
	f.places[0].operation_count = f.places[0].member_count = UINT32_MAX;
	memset(f.places[0].member[5].host, 7, sizeof(g.member[5].host));
	f.places[0].operation[7].number = 99;
	fd = show(&f, sizeof(f), seals);
	OK(slmpm_groups_read(getpid(), 0, &g, sizeof(g)));
	CHECK(g.operation_count == SLMPM_SHOWN_OPERATIONS &&
		      g.member_count == SLMPM_SHOWN_MEMBERS && g.operation[7].number == 99,
	      "%u, %u", g.operation_count, g.member_count);
	CHECK(g.member[5].host[0] == '?' && !g.member[5].host[sizeof(g.member[5].host) - 1],
	      "its text is as it was");
	close(fd);
	f.places[0].operation_count = f.places[0].member_count = 1;
	fd = show(&f, sizeof(f), seals);
	OK(slmpm_groups_read(getpid(), 0, &g, sizeof(g)));
	CHECK(!g.operation[7].number && !g.member[5].host[0], "what is not there is shown");
	REFUSED(slmpm_groups_read(getpid(), 1, &g, sizeof(g)), SLMPM_ENOENT, "shows no group 1");
	close(fd);
}

/* ---- one that has not waited ----------------------------------------------------------------- */

enum { HERE = 2, SEEN };

static void joins_and_computes(slmpm_peer founder, int i, void *common)
{
	_Atomic int *step = common;
	slmpm_group group;

	(void)i;
	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	for (int k = 0; k < 5; k++)
		OK(slmpm_barrier(group, PATIENCE));
	*step = HERE;
	while (*step != SEEN) /* no call of the library */
		usleep(1000);
	OK(slmpm_group_destroy(group));
}

/* Its group is there, and its link is up, as of when they came to be. */
static void is_seen(int pid)
{
	struct slmpm_group_shown g = {.size = 0};
	struct slmpm_monitors *monitors;
	struct slmpm_monitor link;
	int rc = 0;

	OK(slmpm_groups_read(pid, 0, &g, sizeof(g)));
	CHECK(g.tag == TAG && g.members == 2, "group %u of %u", g.tag, g.members);
	OK(slmpm_monitors_open(pid, &monitors));
	for (int i = 0; rc == 0; i++)
		rc = slmpm_monitors_read(monitors, i, &link, sizeof(link));
	CHECK(rc == 1 && link.state == SLMPM_PEER_UP, "%d, state %u", rc, link.state);
	slmpm_monitors_close(monitors);
}

static int computes(void *unused)
{
	_Atomic int *step = child_common(sizeof(*step));
	slmpm_peer members[2] = {{0}};
	struct circle c = {.flags = 0};
	slmpm_group group;

	(void)unused;
	circle_begin(&c, 1, joins_and_computes, step, 40);
	members[1] = c.peers[0];
	OK(slmpm_group_create(&group, c.ctx, members, 2, TAG, PATIENCE));
	for (int k = 0; k < 5; k++)
		OK(slmpm_barrier(group, PATIENCE));
	while (*step != HERE)
		usleep(1000);
	is_seen(c.pids[0]);
	is_seen(getpid());
	*step = SEEN;
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

int main(void)
{
	struct scene scenes[] = {
		{0, allreduces, sees_allreduces, false}, {0, gathers, sees_gathers, false},
		{0, broadcasts, sees_broadcasts, true},  {0, meets, sees_meeting, false},
		{0, tagged, sees_tagged, false},         {all_apart, barriers, sees_apart, false},
	};

	lies_do_no_harm();
	EXPECT(child_run(computes, NULL, 30), 0);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		EXPECT(child_wait(child_start(play, &scenes[i], 30 * (unsigned)actor_slow())), 0);
	return 0;
}
