/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * Groups whose members have no memory together, for some are connected by TCP: who is late, dies or
 * leaves is named, also where there is no room for what is sent last.
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/apart.h"
#include "tests/lib/child.h"
#include "tests/lib/settings.h"

/* ---- late, dead, left ----------------------------------------------------------------------- */

static void be_late(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = apart_join(founder);
	const char *late;

	(void)unused;
	if (i == 1)
		usleep(2 * APART_SHORT * 1000 * (unsigned)actor_slow());
	else
		REFUSED(slmpm_barrier(group, APART_SHORT * actor_slow()), SLMPM_ETIMEOUT, "rank ");
	late = strstr(slmpm_error_detail(), "nothing yet from rank ");
	/* The first one says so; the others, perhaps, that it has. */
	CHECK(i == 1 || !late || (strstr(late, " (tcp://127.0.0.1:") && strstr(late, ") for ")),
	      "%s", slmpm_error_detail());
	apart_stays_broken(founder, group, SLMPM_ETIMEOUT);
}

static int lateness(void *unused)
{
	(void)unused;
	return apart_play(be_late, NULL, -1);
}

static void die(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = apart_join(founder);

	(void)unused;
	if (i == 2) {
		usleep(APART_SHORT * 1000);
		raise(SIGKILL);
	}
	REFUSED(slmpm_barrier(group, PATIENCE), SLMPM_EDEAD, "rank 2 (process ");
	apart_stays_broken(founder, group, SLMPM_EDEAD);
}

static int deaths(void *unused)
{
	(void)unused;
	return apart_play(die, NULL, 2);
}

struct unseen { /* of all processes: who founds comes on when rank 0 has left */
	_Atomic bool connected, left;
	bool founds; /* as a member, in the place of rank 0 */
};

static void await_flag(const _Atomic bool *flag)
{
	while (!atomic_load(flag))
		usleep(1000);
}

/* It alone is connected with rank 2, and leaves at once. */
static void see_and_leave(slmpm_group group, struct unseen *u)
{
	slmpm_peer peer;

	OK(slmpm_group_peer(group, 2, &peer, PATIENCE));
	atomic_store(&u->connected, true);
	circle_breaks(group, -SLMPM_EDEAD, 2);
	OK(slmpm_group_destroy(group));
	atomic_store(&u->left, true);
}

/* The others learn of the death, not of the leaving: they wait for word of why that one does not
 * listen any more. */
static void die_unseen(slmpm_peer founder, int i, void *arg)
{
	struct unseen *u = arg;
	slmpm_group group;
	slmpm_peer peer;

	OK(slmpm_group_join(&group, founder, APART_TAG, PATIENCE));
	if (i == 0 && !u->founds) {
		see_and_leave(group, u);
	} else if (i == 2 - u->founds) {
		(void)slmpm_group_peer(group, 0, &peer, PATIENCE);
		await_flag(&u->connected);
		raise(SIGKILL);
	} else {
		await_flag(&u->left);
		REFUSED(slmpm_barrier(group, PATIENCE), SLMPM_EDEAD, "rank 2 (process ");
		EXPECT(circle_query(group).culprit, 2);
		OK(slmpm_group_destroy(group));
	}
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
}

static int deaths_unseen(void *founds)
{
	struct unseen *u = child_common(sizeof(*u));
	struct circle c = {.apart = APART_ALL};
	slmpm_peer peers[APART_MEMBERS] = {{0}};
	slmpm_group group;
	int others = APART_MEMBERS, dies = 2;

	u->founds = founds != NULL;
	others -= u->founds;
	dies -= u->founds;
	circle_begin(&c, others, die_unseen, u, 40);
	for (int i = 0; i < others; i++)
		peers[i + u->founds] = c.peers[i];
	OK(slmpm_group_create(&group, c.ctx, peers, APART_MEMBERS, APART_TAG, PATIENCE));
	if (u->founds) {
		see_and_leave(group, u);
	} else {
		await_flag(&u->left);
		usleep(50 * 1000);
	}
	EXPECT(circle_wait(&c, dies), -SIGKILL);
	for (int i = 0; i < others; i++)
		if (i != dies)
			actor_hear(c.peers[i], APART_GO);
	for (int i = 0; i < others; i++)
		if (i != dies)
			actor_tell(c.peers[i], APART_DONE);
	if (!u->founds) {
		circle_breaks(group, -SLMPM_EDEAD, 2);
		OK(slmpm_group_destroy(group));
	}
	circle_end(&c);
	return 0;
}

/* None is connected with rank 2, which dies, or leaves and dies: who founds sees its end alone. */
struct unmet {
	bool founds, leaves; /* as a member, in the place of rank 0; rank 2, before it dies */
	_Atomic bool seen;
};

static void find_missing(slmpm_group group, const struct unmet *u)
{
	if (u->founds && !u->leaves) /* without an operation */
		circle_breaks(group, -SLMPM_EDEAD, 2);
	REFUSED(slmpm_barrier(group, PATIENCE), u->leaves ? SLMPM_ECLOSED : SLMPM_EDEAD,
		"rank 2 (process ");
	EXPECT(circle_query(group).culprit, 2);
}

static void die_unmet(slmpm_peer founder, int i, void *arg)
{
	struct unmet *u = arg;
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, APART_TAG, PATIENCE));
	if (i == 2 - u->founds) {
		if (u->leaves)
			OK(slmpm_group_destroy(group));
		raise(SIGKILL);
	}
	await_flag(&u->seen);
	find_missing(group, u);
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
	OK(slmpm_group_destroy(group));
}

static int deaths_unmet(void *arg)
{
	struct unmet *u = child_common(sizeof(*u));
	struct circle c = {.apart = APART_ALL};
	slmpm_peer peers[APART_MEMBERS] = {{0}};
	int others = APART_MEMBERS, dies = 2;
	slmpm_group group;

	*u = *(const struct unmet *)arg;
	others -= u->founds;
	dies -= u->founds;
	circle_begin(&c, others, die_unmet, u, 40);
	for (int i = 0; i < others; i++)
		peers[i + u->founds] = c.peers[i];
	OK(slmpm_group_create(&group, c.ctx, peers, APART_MEMBERS, APART_TAG, PATIENCE));
	EXPECT(slmpm_recv(c.peers[dies], APART_GO, NULL, 0, NULL, PATIENCE), -SLMPM_EDEAD);
	atomic_store(&u->seen, true);
	EXPECT(circle_wait(&c, dies), -SIGKILL);
	if (u->founds)
		find_missing(group, u);
	for (int i = 0; i < others; i++)
		if (i != dies)
			actor_hear(c.peers[i], APART_GO);
	for (int i = 0; i < others; i++)
		if (i != dies)
			actor_tell(c.peers[i], APART_DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* The others sleep in loops of their own, on the context's descriptor. */
static void die_asleep(slmpm_peer founder, int i, void *died)
{
	slmpm_group group = apart_join(founder);

	if (i == 2) {
		usleep(APART_SHORT * 1000);
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
	apart_stays_broken(founder, group, SLMPM_EDEAD);
}

static int deaths_asleep(void *unused)
{
	(void)unused;
	return apart_play(die_asleep, child_common(sizeof(int64_t)), 2);
}

/* Between operations: what it has not done it will not send. */
static void leave(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = apart_join(founder);
	int64_t begun;

	(void)unused;
	OK(slmpm_barrier(group, PATIENCE));
	begun = actor_now_ms();
	if (i == 2) {
		OK(slmpm_group_destroy(group));
		actor_tell(founder, APART_GO);
		actor_hear(founder, APART_DONE);
		return;
	}
	REFUSED(slmpm_barrier(group, PATIENCE), SLMPM_ECLOSED, "rank 2 (process ");
	CHECK(actor_now_ms() - begun < 500 * actor_slow(), "late");
	apart_stays_broken(founder, group, SLMPM_ECLOSED);
}

static int leaves(void *unused)
{
	(void)unused;
	return apart_play(leave, NULL, -1);
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
	slmpm_group group = apart_join(founder);
	struct slmpm_group_info info;
	static char unread[1 << 20];
	slmpm_peer peer = {0};
	slmpm_req req;

	(void)unused;
	for (int r = 0; r < APART_MEMBERS; r++)
		if (r != i)
			OK(slmpm_group_peer(group, r, &peer, PATIENCE));
	OK(slmpm_barrier(group, PATIENCE));
	actor_tell(founder, APART_GO);
	if (i == 1) {
		OK(slmpm_collective_start(group, &broadcast, NULL, &req));
		OK(slmpm_sendv(peer, APART_GO, &(struct slmpm_iov){unread, sizeof(unread)}, 1, NULL,
			       &req));
		REFUSED(slmpm_shut(circle_own, APART_SHORT), SLMPM_ETIMEOUT, "");
		exit(0);
	}
	if (i != 0)
		REFUSED(slmpm_collective(group, &broadcast, PATIENCE), SLMPM_ECLOSED,
			"rank 1 (process ");
	while (!(info = circle_query(group)).status)
		usleep(1000);
	EXPECT(info.status, -SLMPM_ECLOSED);
	EXPECT(info.culprit, 1);
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
	OK(slmpm_group_destroy(group));
}

static int shuts(void *unused)
{
	struct circle c = {.apart = APART_ALL};
	slmpm_group group;

	(void)unused;
	settings_set("SLMPM_COLL_ALGORITHM", "broadcast:chain");
	circle_begin(&c, APART_MEMBERS, shut, NULL, 40);
	OK(slmpm_group_create(&group, c.ctx, c.peers, APART_MEMBERS, APART_TAG, PATIENCE));
	for (int i = 0; i < APART_MEMBERS; i++)
		actor_hear(c.peers[i], APART_GO);
	EXPECT(circle_wait(&c, 1), 0);
	for (int i = 0; i < APART_MEMBERS; i++)
		if (i != 1)
			actor_hear(c.peers[i], APART_GO);
	for (int i = 0; i < APART_MEMBERS; i++)
		if (i != 1)
			actor_tell(c.peers[i], APART_DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

struct half_up { /* of all processes */
	_Atomic bool left;
	int passes;    /* after which rank 0 leaves */
	bool connects; /* it does, and not rank 1 */
	bool shuts;    /* its context, too */
};

/* Each pass takes in what has come, and answers it; then it waits for more. */
static void leave_half_up(slmpm_group group, struct half_up *u)
{
	slmpm_peer peer;

	if (u->connects)
		(void)slmpm_group_peer(group, 1, &peer, 0);
	for (int i = 0; i < u->passes; i++) {
		CHECK(slmpm_progress(circle_own) >= 0, "%s", slmpm_error_detail());
		usleep(10 * 1000);
	}
	if (u->shuts)
		OK(slmpm_shut(circle_own, PATIENCE));
	else
		OK(slmpm_group_destroy(group));
	atomic_store(&u->left, true);
	if (u->shuts)
		exit(0);
}

/* It has left, and not died, wherever their handshake was. */
static void be_left_half_up(slmpm_group group, struct half_up *u)
{
	slmpm_peer peer;
	int rc = u->connects ? 0 : slmpm_group_peer(group, 0, &peer, PATIENCE);

	CHECK(rc == 0 || rc == -SLMPM_ECLOSED, "%d (%s)", rc, slmpm_error_detail());
	for (int after = 0; after < 50; after += atomic_load(&u->left)) {
		CHECK(circle_query(group).status != -SLMPM_EDEAD, "after %d passes it has died",
		      u->passes);
		usleep(1000);
	}
}

static void part_half_up(slmpm_peer founder, int i, void *arg)
{
	struct half_up *u = arg;
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, APART_TAG, PATIENCE));
	if (i == 0)
		leave_half_up(group, u);
	else if (i == 1)
		be_left_half_up(group, u);
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
	if (i)
		OK(slmpm_group_destroy(group));
}

static int leaves_half_up(void *how)
{
	struct half_up *u = child_common(sizeof(*u));
	struct circle c = {.apart = APART_ALL};
	const struct half_up *as = how;
	slmpm_group group;

	u->passes = as->passes;
	u->connects = as->connects;
	u->shuts = as->shuts;
	circle_begin(&c, APART_MEMBERS, part_half_up, u, 40);
	OK(slmpm_group_create(&group, c.ctx, c.peers, APART_MEMBERS, APART_TAG, PATIENCE));
	for (int i = u->shuts; i < APART_MEMBERS; i++)
		actor_hear(c.peers[i], APART_GO);
	for (int i = u->shuts; i < APART_MEMBERS; i++)
		actor_tell(c.peers[i], APART_DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

static void leaves_at_each_step(void)
{
	for (int i = 0; i < 28; i++) {
		struct half_up how = {.passes = i / 4, .connects = i & 1, .shuts = i & 2};

		EXPECT(child_run(leaves_half_up, &how, 60), 0);
	}
}

/* Rank 2 has done its part and leaves; the root comes to what that has sent once rank 1, which is
 * late by more than is waited for messages of one that has left, has done its own. */
static void leave_unread(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = apart_join(founder);
	uint64_t mine = 1, sum = 0;

	(void)unused;
	if (i == 1)
		usleep(1500 * 1000);
	OK(slmpm_reduce(group, &mine, i ? NULL : &sum, 1, SLMPM_UINT64, SLMPM_CALC_SUM, 0,
			PATIENCE));
	CHECK(i || sum == APART_MEMBERS, "%llu", (unsigned long long)sum);
	if (i == 2)
		OK(slmpm_group_destroy(group));
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
	if (i != 2)
		OK(slmpm_group_destroy(group));
}

static int leaves_unread(void *unused)
{
	(void)unused;
	return apart_play(leave_unread, NULL, -1);
}

/* Ranks 0 and 1 have begun, and wait for the others, as rank 1 closes their connection: they make
 * another. */
static void close_amid(slmpm_peer founder, int i, void *arg)
{
	const struct slmpm_coll barrier = {.size = sizeof(barrier), .kind = SLMPM_COLL_BARRIER};
	_Atomic bool *closed = arg;
	struct slmpm_done done;
	slmpm_group group;
	slmpm_peer peer;
	slmpm_req req;

	OK(slmpm_group_join(&group, founder, APART_TAG, PATIENCE));
	if (i > 1)
		await_flag(closed);
	else
		OK(slmpm_group_peer(group, 1 - i, &peer, PATIENCE));
	OK(slmpm_collective_start(group, &barrier, NULL, &req));
	if (i == 1) {
		actor_hear(peer, 1);
		OK(slmpm_close(peer, PATIENCE));
	} else if (i == 0) {
		actor_tell(peer, 1);
		EXPECT(slmpm_recv(peer, 1, NULL, 0, NULL, PATIENCE), -SLMPM_ECLOSED);
		atomic_store(closed, true);
	}
	EXPECT(slmpm_wait(&req, 1, &done, PATIENCE / 2), 0);
	CHECK(done.status == 0, "status %d: %s", done.status, slmpm_error_detail());
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
	OK(slmpm_group_destroy(group));
}

static int closed_amid(void *unused)
{
	(void)unused;
	return apart_play(close_amid, child_common(sizeof(bool)), -1);
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
		rc = slmpm_group_join_start(&unwanted, peer, APART_TAG);
		if (rc == 0)
			OK(slmpm_group_destroy(unwanted));
	}
	EXPECT(rc, -SLMPM_ELIMIT);
}

/* Rank 1 is stopped as rank 0 leaves. */
static void leave_stopped(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = apart_join(founder);
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
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
	if (i)
		OK(slmpm_group_destroy(group));
}

static int left_stopped(void *unused)
{
	(void)unused;
	stopped = child_common(sizeof(*stopped));
	return apart_play(leave_stopped, NULL, -1);
}

/* Rank 0 learns that rank 2 has died, and then by what rank 1, which does not know that, has broken
 * it: those words are not of the death. */
static void end_twice(slmpm_peer founder, int i, void *marks)
{
	volatile pid_t *marked = marks;
	uint64_t words[2] = {0};
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, APART_TAG, PATIENCE));
	OK(slmpm_broadcast(group, words, 1, SLMPM_UINT64, 0, PATIENCE));
	if (i == 0)
		OK(slmpm_broadcast(group, words, 1, SLMPM_UINT64, 0, PATIENCE));
	while (i == 2 && !marked[0])
		usleep(1000);
	marked[i] = getpid();
	if (i == 2) {
		(void)slmpm_close(founder, 0); /* by which rank 1 would learn it */
		raise(SIGKILL);
	}
	while (i == 1 && (!marked[2] || kill(marked[2], 0) == 0))
		usleep(1000);
	if (i == 1) {
		REFUSED(slmpm_broadcast(group, words, 2, SLMPM_UINT64, 0, PATIENCE), SLMPM_EINVAL,
			"operation 2");
		marked[APART_MEMBERS] = 1;
	}
	while (!marked[APART_MEMBERS])
		usleep(1000);
	while (i == 0 && !circle_query(group).status)
		usleep(1000);
	if (i == 0 && slmpm_barrier(group, PATIENCE) != -SLMPM_EINVAL) /* or in the other order */
		CHECK(strstr(slmpm_error_detail(), "has died"), "%s", slmpm_error_detail());
	actor_tell(founder, APART_GO);
	actor_hear(founder, APART_DONE);
	OK(slmpm_group_destroy(group));
}

static int ends_twice(void *unused)
{
	(void)unused;
	return apart_play(end_twice, child_common((APART_MEMBERS + 1) * sizeof(pid_t)), 2);
}

int main(void)
{
	struct unmet unmet[] = {{false, false, false}, {true, false, false}, {false, true, false}};
	bool yes = true;

	EXPECT(child_run(lateness, NULL, 60), 0);
	EXPECT(child_run(deaths, NULL, 60), 0);
	EXPECT(child_run(deaths_unseen, NULL, 60), 0);
	EXPECT(child_run(deaths_unseen, &yes, 60), 0);
	for (int i = 0; i < 3; i++)
		EXPECT(child_run(deaths_unmet, &unmet[i], 60), 0);
	EXPECT(child_run(deaths_asleep, NULL, 60), 0);
	EXPECT(child_run(leaves, NULL, 60), 0);
	EXPECT(child_run(shuts, NULL, 60), 0);
	leaves_at_each_step();
	EXPECT(child_run(leaves_unread, NULL, 60), 0);
	EXPECT(child_run(closed_amid, NULL, 60), 0);
	EXPECT(child_run(left_stopped, NULL, 60), 0);
	EXPECT(child_run(ends_twice, NULL, 60), 0);
	return 0;
}
