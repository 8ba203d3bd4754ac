/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * Members without descriptors, and who founds without them: all who need one of theirs learn it,
 * by the reason and the rank, long before their deadlines; with descriptors again all goes on.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG  4
#define N    3
#define MOST 12 /* descriptors, with which a part forms */

enum { GO = 1, DONE };

struct scene {
	const char *name;
	void (*act)(slmpm_group g, int rank, int who, slmpm_peer founder);
	int who; /* has none */
};

static bool apart;
static int few; /* descriptors of splits_again */

static void limit_descriptors(rlim_t most)
{
	struct rlimit r;

	(void)getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = most < r.rlim_max ? most : r.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0, "setrlimit");
}

/* But for N, at most. */
static void few_descriptors(int n)
{
	int free_one = dup(1);

	close(free_one);
	limit_descriptors((rlim_t)(free_one + n));
}

static void without_descriptors(void)
{
	few_descriptors(0);
}

static void with_descriptors(void)
{
	limit_descriptors(RLIM_INFINITY);
}

/* All come to this. */
static void together(slmpm_peer founder)
{
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
}

/* ---- members -------------------------------------------------------------------------------- */

static void is_asked(slmpm_group g, int rank, int who, slmpm_peer founder)
{
	char named[32];
	slmpm_peer peer;

	(void)snprintf(named, sizeof(named), "rank %d (process ", who);
	if (rank == who)
		without_descriptors();
	together(founder);
	for (int again = 0; rank != who && again < 2; again++)
		REFUSED(slmpm_group_peer(g, who, &peer, PATIENCE), SLMPM_ENOFILE, named);
	together(founder);
	with_descriptors();
	together(founder);
	if (rank != who)
		OK(slmpm_group_peer(g, who, &peer, PATIENCE));
	together(founder);
}

static void asks(slmpm_group g, int rank, int who, slmpm_peer founder)
{
	slmpm_peer peer;

	if (rank == who)
		without_descriptors();
	for (int other = 0; rank == who && other < N; other++)
		if (other != rank)
			REFUSED(slmpm_group_peer(g, other, &peer, PATIENCE), SLMPM_ENOFILE,
				"slmpm_group_peer: a connection of rank ");
	with_descriptors();
	for (int other = 0; rank == who && other < N; other++)
		if (other != rank)
			OK(slmpm_group_peer(g, other, &peer, PATIENCE));
	together(founder);
}

/* The last one founds the part, or the first. */
static void splits(slmpm_group g, int rank, int who, slmpm_peer founder)
{
	char named[16];
	slmpm_group part;

	(void)snprintf(named, sizeof(named), "rank %d (", who);
	for (int order = -1; order < 2; order += 2) {
		if (rank == who)
			without_descriptors();
		together(founder);
		REFUSED(slmpm_group_split(&part, g, 0, order * rank, PATIENCE), SLMPM_ENOFILE,
			"slmpm_group_split: ");
		CHECK(rank == who || strstr(slmpm_error_detail(), named), "rank %d of %d: %s", rank,
		      who, slmpm_error_detail());
		circle_breaks(g, -SLMPM_ENOFILE, who);
		with_descriptors();
		together(founder);
		OK(slmpm_group_shrink(g, PATIENCE));
	}
	OK(slmpm_group_split(&part, g, 0, 0, PATIENCE));
	OK(slmpm_group_destroy(part));
}

static int count_words(const char *text, const char *word)
{
	int n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/* All read who lacks it, by its rank in the group that is split: once, and by no other rank. */
static void is_named(int who, bool here)
{
	const char *text = slmpm_error_detail();
	char named[32];

	(void)snprintf(named, sizeof(named), "rank %d (", who);
	CHECK(count_words(text, named) == 1 && !strstr(text, "of group ") &&
		      count_words(text, "says") <= (apart && !here),
	      "%s, expected %s", text, named);
}

/* Connected before, some have enough to begin a part, but not for all of it; one is in another. */
static void has_few(slmpm_group g, int rank, int who, slmpm_peer founder)
{
	const bool other = rank == (who + 1) % N;
	slmpm_group part;
	slmpm_peer peer;

	for (int n = 0; n < MOST; n++) {
		int rc;

		for (int r = 0; r < N; r++)
			if (r != rank)
				OK(slmpm_group_peer(g, r, &peer, PATIENCE));
		together(founder);
		if (rank == who)
			few_descriptors(n);
		together(founder);
		rc = slmpm_group_split(&part, g, other, rank, PATIENCE);
		if (rc == 0) {
			with_descriptors();
			OK(slmpm_group_destroy(part));
			continue;
		}
		CHECK(rc == -SLMPM_ENOFILE, "%d of %d: %s", n, rank, slmpm_error_detail());
		is_named(who, rank == who);
		circle_breaks(g, -SLMPM_ENOFILE, who);
		with_descriptors();
		together(founder);
		OK(slmpm_group_shrink(g, PATIENCE));
	}
}

/* Not connected before. What was lacking is no answer to the next split. */
static void splits_again(slmpm_group g, int rank, int who, slmpm_peer founder)
{
	slmpm_group part;
	int rc;

	together(founder);
	if (rank == who)
		few_descriptors(few);
	together(founder);
	rc = slmpm_group_split(&part, g, 0, rank, PATIENCE);
	with_descriptors();
	together(founder);
	if (rc < 0) {
		OK(slmpm_group_shrink(g, PATIENCE));
		OK(slmpm_group_split(&part, g, 0, rank, PATIENCE));
	}
	OK(slmpm_group_destroy(part));
}

static void join(slmpm_peer founder, int i, void *arg)
{
	const struct scene *s = arg;
	slmpm_group g;

	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	s->act(g, i, s->who, founder);
	actor_tell(founder, DONE);
	OK(slmpm_group_destroy(g));
}

static int play(void *arg)
{
	struct scene *s = arg;
	struct circle c = {.apart = apart ? 0xff : 0};
	slmpm_group g;
	int word = GO;

	circle_begin(&c, N, join, s, 60);
	OK(slmpm_group_create(&g, c.ctx, c.peers, N, TAG, PATIENCE));
	while (word == GO) {
		for (int i = 0; i < N; i++)
			EXPECT(slmpm_recv(c.peers[i], ACTOR_WORDS, &word, sizeof(word), NULL,
					  PATIENCE),
			       sizeof(word));
		for (int i = 0; word == GO && i < N; i++)
			actor_tell(c.peers[i], DONE);
	}
	OK(slmpm_group_destroy(g));
	circle_end(&c);
	return 0;
}

/* ---- who founds ----------------------------------------------------------------------------- */

static void is_refused(slmpm_peer founder, int i, void *unused)
{
	slmpm_group g;

	(void)unused;
	/* Both after it has failed. */
	actor_hear(founder, GO);
	REFUSED(slmpm_group_join(&g, founder, TAG, PATIENCE), SLMPM_ENOFILE, "says: ");
	together(founder);
	/* One before. */
	if (i == 0)
		REFUSED(slmpm_group_join(&g, founder, TAG, PATIENCE), SLMPM_ENOFILE, "says: ");
	actor_tell(founder, GO);
	if (i == 1)
		actor_hear(founder, GO);
	if (i == 1)
		REFUSED(slmpm_group_join(&g, founder, TAG, PATIENCE), SLMPM_ENOFILE, "rank 0 (");
	actor_hear(founder, DONE);
	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	OK(slmpm_barrier(g, PATIENCE));
	OK(slmpm_group_destroy(g));
}

static int founds(void *unused)
{
	struct circle c = {.flags = 0};
	slmpm_peer members[N];
	slmpm_group g;

	(void)unused;
	circle_begin(&c, N - 1, is_refused, NULL, 60);
	for (int r = 0; r < N; r++)
		members[r] = r < N - 1 ? c.peers[r] : (slmpm_peer){0};
	without_descriptors();
	REFUSED(slmpm_group_create(&g, c.ctx, members, N, TAG, PATIENCE), SLMPM_ENOFILE,
		"slmpm_group_create: ");
	for (int i = 0; i < N - 1; i++)
		actor_tell(c.peers[i], GO);
	for (int i = 0; i < N - 1; i++)
		actor_hear(c.peers[i], GO);
	for (int i = 0; i < N - 1; i++)
		actor_tell(c.peers[i], DONE);
	for (int i = 0; i < N - 1; i++)
		actor_hear(c.peers[i], GO);
	with_descriptors();
	actor_tell(c.peers[1], GO);
	REFUSED(slmpm_group_create(&g, c.ctx, members, N, TAG, PATIENCE), SLMPM_ENOFILE,
		"rank 0 (");
	for (int i = 0; i < N - 1; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_create(&g, c.ctx, members, N, TAG, PATIENCE));
	OK(slmpm_barrier(g, PATIENCE));
	OK(slmpm_group_destroy(g));
	circle_end(&c);
	return 0;
}

/* Who founds has some, in each round one more: no member is blamed. */
static void is_not_blamed(slmpm_peer founder, int i, void *unused)
{
	slmpm_group g;

	(void)unused;
	(void)i;
	for (int n = 0; n < MOST; n++) {
		int rc;

		actor_hear(founder, GO);
		rc = slmpm_group_join(&g, founder, TAG, PATIENCE);
		CHECK(rc == 0 || (rc == -SLMPM_ENOFILE && strstr(slmpm_error_detail(), " says: ") &&
				  !strstr(slmpm_error_detail(), "says: rank")),
		      "%d: %s", n, slmpm_error_detail());
		if (rc == 0)
			OK(slmpm_group_destroy(g));
		actor_tell(founder, DONE);
	}
}

static int founds_with_few(void *unused)
{
	struct circle c = {.flags = 0};
	slmpm_group g;

	(void)unused;
	circle_begin(&c, N, is_not_blamed, NULL, 60);
	for (int n = 0; n < MOST; n++) {
		int rc;

		for (int i = 0; i < N; i++)
			actor_tell(c.peers[i], GO);
		few_descriptors(n);
		rc = slmpm_group_create(&g, c.ctx, c.peers, N, TAG, PATIENCE);
		CHECK(rc == 0 ||
			      (rc == -SLMPM_ENOFILE &&
			       (strstr(slmpm_error_detail(), "create: this process, for rank ") ||
				strstr(slmpm_error_detail(), "create: a group"))),
		      "%d: %s", n, slmpm_error_detail());
		with_descriptors();
		if (rc == 0)
			OK(slmpm_group_destroy(g));
		for (int i = 0; i < N; i++)
			actor_hear(c.peers[i], DONE);
	}
	circle_end(&c);
	return 0;
}

/* One member joins twice while who founds has no descriptor for what it comes with: each join is a
 * group's, and the third one forms. */
static void joins_twice(slmpm_peer founder, int i, void *unused)
{
	slmpm_group g;

	(void)unused;
	actor_hear(founder, GO);
	for (int n = 0; n < 2; n++)
		REFUSED(slmpm_group_join(&g, founder, TAG, PATIENCE), SLMPM_ENOFILE, " says: ");
	actor_tell(founder, DONE);
	if (i == 0)
		actor_hear(founder, GO);
	OK(slmpm_group_join(&g, founder, TAG, PATIENCE));
	OK(slmpm_barrier(g, PATIENCE));
	OK(slmpm_group_destroy(g));
}

static int founds_behind(void *unused)
{
	struct circle c = {.flags = 0};
	slmpm_group g;

	(void)unused;
	circle_begin(&c, N, joins_twice, NULL, 60);
	without_descriptors();
	actor_tell(c.peers[0], GO);
	actor_hear(c.peers[0], DONE); /* both have come in vain */
	for (int i = 1; i < N; i++)
		actor_tell(c.peers[i], GO);
	REFUSED(slmpm_group_create(&g, c.ctx, c.peers, N, TAG, PATIENCE), SLMPM_ENOFILE,
		"slmpm_group_create: ");
	with_descriptors();
	REFUSED(slmpm_group_create(&g, c.ctx, c.peers, N, TAG, PATIENCE), SLMPM_ENOFILE,
		"slmpm_group_create: this process, for rank 0 (");
	for (int i = 1; i < N; i++)
		actor_hear(c.peers[i], DONE);
	actor_tell(c.peers[0], GO);
	OK(slmpm_group_create(&g, c.ctx, c.peers, N, TAG, PATIENCE));
	OK(slmpm_group_destroy(g));
	circle_end(&c);
	return 0;
}

/* ---- both try until it works ----------------------------------------------------------------- */

#define TRIES 5000

static void joins_until_it_works(slmpm_peer founder, int i, void *unused)
{
	const int64_t end = actor_now_ms() + PATIENCE;
	slmpm_group g;
	int n = 0, rc;

	(void)i;
	(void)unused;
	actor_hear(founder, GO);
	do
		rc = slmpm_group_join(&g, founder, TAG, PATIENCE);
	while (rc < 0 && n++ < TRIES && actor_now_ms() < end);
	CHECK(rc == 0 && n < TRIES / 2, "after %d, still %s", n, slmpm_error_detail());
	OK(slmpm_group_destroy(g));
}

/* One has died. What failed before the other began is not all to be made up for. */
static int founds_in_vain(void *unused)
{
	const int64_t end = actor_now_ms() + 2 * PATIENCE;
	struct circle c = {.flags = 0};
	slmpm_group g;
	int rc;

	(void)unused;
	circle_begin(&c, 2, joins_until_it_works, NULL, 60);
	CHECK(kill(c.pids[1], SIGKILL) == 0, "kill");
	EXPECT(circle_wait(&c, 1), -SIGKILL);
	for (int i = 0; i < TRIES; i++)
		REFUSED(slmpm_group_create(&g, c.ctx, c.peers, 2, TAG, PATIENCE), SLMPM_EDEAD, "");
	actor_tell(c.peers[0], GO);
	do
		rc = slmpm_group_create(&g, c.ctx, c.peers, 1, TAG, PATIENCE);
	while (rc < 0 && actor_now_ms() < end);
	CHECK(rc == 0, "still %s", slmpm_error_detail());
	OK(slmpm_group_destroy(g));
	EXPECT(circle_wait(&c, 0), 0);
	return 0;
}

int main(void)
{
	static struct scene scenes[] = {
		{"is asked", is_asked, 0}, {"is asked", is_asked, 1}, {"is asked", is_asked, 2},
		{"asks", asks, 1},         {"splits", splits, 0},     {"splits", splits, 1},
		{"splits", splits, 2},     {"has few", has_few, 0},   {"has few", has_few, 1},
		{"has few", has_few, 2},
	};
	static struct scene again = {"splits again", splits_again, 0};

	EXPECT(child_run(founds, NULL, 60), 0);
	EXPECT(child_run(founds_with_few, NULL, 60), 0);
	EXPECT(child_run(founds_behind, NULL, 60), 0);
	EXPECT(child_run(founds_in_vain, NULL, 60), 0);
	for (int over = 0; over < 2; over++) {
		apart = over;
		for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
			printf("%s, rank %d, %s\n", scenes[i].name, scenes[i].who,
			       over ? "tcp" : "shm");
			fflush(stdout);
			if (!over)
				settings_one_link("shm");
			EXPECT(child_run(play, &scenes[i], 60), 0);
		}
		for (int i = 0; i < 3 * MOST; i++) { /* it takes some luck */
			few = i % MOST;
			printf("splits again, %d, %s\n", few, over ? "tcp" : "shm");
			fflush(stdout);
			EXPECT(child_run(play, &again, 60), 0);
		}
	}
	return 0;
}
