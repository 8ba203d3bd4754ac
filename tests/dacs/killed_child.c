/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 120 */
/* A child is killed: whichever call reports that, the error handlers have run before it returns. */
#include "tests/dacs/pair.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define KILLS 300

static int role_wait(int argc, char **argv)
{
	uint32_t word = (uint32_t)getpid();

	(void)argc, (void)argv;
	OK(dacs_init(0));
	pair_tell(pair_parent(), word);
	for (;;)
		(void)pause();
}

static atomic_int handled;

/* Not at once: a call that reports the end meanwhile is wrong. */
static uint32_t handler(dacs_error_t error)
{
	EXPECT(dacs_error_num(error), DACS_STS_PROC_ABORTED);
	usleep(500);
	handled++;
	return 0;
}

/* ---- calls that report it ---- */

static DACS_ERR_T by_wait(struct child c, dacs_wid_t wid)
{
	static char in[8];

	OK(dacs_recv(in, sizeof(in), AT(c), 1, wid, DACS_BYTE_SWAP_DISABLE));
	return dacs_wait(wid);
}

static DACS_ERR_T by_test(struct child c, dacs_wid_t wid)
{
	static char in[8];
	DACS_ERR_T rc;

	OK(dacs_recv(in, sizeof(in), AT(c), 1, wid, DACS_BYTE_SWAP_DISABLE));
	while ((rc = dacs_test(wid)) == DACS_WID_BUSY)
		;
	return rc;
}

static DACS_ERR_T by_send(struct child c, dacs_wid_t wid)
{
	static char out[64];
	DACS_ERR_T rc;

	while ((rc = dacs_send(out, sizeof(out), AT(c), 1, wid, DACS_BYTE_SWAP_DISABLE)) ==
	       DACS_SUCCESS)
		;
	(void)dacs_wait(wid);
	return rc;
}

static DACS_ERR_T by_mailbox_read(struct child c, dacs_wid_t wid)
{
	uint32_t word;

	(void)wid;
	return dacs_mailbox_read(&word, AT(c));
}

static DACS_ERR_T by_mailbox_write(struct child c, dacs_wid_t wid)
{
	DACS_ERR_T rc;
	uint32_t word = 0;

	(void)wid;
	while ((rc = dacs_mailbox_write(&word, AT(c))) == DACS_SUCCESS)
		;
	return rc;
}

static DACS_ERR_T by_mailbox_test(struct child c, dacs_wid_t wid)
{
	DACS_ERR_T rc;
	int32_t count;

	(void)wid;
	while ((rc = dacs_mailbox_test(DACS_TEST_MAILBOX_WRITE, AT(c), &count)) == DACS_SUCCESS)
		;
	return rc;
}

static DACS_ERR_T by_de_wait(struct child c, dacs_wid_t wid)
{
	int32_t status;

	(void)wid;
	return dacs_de_wait(AT(c), &status);
}

static DACS_ERR_T by_de_test(struct child c, dacs_wid_t wid)
{
	int32_t status;
	DACS_ERR_T rc;

	(void)wid;
	while ((rc = dacs_de_test(AT(c), &status)) == DACS_STS_PROC_RUNNING)
		;
	return rc;
}

static const struct {
	const char *name;
	DACS_ERR_T (*call)(struct child c, dacs_wid_t wid);
	bool reaps;
} calls[] = {
	{"dacs_wait", by_wait, false},
	{"dacs_test", by_test, false},
	{"dacs_send", by_send, false},
	{"dacs_mailbox_read", by_mailbox_read, false},
	{"dacs_mailbox_write", by_mailbox_write, false},
	{"dacs_mailbox_test", by_mailbox_test, false},
	{"dacs_de_wait", by_de_wait, true},
	{"dacs_de_test", by_de_test, true},
};
#define CALLS (int)(sizeof(calls) / sizeof(calls[0]))

/* ---- the kills ---- */

struct victim {
	pid_t pid;
	unsigned delay_us;
};

static void *kill_soon(void *arg)
{
	const struct victim *v = arg;

	usleep(v->delay_us);
	CHECK(kill(v->pid, SIGKILL) == 0, "kill");
	return NULL;
}

static void *read_on(void *arg)
{
	uint32_t word;
	struct child c = *(const struct child *)arg;
	DACS_ERR_T rc = dacs_mailbox_read(&word, AT(c));

	CHECK(rc == DACS_ERR_DE_TERM, "dacs_mailbox_read: %s", dacs_strerror(rc));
	CHECK(handled, "another thread's call reported the end before the handler had run");
	return NULL;
}

/* BESIDE: another thread waits for the same child. */
static void one_kill(de_id_t de, int i, dacs_wid_t wid, bool beside)
{
	struct child c = pair_start_on(de, "wait", NULL, NULL);
	struct victim v = {.delay_us = (unsigned)(i * 37 % 1500)};
	DACS_ERR_T want = calls[i % CALLS].reaps ? DACS_STS_PROC_ABORTED : DACS_ERR_DE_TERM, rc;
	pthread_t killer, reader;
	uint32_t pid;

	LATE(dacs_mailbox_read(&pid, AT(c)), DACS_SUCCESS);
	v.pid = (pid_t)pid;
	handled = 0;
	if (beside)
		CHECK(!pthread_create(&reader, NULL, read_on, &c), "thread");
	CHECK(!pthread_create(&killer, NULL, kill_soon, &v), "thread");
	rc = calls[i % CALLS].call(c, wid);
	CHECK(rc == want, "%s: %s", calls[i % CALLS].name, dacs_strerror(rc));
	CHECK(handled == 1, "%s reported the end, the handler has run %d times",
	      calls[i % CALLS].name, (int)handled);
	CHECK(!pthread_join(killer, NULL), "join");
	if (beside)
		CHECK(!pthread_join(reader, NULL), "join");
	if (want == DACS_ERR_DE_TERM)
		EXPECT(dacs_de_wait(AT(c), &(int32_t){0}), DACS_STS_PROC_ABORTED);
	CHECK(handled == 1, "handled %d times", (int)handled);
}

static int killed(bool beside)
{
	dacs_wid_t wid;
	uint32_t n = 1;
	de_id_t de;

	OK(dacs_init(0));
	OK(dacs_errhandler_reg(handler, 0));
	OK(dacs_wid_reserve(&wid));
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &de));
	for (int i = 0; i < KILLS / (beside ? 3 : 1); i++)
		if (!beside || !calls[i % CALLS].reaps)
			one_kill(de, i, wid, beside);
	OK(dacs_wid_release(&wid));
	OK(dacs_release_de_list(1, &de));
	OK(dacs_exit());
	return 0;
}

static int alone(int argc, char **argv)
{
	(void)argc, (void)argv;
	return killed(false);
}

static int two_threads(int argc, char **argv)
{
	(void)argc, (void)argv;
	return killed(true);
}

static const struct pair_entry roles[] = {{"wait", role_wait}, {NULL, NULL}};
static const struct pair_entry cases[] = {
	{"killed", alone}, {"killed, two threads wait", two_threads}, {NULL, NULL}};

int main(int argc, char **argv)
{
	return pair_main(argc, argv, cases, roles);
}
