/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who founds a group passes several members in a packet to those that offer to take that, and one
 * in each to the others; and a member takes either.
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <slmpm_group.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/raw_group.h"
#include "tests/lib/test.h"

#define SIZE  8
#define OLDER (WIRE_FEATURE_GROUP | WIRE_FEATURE_LOCAL)
#define NEWER (OLDER | WIRE_FEATURE_MEMBERS)

static char name[48], url[64];

static void connect_with(struct raw_peer *p, uint64_t features)
{
	raw_begin(p, raw_connect(name));
	p->hello.features = LITTLE_64(features);
	raw_steps(p, RAW_HELLO, RAW_UP);
}

static slmpm_listener listen_here(const char *what)
{
	slmpm_listener l;

	snprintf(name, sizeof(name), "members-%s-%d", what, (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", name);
	OK(slmpm_listen(&l, (slmpm_ctx){0}, url));
	return l;
}

/* ---- who founds ------------------------------------------------------------------------------ */

/* The next packet, of a member: how many descriptors it has. */
static int take_packet(struct raw_peer *p, struct wire_group *g)
{
	char space[CMSG_SPACE(64 * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = g, .iov_len = sizeof(*g)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space,
			     .msg_controllen = sizeof(space)};
	struct pollfd ready = {.fd = p->fd, .events = POLLIN};
	const struct cmsghdr *c;
	ssize_t came;
	size_t n;

	do { /* bells come in between */
		CHECK(poll(&ready, 1, PATIENCE) == 1, "nothing comes");
		msg.msg_controllen = sizeof(space);
		came = recvmsg(p->fd, &msg, MSG_CMSG_CLOEXEC);
	} while (came == 1);
	CHECK(came == sizeof(*g) && LITTLE_32(g->head.type) == WIRE_GROUP &&
		      LITTLE_32(g->step) == GROUP_MEMBER,
	      "no member comes: %zd bytes", came);
	c = CMSG_FIRSTHDR(&msg);
	CHECK(c, "no descriptors");
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < n; i++)
		close(((const int *)(const void *)CMSG_DATA(c))[i]);
	return (int)n;
}

/* Of rank OWN: all others come, in so many packets. */
static int take_members(struct raw_peer *p, uint32_t own)
{
	int packets = 0;

	raw_group_await(p, GROUP_BEGIN);
	for (uint32_t next = own == 0; next < SIZE; packets++) {
		struct wire_group g;
		int fds = take_packet(p, &g);
		uint32_t n = g.size ? LITTLE_32(g.size) : 1;

		CHECK(LITTLE_32(g.rank) == next, "rank %u, not %u", LITTLE_32(g.rank), next);
		CHECK(fds == (int)n * 3, "%d descriptors for %u members", fds, n);
		for (uint32_t i = 0; i < n; i++, next += next + 1 == own ? 2 : 1) {
			int32_t pid = i ? g.pids[i - 1] : g.pid;

			CHECK(LITTLE_32((uint32_t)pid) == (uint32_t)(next ? getpid() : getppid()),
			      "process of rank %u", next);
		}
	}
	raw_group_step(p, GROUP_READY, 1);
	return packets;
}

/* All but who founds, every other one with the feature. */
static int be_members(void *arg)
{
	struct raw_peer all[SIZE];

	(void)arg;
	for (uint32_t r = 1; r < SIZE; r++) {
		connect_with(&all[r], r % 2 ? NEWER : OLDER);
		raw_group_join(&all[r], 1);
	}
	for (uint32_t r = 1; r < SIZE; r++) {
		int packets = take_members(&all[r], r);

		CHECK(packets == (r % 2 ? 2 : SIZE - 1), "%d packets to rank %u", packets, r);
	}
	for (uint32_t r = 1; r < SIZE; r++)
		raw_group_await(&all[r], GROUP_FORMED);
	return 0;
}

static void found(void)
{
	slmpm_listener l = listen_here("found");
	slmpm_peer peers[SIZE] = {{0}};
	slmpm_group group;
	pid_t child = child_start(be_members, NULL, 60);

	for (int r = 1; r < SIZE; r++)
		OK(slmpm_accept(l, &peers[r], PATIENCE));
	OK(slmpm_group_create(&group, (slmpm_ctx){0}, peers, SIZE, RAW_GROUP_TAG, PATIENCE));
	EXPECT(child_wait(child), 0);
	OK(slmpm_group_destroy(group));
	for (int r = 1; r < SIZE; r++)
		(void)slmpm_close(peers[r], 0);
	OK(slmpm_unlisten(l));
}

/* ---- who joins ------------------------------------------------------------------------------- */

#define OWN     3
#define PROCESS 100000000u /* and its rank: of whom nothing comes */
#define MISSING                                                                                    \
	"0 (process 100000000), 1 (process 100000001), 2 (process 100000002), 4 (process 100000004)"

/* Up to N from RANK on, in a packet: which is the next. */
static uint32_t pass_members(struct raw_peer *p, uint32_t rank, uint32_t n)
{
	struct wire_group g = raw_group_of(GROUP_MEMBER, 1);
	int fds[WIRE_GROUP_MEMBERS * WIRE_GROUP_FDS];
	uint32_t i = 0;

	g.rank = LITTLE_32(rank);
	for (; rank < SIZE && i < n; rank++) {
		if (rank == OWN)
			continue;
		fds[3 * i] = raw_group_right_board();
		fds[3 * i + 1] = raw_group_bell(SOCK_DGRAM);
		fds[3 * i + 2] = raw_group_process();
		*(i ? &g.pids[i - 1] : &g.pid) = (int32_t)LITTLE_32(PROCESS + rank);
		i++;
	}
	g.size = LITTLE_32(i > 1 ? i : 0);
	raw_group_say(p, g, fds, (int)i * 3);
	return rank + (rank == OWN);
}

/* *MOST in a packet. */
static int be_founder(void *most)
{
	const uint32_t n = *(const uint32_t *)most;
	struct raw_peer p;

	connect_with(&p, n > 1 ? NEWER : OLDER);
	raw_group_found(&p, SIZE, OWN);
	for (uint32_t next = 0; next < SIZE;)
		next = pass_members(&p, next, n);
	raw_group_await(&p, GROUP_READY);
	raw_group_step(&p, GROUP_FORMED, 1);
	(void)raw_hear(p.fd, &(struct wire_group){.rank = 0}, sizeof(struct wire_group), NULL);
	return 0;
}

static void join(uint32_t most)
{
	slmpm_listener l = listen_here("join");
	pid_t child = child_start(be_founder, &most, 60);
	struct slmpm_group_info info = {.size = sizeof(info)};
	slmpm_group group;
	slmpm_peer peer;

	OK(slmpm_accept(l, &peer, PATIENCE));
	OK(slmpm_group_join(&group, peer, RAW_GROUP_TAG, PATIENCE));
	OK(slmpm_group_query(group, &info));
	CHECK(info.rank == OWN && info.members == SIZE, "rank %d of %u", info.rank, info.members);
	EXPECT(slmpm_barrier(group, 10), -SLMPM_ETIMEOUT);
	CHECK(strstr(slmpm_error_detail(), MISSING), "%s", slmpm_error_detail());
	(void)slmpm_close(peer, 0);
	EXPECT(child_wait(child), 0);
	OK(slmpm_group_destroy(group));
	OK(slmpm_unlisten(l));
}

int main(void)
{
	found();
	for (uint32_t most = 1; most <= WIRE_GROUP_MEMBERS; most++)
		join(most);
	return 0;
}
