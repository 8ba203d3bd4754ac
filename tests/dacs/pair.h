/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host and accelerator in one test program: started without arguments it runs the cases, started by
 * pair_start it plays the role that its first argument names. Where the other one is another
 * machine's build of this program, DACS_TEST_ACCEL names it as accelerator (DACS_START_PARENT then
 * has the emulator), and DACS_TEST_RUN is what this one itself runs under. Each run has its own
 * reservation file and its own place for working directories, which has to be empty in the end.
 */
#ifndef TESTS_DACS_PAIR_H
#define TESTS_DACS_PAIR_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <dacs.h>

#include "tests/lib/filler.h"
#include "tests/lib/test.h"

#define UP    DACS_DE_PARENT, DACS_PID_PARENT /* the partner, seen from an accelerator */
#define PLAIN DACS_ORDER_ATTR_NONE, DACS_BYTE_SWAP_DISABLE

struct pair_entry { /* a case of the host or a role of the accelerator */
	const char *name;
	int (*run)(int argc, char **argv); /* a role's result is its exit code, a case's is 0 */
};

/* The call returns this code. */
#define EXPECT(call, want)                                                                         \
	do {                                                                                       \
		DACS_ERR_T got_ = (call);                                                          \
		CHECK(got_ == (want), "%s returned %s", #call, dacs_strerror(got_));               \
	} while (0)
#define OK(call) EXPECT(call, DACS_SUCCESS)
/* The call comes to this end, however many deadlines (SLMPM_TIMEOUT) pass before: a busy machine's
 * are no failure. */
#define LATE(call, want)                                                                           \
	do {                                                                                       \
		int64_t until_ = pair_now_ms() + PAIR_PATIENCE;                                    \
		DACS_ERR_T got_;                                                                   \
		do                                                                                 \
			got_ = (call);                                                             \
		while (got_ == DACS_ERR_DACSD_FAILURE && pair_now_ms() < until_);                  \
		CHECK(got_ == (want), "%s returned %s", #call, dacs_strerror(got_));               \
	} while (0)
#define PAIR_PATIENCE 20000 /* ms: what never happens in a test that passes */

static char pair_dir[64]; /* of this run; empty in a role */
static char pair_self[512];

__attribute__((unused)) static int64_t pair_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((unused)) static char *pair_accel(void)
{
	char *other = getenv("DACS_TEST_ACCEL");

	return other ? other : pair_self;
}

/* Plays ROLE, a host, in a process of its own, with SETTINGS: they are read once in a process's
 * life. */
__attribute__((unused)) static int pair_host(const char *settings, const char *role)
{
	const char *under = getenv("DACS_TEST_RUN");
	char command[1024];

	snprintf(command, sizeof(command), "%s exec %s '%s' %s", settings, under ? under : "",
		 pair_self, role);
	return system(command);
}

/* A child of the host: the element and the process. */
struct child {
	de_id_t de;
	dacs_process_id_t pid;
};
#define AT(child) (child).de, (child).pid

/* This program as accelerator on DE, with up to three words: the role and what it is told. */
__attribute__((unused)) static struct child pair_start_on(de_id_t de, const char *role,
							  const char *a, const char *b)
{
	const char *argv[] = {role, a, b, NULL};
	struct child c = {.de = de};

	OK(dacs_de_start(de, pair_accel(), argv, NULL, DACS_PROC_REMOTE_FILE, &c.pid));
	CHECK(c.pid != 0 && c.pid < DACS_PID_PARENT, "process id %" PRIx64, c.pid);
	return c;
}

__attribute__((unused)) static struct child pair_start(const char *role, const char *a)
{
	uint32_t n = 1;
	de_id_t de = 0;

	OK(dacs_reserve_children(DACS_DE_CBE, &n, &de));
	CHECK(n == 1 && de != 0, "%u elements granted", n);
	return pair_start_on(de, role, a, NULL);
}

/* Its end, as expected, and the element back. */
__attribute__((unused)) static void pair_end(struct child c, DACS_ERR_T want, int32_t want_status)
{
	int32_t status = -1;

	LATE(dacs_de_wait(AT(c), &status), want);
	CHECK(status == want_status, "exit status %d", status);
	OK(dacs_release_de_list(1, &c.de));
}

/* As late as it may come. */
__attribute__((unused)) static DACS_ERR_T pair_wait(dacs_wid_t wid)
{
	int64_t until = pair_now_ms() + PAIR_PATIENCE;
	DACS_ERR_T rc;

	do
		rc = dacs_wait(wid);
	while (rc == DACS_ERR_DACSD_FAILURE && pair_now_ms() < until);
	return rc;
}

/* Sends or receives and waits. */
__attribute__((unused)) static DACS_ERR_T pair_send(struct child c, uint32_t stream,
						    const void *data, uint32_t len,
						    DACS_BYTE_SWAP_T swap)
{
	dacs_wid_t wid;
	DACS_ERR_T rc;

	OK(dacs_wid_reserve(&wid));
	rc = dacs_send((void *)(uintptr_t)data, len, AT(c), stream, wid, swap);
	if (rc == DACS_SUCCESS)
		rc = pair_wait(wid);
	OK(dacs_wid_release(&wid));
	return rc;
}

__attribute__((unused)) static DACS_ERR_T pair_recv(struct child c, uint32_t stream, void *data,
						    uint32_t len, DACS_BYTE_SWAP_T swap)
{
	dacs_wid_t wid;
	DACS_ERR_T rc;

	OK(dacs_wid_reserve(&wid));
	rc = dacs_recv(data, len, AT(c), stream, wid, swap);
	if (rc == DACS_SUCCESS)
		rc = pair_wait(wid);
	OK(dacs_wid_release(&wid));
	return rc;
}

__attribute__((unused)) static struct child pair_parent(void)
{
	return (struct child){DACS_DE_PARENT, DACS_PID_PARENT};
}

/* A word by the mailbox, and the one that has to come. */
__attribute__((unused)) static void pair_tell(struct child c, uint32_t word)
{
	LATE(dacs_mailbox_write(&word, AT(c)), DACS_SUCCESS);
}

__attribute__((unused)) static void pair_await(struct child c, uint32_t want)
{
	uint32_t word = 0;

	LATE(dacs_mailbox_read(&word, AT(c)), DACS_SUCCESS);
	CHECK(word == want, "word %u, not %u", word, want);
}

/* Bytes that depend on where they are and on SEED. */
#define pair_fill(data, len, seed)   actor_fill(data, seed, len)
#define pair_filled(data, len, seed) actor_filled(data, seed, len)

static int pair_role(const struct pair_entry *roles, int argc, char **argv)
{
	for (; roles->name; roles++)
		if (!strcmp(roles->name, argv[1]))
			return roles->run(argc - 2, argv + 2);
	fprintf(stderr, "no role %s\n", argv[1]);
	return 99;
}

static void pair_enter(void)
{
	char path[96];

	snprintf(pair_dir, sizeof(pair_dir), "/tmp/dacs-test-XXXXXX");
	CHECK(mkdtemp(pair_dir), "no directory below /tmp");
	snprintf(path, sizeof(path), "%s/run", pair_dir);
	CHECK(mkdir(path, 0700) == 0, "mkdir %s", path);
	setenv("SLMPM_RUN_DIR", path, 1);
	snprintf(path, sizeof(path), "%s/cwd", pair_dir);
	CHECK(mkdir(path, 0700) == 0, "mkdir %s", path);
	setenv("SLMPM_DACS_CWD_PREFIX", path, 1);
}

static void pair_leave(void)
{
	char command[128];
	char path[96];

	snprintf(path, sizeof(path), "%s/cwd", pair_dir);
	CHECK(rmdir(path) == 0, "a working directory was left in %s", path);
	snprintf(command, sizeof(command), "rm -r %s", pair_dir);
	CHECK(system(command) == 0, "%s", command);
}

/* CASES and ROLES end with a nameless entry. */
static int pair_main(int argc, char **argv, const struct pair_entry *cases,
		     const struct pair_entry *roles)
{
	ssize_t n = readlink("/proc/self/exe", pair_self, sizeof(pair_self) - 1);

	CHECK(n > 0, "no /proc/self/exe");
	pair_self[n] = 0;
	if (argc > 1)
		return pair_role(roles, argc, argv);
	setbuf(stdout, NULL);
	pair_enter();
	for (; cases->name; cases++) {
		int64_t begin = pair_now_ms();

		printf("%s ...", cases->name);
		CHECK(cases->run(0, NULL) == 0, "%s", cases->name);
		printf(" %" PRId64 " ms\n", pair_now_ms() - begin);
	}
	pair_leave();
	return 0;
}

#endif
