/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Connections that groups make by themselves end with these, at once and of whatever they were
 * made; those that a part was formed by with the part; and one whose handle has been given out at
 * either side stays.
 */
#include <dirent.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <slmpm_deposit.h>
#include <slmpm_overlay.h>
#include <slmpm_queue.h>

#include "tests/lib/child.h"
#include "tests/lib/crew.h"

#define MEMBERS 3
#define STREAM  3
#define ROUNDS  6

static slmpm_ctx context;

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d, "no descriptors");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static slmpm_group split(slmpm_group g)
{
	slmpm_group part;

	OK(slmpm_group_split(&part, g, 0, 0, PATIENCE));
	return part;
}

/* ---- what makes them ------------------------------------------------------------------------- */

static void reduces(slmpm_group g, int rank)
{
	int64_t own = rank, sum;

	OK(slmpm_allreduce(g, &own, &sum, 1, SLMPM_INT64, SLMPM_CALC_SUM, PATIENCE));
	EXPECT(sum, MEMBERS * (MEMBERS - 1) / 2);
}

static void puts_to_all(slmpm_group g, int rank)
{
	static char from[8], to[8];
	const struct slmpm_put_spec put = {
		.size = sizeof(put), .space = 1, .len = sizeof(from), .from = from};
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = PATIENCE};

	OK(slmpm_group_space(g, 1, to, sizeof(to)));
	OK(slmpm_barrier(g, PATIENCE));
	if (rank == 0)
		OK(slmpm_put_all(g, &put, &how, NULL));
	OK(slmpm_barrier(g, PATIENCE));
}

static void lays_over(slmpm_group g, int rank)
{
	struct slmpm_network net = {.size = sizeof(net)};
	slmpm_overlay o;

	(void)rank;
	OK(slmpm_network_make(&net, SLMPM_NETWORK_TREE, MEMBERS, NULL, 0));
	OK(slmpm_overlay_open(&o, g, &net, NULL, PATIENCE));
	OK(slmpm_overlay_close(o, PATIENCE));
}

static void meets(slmpm_group g, int rank)
{
	(void)rank;
	OK(slmpm_group_meet(g, PATIENCE));
}

/* Its founder knows the others by connections of the group that it is a part of. */
static void drives_part(slmpm_group g, int rank)
{
	slmpm_group middle = split(g), part = split(middle);
	const struct slmpm_drive barrier = {.size = sizeof(barrier), .kind = SLMPM_COLL_BARRIER};
	struct slmpm_how how = {.size = sizeof(how)};
	struct slmpm_done done;

	OK(slmpm_group_destroy(middle));
	OK(slmpm_cq_create(context, &how.cq));
	OK(slmpm_group_serve(part, &how));
	OK(slmpm_barrier(g, PATIENCE));
	if (rank == 0)
		OK(slmpm_group_drive(
			part, &barrier,
			&(struct slmpm_how){.size = sizeof(how), .timeout_ms = PATIENCE}, NULL));
	EXPECT(slmpm_cq_wait(how.cq, &done, 1, PATIENCE), 1);
	EXPECT(done.status, 0);
	OK(slmpm_barrier(g, PATIENCE));
	OK(slmpm_group_serve(part, NULL));
	OK(slmpm_cq_destroy(how.cq));
	OK(slmpm_group_destroy(part));
}

static void (*const makers[])(slmpm_group g, int rank) = {reduces, puts_to_all, lays_over, meets,
							  drives_part};

/* ---- gone ------------------------------------------------------------------------------------ */

/* One count decides: what other members begin later has some for a moment. */
static void await_descriptors(const struct crew *c, int most)
{
	const int64_t end = actor_now_ms() + 1000 * actor_slow();
	int n;

	while ((n = descriptors()) > most && actor_now_ms() < end)
		CHECK(slmpm_progress(c->ctx) >= 0, "%s", slmpm_error_detail());
	CHECK(n <= most, "%d descriptors, %d at first", n, most);
}

static void makes_progress(const struct crew *c)
{
	for (int i = 0; i < 20; i++) {
		CHECK(slmpm_progress(c->ctx) >= 0, "%s", slmpm_error_detail());
		usleep(1000);
	}
}

static void comes_and_goes(const struct crew *c, int rank)
{
	const size_t n = sizeof(makers) / sizeof(*makers);
	int first = 0;

	context = c->ctx;
	for (size_t round = 0; round <= ROUNDS; round++) {
		for (size_t i = 0; i < n; i++) {
			slmpm_group g = split(c->group[0]);

			makers[i](g, rank);
			OK(slmpm_group_destroy(g));
		}
		if (!round)
			first = descriptors();
	}
	await_descriptors(c, first);
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* Who founded a part leaves it first: those that are in it keep what formed it. */
static void founder_leaves(const struct crew *c, int rank)
{
	slmpm_group g = split(c->group[0]), part;
	int first = descriptors(), n;

	part = split(g);
	OK(slmpm_group_destroy(g));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	makes_progress(c);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	n = descriptors();
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == 0)
		OK(slmpm_group_destroy(part));
	makes_progress(c);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	/* A connection has two. */
	CHECK(rank == 0 || descriptors() > n - 2, "%d descriptors, %d before", descriptors(), n);
	if (rank)
		OK(slmpm_group_destroy(part));
	await_descriptors(c, first);
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* Rank 1 has it, rank 2 has been asked for it; rank 0 is not asked for any. */
static void given_out(const struct crew *c, int rank)
{
	slmpm_group g = split(c->group[0]);
	slmpm_peer peer;
	int word = 0;

	reduces(g, rank);
	if (rank == 1)
		OK(slmpm_group_peer(g, 2, &peer, PATIENCE));
	OK(slmpm_barrier(g, PATIENCE));
	OK(slmpm_group_destroy(g));
	makes_progress(c);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == 1)
		OK(slmpm_send(peer, STREAM, &rank, sizeof(rank), PATIENCE));
	if (rank == 2)
		EXPECT(slmpm_recv(slmpm_any(c->ctx), STREAM, &word, sizeof(word), NULL, PATIENCE),
		       sizeof(word));
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank == 1)
		OK(slmpm_close(peer, PATIENCE));
}

static _Atomic int *stage;

static void await_closed(int n)
{
	const int64_t end = actor_now_ms() + PATIENCE;

	while (atomic_load(stage) < n && actor_now_ms() < end)
		usleep(100);
	CHECK(atomic_load(stage) >= n, "stage %d, not %d", atomic_load(stage), n);
}

static int ups(const struct crew *c, slmpm_peer *peers)
{
	struct slmpm_event e = {.size = sizeof(e)};
	int n = 0;

	while (slmpm_next_event(c->ctx, &e, 0) == 1)
		if (e.type == SLMPM_EVENT_UP && n < MEMBERS)
			peers[n++] = e.peer;
	return n;
}

/* By events: rank 0 has those of the members that it puts to, which take none. */
static void given_by_event(const struct crew *c, int rank)
{
	slmpm_group g = split(c->group[0]);
	slmpm_peer peers[MEMBERS];
	int n, word = 0;

	OK(slmpm_barrier(c->group[0], PATIENCE));
	(void)ups(c, peers);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	puts_to_all(g, rank);
	n = rank ? 0 : ups(c, peers);
	CHECK(n == 2 || rank, "%d are up", n);
	for (int i = 0; i < n; i++)
		OK(slmpm_send(peers[i], STREAM, &n, sizeof(n), PATIENCE));
	OK(slmpm_group_destroy(g));
	makes_progress(c);
	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank) {
		EXPECT(ups(c, peers), 0); /* it has released them */
		EXPECT(slmpm_recv(slmpm_any(c->ctx), STREAM, &word, sizeof(word), NULL, PATIENCE),
		       sizeof(word));
	}
	OK(slmpm_barrier(c->group[0], PATIENCE));
	for (int i = 0; i < n; i++)
		OK(slmpm_close(peers[i], PATIENCE));
	OK(slmpm_barrier(c->group[0], PATIENCE));
}

/* Rank 1 closes its bell, as a program that it becomes would, and lives: that is an error in the
 * end, for who makes the connection and for who asks for it. */
static void closes_bell(const struct crew *c, int rank)
{
	int domain, type;
	socklen_t size;
	slmpm_peer peer;

	OK(slmpm_barrier(c->group[0], PATIENCE));
	if (rank != 1) {
		await_closed(1);
		EXPECT(slmpm_group_peer(c->group[0], 1, &peer, PATIENCE), -SLMPM_ESYSTEM);
		atomic_fetch_add(stage, 1);
		return;
	}
	for (int fd = 3; fd < 1024; fd++) {
		size = sizeof(domain);
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
		    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && domain == AF_UNIX &&
		    type == SOCK_DGRAM)
			close(fd);
	}
	atomic_store(stage, 1);
	await_closed(MEMBERS);
	_exit(0);
}

int main(void)
{
	const struct crew closes = {.members = MEMBERS, .groups = 1, .body = closes_bell};
	const struct crew leaves = {.members = MEMBERS, .groups = 1, .body = founder_leaves};

	stage = child_common(sizeof(*stage));
	crew_run(&closes, 20);
	for (uint64_t apart = 0; apart < 8; apart += 6) {
		struct crew goes = {
			.members = MEMBERS, .groups = 1, .apart = apart, .body = comes_and_goes};
		struct crew given = goes;

		crew_run(&goes, 20);
		given.body = given_out;
		crew_run(&given, 20);
		given.body = given_by_event;
		crew_run(&given, 20);
	}
	crew_run(&leaves, 20);
	return 0;
}
