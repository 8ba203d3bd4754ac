/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* Init and exit: how often, what calls answer outside them, after fork, without a parent. */
#include "tests/dacs/every_call.h"
#include "tests/dacs/pair.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* ---- roles ---- */

/* An accelerator inits once in its life. */
static int role_again(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	EXPECT(dacs_init(0), DACS_ERR_INITIALIZED);
	OK(dacs_exit());
	EXPECT(dacs_init(0), DACS_ERR_INITIALIZED);
	every_call();
	return 0;
}

/* Ends the runtime after main has returned, as a static object's destructor would, with calls
 * before and after. */
static void late(void)
{
	uint32_t word = 42;

	if (dacs_mailbox_write(&word, UP) != DACS_SUCCESS || dacs_exit() != DACS_SUCCESS)
		_exit(3);
	if (dacs_mailbox_write(&word, UP) != DACS_ERR_NOT_INITIALIZED)
		_exit(4);
	if (dacs_exit() != DACS_ERR_NOT_INITIALIZED)
		_exit(5);
}

static int role_late(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	CHECK(atexit(late) == 0, "atexit");
	return 0;
}

static int role_wait(int argc, char **argv)
{
	uint32_t word = 1;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	LATE(dacs_mailbox_write(&word, UP), DACS_SUCCESS);
	while (dacs_mailbox_read(&word, UP) == DACS_ERR_DACSD_FAILURE)
		; /* the host's deadline is this one's, too */
	OK(dacs_exit());
	return 0;
}

/* Its host is gone before it inits: argv[0] is a pipe that tells. */
static int role_orphan(int argc, char **argv)
{
	char byte;
	int out;

	(void)argc;
	CHECK(read(atoi(argv[0]), &byte, 1) == 0, "read");
	out = open(argv[1], O_WRONLY | O_APPEND);
	CHECK(out >= 0, "%s", argv[1]);
	byte = dacs_init(0) == DACS_ERR_DACSD_FAILURE ? 'y' : 'n';
	CHECK(write(out, &byte, 1) == 1, "write");
	return 0;
}

static int role_orphans_host(int argc, char **argv)
{
	struct child c;
	uint32_t n = 1;

	(void)argc;
	OK(dacs_init(0));
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &c.de));
	c = pair_start_on(c.de, "orphan", argv[0], argv[1]);
	_exit(0);
}

/* ---- cases ---- */

static int calls_outside_answer_so(int argc, char **argv)
{
	(void)argc, (void)argv;
	every_call();
	OK(dacs_init(0));
	OK(dacs_exit());
	every_call();
	return 0;
}

static int a_host_comes_and_goes(int argc, char **argv)
{
	static const int flags[] = {DACS_INIT_FLAGS_NONE, DACS_INIT_SINGLE_THREADED};
	struct child c;
	uint32_t word;

	(void)argc, (void)argv;
	EXPECT(dacs_init(2), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_init(-1), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_runtime_init(&word, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_runtime_init(NULL, &word), DACS_ERR_INVALID_ADDR);
	for (int i = 0; i < 6; i++) {
		if (i < 4)
			OK(dacs_init(flags[i % 2]));
		else
			OK(dacs_runtime_init(NULL, NULL));
		EXPECT(dacs_init(0), DACS_ERR_INITIALIZED);
		EXPECT(dacs_runtime_init(NULL, NULL), DACS_ERR_INITIALIZED);
		c = pair_start("wait", NULL);
		OK(dacs_mailbox_read(&word, AT(c)));
		OK(dacs_mailbox_write(&word, AT(c)));
		pair_end(c, DACS_STS_PROC_FINISHED, 0);
		OK(i < 4 ? dacs_exit() : dacs_runtime_exit());
	}
	return 0;
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int nothing_is_left_open(int argc, char **argv)
{
	uint32_t word;
	int before = 0;

	(void)argc, (void)argv;
	for (int i = 0; i < 4; i++) {
		struct child c;

		OK(dacs_init(0));
		c = pair_start("wait", NULL);
		OK(dacs_mailbox_read(&word, AT(c)));
		OK(dacs_exit());
		if (!i) /* what the first use opens for good is not a leak */
			before = descriptors();
	}
	CHECK(descriptors() == before, "%d descriptors, %d before", descriptors(), before);
	return 0;
}

static int an_accelerator_comes_once(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	pair_end(pair_start("again", NULL), DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int exit_may_come_after_main(int argc, char **argv)
{
	struct child c;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("late", NULL);
	OK(dacs_mailbox_read(&word, AT(c)));
	CHECK(word == 42, "%u", word);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* A forked child has nothing of its parent's and may have a runtime of its own; what it does at
 * its end does not touch the parent's children. */
static int a_forked_child_starts_afresh(int argc, char **argv)
{
	struct child c;
	uint32_t word;
	int32_t ended;
	int status;
	pid_t pid;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("wait", NULL);
	OK(dacs_mailbox_read(&word, AT(c)));
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid) {
		struct child own;

		EXPECT(dacs_mailbox_write(&word, AT(c)), DACS_ERR_NOT_INITIALIZED);
		EXPECT(dacs_de_wait(AT(c), &ended), DACS_ERR_NOT_INITIALIZED);
		EXPECT(dacs_exit(), DACS_ERR_NOT_INITIALIZED);
		OK(dacs_init(0));
		own = pair_start("wait", NULL);
		CHECK(own.de != c.de, "an element of the parent was granted");
		OK(dacs_mailbox_read(&word, AT(own)));
		OK(dacs_exit());
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the forked child: %#x", status);
	EXPECT(dacs_de_test(AT(c), &ended), DACS_STS_PROC_RUNNING);
	OK(dacs_mailbox_write(&word, AT(c)));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int an_orphan_learns_it(int argc, char **argv)
{
	char fifo[96], number[16], answer;
	int fds[2], status, in;
	pid_t host;

	(void)argc, (void)argv;
	snprintf(fifo, sizeof(fifo), "%s/answer", pair_dir);
	CHECK(mkfifo(fifo, 0600) == 0, "mkfifo");
	in = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(in >= 0 && pipe(fds) == 0, "pipe");
	/* A writing end of our own, so that a read waits for the orphan. */
	CHECK(open(fifo, O_WRONLY | O_CLOEXEC) >= 0 && fcntl(in, F_SETFL, 0) == 0, "%s", fifo);
	CHECK(fcntl(fds[1], F_SETFD, FD_CLOEXEC) == 0, "fcntl");
	snprintf(number, sizeof(number), "%d", fds[0]);
	host = fork();
	CHECK(host >= 0, "fork");
	if (!host) {
		execl(pair_self, pair_self, "orphan's host", number, fifo, (char *)NULL);
		_exit(98);
	}
	CHECK(waitpid(host, &status, 0) == host && status == 0, "the host: %#x", status);
	close(fds[1]);
	CHECK(read(in, &answer, 1) == 1 && answer == 'y', "init succeeded without a parent");
	close(in);
	/* The directory of both is swept by the next that starts. */
	OK(dacs_init(0));
	pair_end(pair_start("again", NULL), DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* Each blocking call ends at its deadline, and can be called again. */
static int a_deadline_can_be_set(int argc, char **argv)
{
	struct child c;
	int64_t begin;
	uint32_t word, data;
	int32_t status;
	dacs_wid_t wid;

	(void)argc, (void)argv;
	setenv("SLMPM_TIMEOUT", "50", 1);
	OK(dacs_init(0));
	c = pair_start("wait", NULL);
	while (dacs_mailbox_read(&word, AT(c)) == DACS_ERR_DACSD_FAILURE)
		;
	begin = pair_now_ms();
	EXPECT(dacs_mailbox_read(&word, AT(c)), DACS_ERR_DACSD_FAILURE);
	EXPECT(dacs_de_wait(AT(c), &status), DACS_ERR_DACSD_FAILURE);
	OK(dacs_wid_reserve(&wid));
	OK(dacs_recv(&data, 4, AT(c), 1, wid, DACS_BYTE_SWAP_DISABLE));
	EXPECT(dacs_wait(wid), DACS_ERR_DACSD_FAILURE);
	EXPECT(dacs_test(wid), DACS_WID_BUSY);
	CHECK(kill((pid_t)(c.pid & 0xffffffff), SIGSTOP) == 0, "kill");
	for (int i = 0; i < 4; i++)
		OK(dacs_mailbox_write(&word, AT(c)));
	EXPECT(dacs_mailbox_write(&word, AT(c)), DACS_ERR_DACSD_FAILURE);
	CHECK(pair_now_ms() - begin >= 200, "%d ms for four deadlines",
	      (int)(pair_now_ms() - begin));
	CHECK(pair_now_ms() - begin < PAIR_PATIENCE, "%d ms for four deadlines",
	      (int)(pair_now_ms() - begin));
	CHECK(kill((pid_t)(c.pid & 0xffffffff), SIGCONT) == 0, "kill");
	while ((word = (uint32_t)dacs_de_wait(AT(c), &status)) == (uint32_t)DACS_ERR_DACSD_FAILURE)
		;
	CHECK(word == DACS_STS_PROC_FINISHED, "%s", dacs_strerror((DACS_ERR_T)word));
	OK(dacs_exit());
	unsetenv("SLMPM_TIMEOUT");
	return 0;
}

/* Each way of waiting works. */
static int waits_as_it_is_told(int argc, char **argv)
{
	static const char *const ways[] = {"spin", "block", "adaptive"};
	uint32_t word;

	(void)argc, (void)argv;
	for (int i = 0; i < 3; i++) {
		struct child c;

		setenv("SLMPM_WAIT", ways[i], 1);
		OK(dacs_init(i == 1 ? DACS_INIT_SINGLE_THREADED : 0));
		c = pair_start("wait", NULL);
		OK(dacs_mailbox_read(&word, AT(c)));
		OK(dacs_mailbox_write(&word, AT(c)));
		pair_end(c, DACS_STS_PROC_FINISHED, 0);
		OK(dacs_exit());
	}
	unsetenv("SLMPM_WAIT");
	return 0;
}

static int role_bad_setting(int argc, char **argv)
{
	(void)argc, (void)argv;
	return dacs_init(0) == DACS_ERR_INVALID_ENV ? 0 : 1;
}

/* A setting that cannot be read; in a process of its own, for it is read once. */
static int settings_have_to_be_readable(int argc, char **argv)
{
	int status;
	pid_t pid = fork();

	(void)argc, (void)argv;
	CHECK(pid >= 0, "fork");
	if (!pid) {
		setenv("SLMPM_DACS_KILL_MS", "soon", 1);
		execl(pair_self, pair_self, "bad setting", (char *)NULL);
		_exit(98);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "status %#x", status);
	return 0;
}

static const struct pair_entry roles[] = {
	{"again", role_again},
	{"late", role_late},
	{"wait", role_wait},
	{"orphan", role_orphan},
	{"orphan's host", role_orphans_host},
	{"bad setting", role_bad_setting},
	{NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"calls outside answer so", calls_outside_answer_so},
	{"a host comes and goes", a_host_comes_and_goes},
	{"nothing is left open", nothing_is_left_open},
	{"an accelerator comes once", an_accelerator_comes_once},
	{"exit may come after main", exit_may_come_after_main},
	{"a forked child starts afresh", a_forked_child_starts_afresh},
	{"an orphan learns it", an_orphan_learns_it},
	{"a deadline can be set", a_deadline_can_be_set},
	{"waits as it is told", waits_as_it_is_told},
	{"settings have to be readable", settings_have_to_be_readable},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
