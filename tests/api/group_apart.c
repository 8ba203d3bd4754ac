/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * Groups whose members have no memory together, for some are connected by TCP: what they disagree
 * in, who is late, dies or leaves is named; unauthenticated connections to where a member listens;
 * groups that do not form.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/crew.h"
#include "tests/lib/settings.h"

#define TAG   6
#define SHORT 300 /* ms: what never comes */
#define MANY  4
#define CROWD 100

enum { GO = 1, DONE };

static const uint64_t all_apart = 0xff;

static slmpm_group joined(slmpm_peer founder)
{
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	OK(slmpm_barrier(group, PATIENCE));
	return group;
}

static int play(circle_part *part, void *arg, int dies)
{
	struct circle c = {.apart = all_apart};
	slmpm_group group;

	circle_begin(&c, MANY, part, arg, 40);
	OK(slmpm_group_create(&group, c.ctx, c.peers, MANY, TAG, PATIENCE));
	if (dies >= 0)
		EXPECT(circle_wait(&c, dies), -SIGKILL);
	for (int i = 0; i < MANY; i++)
		if (i != dies)
			actor_hear(c.peers[i], GO);
	for (int i = 0; i < MANY; i++)
		if (i != dies)
			actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* It is broken for all, and stays so. */
static void stays_broken(slmpm_peer founder, slmpm_group group, int error)
{
	struct slmpm_group_info info;

	REFUSED(slmpm_barrier(group, PATIENCE), error, "rank ");
	info = circle_query(group);
	CHECK(info.status == -error && info.begun == info.done, "status %d", info.status);
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

/* ---- they disagree -------------------------------------------------------------------------- */

struct dispute {
	uint32_t kind, type, op;
	int root;
	uint64_t count;
	const char *text;
};

static void dispute(slmpm_peer founder, int i, void *arg)
{
	const struct dispute *d = arg;
	slmpm_group group = joined(founder);
	uint64_t from[8] = {0}, to[8 * MANY] = {0};
	int rc;

	if (i == 1)
		rc = slmpm_collect(group, d->kind, from, to, d->count, d->type, d->op, d->root,
				   PATIENCE);
	else
		rc = slmpm_allreduce(group, from, to, 4, SLMPM_UINT64, SLMPM_CALC_SUM, PATIENCE);
	if (rc == -SLMPM_EINVAL)
		CHECK(strstr(slmpm_error_detail(), "rank 1 (") &&
			      strstr(slmpm_error_detail(), d->text),
		      "%s", slmpm_error_detail());
	/* Who was through before has done its part. */
	CHECK(rc == 0 || rc == -SLMPM_EINVAL, "%d: %s", rc, slmpm_error_detail());
	stays_broken(founder, group, SLMPM_EINVAL);
}

static int disputes(void *arg)
{
	return play(dispute, arg, -1);
}

/* What the one that is in a barrier sends goes to a member which waits for the root alone, and the
 * root gets nothing of it: one of those two names it. */
static void dispute_aside(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	uint64_t from[4] = {0}, to[4] = {0};
	int rc;

	(void)unused;
	if (i == 1)
		rc = slmpm_barrier(group, PATIENCE);
	else
		rc = slmpm_allreduce(group, from, to, 4, SLMPM_UINT64, SLMPM_CALC_SUM, PATIENCE);
	CHECK(rc == -SLMPM_EINVAL && strstr(slmpm_error_detail(), "rank "), "%d: %s", rc,
	      slmpm_error_detail());
	if (strstr(slmpm_error_detail(), " does "))
		CHECK(strstr(slmpm_error_detail(), "barrier") &&
			      strstr(slmpm_error_detail(), "allreduce"),
		      "%s", slmpm_error_detail());
	stays_broken(founder, group, SLMPM_EINVAL);
}

static int disputed_aside(void *unused)
{
	(void)unused;
	settings_set("SLMPM_COLL_ALGORITHM", "allreduce:star");
	return play(dispute_aside, NULL, -1);
}

/* ---- the root alone knows all counts --------------------------------------------------------- */

static void scatter_and_gather(slmpm_peer founder, int i, void *unused)
{
	static const uint64_t counts[MANY] = {3, 0, 2, 1};
	slmpm_group group = joined(founder);
	uint64_t all[6] = {10, 11, 12, 13, 14, 15}, block[3] = {0}, again[6] = {0};
	struct slmpm_coll c = {.size = sizeof(c),
			       .kind = SLMPM_COLL_SCATTER,
			       .type = SLMPM_UINT64,
			       .root = 2,
			       .from = all,
			       .to = block,
			       .counts = i == 2 ? counts : NULL,
			       .count = counts[i]};

	(void)unused;
	OK(slmpm_collective(group, &c, PATIENCE));
	c.kind = SLMPM_COLL_GATHER;
	c.from = block;
	c.to = again;
	OK(slmpm_collective(group, &c, PATIENCE));
	CHECK(i != 2 || memcmp(again, all, sizeof(all)) == 0, "what comes back is not what went");
	OK(slmpm_barrier(group, PATIENCE));
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int root_counts(void *unused)
{
	(void)unused;
	return play(scatter_and_gather, NULL, -1);
}

/* What rank 1 sends to rank 0 is LESS than that one expects, or more. */
static void dispute_blocks(slmpm_peer founder, int i, void *less)
{
	uint64_t from[2 * MANY] = {0}, to[2 * MANY] = {0};
	uint64_t counts[MANY] = {1, 1, 1, 1}, to_counts[MANY] = {1, 1, 1, 1};
	const struct slmpm_coll alltoall = {.size = sizeof(alltoall),
					    .kind = SLMPM_COLL_ALLTOALL,
					    .type = SLMPM_UINT64,
					    .from = from,
					    .to = to,
					    .counts = counts,
					    .to_counts = to_counts};
	slmpm_group group = joined(founder);
	int rc;

	if (i == 1)
		counts[0] = less ? 1 : 2;
	if (i == 0)
		to_counts[1] = less ? 2 : 1;
	rc = slmpm_collective(group, &alltoall, PATIENCE);
	if (i == 0)
		CHECK(rc == -SLMPM_EINVAL &&
			      strstr(slmpm_error_detail(),
				     less ? "sends is shorter: count 1, at rank 0 (" :
					    "sends is longer: count 2, at rank 0 (") &&
			      strstr(slmpm_error_detail(), less ? ") count 2" : ") count 1"),
		      "%d: %s", rc, slmpm_error_detail());
	CHECK(rc == 0 || rc == -SLMPM_EINVAL, "%d: %s", rc, slmpm_error_detail());
	stays_broken(founder, group, SLMPM_EINVAL);
}

static int disputed_blocks(void *less)
{
	return play(dispute_blocks, less, -1);
}

/* ---- late, dead, left ----------------------------------------------------------------------- */

static void be_late(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	const char *late;

	(void)unused;
	if (i == 1)
		usleep(2 * SHORT * 1000 * (unsigned)actor_slow());
	else
		REFUSED(slmpm_barrier(group, SHORT * actor_slow()), SLMPM_ETIMEOUT, "rank ");
	late = strstr(slmpm_error_detail(), "nothing yet from rank ");
	/* The first one says so; the others, perhaps, that it has. */
	CHECK(i == 1 || !late || (strstr(late, " (tcp://127.0.0.1:") && strstr(late, ") for ")),
	      "%s", slmpm_error_detail());
	stays_broken(founder, group, SLMPM_ETIMEOUT);
}

static int lateness(void *unused)
{
	(void)unused;
	return play(be_late, NULL, -1);
}

static void die(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);

	(void)unused;
	if (i == 2) {
		usleep(SHORT * 1000);
		raise(SIGKILL);
	}
	REFUSED(slmpm_barrier(group, PATIENCE), SLMPM_EDEAD, "rank 2 (process ");
	stays_broken(founder, group, SLMPM_EDEAD);
}

static int deaths(void *unused)
{
	(void)unused;
	return play(die, NULL, 2);
}

/* The others sleep in loops of their own, on the context's descriptor. */
static void die_asleep(slmpm_peer founder, int i, void *died)
{
	slmpm_group group = joined(founder);

	if (i == 2) {
		usleep(SHORT * 1000);
		*(volatile int64_t *)died = actor_now_ms();
		raise(SIGKILL);
	}
	while (circle_query(group).status == 0) {
		struct pollfd p = {.fd = slmpm_fd(circle_own), .events = POLLIN};

		if (slmpm_arm(circle_own) == 0)
			EXPECT(poll(&p, 1, PATIENCE), 1);
		(void)slmpm_progress(circle_own);
	}
	CHECK(actor_now_ms() - *(int64_t *)died < 1000 * actor_slow(), "late");
	stays_broken(founder, group, SLMPM_EDEAD);
}

static int deaths_asleep(void *unused)
{
	(void)unused;
	return play(die_asleep, child_common(sizeof(int64_t)), 2);
}

/* Between operations: what it has not done it will not send. */
static void leave(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	int64_t begun;

	(void)unused;
	OK(slmpm_barrier(group, PATIENCE));
	begun = actor_now_ms();
	if (i == 2) {
		OK(slmpm_group_destroy(group));
		actor_tell(founder, GO);
		actor_hear(founder, DONE);
		return;
	}
	REFUSED(slmpm_barrier(group, PATIENCE), SLMPM_ECLOSED, "rank 2 (process ");
	CHECK(actor_now_ms() - begun < 500 * actor_slow(), "late");
	stays_broken(founder, group, SLMPM_ECLOSED);
}

static int leaves(void *unused)
{
	(void)unused;
	return play(leave, NULL, -1);
}

/* Rank 1 shuts its context while it waits for the root, which has yet to begin: it closes the
 * connections one by one, and is the one that all name. That with rank 3, which does not read what
 * it is sent, lasts. */
static void shut(slmpm_peer founder, int i, void *unused)
{
	uint64_t word = 0;
	const struct slmpm_coll broadcast = {.size = sizeof(broadcast),
					     .kind = SLMPM_COLL_BROADCAST,
					     .type = SLMPM_UINT64,
					     .to = &word,
					     .count = 1};
	slmpm_group group = joined(founder);
	struct slmpm_group_info info;
	static char unread[1 << 20];
	slmpm_peer peer = {0};
	slmpm_req req;

	(void)unused;
	for (int r = 0; r < MANY; r++)
		if (r != i)
			OK(slmpm_group_peer(group, r, &peer, PATIENCE));
	OK(slmpm_barrier(group, PATIENCE));
	actor_tell(founder, GO);
	if (i == 1) {
		OK(slmpm_collective_start(group, &broadcast, NULL, &req));
		OK(slmpm_sendv(peer, GO, &(struct slmpm_iov){unread, sizeof(unread)}, 1, NULL,
			       &req));
		REFUSED(slmpm_shut(circle_own, SHORT), SLMPM_ETIMEOUT, "");
		exit(0);
	}
	if (i != 0)
		REFUSED(slmpm_collective(group, &broadcast, PATIENCE), SLMPM_ECLOSED,
			"rank 1 (process ");
	while (!(info = circle_query(group)).status)
		usleep(1000);
	EXPECT(info.status, -SLMPM_ECLOSED);
	EXPECT(info.culprit, 1);
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int shuts(void *unused)
{
	struct circle c = {.apart = all_apart};
	slmpm_group group;

	(void)unused;
	settings_set("SLMPM_COLL_ALGORITHM", "broadcast:chain");
	circle_begin(&c, MANY, shut, NULL, 40);
	OK(slmpm_group_create(&group, c.ctx, c.peers, MANY, TAG, PATIENCE));
	for (int i = 0; i < MANY; i++)
		actor_hear(c.peers[i], GO);
	EXPECT(circle_wait(&c, 1), 0);
	for (int i = 0; i < MANY; i++)
		if (i != 1)
			actor_hear(c.peers[i], GO);
	for (int i = 0; i < MANY; i++)
		if (i != 1)
			actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* Rank 2 has done its part and leaves; the root comes to what that has sent once rank 1, which is
 * late by more than is waited for messages of one that has left, has done its own. */
static void leave_unread(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	uint64_t mine = 1, sum = 0;

	(void)unused;
	if (i == 1)
		usleep(1500 * 1000);
	OK(slmpm_reduce(group, &mine, i ? NULL : &sum, 1, SLMPM_UINT64, SLMPM_CALC_SUM, 0,
			PATIENCE));
	CHECK(i || sum == MANY, "%llu", (unsigned long long)sum);
	if (i == 2)
		OK(slmpm_group_destroy(group));
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	if (i != 2)
		OK(slmpm_group_destroy(group));
}

static int leaves_unread(void *unused)
{
	(void)unused;
	return play(leave_unread, NULL, -1);
}

/* ---- unauthenticated connections ------------------------------------------------------------ */

/* The port of the Nth one that listens in this process. */
static uint16_t own_port(int n)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_in at;
		socklen_t size = sizeof(int), room = sizeof(at);
		int listens = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
		    getsockname(fd, (struct sockaddr *)&at, &room) == 0 &&
		    at.sin_family == AF_INET && n-- == 0)
			return ntohs(at.sin_port);
	}
	return 0;
}

static void be_found(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	slmpm_ctx other;
	slmpm_peer peer;
	char url[100];
	int up;

	(void)unused;
	(void)i;
	up = actor_events(circle_own, SLMPM_EVENT_UP);
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%u#0123456789abcdef0123456789abcdef",
		 own_port(0));
	OK(slmpm_open(&other, &(struct slmpm_options){.size = sizeof(struct slmpm_options),
						      .flags = SLMPM_THREADS}));
	/* Nothing answers but by this thread. */
	REFUSED(slmpm_connect(&peer, other, url, 100), SLMPM_ETIMEOUT, "");
	for (int k = 0; k < 3; k++)
		actor_nap(circle_own);
	OK(slmpm_shut(other, PATIENCE));
	up = actor_events(circle_own, SLMPM_EVENT_UP);
	CHECK(up == 0, "%d unauthenticated", up);
	OK(slmpm_barrier(group, PATIENCE));
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int unauthenticated(void *unused)
{
	(void)unused;
	return play(be_found, NULL, -1);
}

static int refused; /* lines of the log */

static void count_refused(int level, const char *text, void *unused)
{
	(void)unused;
	if (!strstr(text, "too many handshakes"))
		return;
	CHECK(level > SLMPM_LOG_WARN, "a warning: %s", text);
	refused++;
}

/* More than may be amid their handshakes: they say nothing. */
static void come_at_once(int *fds)
{
	for (int i = 0; i < CROWD; i++) {
		struct sockaddr_in at = {.sin_family = AF_INET,
					 .sin_port = htons(own_port(i % CREW_GROUPS)),
					 .sin_addr = {htonl(INADDR_LOOPBACK)}};

		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		OK(connect(fds[i], (struct sockaddr *)&at, sizeof(at)));
	}
}

/* At each of the groups of one process: there is a line for all of those. */
static void crowd(const struct crew *crew, int rank)
{
	const int64_t begun = actor_now_ms();
	int fds[CROWD];

	slmpm_log(SLMPM_LOG_INFO, rank == 1 ? count_refused : NULL, NULL);
	while (rank == 1 && !refused) {
		come_at_once(fds);
		for (int i = 0; i < 3; i++)
			actor_nap(crew->ctx);
		for (int i = 0; i < CROWD; i++)
			close(fds[i]);
	}
	CHECK(refused <= 1 + (actor_now_ms() - begun) / 1000, "%d lines", refused);
	OK(slmpm_barrier(crew->group[0], PATIENCE));
}

/* ---- what is sent last when there is no room ------------------------------------------------ */

#define FULL 2000 /* more than sockets take that have as little room as they can have */

static pid_t *stopped;

static void have_little_room(int option)
{
	for (int fd = 0; fd < 64; fd++)
		(void)setsockopt(fd, SOL_SOCKET, option, &(int){1}, sizeof(int));
}

/* By joins that are given up, until no more of them may wait for room. */
static void fill(slmpm_peer peer)
{
	slmpm_group unwanted;
	int rc = 0, n = 0;

	while (rc == 0 && n++ < FULL) {
		rc = slmpm_group_join_start(&unwanted, peer, TAG);
		if (rc == 0)
			OK(slmpm_group_destroy(unwanted));
	}
	EXPECT(rc, -SLMPM_ELIMIT);
}

/* Rank 1 is stopped as rank 0 leaves. */
static void leave_stopped(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	slmpm_peer peer;

	(void)unused;
	if (i == 0) {
		OK(slmpm_group_peer(group, 1, &peer, PATIENCE));
		have_little_room(SO_SNDBUF);
	}
	if (i == 1)
		have_little_room(SO_RCVBUF);
	OK(slmpm_barrier(group, PATIENCE));
	if (i == 1) {
		*stopped = getpid();
		raise(SIGSTOP);
		circle_breaks(group, -SLMPM_ECLOSED, 0);
	}
	if (i == 0) {
		while (!*(volatile pid_t *)stopped)
			usleep(1000);
		actor_await_state(*stopped, "T");
		fill(peer);
		OK(slmpm_group_destroy(group));
		OK(kill(*stopped, SIGCONT));
	}
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	if (i)
		OK(slmpm_group_destroy(group));
}

static int left_stopped(void *unused)
{
	(void)unused;
	stopped = child_common(sizeof(*stopped));
	return play(leave_stopped, NULL, -1);
}

/* Rank 0 learns that rank 2 has died, and then by what rank 1, which does not know that, has broken
 * it: those words are not of the death. */
static void end_twice(slmpm_peer founder, int i, void *marks)
{
	volatile pid_t *marked = marks;
	uint64_t words[2] = {0};
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	OK(slmpm_broadcast(group, words, 1, SLMPM_UINT64, 0, PATIENCE));
	if (i == 0)
		OK(slmpm_broadcast(group, words, 1, SLMPM_UINT64, 0, PATIENCE));
	while (i == 2 && !marked[0])
		usleep(1000);
	marked[i] = getpid();
	if (i == 2)
		raise(SIGKILL);
	while (i == 1 && (!marked[2] || kill(marked[2], 0) == 0))
		usleep(1000);
	if (i == 1) {
		REFUSED(slmpm_broadcast(group, words, 2, SLMPM_UINT64, 0, PATIENCE), SLMPM_EINVAL,
			"operation 2");
		marked[MANY] = 1;
	}
	while (!marked[MANY])
		usleep(1000);
	while (i == 0 && !circle_query(group).status)
		usleep(1000);
	if (i == 0 && slmpm_barrier(group, PATIENCE) != -SLMPM_EINVAL) /* or in the other order */
		CHECK(strstr(slmpm_error_detail(), "has died"), "%s", slmpm_error_detail());
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int ends_twice(void *unused)
{
	(void)unused;
	return play(end_twice, child_common((MANY + 1) * sizeof(pid_t)), 2);
}

/* ---- it does not form ----------------------------------------------------------------------- */

static void join_but_one(slmpm_peer founder, int i, void *dies)
{
	slmpm_group group;

	if (i == 1 && dies) {
		usleep(SHORT * 1000);
		raise(SIGKILL);
	}
	if (i != 1)
		REFUSED(slmpm_group_join(&group, founder, TAG, PATIENCE),
			dies ? SLMPM_EDEAD : SLMPM_ETIMEOUT, "rank 1 (");
	actor_hear(founder, DONE);
}

static int not_formed(void *dies)
{
	struct circle c = {.apart = all_apart};
	slmpm_group group;

	circle_begin(&c, MANY, join_but_one, dies, 40);
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, MANY, TAG,
				   dies ? PATIENCE : SHORT * actor_slow()),
		dies ? SLMPM_EDEAD : SLMPM_ETIMEOUT, "rank 1 (");
	for (int i = 0; i < MANY; i++)
		if (i != 1 || !dies)
			actor_tell(c.peers[i], DONE);
	if (dies)
		EXPECT(circle_wait(&c, 1), -SIGKILL);
	circle_end(&c);
	return 0;
}

/* All but rank 1, which stops once it has joined, have the same timeout; that of rank 0 has begun
 * first. None of those that are there is named. */
static void stop_joined(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;

	(void)unused;
	if (i == 1) {
		OK(slmpm_group_join_start(&group, founder, TAG));
		for (int k = 0; k < 20; k++)
			(void)slmpm_progress(circle_own);
		actor_tell(founder, GO);
		pause();
	}
	actor_hear(founder, GO);
	REFUSED(slmpm_group_join(&group, founder, TAG, SHORT * actor_slow()), SLMPM_ETIMEOUT, "");
	actor_hear(founder, DONE);
}

static int stopped_joined(void *unused)
{
	struct circle c = {.apart = all_apart};
	slmpm_group group;

	(void)unused;
	circle_begin(&c, MANY, stop_joined, NULL, 40);
	actor_hear(c.peers[1], GO);
	for (int i = 0; i < MANY; i++)
		if (i != 1)
			actor_tell(c.peers[i], GO);
	usleep(5000);
	REFUSED(slmpm_group_create(&group, c.ctx, c.peers, MANY, TAG, SHORT * actor_slow()),
		SLMPM_ETIMEOUT, "rank 1 (");
	for (int i = 0; i < MANY; i++)
		if (i != 1)
			actor_tell(c.peers[i], DONE);
	(void)kill(c.pids[1], SIGKILL);
	EXPECT(circle_wait(&c, 1), -SIGKILL);
	circle_end(&c);
	return 0;
}

int main(void)
{
	static struct dispute all[] = {
		{SLMPM_COLL_ALLREDUCE, SLMPM_DOUBLE, SLMPM_CALC_SUM, 0, 4, "double"},
		{SLMPM_COLL_ALLREDUCE, SLMPM_UINT64, SLMPM_CALC_MAX, 0, 4, "max"},
		{SLMPM_COLL_ALLREDUCE, SLMPM_UINT64, SLMPM_CALC_SUM, 0, 3, "count 3"},
		{SLMPM_COLL_ALLREDUCE, SLMPM_UINT64, SLMPM_CALC_SUM, 0, 8, "count 8"},
		{SLMPM_COLL_BARRIER, 0, 0, 0, 0, "barrier"},
		{SLMPM_COLL_ALLTOALL, SLMPM_UINT64, 0, 0, 1, "alltoall"},
	};
	const struct crew crowded = {
		.members = 2, .groups = CREW_GROUPS, .apart = all_apart, .body = crowd};
	bool yes = true;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		EXPECT(child_run(disputes, &all[i], 60), 0);
	EXPECT(child_run(disputed_aside, NULL, 60), 0);
	EXPECT(child_run(root_counts, NULL, 60), 0);
	EXPECT(child_run(disputed_blocks, NULL, 60), 0);
	EXPECT(child_run(disputed_blocks, &yes, 60), 0);
	EXPECT(child_run(lateness, NULL, 60), 0);
	EXPECT(child_run(deaths, NULL, 60), 0);
	EXPECT(child_run(deaths_asleep, NULL, 60), 0);
	EXPECT(child_run(leaves, NULL, 60), 0);
	EXPECT(child_run(shuts, NULL, 60), 0);
	EXPECT(child_run(leaves_unread, NULL, 60), 0);
	EXPECT(child_run(left_stopped, NULL, 60), 0);
	EXPECT(child_run(ends_twice, NULL, 60), 0);
	EXPECT(child_run(unauthenticated, NULL, 60), 0);
	crew_run(&crowded, 60);
	EXPECT(child_run(not_formed, NULL, 60), 0);
	EXPECT(child_run(not_formed, &yes, 60), 0);
	EXPECT(child_run(stopped_joined, NULL, 60), 0);
	return 0;
}
