/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * Descriptors that wait to be closed, and a group: what one member sends by all bells, under
 * each rank, and by another process too, keeps no other member's from being received; and where
 * there is no room for any, what could not be received is asked for again. Of several at once none
 * stays open.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slmpm/connect/foreign.h"
#include "tests/lib/child.h"
#include "tests/lib/circle.h"

#define TAG     5
#define STREAM  3
#define SHORT   200   /* ms: what never comes */
#define AMID_US 60000 /* a call waits, as a rule */
#define LEN     8192
#define COPIES  12 /* of a descriptor, at most */

enum { GO = 1, DONE };

static struct { /* by all processes */
	_Atomic pid_t hostile;
	_Atomic bool enough;
} * common;

/* ---- a supervisor that does nothing ---------------------------------------------------------- */

static bool is_stopped(pid_t pid)
{
	char line[128] = "", name[32];
	const char *end;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	f = fopen(name, "re");
	if (f && !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	end = strrchr(line, ')');
	return end && end[1] && end[2] == 'T';
}

/* Of this process's children the last that is stopped then; 0: it has ended before. */
static pid_t stop_children(void)
{
	pid_t child, stopped = 0;
	FILE *list = fopen("/proc/thread-self/children", "re");

	while (list && fscanf(list, "%d", &child) == 1) {
		if (kill(child, SIGSTOP) != 0)
			continue;
		for (int i = 0; i < 100 && !is_stopped(child); i++)
			usleep(1000);
		if (is_stopped(child))
			stopped = child;
	}
	if (list)
		fclose(list);
	return stopped;
}

static int a_pipe(void)
{
	int ends[2];

	CHECK(pipe2(ends, O_CLOEXEC) == 0, "a pipe: %s", strerror(errno));
	close(ends[1]);
	return ends[0];
}

/* What comes from now on waits for as long as it is stopped. */
static pid_t stop_supervisor(void)
{
	for (int i = 0; i < 1000; i++) {
		pid_t pid;

		foreign_close(a_pipe(), 1);
		pid = stop_children();
		if (pid)
			return pid;
	}
	test_fail(__FILE__, __LINE__, "no supervisor can be stopped");
	return 0;
}

/* ---- one that fills the places --------------------------------------------------------------- */

/* With N copies of it, where one is due at most. */
static void ring_all(uint32_t rank, int fd, int n)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * COPIES)];
	} space;

	for (int at = 3; at < 128; at++) {
		struct iovec iov = {&rank, sizeof(rank)};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = space.room,
				     .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n)};
		struct cmsghdr *c = &space.align;
		int type = 0;
		socklen_t size = sizeof(type);

		if (getsockopt(at, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_DGRAM)
			continue;
		memset(&space, 0, sizeof(space));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd) * (size_t)n);
		for (int i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + sizeof(fd) * (size_t)i, &fd, sizeof(fd));
		(void)!sendmsg(at, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

static void *flood(void *arg)
{
	static const int copies[] = {1, 2, 9, COPIES};
	int fd = a_pipe();

	for (uint32_t k = 0; !atomic_load(&common->enough); k++) {
		ring_all(k % 4, fd, copies[k / 4 % 4]);
		usleep(100);
	}
	close(fd);
	return arg;
}

static void be_hostile(slmpm_peer founder)
{
	pthread_t thread;
	pid_t other;
	int status;

	atomic_store(&common->hostile, getpid());
	actor_hear(founder, GO);
	other = fork();
	if (other == 0) {
		(void)alarm(30);
		(void)flood(NULL);
		_exit(0);
	}
	CHECK(other > 0 && pthread_create(&thread, NULL, flood, NULL) == 0, "others");
	actor_hear(founder, GO);
	CHECK(pthread_join(thread, NULL) == 0 && waitpid(other, &status, 0) == other, "its end");
}

/* ---- members --------------------------------------------------------------------------------- */

static void allocate(slmpm_group group, uint64_t len)
{
	slmpm_group_memory memory;

	OK(slmpm_group_alloc(&memory, group, len, SLMPM_ALLOC_BESIDE, 0, PATIENCE));
	OK(slmpm_barrier(group, PATIENCE));
	OK(slmpm_group_free(memory));
}

static void meet(slmpm_group group, int i)
{
	slmpm_peer peer;
	int word = i;

	OK(slmpm_group_peer(group, !i, &peer, PATIENCE));
	OK(slmpm_send(peer, STREAM, &word, sizeof(word), PATIENCE));
	EXPECT(slmpm_recv(peer, STREAM, &word, sizeof(word), NULL, PATIENCE), sizeof(word));
	CHECK(word == !i, "rank %d says %d", !i, word);
}

/* Of three: rank 0 makes the connection, 1 is the one whose places are filled, by 2. */
static void crowd(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;
	pid_t supervisor = i == 1 ? stop_supervisor() : 0;

	(void)unused;
	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	if (i == 2) {
		be_hostile(founder);
	} else {
		actor_hear(founder, GO);
		for (int k = 0; i == 1 && foreign_has_room(1, common->hostile); k++) {
			CHECK(k < PATIENCE, "the places are not full");
			actor_nap(circle_own);
			usleep(1000);
		}
		actor_tell(founder, GO);
		actor_hear(founder, GO);
		meet(group, i);
	}
	allocate(group, i == 2 ? 0 : LEN); /* its own could not be received */
	actor_tell(founder, DONE);
	actor_hear(founder, DONE);
	if (supervisor)
		CHECK(kill(supervisor, SIGCONT) == 0, "go on");
	OK(slmpm_group_destroy(group));
}

static void all_go(struct circle *c, int n)
{
	for (int i = 0; i < n; i++)
		actor_tell(c->peers[i], GO);
}

static int crowded(void *unused)
{
	struct circle c = {0};
	slmpm_group group;

	(void)unused;
	circle_begin(&c, 3, crowd, NULL, 40);
	OK(slmpm_group_create(&group, c.ctx, c.peers, c.n, TAG, PATIENCE));
	all_go(&c, 3);
	actor_hear(c.peers[1], GO);
	atomic_store(&common->enough, true);
	all_go(&c, 3);
	actor_hear(c.peers[0], GO);
	for (int i = 0; i < 3; i++)
		actor_hear(c.peers[i], DONE);
	for (int i = 0; i < 3; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* ---- no room at all -------------------------------------------------------------------------- */

static pid_t fill(void)
{
	pid_t supervisor = stop_supervisor();

	for (int k = 1; k < FOREIGN_MAX; k++)
		foreign_close(a_pipe(), k);
	CHECK(!foreign_has_room(1, 12345), "there is room");
	return supervisor;
}

static void *go_on(void *arg)
{
	usleep(AMID_US);
	CHECK(kill(*(pid_t *)arg, SIGCONT) == 0, "go on");
	return NULL;
}

static void lack_room(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;
	pid_t supervisor;
	pthread_t thread;
	slmpm_peer peer;

	(void)unused;
	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	if (i == 0) {
		meet(group, 0);
		allocate(group, LEN);
	} else {
		supervisor = fill();
		REFUSED(slmpm_group_peer(group, 0, &peer, SHORT), SLMPM_ETIMEOUT, "rank 0");
		CHECK(kill(supervisor, SIGCONT) == 0, "go on");
		meet(group, 1);
		supervisor = fill();
		CHECK(pthread_create(&thread, NULL, go_on, &supervisor) == 0, "a thread");
		allocate(group, LEN);
		CHECK(pthread_join(thread, NULL) == 0, "its end");
	}
	actor_tell(founder, DONE);
	actor_hear(founder, DONE);
	OK(slmpm_group_destroy(group));
}

static int full(void *unused)
{
	struct circle c = {0};
	slmpm_group group;

	(void)unused;
	circle_begin(&c, 2, lack_room, NULL, 40);
	OK(slmpm_group_create(&group, c.ctx, c.peers, c.n, TAG, PATIENCE));
	for (int i = 0; i < 2; i++)
		actor_hear(c.peers[i], DONE);
	for (int i = 0; i < 2; i++)
		actor_tell(c.peers[i], DONE);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

/* ---- more than one at once ------------------------------------------------------------------- */

static int open_ones(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Memory is closed at once, so that no place is ever taken. */
static void pour(slmpm_peer founder, int i, void *unused)
{
	slmpm_group group;
	int fd = memfd_create("poured", MFD_CLOEXEC | MFD_ALLOW_SEALING), before;

	(void)unused;
	CHECK(fd >= 0, "memory");
	OK(slmpm_group_join(&group, founder, TAG, PATIENCE));
	before = open_ones();
	for (int k = 0; i == 1 && k < 40; k++) {
		ring_all(0, fd, k % 2 ? COPIES : 9);
		usleep(1000); /* it is taken meanwhile */
	}
	actor_tell(founder, DONE);
	actor_hear(founder, GO);
	CHECK(i == 1 || open_ones() <= before, "%d descriptors more", open_ones() - before);
	allocate(group, LEN);
	close(fd);
	OK(slmpm_group_destroy(group));
}

static int poured(void *unused)
{
	struct circle c = {0};
	slmpm_group group;

	(void)unused;
	circle_begin(&c, 2, pour, NULL, 40);
	OK(slmpm_group_create(&group, c.ctx, c.peers, c.n, TAG, PATIENCE));
	for (int i = 0; i < 2; i++)
		actor_hear(c.peers[i], DONE);
	all_go(&c, 2);
	OK(slmpm_group_destroy(group));
	circle_end(&c);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{NULL, NULL}};

	actor_begin(argc, argv, roles);
	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(common != MAP_FAILED, "memory");
	EXPECT(child_run(crowded, NULL, 60), 0);
	EXPECT(child_run(full, NULL, 60), 0);
	EXPECT(child_run(poured, NULL, 60), 0);
	return 0;
}
