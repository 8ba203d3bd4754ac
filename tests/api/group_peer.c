/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 120 */
/* waits */
/*
 * Connections among the members of a group: between any two the same one, whoever asks first, with
 * messages and puts over it; a member that only makes progress; members that close theirs, are
 * stopped, have died or left; and one that pretends to be another.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/circle.h"
#include "tests/lib/settings.h"

#define TAG    5
#define STREAM 3
#define SHORT  200 /* ms: what never comes */
#define MANY   8

enum { GO = 1, DONE };

static uint64_t apart; /* as of struct circle */

static slmpm_peer with(slmpm_group group, int rank)
{
	slmpm_peer peer = {0}, again = {0};

	OK(slmpm_group_peer(group, rank, &peer, PATIENCE));
	OK(slmpm_group_peer(group, rank, &again, 0));
	CHECK(peer.id && peer.id == again.id, "rank %d has two connections", rank);
	return peer;
}

/* Formed by the host, whose members are the others by their numbers. */
static void form(struct circle *c, slmpm_group *group)
{
	OK(slmpm_group_create(group, c->ctx, c->peers, c->n, TAG, PATIENCE));
}

static slmpm_group joined(slmpm_peer founder)
{
	slmpm_group group;

	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	return group;
}

static void all(struct circle *c, int word)
{
	for (int i = 0; i < c->n; i++)
		if (c->pids[i])
			actor_tell(c->peers[i], word);
}

static int play(int n, circle_part *part, int (*host)(struct circle *c, slmpm_group group))
{
	struct circle c = {.apart = apart};
	slmpm_group group;
	int rc = 0;

	circle_begin(&c, n, part, NULL, 40);
	form(&c, &group);
	if (host)
		rc = host(&c, group);
	all(&c, DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return rc;
}

/* ---- all with all --------------------------------------------------------------------------- */

static void say(slmpm_peer to, int own, int rank)
{
	int words[2] = {own, rank};

	OK(slmpm_send(to, STREAM, words, sizeof(words), PATIENCE));
}

static void hear(slmpm_peer from, int own, int rank)
{
	int words[2];

	EXPECT(slmpm_recv(from, STREAM, words, sizeof(words), NULL, PATIENCE), sizeof(words));
	CHECK(words[0] == rank && words[1] == own, "rank %d says %d to %d", rank, words[0],
	      words[1]);
}

/* Into the other's memory, and what it has put into this one's. */
static void put(slmpm_peer to, int own, int rank)
{
	static _Atomic uint64_t places[MANY];
	uint64_t value = (uint64_t)own * 1000 + (uint64_t)rank + 1;
	uint64_t want = (uint64_t)rank * 1000 + (uint64_t)own + 1;
	slmpm_mem mem;
	slmpm_rmem remote;

	OK(slmpm_mem_register(circle_own, &places[rank], 8, SLMPM_WRITE, &mem));
	if (own < rank)
		OK(slmpm_mem_share(mem, to, SLMPM_WRITE, PATIENCE));
	OK(slmpm_mem_accept(to, &remote, PATIENCE));
	if (own > rank)
		OK(slmpm_mem_share(mem, to, SLMPM_WRITE, PATIENCE));
	OK(slmpm_put(remote, 0, &value, sizeof(value), NULL, NULL));
	say(to, own, rank);
	hear(to, own, rank);
	CHECK(places[rank] == want, "rank %d has put %llu", rank, (unsigned long long)places[rank]);
	OK(slmpm_mem_release(remote));
	OK(slmpm_mem_destroy(mem, PATIENCE));
}

static void meet_all(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	slmpm_peer peers[MANY] = {{0}};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	int up;

	(void)unused;
	for (int k = 1; k < MANY; k++) {
		int r = (i + k) % MANY;

		peers[r] = with(group, r);
		say(peers[r], i, r);
	}
	for (int r = 0; r < MANY; r++)
		if (r != i) {
			hear(peers[r], i, r);
			put(peers[r], i, r);
			OK(slmpm_peer_query(peers[r], &info));
			CHECK(info.state == SLMPM_PEER_UP, "state %u", info.state);
		}
	up = actor_events(circle_own, SLMPM_EVENT_UP);
	CHECK(up == MANY, "%d connections, the founder's among them", up);
	if (!apart)
		OK(slmpm_barrier(group, PATIENCE));
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group)); /* they stay */
	for (int r = 0; r < MANY; r++)
		if (r != i)
			say(peers[r], i, r);
	for (int r = 0; r < MANY; r++)
		if (r != i)
			hear(peers[r], i, r);
}

static int all_have_met(struct circle *c, slmpm_group group)
{
	slmpm_peer peer;

	REFUSED(slmpm_group_peer(group, 0, &peer, PATIENCE), SLMPM_ESTATE, "no member");
	for (int i = 0; i < c->n; i++)
		actor_hear(c->peers[i], GO);
	return 0;
}

static int everybody(void *unused)
{
	(void)unused;
	return play(MANY, meet_all, all_have_met);
}

/* ---- who founds is a member; the other only makes progress ---------------------------------- */

static void make_progress(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	slmpm_peer peer;

	(void)unused;
	actor_hear(founder, GO);
	/* Its message has come by then, by a connection that this one has not asked for. */
	OK(slmpm_group_peer(group, 1, &peer, 0));
	CHECK(peer.id != founder.id, "the connection by which it formed");
	hear(peer, i * 2, 1);
	say(peer, i * 2, 1);
	REFUSED(slmpm_group_peer(group, i * 2, &peer, 0), SLMPM_EINVAL, "this process");
	REFUSED(slmpm_group_peer(group, 3, &peer, 0), SLMPM_EINVAL, "rank 3 of 3");
	REFUSED(slmpm_group_peer(group, -1, &peer, 0), SLMPM_EINVAL, "rank -1");
	REFUSED(slmpm_group_peer(group, 1, NULL, 0), SLMPM_EINVAL, "no place");
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int passive(void *unused)
{
	struct circle c = {0};
	slmpm_group group;

	(void)unused;
	circle_begin(&c, 2, make_progress, NULL, 30);
	OK(slmpm_group_create(&group, c.ctx, (slmpm_peer[]){c.peers[0], {0}, c.peers[1]}, 3, TAG,
			      PATIENCE));
	for (int r = 0; r < 3; r += 2) {
		slmpm_peer peer = with(group, r);

		say(peer, 1, r);
		actor_tell(c.peers[r / 2], GO);
		hear(peer, 1, r);
	}
	all(&c, DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* Some are made when they are first needed; what leaks in each round is more. */
static void settled(int before)
{
	for (int k = 0; k < 100 && actor_descriptors() > before; k++) {
		actor_nap(circle_own);
		usleep(10000);
	}
	CHECK(actor_descriptors() <= before + 4, "%d descriptors, %d before", actor_descriptors(),
	      before);
}

/* ---- closed, and made again ----------------------------------------------------------------- */

/* Each in turn closes it, and either asks for the next. */
static void close_often(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	int descriptors = 0;

	(void)unused;
	for (int k = 0; k < 24; k++) {
		slmpm_peer peer = with(group, !i);
		int word = k;

		if (k == 4)
			descriptors = actor_descriptors();
		OK(slmpm_send(peer, STREAM, &word, sizeof(word), PATIENCE));
		EXPECT(slmpm_recv(peer, STREAM, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
		CHECK(word == k, "%d of connection %d", word, k);
		if (k / 2 % 2 == i) { /* the other closes first; what it has sent is there */
			REFUSED(slmpm_recv(peer, STREAM, &word, sizeof(word), NULL, PATIENCE),
				SLMPM_ECLOSED, "");
		}
		OK(slmpm_close(peer, PATIENCE));
		if (k % 2)
			actor_nap(circle_own);
	}
	settled(descriptors);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int closed(void *unused)
{
	(void)unused;
	return play(2, close_often, NULL);
}

/* One side makes progress alone: what has ended without its knowing it is not its to close. */
static void close_alone(slmpm_peer founder, int i, void *asks)
{
	slmpm_group group = joined(founder);

	(void)actor_events(circle_own, SLMPM_EVENT_UP);
	for (int k = 0; i == *(int *)asks && k < 20; k++)
		OK(slmpm_close(with(group, !i), PATIENCE));
	if (i == *(int *)asks)
		actor_tell(founder, GO);
	actor_hear(founder, DONE);
	for (int k = 0; k < 3; k++)
		actor_nap(circle_own);
	EXPECT(actor_events(circle_own, SLMPM_EVENT_UP), 0);
	OK(slmpm_group_destroy(group));
}

static int closed_alone(void *asks)
{
	struct circle c = {0};
	slmpm_group group;

	circle_begin(&c, 2, close_alone, asks, 30);
	form(&c, &group);
	actor_hear(c.peers[*(int *)asks], GO);
	all(&c, DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* ---- stopped, dead, left -------------------------------------------------------------------- */

static void lose_some(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	slmpm_peer peer;

	(void)unused;
	if (i == 1) { /* asked for before that */
		actor_hear(founder, DONE);
		return;
	}
	if (i == 2)
		actor_hear(founder, GO);
	if (i == 2)
		raise(SIGKILL);
	if (i == 3) {
		actor_hear(founder, GO);
		OK(slmpm_group_destroy(group));
		actor_tell(founder, GO);
		actor_hear(founder, DONE);
		return;
	}
	actor_hear(founder, GO); /* rank 1 is stopped, 2 dead, 3 has left */
	REFUSED(slmpm_group_peer(group, 2, &peer, PATIENCE), SLMPM_EDEAD, "rank 2 (process");
	REFUSED(slmpm_group_peer(group, 3, &peer, PATIENCE), SLMPM_ECLOSED, "rank 3 (process");
	REFUSED(slmpm_group_peer(group, 1, &peer, 0), SLMPM_EAGAIN, "rank 1");
	REFUSED(slmpm_group_peer(group, 1, &peer, SHORT), SLMPM_ETIMEOUT, "rank 1");
	if (i == 0)
		say(with(group, 4), 0, 4);
	else
		hear(with(group, 0), 4, 0);
	actor_tell(founder, GO);
	(void)with(group, 1); /* it goes on */
	actor_tell(founder, GO);
	actor_hear(founder, DONE);
	CHECK(circle_query(group).status, "not broken");
	OK(slmpm_group_destroy(group));
}

static int lost(struct circle *c, slmpm_group group)
{
	(void)group;
	actor_tell(c->peers[2], GO);
	EXPECT(circle_wait(c, 2), -SIGKILL);
	actor_tell(c->peers[3], GO);
	actor_hear(c->peers[3], GO);
	CHECK(kill(c->pids[1], SIGSTOP) == 0, "stop");
	actor_await_state(c->pids[1], "T");
	for (int i = 0; i < 5; i += 4)
		actor_tell(c->peers[i], GO);
	for (int i = 0; i < 5; i += 4)
		actor_hear(c->peers[i], GO);
	CHECK(kill(c->pids[1], SIGCONT) == 0, "go on");
	for (int i = 0; i < 5; i += 4)
		actor_hear(c->peers[i], GO);
	return 0;
}

static int losses(void *unused)
{
	(void)unused;
	return play(5, lose_some, lost);
}

/* It dies while it is waited for, for as long as that takes. */
static void die_late(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	slmpm_peer peer;

	(void)unused;
	actor_hear(founder, GO);
	if (i != 1)
		REFUSED(slmpm_group_peer(group, 1, &peer, i ? -2 : -1), SLMPM_EDEAD,
			"rank 1 (process");
	actor_hear(founder, DONE);
}

static int kill_stopped(struct circle *c, slmpm_group group)
{
	(void)group;
	CHECK(kill(c->pids[1], SIGSTOP) == 0, "stop");
	actor_await_state(c->pids[1], "T");
	actor_tell(c->peers[0], GO);
	actor_tell(c->peers[2], GO);
	usleep(SHORT * 1000);
	CHECK(kill(c->pids[1], SIGKILL) == 0, "kill");
	EXPECT(circle_wait(c, 1), -SIGKILL);
	return 0;
}

static int dies(void *unused)
{
	(void)unused;
	return play(3, die_late, kill_stopped);
}

/* Its bell goes before its process does. */
static void close_bell(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	slmpm_peer peer;

	(void)unused;
	OK(slmpm_barrier(group, PATIENCE));
	if (i == 1) {
		CHECK(syscall(SYS_close_range, 3, ~0u, 0) == 0, "close");
		usleep(50000);
		(void)raise(SIGKILL);
	}
	usleep(20000);
	REFUSED(slmpm_group_peer(group, 1, &peer, PATIENCE), SLMPM_EDEAD, "rank 1 (process");
	actor_hear(founder, DONE);
}

static int await_dead(struct circle *c, slmpm_group group)
{
	(void)group;
	EXPECT(circle_wait(c, 1), -SIGKILL);
	return 0;
}

static int bell_closed(void *unused)
{
	(void)unused;
	return play(2, close_bell, await_dead);
}

/* ---- a ring that is lost -------------------------------------------------------------------- */

static int swallow; /* rings that say who rings, without a socket: so many */

/* The library's are these, too. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (swallow && !msg->msg_controllen && msg->msg_iovlen == 1 &&
	    msg->msg_iov->iov_len == sizeof(uint32_t)) {
		swallow--;
		return sizeof(uint32_t);
	}
	return syscall(SYS_sendmsg, fd, msg, flags);
}

/* Rank 0 makes it, and is in a barrier meanwhile. */
static void lose_rings(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);

	(void)unused;
	OK(slmpm_barrier(group, PATIENCE));
	if (i == 1) {
		swallow = 2;
		(void)with(group, 0);
		CHECK(!swallow, "%d rings were not rung", swallow);
	}
	OK(slmpm_barrier(group, PATIENCE));
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int rings_lost(void *unused)
{
	(void)unused;
	return play(2, lose_rings, NULL);
}

/* ---- several threads ------------------------------------------------------------------------ */

#define THREADS 3

struct asking {
	slmpm_group group;
	int other;
	slmpm_peer got;
};

static void *ask_with(void *arg)
{
	struct asking *a = arg;

	OK(slmpm_group_peer(a->group, a->other, &a->got, PATIENCE));
	return NULL;
}

static void ask_at_once(slmpm_peer founder, int i, void *unused)
{
	struct asking a[THREADS];
	pthread_t threads[THREADS];
	slmpm_group group = joined(founder);

	(void)unused;
	for (int k = 0; k < THREADS; k++) {
		a[k] = (struct asking){.group = group, .other = !i};
		CHECK(pthread_create(&threads[k], NULL, ask_with, &a[k]) == 0, "thread");
	}
	for (int k = 0; k < THREADS; k++) {
		CHECK(pthread_join(threads[k], NULL) == 0, "join");
		CHECK(a[k].got.id == a[0].got.id, "another one for thread %d", k);
	}
	say(a[0].got, i, !i);
	hear(a[0].got, i, !i);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int threads_ask(void *unused)
{
	struct circle c = {.flags = SLMPM_THREADS};
	slmpm_group group;

	(void)unused;
	circle_begin(&c, 2, ask_at_once, NULL, 30);
	form(&c, &group);
	all(&c, DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* ---- one that lies -------------------------------------------------------------------------- */

/* Words and descriptors by all bells that this process holds. */
static void ring_all(uint32_t rank, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} space;

	for (int at = 3; at < 256; at++) {
		struct iovec iov = {&rank, sizeof(rank)};
		struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
		int type = 0;
		socklen_t size = sizeof(type);

		if (getsockopt(at, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_DGRAM)
			continue;
		if (fd >= 0) {
			struct cmsghdr *c = &space.align;

			memset(&space, 0, sizeof(space));
			msg.msg_control = space.room;
			msg.msg_controllen = sizeof(space.room);
			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(sizeof(fd));
			memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		}
		(void)!sendmsg(at, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

static void lie(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group = joined(founder);
	int ends[2], pipes[2], descriptors = actor_descriptors();

	(void)unused;
	(void)actor_events(circle_own, SLMPM_EVENT_UP);
	if (i == 2) {
		CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 &&
			      pipe2(pipes, O_CLOEXEC) == 0,
		      "descriptors");
		for (uint32_t k = 0; k < 300; k++)
			ring_all(k % 5 == 4 ? UINT32_MAX - k : k % 5, k % 3 == 0 ? ends[0] :
								      k % 3 == 1 ? pipes[0] :
										   -1);
		for (int k = 0; k < 2; k++) {
			close(ends[k]);
			close(pipes[k]);
		}
		actor_tell(founder, GO);
	} else {
		actor_hear(founder, GO);
		settled(descriptors);
		EXPECT(actor_events(circle_own, SLMPM_EVENT_UP), 0);
		actor_tell(founder, GO);
		actor_hear(founder, GO);
		if (i == 0)
			say(with(group, 1), 0, 1);
		else
			hear(with(group, 0), 1, 0);
		EXPECT(actor_events(circle_own, SLMPM_EVENT_UP), 1);
		actor_tell(founder, GO);
	}
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int liar(struct circle *c, slmpm_group group)
{
	(void)group;
	actor_hear(c->peers[2], GO);
	for (int i = 0; i < 2; i++)
		actor_tell(c->peers[i], GO);
	for (int i = 0; i < 2; i++)
		actor_hear(c->peers[i], GO);
	for (int i = 0; i < 2; i++)
		actor_tell(c->peers[i], GO);
	for (int i = 0; i < 2; i++)
		actor_hear(c->peers[i], GO);
	return 0;
}

static int lies(void *unused)
{
	(void)unused;
	return play(3, lie, liar);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{NULL, NULL}};

	actor_begin(argc, argv, roles);
	EXPECT(child_run(everybody, NULL, 60), 0);
	EXPECT(child_run(passive, NULL, 60), 0);
	EXPECT(child_run(closed, NULL, 60), 0);
	for (int k = 0; k < 2; k++) { /* all over TCP, and some */
		apart = k ? 0x5a : 0xff;
		EXPECT(child_run(everybody, NULL, 60), 0);
		EXPECT(child_run(closed, NULL, 60), 0);
		apart = 0;
	}
	for (int asks = 0; asks < 2; asks++)
		EXPECT(child_run(closed_alone, &asks, 60), 0);
	EXPECT(child_run(losses, NULL, 60), 0);
	EXPECT(child_run(dies, NULL, 60), 0);
	EXPECT(child_run(bell_closed, NULL, 60), 0);
	EXPECT(child_run(rings_lost, NULL, 60), 0);
	for (int k = 0; k < 5; k++)
		EXPECT(child_run(threads_ask, NULL, 60), 0);
	EXPECT(child_run(lies, NULL, 60), 0);
	return 0;
}
