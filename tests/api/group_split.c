/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* one-thread */
/* waits */
/*
 * Groups of some members of a group, on one machine and by TCP: by color and key, several at once,
 * parts of parts, those that outlive the group; members that do something else, are late, or die
 * at any moment: then all have their parts, or none.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG   9
#define MOST  8
#define SHORT 300 /* ms: what never comes */

struct scene {
	const char *name;
	void (*act)(slmpm_group g, int rank);
	int members;
	int killed; /* the rank of one that kills itself; -1 */
	int again;  /* so often by TCP */
};

struct report { /* of a member, how it went */
	uint64_t splits;
	int rc, status, culprit;
	char detail[200];
};

static struct report *reports;
static bool apart;

static slmpm_group split(slmpm_group g, int color, int key)
{
	slmpm_group part = {1};

	OK(slmpm_group_split(&part, g, color, key, PATIENCE));
	CHECK(!part.id == (color == SLMPM_COLOR_NONE), "color %d: %llu", color,
	      (unsigned long long)part.id);
	return part;
}

/* It has N members, this one is RANK, whose SUM of what they bring is this. */
static void works(slmpm_group g, int n, int rank, int64_t own, int64_t sum)
{
	struct slmpm_group_info info = circle_query(g);
	int64_t all[MOST] = {0}, got = 0;

	CHECK(info.rank == rank && info.members == (uint32_t)n && info.tag == TAG,
	      "rank %d of %u, tag %u; expected %d of %d", info.rank, info.members, info.tag, rank,
	      n);
	OK(slmpm_allreduce(g, &own, &got, 1, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
	CHECK(got == sum, "sum %lld, expected %lld", (long long)got, (long long)sum);
	OK(slmpm_allgather(g, &own, all, 1, SLMPM_INT64, PATIENCE));
	CHECK(all[rank] == own, "%lld at %d", (long long)all[rank], rank);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Odd and even ones, the last ones first; the last one in none. */
static void by_color_and_key(slmpm_group g, int rank)
{
	int n = 6, last = rank == n - 1;
	slmpm_group part = split(g, last ? SLMPM_COLOR_NONE : rank % 2, -rank);

	if (!last && rank % 2)
		works(part, 2, rank == 1, rank, 1 + 3);
	else if (!last)
		works(part, 3, (4 - rank) / 2, rank, 0 + 2 + 4);
	works(g, n, rank, rank, 15);
	if (!last)
		OK(slmpm_group_destroy(part));
}

/* Of one key by rank; all of them together, beside others; each one alone. */
static void beside_others(slmpm_group g, int rank)
{
	slmpm_group all = split(g, 3, 7), alone = split(g, rank, 0), half = split(g, rank / 2, 0);

	for (int k = 0; k < 20; k++) {
		works(all, 4, rank, rank, 6);
		works(half, 2, rank % 2, rank, rank / 2 ? 5 : 1);
		works(alone, 1, 0, rank, rank);
		works(g, 4, rank, 1, 4);
	}
	OK(slmpm_group_destroy(half));
	OK(slmpm_group_destroy(alone));
	OK(slmpm_group_destroy(all));
	CHECK(!split(g, SLMPM_COLOR_NONE, 0).id, "a part");
}

/* A part of a part, of which the old ones go. */
static void outlives(slmpm_group g, int rank)
{
	slmpm_group four = split(g, rank / 4, rank), two, again;

	works(four, 4, rank % 4, 1, 4);
	two = split(four, rank / 2 % 2, -rank);
	OK(slmpm_group_destroy(four));
	works(two, 2, 1 - rank % 2, rank, rank / 2 * 4 + 1);
	again = split(two, 0, rank);
	works(again, 2, rank % 2, rank, rank / 2 * 4 + 1);
	OK(slmpm_group_destroy(two));
	works(again, 2, rank % 2, 1, 2);
	OK(slmpm_group_destroy(again));
}

/* The application's own groups have tags of their own, over the same connections. */
static void beside_own(slmpm_group g, int rank)
{
	slmpm_peer both[2] = {{0}, {0}};
	slmpm_group own, part;

	OK(slmpm_group_peer(g, 1 - rank, &both[1], PATIENCE));
	if (rank == 0)
		OK(slmpm_group_create_start(&own, circle_own, both, 2, TAG));
	part = split(g, 0, 0);
	works(part, 2, rank, rank, 1);
	if (rank == 1)
		OK(slmpm_group_join_start(&own, both[1], TAG));
	OK(slmpm_group_destroy(part));
	while (circle_query(own).status == -SLMPM_EAGAIN)
		usleep(100);
	works(own, 2, rank, rank, 1);
	OK(slmpm_barrier(own, PATIENCE));
	OK(slmpm_group_destroy(own));
}

/* ---- refused --------------------------------------------------------------------------------- */

static void bad_arguments(slmpm_group g, int rank)
{
	slmpm_group part;

	REFUSED(slmpm_group_split(NULL, g, 0, 0, PATIENCE), SLMPM_EINVAL, "no place");
	REFUSED(slmpm_group_split(&part, g, -2, 0, PATIENCE), SLMPM_EINVAL, "no color -2");
	REFUSED(slmpm_group_split(&part, g, 0, 0, 0), SLMPM_EAGAIN, "timeout of 0");
	REFUSED(slmpm_group_split(&part, (slmpm_group){0}, 0, 0, 0), SLMPM_EHANDLE, "");
	/* Of one: the others learn it. */
	REFUSED(slmpm_group_split(&part, g, rank ? -5 : 0, 0, PATIENCE), SLMPM_EINVAL,
		rank ? "slmpm_group_split: no color -5" : "rank 1 (");
	REFUSED(slmpm_group_split(rank ? NULL : &part, g, 0, 0, PATIENCE), SLMPM_EINVAL,
		rank ? "slmpm_group_split: no place" : "refuses: no place for the handle");
	part = split(g, 1, 0);
	works(part, 2, rank, rank, 1);
	OK(slmpm_group_destroy(part));
}

static void stays_broken(slmpm_group g, int error, const char *part)
{
	slmpm_group none = {0};

	REFUSED(slmpm_group_split(&none, g, 0, 0, PATIENCE), error, part);
	REFUSED(slmpm_group_split(&none, g, 0, 0, 0), error, "slmpm_group_split: ");
	CHECK(!none.id && circle_query(g).status == -error, "status %d", circle_query(g).status);
}

/* Who does another operation; and one of the same kind and length. */
static void is_another(slmpm_group g, int rank, int rc)
{
	slmpm_group part;

	if (rank != 1)
		rc = slmpm_group_split(&part, g, 0, 0, PATIENCE);
	/* Who was through before has done its part. */
	CHECK(rc == -SLMPM_EINVAL || (apart && rank == 1 && rc == 0), "%d: %s", rc,
	      slmpm_error_detail());
	stays_broken(g, SLMPM_EINVAL, "");
	usleep(SHORT * 1000); /* until all have seen it */
}

/* Each is named as its member has called it. */
static void another_kind(slmpm_group g, int rank)
{
	is_another(g, rank, rank == 1 ? slmpm_barrier(g, PATIENCE) : 0);
	REFUSED(slmpm_barrier(g, PATIENCE), SLMPM_EINVAL, "slmpm_group_split");
	CHECK(strstr(slmpm_error_detail(), "barrier") && !strstr(slmpm_error_detail(), "allgather"),
	      "%s", slmpm_error_detail());
}

static void same_length(slmpm_group g, int rank)
{
	char own[16] = "abc", all[16 * MOST];

	if (rank == 1) {
		int rc = slmpm_allgather(g, own, all, 16, SLMPM_UINT8, PATIENCE);

		CHECK(rc == 0 || rc == -SLMPM_EINVAL, "%d: %s", rc, slmpm_error_detail());
		is_another(g, rank, slmpm_barrier(g, PATIENCE));
	} else {
		is_another(g, rank, 0);
	}
}

static void late(slmpm_group g, int rank)
{
	slmpm_group part;
	int rc = 0;

	if (rank == 2)
		usleep(2 * SHORT * 1000 * (unsigned)actor_slow());
	else
		rc = slmpm_group_split(&part, g, 0, 0, SHORT * actor_slow());
	CHECK(rank == 2 || (rc == -SLMPM_ETIMEOUT && strstr(slmpm_error_detail(), "rank")),
	      "%d: %s", rc, slmpm_error_detail());
	CHECK(rank == 2 || (strstr(slmpm_error_detail(), ": slmpm_group_split: ") &&
			    !strstr(slmpm_error_detail(), ", slmpm_group_split") &&
			    !strstr(slmpm_error_detail(), "allgather")),
	      "of another call, or twice: %s", slmpm_error_detail());
	if (apart && rank == 2) /* which has no connection yet by which it would learn why */
		CHECK(slmpm_group_split(&part, g, 0, 0, PATIENCE) < 0, "it is not broken");
	else
		stays_broken(g, SLMPM_ETIMEOUT, "");
	usleep(2 * SHORT * 1000 * (unsigned)actor_slow()); /* until that one has seen it */
}

/* The library calls these for a connection that a part needs: this process stops there, once. */
static unsigned silent_ms;

static void be_silent(void)
{
	unsigned ms = silent_ms;

	silent_ms = 0;
	usleep(ms * 1000);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (!apart)
		be_silent();
	return syscall(SYS_sendmsg, fd, message, flags);
}

int eventfd(unsigned count, int flags)
{
	be_silent();
	return (int)syscall(SYS_eventfd2, count, flags);
}

/* Rank 3 says what it wants, and no more: rank 1, which founds their part, knows that. */
static void half_way(slmpm_group g, int rank)
{
	const int limit = SHORT * actor_slow();
	int64_t begun = actor_now_ms();
	slmpm_group part;
	int rc;

	if (rank == 3) {
		silent_ms = 3 * (unsigned)limit;
		CHECK(slmpm_group_split(&part, g, 1, 0, PATIENCE) < 0 && !silent_ms, "a part");
		return;
	}
	rc = slmpm_group_split(&part, g, rank % 2, 0, limit);
	begun = actor_now_ms() - begun;
	CHECK(rc == -SLMPM_ETIMEOUT && strstr(slmpm_error_detail(), "rank 3"), "rank %d: %d: %s",
	      rank, rc, slmpm_error_detail());
	CHECK(begun < 2 * limit, "rank %d: %lld ms", rank, (long long)begun);
	EXPECT(circle_query(g).culprit, 3);
}

/* ---- deaths ---------------------------------------------------------------------------------- */

static void kill_self(int number)
{
	(void)number;
	kill(getpid(), SIGKILL);
}

static void kill_later(void)
{
	unsigned seed = (unsigned)getpid();

	signal(SIGALRM, kill_self);
	ualarm(20000 + (unsigned)rand_r(&seed) % 8000, 0);
}

/* Again and again, until that fails. */
static void dies(slmpm_group g, int rank)
{
	struct report *r = &reports[rank];
	struct slmpm_group_info info;
	slmpm_group part = {0};

	if (rank == 2)
		kill_later();
	do {
		if (part.id)
			OK(slmpm_group_destroy(part));
		part.id = 0;
		r->rc = slmpm_group_split(&part, g, (int)(r->splits + (unsigned)rank) % 3 - 1, rank,
					  PATIENCE);
		r->splits += r->rc == 0;
	} while (r->rc == 0);
	CHECK(strstr(slmpm_error_detail(), "slmpm_group_split"), "%s", slmpm_error_detail());
	(void)snprintf(r->detail, sizeof(r->detail), "%s", slmpm_error_detail());
	CHECK(!part.id, "a part after %d", r->rc);
	info = circle_query(g);
	r->status = info.status;
	r->culprit = info.culprit;
	OK(slmpm_group_shrink(g, PATIENCE));
	OK(slmpm_group_destroy(split(g, 0, 0)));
}

/* All the same. */
static void compare(int n, int but)
{
	const struct report *first = &reports[0];

	for (int i = 0; i < n; i++) {
		const struct report *r = &reports[i];

		if (i == but)
			continue;
		CHECK(r->rc == -SLMPM_EDEAD || (apart && r->rc == -SLMPM_ECLOSED),
		      "rank %d: %d (%s)", i, r->rc, r->detail);
		CHECK(apart || (r->status == -SLMPM_EDEAD && r->culprit == but), "rank %d: by %d",
		      i, r->culprit);
		CHECK(r->splits == first->splits, "rank %d: %llu, rank 0: %llu", i,
		      (unsigned long long)r->splits, (unsigned long long)first->splits);
	}
}

/* ---- */

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
	struct circle c = {.apart = apart ? 0xff : 0};
	slmpm_group g, part;

	reports = child_common(MOST * sizeof(*reports));
	circle_begin(&c, s->members, join, s, 60);
	OK(slmpm_group_create(&g, c.ctx, c.peers, s->members, TAG, PATIENCE));
	REFUSED(slmpm_group_split(&part, g, 0, 0, PATIENCE), SLMPM_ESTATE, "no member");
	for (int i = 0; i < s->members; i++)
		EXPECT(circle_wait(&c, i), i == s->killed ? -SIGKILL : 0);
	if (s->killed >= 0)
		compare(s->members, s->killed);
	circle_end(&c);
	return 0;
}

int main(void)
{
	static struct scene scenes[] = {
		{"by color and key", by_color_and_key, 6, -1, 1},
		{"beside others", beside_others, 4, -1, 1},
		{"outlives", outlives, 8, -1, 1},
		{"beside own groups", beside_own, 2, -1, 1},
		{"bad arguments", bad_arguments, 2, -1, 1},
		{"another kind", another_kind, 3, -1, 1},
		{"of the same length", same_length, 3, -1, 1},
		{"late", late, 3, -1, 1},
		{"half way", half_way, 4, -1, 1},
		{"dies", dies, 4, 2, 10},
		{"dies again", dies, 5, 2, 1},
		{"dies once more", dies, 4, 2, 1},
	};

	for (int over = 0; over < 2; over++) {
		apart = over;
		for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
			printf("%s, %s\n", scenes[i].name, over ? "tcp" : "shm");
			fflush(stdout);
			if (!over)
				settings_one_link("shm");
			for (int k = 0; k < (over ? scenes[i].again : 1); k++)
				EXPECT(child_run(found, &scenes[i], 60), 0);
		}
	}
	return 0;
}
