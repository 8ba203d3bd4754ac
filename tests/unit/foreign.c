/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/* native-only */
/*
 * Descriptors closed apart: this process keeps its own, also where its children are in another
 * process namespace; while some cannot be closed at all, programs can still be started, other
 * senders have room, and a supervisor that is killed is replaced; a process is closed at
 * once; and a child of fork goes on whatever another thread did.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <slmpm.h>

#include "slmpm/connect/foreign.h"
#include "tests/lib/child.h"
#include "tests/lib/mire.h"
#include "tests/lib/test.h"

#define SECONDS 20
#define TICK_US 1000
#define MANY    20
#define FORKS   300
#define SENDER  4711

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void await_closed(int fd)
{
	for (int i = 0; is_open(fd); i++) {
		CHECK(i < SECONDS * 1000, "descriptor %d is not closed", fd);
		usleep(TICK_US);
	}
}

static int nothing(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0, "/dev/null: %s", strerror(errno));
	return fd;
}

static int close_some(void *arg)
{
	int own = nothing();

	(void)arg;
	for (int i = 0; i < MANY; i++) {
		int fd = nothing();

		foreign_close(fd, SENDER);
		await_closed(fd);
		usleep(20 * TICK_US);
		CHECK(is_open(own), "round %d: another was closed, too", i);
	}
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD, "children that the application sees");
	return 0;
}

/* Without its first process a namespace takes no other. */
static pid_t start_first(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0, "fork failed");
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause();
	_exit(0);
}

/* A process takes no room. */
static int close_at_once(void *arg)
{
	int pid = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)arg;
	CHECK(pid >= 0, "a descriptor");
	foreign_close(pid, SENDER);
	CHECK(!is_open(pid) && foreign_is_empty(), "a process waits");
	return 0;
}

static int close_elsewhere(void *arg)
{
	pid_t first;

	if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
		test_skip("no process namespace to be had");
	(void)arg;
	first = start_first();
	for (int i = 0, own = nothing(); i < MANY; i++) {
		int fd = nothing();

		foreign_close(fd, SENDER);
		await_closed(fd);
		usleep(20 * TICK_US);
		CHECK(is_open(own), "round %d: another was closed, too", i);
	}
	kill(first, SIGKILL);
	return 0;
}

/* Each start has a copy of the table, closed as it executes. */
static void start_another(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	for (int i = 0; waitpid(pid, NULL, WNOHANG) == 0; i++) {
		CHECK(i < SECONDS * 1000 / 4, "a program that was started is stuck");
		usleep(TICK_US);
	}
}

static int keep_some_open(void *arg)
{
	int fds[4] = {mire_file(MIRE_FLUSH)};

	(void)arg;
	if (fds[0] < 0)
		test_skip("no file system of its own can be had here");
	for (int i = 1; i < 4; i++)
		fds[i] = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
	for (int i = 0; i < 4; i++)
		foreign_close(fds[i], SENDER);
	for (int i = 0; i < 4; i++)
		await_closed(fds[i]);
	start_another();
	CHECK(!foreign_has_room(FOREIGN_EACH - 3, SENDER), "nobody counts those that are stuck");
	CHECK(foreign_has_room(FOREIGN_EACH - 4, SENDER), "there is room for the others");
	kill(mire_server(), SIGKILL);
	for (int i = 0; !foreign_has_room(FOREIGN_EACH, SENDER); i++) {
		CHECK(i < SECONDS * 1000, "what was closed at last still counts");
		usleep(TICK_US);
	}
	return 0;
}

/* One that sends as many as there may be takes nothing from the others. */
static int keep_to_the_sender(void *arg)
{
	int first = mire_file(MIRE_FLUSH), sent = 0;

	(void)arg;
	if (first < 0)
		test_skip("no file system of its own can be had here");
	for (; foreign_has_room(4, SENDER); sent += 4)
		for (int i = 0; i < 4; i++)
			foreign_close(fcntl(first, F_DUPFD_CLOEXEC, 3), SENDER);
	CHECK(sent == FOREIGN_EACH, "%d of one sender", sent);
	for (pid_t other = SENDER + 1; other < SENDER + 4; other++)
		CHECK(foreign_has_room(4, other), "%d has no room because of another", (int)other);
	CHECK(foreign_has_none(1) && !foreign_has_none(SENDER), "whose they are");
	kill(mire_server(), SIGKILL);
	return 0;
}

/* Children that were told to make no signal: the supervisor. */
static int kill_children(void)
{
	int killed = 0;
	pid_t child;
	FILE *list = fopen("/proc/thread-self/children", "r");

	while (list && fscanf(list, "%d", &child) == 1)
		killed += child != mire_server() && kill(child, SIGKILL) == 0;
	if (list)
		fclose(list);
	return killed;
}

/* What is stuck still counts, what comes is closed. */
static int lose_the_supervisor(void *arg)
{
	int stuck = mire_file(MIRE_FLUSH), fd;

	(void)arg;
	if (stuck < 0)
		test_skip("no file system of its own can be had here");
	foreign_close(stuck, SENDER);
	await_closed(stuck);
	for (int i = 0; i < 3; i++) {
		int killed = kill_children();

		CHECK(killed == 1, "%d supervisors", killed);
		fd = nothing();
		foreign_close(fd, SENDER + 1);
		for (int j = 0; j < 100 && is_open(fd); j++) { /* as with each packet that comes */
			(void)foreign_has_room(4, SENDER);
			usleep(TICK_US);
		}
		await_closed(fd);
		usleep(50 * TICK_US);
		for (int j = 0; j < SECONDS * 1000 && !foreign_has_room(FOREIGN_EACH - 1, SENDER);
		     j++) /* the next supervisor counts what is closed */
			usleep(TICK_US);
		CHECK(!foreign_has_room(FOREIGN_EACH, SENDER) &&
			      foreign_has_room(FOREIGN_EACH - 1, SENDER),
		      "what is stuck is forgotten");
	}
	CHECK(kill_children() == 1, "no supervisor");
	kill(mire_server(), SIGKILL);
	for (int i = 0; !foreign_has_room(FOREIGN_EACH, SENDER); i++) {
		CHECK(i < SECONDS * 1000, "what was closed at last still counts");
		usleep(TICK_US);
	}
	return 0;
}

static atomic_bool stop;

static void *inspect(void *arg)
{
	while (!atomic_load(&stop))
		(void)foreign_has_room(FOREIGN_EACH, SENDER);
	return arg;
}

static int look_in_child(void *arg)
{
	(void)arg;
	return !foreign_has_room(1, SENDER);
}

static int fork_amidst(void *arg)
{
	pthread_t other;
	slmpm_ctx ctx;

	(void)arg;
	CHECK(slmpm_open(&ctx, NULL) == 0, "%s", slmpm_error_detail());
	CHECK(foreign_has_room(1, SENDER), "no room");
	CHECK(pthread_create(&other, NULL, inspect, NULL) == 0, "a thread");
	for (int i = 0; i < FORKS; i++)
		CHECK(child_run(look_in_child, NULL, 5) == 0, "a child of fork is stuck");
	atomic_store(&stop, true);
	CHECK(pthread_join(other, NULL) == 0, "a thread");
	return 0;
}

int main(void)
{
	static int (*const parts[])(
		void *) = {close_some,         close_at_once,       close_elsewhere, keep_some_open,
			   keep_to_the_sender, lose_the_supervisor, fork_amidst};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		int rc = child_run(parts[i], NULL, SECONDS);

		CHECK(rc == 0 || rc == TEST_SKIPPED, "part %zu: %d", i, rc);
	}
	return 0;
}
