/* SPDX-License-Identifier: BSD-3-Clause */
/* one-thread */
/* waits */
/* Starting, waiting, testing, killing: what is told about a process, and when it is forgotten. */
#include "tests/dacs/pair.h"

#include <signal.h>

/* ---- roles ---- */

static int role_exit(int argc, char **argv)
{
	(void)argc;
	OK(dacs_init(0));
	OK(dacs_exit());
	return atoi(argv[0]);
}

static int role_signal(int argc, char **argv)
{
	(void)argc;
	OK(dacs_init(0));
	signal(atoi(argv[0]), SIG_DFL); /* a sanitizer has a handler of its own */
	raise(atoi(argv[0]));
	return 0;
}

/* Until the host sends a word, or goes. */
static int role_wait(int argc, char **argv)
{
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	(void)dacs_mailbox_read(&word, UP);
	OK(dacs_exit());
	return 0;
}

/* SIGTERM does not end it. */
static int role_stubborn(int argc, char **argv)
{
	uint32_t word = 1;

	(void)argc, (void)argv;
	signal(SIGTERM, SIG_IGN);
	OK(dacs_init(0));
	OK(dacs_mailbox_write(&word, UP));
	for (;;)
		pause();
}

static int role_argv(int argc, char **argv)
{
	OK(dacs_init(0));
	CHECK(argc == 2, "%d arguments", argc);
	CHECK(!strcmp(argv[0], "two words") && !strcmp(argv[1], ""), "%s, %s", argv[0], argv[1]);
	OK(dacs_exit());
	return 0;
}

/* ---- cases ---- */

static int each_end_has_its_status(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	pair_end(pair_start("exit", "0"), DACS_STS_PROC_FINISHED, 0);
	pair_end(pair_start("exit", "7"), DACS_STS_PROC_FAILED, 7);
	pair_end(pair_start("signal", "11"), DACS_STS_PROC_ABORTED, SIGSEGV);
	pair_end(pair_start("signal", "9"), DACS_STS_PROC_ABORTED, SIGKILL);
	OK(dacs_exit());
	return 0;
}

static int a_test_tells_running_then_reaps(int argc, char **argv)
{
	struct child c;
	int32_t status = 4711;
	uint32_t word = 1, running = 9;
	DACS_ERR_T rc;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("wait", NULL);
	EXPECT(dacs_de_test(AT(c), &status), DACS_STS_PROC_RUNNING);
	CHECK(status == 4711, "a running process set the status to %d", status);
	OK(dacs_num_processes_running(c.de, &running));
	CHECK(running == 1, "%u running", running);
	EXPECT(dacs_release_de_list(1, &c.de), DACS_ERR_RESOURCE_BUSY);
	OK(dacs_mailbox_write(&word, AT(c)));
	while ((rc = dacs_de_test(AT(c), &status)) == DACS_STS_PROC_RUNNING)
		;
	CHECK(rc == DACS_STS_PROC_FINISHED, "%s", dacs_strerror(rc));
	CHECK(status == 0, "status %d", status);
	EXPECT(dacs_de_test(AT(c), &status), DACS_ERR_INVALID_PID);
	EXPECT(dacs_de_wait(AT(c), &status), DACS_ERR_INVALID_PID);
	EXPECT(dacs_de_kill(AT(c), DACS_KILL_TYPE_ASYNC), DACS_ERR_INVALID_PID);
	EXPECT(dacs_mailbox_write(&word, AT(c)), DACS_ERR_INVALID_PID);
	OK(dacs_num_processes_running(c.de, &running));
	CHECK(running == 0, "%u running", running);
	OK(dacs_release_de_list(1, &c.de));
	OK(dacs_exit());
	return 0;
}

/* A second start is refused even when the first process has ended already. */
static int one_process_an_element(int argc, char **argv)
{
	const char *words[] = {"wait", NULL};
	struct child c;
	dacs_process_id_t pid = 42;
	uint32_t word = 0, n = 0;
	int32_t status;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("wait", NULL);
	OK(dacs_num_processes_supported(c.de, &n));
	CHECK(n == 1, "%u supported", n);
	EXPECT(dacs_de_start(c.de, pair_self, words, NULL, DACS_PROC_REMOTE_FILE, &pid),
	       DACS_ERR_PROC_LIMIT);
	CHECK(pid == 42, "a refused start wrote the process id");
	OK(dacs_mailbox_write(&word, AT(c)));
	do
		OK(dacs_num_processes_running(c.de, &n));
	while (n);
	EXPECT(dacs_de_start(c.de, pair_self, words, NULL, DACS_PROC_REMOTE_FILE, &pid),
	       DACS_ERR_PROC_LIMIT);
	CHECK(pid == 42, "a refused start wrote the process id");
	EXPECT(dacs_de_wait(AT(c), &status), DACS_STS_PROC_FINISHED);
	c = pair_start_on(c.de, "exit", "0", NULL);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static int kill_asks_then_insists(int argc, char **argv)
{
	struct child c;
	uint32_t word;
	int64_t begin;

	(void)argc, (void)argv;
	setenv("SLMPM_DACS_KILL_MS", "200", 1);
	OK(dacs_init(0));
	c = pair_start("wait", NULL);
	OK(dacs_de_kill(AT(c), DACS_KILL_TYPE_ASYNC));
	pair_end(c, DACS_STS_PROC_KILLED, SIGTERM);

	c = pair_start("stubborn", NULL);
	OK(dacs_mailbox_read(&word, AT(c)));
	begin = pair_now_ms();
	OK(dacs_de_kill(AT(c), DACS_KILL_TYPE_ASYNC));
	pair_end(c, DACS_STS_PROC_KILLED, SIGKILL);
	CHECK(pair_now_ms() - begin >= 190, "SIGKILL came too early");
	CHECK(pair_now_ms() - begin < 5000, "SIGKILL came late");
	OK(dacs_exit());

	setenv("SLMPM_DACS_KILL_MS", "0", 1);
	OK(dacs_init(0));
	c = pair_start("stubborn", NULL);
	OK(dacs_mailbox_read(&word, AT(c)));
	OK(dacs_de_kill(AT(c), DACS_KILL_TYPE_ASYNC));
	pair_end(c, DACS_STS_PROC_KILLED, SIGKILL);
	OK(dacs_exit());
	unsetenv("SLMPM_DACS_KILL_MS");
	return 0;
}

/* An end by itself is told as such although a kill was asked for. */
static int a_kill_may_come_too_late(int argc, char **argv)
{
	struct child c;
	uint32_t n;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("exit", "3");
	do
		OK(dacs_num_processes_running(c.de, &n));
	while (n);
	OK(dacs_de_kill(AT(c), DACS_KILL_TYPE_ASYNC));
	pair_end(c, DACS_STS_PROC_FAILED, 3);
	OK(dacs_exit());
	return 0;
}

static int argv_is_without_the_program(int argc, char **argv)
{
	const char *words[] = {"argv", "two words", "", NULL};
	struct child c = {0, 0};
	uint32_t n = 1;
	char *plain = "/bin/true";

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &c.de));
	OK(dacs_de_start(c.de, pair_self, words, NULL, DACS_PROC_REMOTE_FILE, &c.pid));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	/* Neither arguments nor environment; the program knows nothing of DaCS. */
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &c.de));
	OK(dacs_de_start(c.de, plain, NULL, NULL, DACS_PROC_REMOTE_FILE, &c.pid));
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &c.de));
	OK(dacs_de_start(c.de, "false", NULL, NULL, DACS_PROC_REMOTE_FILE, &c.pid));
	pair_end(c, DACS_STS_PROC_FAILED, 1);
	OK(dacs_exit());
	return 0;
}

/* Many at once, waited for in the other order. */
static int many_children(int argc, char **argv)
{
	enum { MANY = 16 };
	struct child c[MANY];
	de_id_t list[MANY];
	uint32_t n = MANY, word = 1;
	int32_t status;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_reserve_children(DACS_DE_CBE, &n, list));
	CHECK(n == MANY, "%u granted", n);
	for (int i = 0; i < MANY; i++)
		c[i] = pair_start_on(list[i], "wait", NULL, NULL);
	for (int i = 0; i < MANY; i++)
		OK(dacs_mailbox_write(&word, AT(c[i])));
	for (int i = MANY - 1; i >= 0; i--)
		EXPECT(dacs_de_wait(AT(c[i]), &status), DACS_STS_PROC_FINISHED);
	OK(dacs_release_de_list(MANY, list));
	OK(dacs_exit());
	return 0;
}

/* dacs_exit copes with children that run, that hang and that ended without being waited for. */
static int exit_cleans_up(int argc, char **argv)
{
	struct child running, stubborn, ended;
	uint32_t word, n;
	int64_t begin;

	(void)argc, (void)argv;
	setenv("SLMPM_DACS_KILL_MS", "200", 1);
	OK(dacs_init(0));
	running = pair_start("wait", NULL);
	stubborn = pair_start("stubborn", NULL);
	ended = pair_start("exit", "0");
	OK(dacs_mailbox_read(&word, AT(stubborn)));
	do
		OK(dacs_num_processes_running(ended.de, &n));
	while (n);
	begin = pair_now_ms();
	OK(dacs_exit());
	CHECK(pair_now_ms() - begin < 5000, "dacs_exit took too long");
	CHECK(kill((pid_t)(running.pid & 0xffffffff), 0) != 0, "a child was left");
	CHECK(kill((pid_t)(stubborn.pid & 0xffffffff), 0) != 0, "a child was left");
	OK(dacs_init(0));
	OK(dacs_get_num_avail_children(DACS_DE_CBE, &n));
	CHECK(n == 64, "%u elements after exit", n);
	OK(dacs_exit());
	unsetenv("SLMPM_DACS_KILL_MS");
	return 0;
}

static int bad_arguments_are_refused(int argc, char **argv)
{
	enum { LONG = 140000 };
	static char word_too_long[LONG + 1];
	const char *long_words[] = {word_too_long, NULL}, *no_env[] = {"nothing", NULL};
	struct child c = {0, 0};
	dacs_process_id_t pid = 5;
	uint32_t n = 1;
	int32_t status;

	(void)argc, (void)argv;
	memset(word_too_long, 'x', LONG);
	OK(dacs_init(0));
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &c.de));
#define START(de, prog, a, e, flag, out)                                                           \
	dacs_de_start(de, (void *)(uintptr_t)(prog), a, e, (DACS_PROC_CREATION_FLAG_T)(flag), out)
	EXPECT(START(0, pair_self, NULL, NULL, 2, &pid), DACS_ERR_INVALID_DE);
	EXPECT(START(c.de + 1, pair_self, NULL, NULL, 2, &pid), DACS_ERR_INVALID_DE);
	EXPECT(START(DACS_DE_SELF, pair_self, NULL, NULL, 2, &pid), DACS_ERR_INVALID_TARGET);
	EXPECT(START(DACS_DE_PARENT, pair_self, NULL, NULL, 2, &pid), DACS_ERR_INVALID_TARGET);
	EXPECT(START(c.de, NULL, NULL, NULL, 2, &pid), DACS_ERR_INVALID_ADDR);
	EXPECT(START(c.de, pair_self, NULL, NULL, 2, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(START(c.de, pair_self, NULL, NULL, 4, &pid), DACS_ERR_INVALID_ATTR);
	EXPECT(START(c.de, pair_self, NULL, NULL, -1, &pid), DACS_ERR_INVALID_ATTR);
	EXPECT(START(c.de, pair_self, long_words, NULL, 2, &pid), DACS_ERR_INVALID_ARGV);
	EXPECT(START(c.de, pair_self, NULL, long_words, 2, &pid), DACS_ERR_INVALID_ENV);
	EXPECT(START(c.de, pair_self, NULL, no_env, 2, &pid), DACS_ERR_INVALID_ENV);
	CHECK(pid == 5, "a refused start wrote the process id");
	OK(dacs_num_processes_running(c.de, &n));
	CHECK(n == 0, "%u running", n);
	EXPECT(dacs_num_processes_running(c.de, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_num_processes_supported(c.de, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_num_processes_running(0, &n), DACS_ERR_INVALID_DE);
	EXPECT(dacs_num_processes_supported(DACS_DE_SELF, &n), DACS_ERR_INVALID_TARGET);

	EXPECT(dacs_de_wait(c.de, 5, &status), DACS_ERR_INVALID_PID);
	c = pair_start_on(c.de, "exit", "0", NULL);
	EXPECT(dacs_de_wait(AT(c), NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_de_test(AT(c), NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_de_wait(0, c.pid, &status), DACS_ERR_INVALID_DE);
	EXPECT(dacs_de_test(DACS_DE_PARENT, DACS_PID_PARENT, &status), DACS_ERR_INVALID_TARGET);
	EXPECT(dacs_de_test(c.de, c.pid + 1, &status), DACS_ERR_INVALID_PID);
	EXPECT(dacs_de_kill(c.de, 0, DACS_KILL_TYPE_ASYNC), DACS_ERR_INVALID_PID);
	EXPECT(dacs_de_kill(AT(c), (DACS_KILL_TYPE_T)1), DACS_ERR_INVALID_ATTR);
	EXPECT(dacs_de_kill(UP, DACS_KILL_TYPE_ASYNC), DACS_ERR_INVALID_TARGET);
	pair_end(c, DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

/* Another host: settings are read once. */
static int role_lost(int argc, char **argv)
{
	dacs_process_id_t pid = 5;
	uint32_t n = 1;
	de_id_t de;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &de));
	EXPECT(START(de, pair_self, NULL, NULL, 2, &pid), DACS_ERR_INVALID_ENV);
	CHECK(pid == 5, "a refused start wrote the process id");
	OK(dacs_exit());
	return 0;
}

static int processors_that_are_not_there(int argc, char **argv)
{
	char command[600];

	(void)argc, (void)argv;
	snprintf(command, sizeof(command), "SLMPM_CPUS=1023 '%s' lost", pair_self);
	CHECK(system(command) == 0, "%s", command);
	return 0;
}

static const struct pair_entry roles[] = {
	{"exit", role_exit}, {"signal", role_signal},
	{"wait", role_wait}, {"stubborn", role_stubborn},
	{"argv", role_argv}, {"lost", role_lost},
	{NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"each end has its status", each_end_has_its_status},
	{"a test tells running, then reaps", a_test_tells_running_then_reaps},
	{"one process an element", one_process_an_element},
	{"kill asks, then insists", kill_asks_then_insists},
	{"a kill may come too late", a_kill_may_come_too_late},
	{"argv is without the program", argv_is_without_the_program},
	{"many children", many_children},
	{"exit cleans up", exit_cleans_up},
	{"bad arguments are refused", bad_arguments_are_refused},
	{"processors that are not there", processors_that_are_not_there},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
