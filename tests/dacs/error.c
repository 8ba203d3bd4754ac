/* SPDX-License-Identifier: BSD-3-Clause */
/* Error handlers: when they run, what they are told, and that they may call back. */
#include "tests/dacs/pair.h"

#include <signal.h>
#include <sys/wait.h>

/* ---- roles ---- */

static int role_exit(int argc, char **argv)
{
	(void)argc;
	OK(dacs_init(0));
	OK(dacs_exit());
	return atoi(argv[0]);
}

static int role_crash(int argc, char **argv)
{
	(void)argc, (void)argv;
	OK(dacs_init(0));
	signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
	raise(SIGSEGV);
	return 0;
}

/* Crashes when it gets a word. */
static int role_crash_later(int argc, char **argv)
{
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	LATE(dacs_mailbox_read(&word, UP), DACS_SUCCESS);
	signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
	raise(SIGSEGV);
	return 0;
}

static int role_wait(int argc, char **argv)
{
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	while (dacs_mailbox_read(&word, UP) == DACS_ERR_DACSD_FAILURE)
		; /* the host's deadline is this one's, too */
	OK(dacs_exit());
	return 0;
}

/* A host that is to be aborted by its child's crash. */
static int role_aborts(int argc, char **argv)
{
	struct child c;
	int32_t status;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("crash", NULL);
	(void)dacs_de_wait(AT(c), &status);
	return 0;
}

/* ---- what the handlers saw ---- */

static struct seen {
	int calls;
	DACS_ERR_T num;
	uint32_t code;
	de_id_t de;
	dacs_process_id_t pid;
	char text[128];
	dacs_error_t error;
} first, second;

static void see(struct seen *seen, dacs_error_t error)
{
	const char *text = NULL;

	seen->calls++;
	seen->error = error;
	seen->num = dacs_error_num(error);
	OK(dacs_error_code(error, &seen->code));
	OK(dacs_error_de(error, &seen->de));
	OK(dacs_error_pid(error, &seen->pid));
	OK(dacs_error_str(error, &text));
	snprintf(seen->text, sizeof(seen->text), "%s", text);
	EXPECT(dacs_error_code(error, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_error_str(error, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_error_de(error, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_error_pid(error, NULL), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_error_num(&seen->calls), DACS_ERR_INVALID_HANDLE);
}

static uint32_t first_handler(dacs_error_t error)
{
	CHECK(second.calls == first.calls, "handlers run in the wrong order");
	see(&first, error);
	return 1; /* ignored */
}

static uint32_t second_handler(dacs_error_t error)
{
	see(&second, error);
	return 0;
}

static uint32_t exiting_handler(dacs_error_t error)
{
	see(&first, error);
	OK(dacs_exit());
	EXPECT(dacs_error_num(error), DACS_ERR_NOT_INITIALIZED);
	return 0;
}

static void register_both(void)
{
	memset(&first, 0, sizeof(first));
	memset(&second, 0, sizeof(second));
	OK(dacs_errhandler_reg(first_handler, 0));
	OK(dacs_errhandler_reg(second_handler, 0));
}

static void check_seen(const struct seen *seen, int calls, struct child c, DACS_ERR_T num,
		       uint32_t code)
{
	CHECK(seen->calls == calls, "%d calls instead of %d", seen->calls, calls);
	CHECK(seen->num == num && seen->code == code, "%s, code %u", dacs_strerror(seen->num),
	      seen->code);
	CHECK(seen->de == c.de && seen->pid == c.pid, "another process");
	CHECK(strstr(seen->text, num == DACS_STS_PROC_ABORTED ? "signal 11" : "status 5"), "%s",
	      seen->text);
}

/* ---- cases ---- */

static int a_crash_and_a_failure_are_told(int argc, char **argv)
{
	struct child c;
	int32_t status;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	register_both();
	c = pair_start("crash", NULL);
	EXPECT(dacs_de_wait(AT(c), &status), DACS_STS_PROC_ABORTED);
	check_seen(&first, 1, c, DACS_STS_PROC_ABORTED, SIGSEGV);
	check_seen(&second, 1, c, DACS_STS_PROC_ABORTED, SIGSEGV);
	EXPECT(dacs_error_num(first.error), DACS_ERR_INVALID_HANDLE); /* it is over */
	EXPECT(dacs_error_num(NULL), DACS_ERR_INVALID_HANDLE);
	OK(dacs_release_de_list(1, &c.de));
	c = pair_start("exit", "5");
	EXPECT(dacs_de_wait(AT(c), &status), DACS_STS_PROC_FAILED);
	check_seen(&first, 2, c, DACS_STS_PROC_FAILED, 5);
	check_seen(&second, 2, c, DACS_STS_PROC_FAILED, 5);
	OK(dacs_exit());
	return 0;
}

static int a_good_end_and_a_kill_are_not(int argc, char **argv)
{
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	register_both();
	pair_end(pair_start("exit", "0"), DACS_STS_PROC_FINISHED, 0);
	c = pair_start("wait", NULL);
	OK(dacs_de_kill(AT(c), DACS_KILL_TYPE_ASYNC));
	pair_end(c, DACS_STS_PROC_KILLED, SIGTERM);
	CHECK(first.calls == 0 && second.calls == 0, "a handler ran");
	OK(dacs_exit());
	return 0;
}

/* The next call tells, whichever it is: here one that has nothing to do with the child. */
static int any_call_tells(int argc, char **argv)
{
	struct child c;
	dacs_wid_t wid;
	uint32_t word = 1, n;
	int32_t status;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_wid_reserve(&wid));
	register_both();
	c = pair_start("crash", NULL);
	while (!first.calls)
		OK(dacs_get_num_avail_children(DACS_DE_CBE, &n));
	check_seen(&first, 1, c, DACS_STS_PROC_ABORTED, SIGSEGV);
	EXPECT(dacs_de_test(AT(c), &status), DACS_STS_PROC_ABORTED);
	c = pair_start_on(c.de, "crash later", NULL, NULL);
	OK(dacs_mailbox_write(&word, AT(c)));
	while (first.calls < 2) /* one of the calls that are made often */
		EXPECT(dacs_test(wid), DACS_ERR_WID_NOT_ACTIVE);
	check_seen(&second, 2, c, DACS_STS_PROC_ABORTED, SIGSEGV);
	pair_end(c, DACS_STS_PROC_ABORTED, SIGSEGV);
	CHECK(first.calls == 2, "told twice");
	OK(dacs_exit());
	return 0;
}

/* A call that is blocked on another child tells, and goes on waiting. */
static int a_blocked_call_tells(int argc, char **argv)
{
	int64_t until = pair_now_ms() + PAIR_PATIENCE;
	struct child waits, crashes;
	uint32_t word = 1;
	int32_t status;

	(void)argc, (void)argv;
	setenv("SLMPM_TIMEOUT", "300", 1);
	OK(dacs_init(0));
	register_both();
	waits = pair_start("wait", NULL);
	crashes = pair_start("crash later", NULL);
	OK(dacs_mailbox_write(&word, AT(crashes)));
	do /* it blocks, again where the crash takes longer than the deadline */
		EXPECT(dacs_mailbox_read(&word, AT(waits)), DACS_ERR_DACSD_FAILURE);
	while (!first.calls && pair_now_ms() < until);
	check_seen(&first, 1, crashes, DACS_STS_PROC_ABORTED, SIGSEGV);
	EXPECT(dacs_de_test(AT(waits), &status), DACS_STS_PROC_RUNNING);
	OK(dacs_mailbox_write(&word, AT(waits)));
	pair_end(waits, DACS_STS_PROC_FINISHED, 0);
	pair_end(crashes, DACS_STS_PROC_ABORTED, SIGSEGV);
	OK(dacs_exit());
	unsetenv("SLMPM_TIMEOUT");
	return 0;
}

static int a_handler_may_end_the_runtime(int argc, char **argv)
{
	struct child waits, crashes;
	uint32_t word = 1;

	(void)argc, (void)argv;
	memset(&first, 0, sizeof(first));
	OK(dacs_init(0));
	OK(dacs_errhandler_reg(exiting_handler, 0));
	waits = pair_start("wait", NULL);
	crashes = pair_start("crash later", NULL);
	OK(dacs_mailbox_write(&word, AT(crashes)));
	EXPECT(dacs_mailbox_read(&word, AT(waits)), DACS_ERR_NOT_INITIALIZED);
	CHECK(first.calls == 1, "%d calls", first.calls);
	EXPECT(dacs_exit(), DACS_ERR_NOT_INITIALIZED);
	return 0;
}

static int registration_ends_with_the_runtime(int argc, char **argv)
{
	int32_t status;
	struct child c;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	register_both();
	OK(dacs_exit());
	OK(dacs_init(0));
	c = pair_start("crash", NULL);
	EXPECT(dacs_de_wait(AT(c), &status), DACS_STS_PROC_ABORTED);
	CHECK(first.calls == 0, "a handler of the runtime before ran");
	EXPECT(dacs_errhandler_reg(NULL, 0), DACS_ERR_INVALID_ADDR);
	EXPECT(dacs_errhandler_reg(first_handler, 1), DACS_ERR_INVALID_ATTR);
	for (int i = 0; i < 32; i++)
		OK(dacs_errhandler_reg(first_handler, 0));
	EXPECT(dacs_errhandler_reg(first_handler, 0), DACS_ERR_NO_RESOURCE);
	OK(dacs_exit());
	return 0;
}

static int aborts_only_where_asked(int argc, char **argv)
{
	for (int asked = 0; asked < 2; asked++) {
		int status;
		pid_t host = fork();

		(void)argc, (void)argv;
		CHECK(host >= 0, "fork");
		if (!host) {
			setenv("SLMPM_DACS_ABORT", asked ? "y" : "n", 1);
			(void)!freopen("/dev/null", "w", stderr);
			execl(pair_self, pair_self, "aborts", (char *)NULL);
			_exit(98);
		}
		CHECK(waitpid(host, &status, 0) == host, "waitpid");
		if (asked)
			CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %#x",
			      status);
		else
			CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "status %#x", status);
	}
	/* An aborted host leaves a directory to whoever starts there next. */
	OK(dacs_init(0));
	pair_end(pair_start("exit", "0"), DACS_STS_PROC_FINISHED, 0);
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {
	{"exit", role_exit}, {"crash", role_crash},   {"crash later", role_crash_later},
	{"wait", role_wait}, {"aborts", role_aborts}, {NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"a crash and a failure are told", a_crash_and_a_failure_are_told},
	{"a good end and a kill are not", a_good_end_and_a_kill_are_not},
	{"any call tells", any_call_tells},
	{"a blocked call tells", a_blocked_call_tells},
	{"a handler may end the runtime", a_handler_may_end_the_runtime},
	{"registration ends with the runtime", registration_ends_with_the_runtime},
	{"aborts only where asked", aborts_only_where_asked},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
