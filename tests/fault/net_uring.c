/* SPDX-License-Identifier: BSD-3-Clause */
/* libs: -pthread */
/*
 * io_uring as the engine of the TCP fabric: used where it is hinted for and can be had; where the
 * kernel refuses it, or a part of it, at first or later, messages travel all the same, and what is
 * told says why. A context may go from thread to thread, and its ring dies with the first.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/refuse.h"

#define SECONDS 20
#define LAPS    40
#define LONGEST 300000

static unsigned char bytes[LONGEST];
static slmpm_ctx ctx;
static slmpm_peer peer;

struct trial {
	const char *engine;
	struct refusal refusal;
	const char *notified; /* in what slmpm_fabric_at says */
	bool ring;            /* there is one afterwards */
};

static const struct trial trials[] = {
	{"uring", {0}, "receives by io_uring; sends by io_uring", true},
	{"uring-recv", {0}, "receives by io_uring; sends by plain calls", true},
	{"uring-send", {0}, "receives by plain calls; sends by io_uring", true},
	{"plain", {0}, "receives and sends by plain calls", false},
	{"auto", {0}, "receives and sends by plain calls", false},
	{"uring", {.call = SYS_io_uring_setup, .error = EPERM}, "(Operation not permitted)", false},
	{"uring", {.call = SYS_io_uring_setup, .error = ENOSYS}, "(Function not impl", false},
	{"auto", {.call = SYS_io_uring_setup, .error = ENOMEM}, "(Cannot allocate memory)", false},
	/* As kernels do that are older than what is wanted. */
	{"uring",
	 {.call = SYS_io_uring_register,
	  .error = EINVAL,
	  .arg = 1,
	  .mask = ~0u,
	  .value = IORING_REGISTER_PBUF_RING},
	 "(Invalid argument)",
	 false},
	{"uring",
	 {.call = SYS_io_uring_enter, .error = EACCES},
	 "refused (Permission denied)",
	 false},
};

/* ---- a pair --------------------------------------------------------------------------------- */

/* Returns what comes. */
static int guest(void *arg)
{
	static unsigned char back[LONGEST];
	int64_t n;

	setenv("SLMPM_TCP_ENGINE", "plain", 1);
	OK(slmpm_open(&ctx, NULL));
	while ((n = slmpm_connect(&peer, ctx, arg, PATIENCE)) == -SLMPM_ENOENT)
		usleep(1000);
	OK((int)n);
	while ((n = slmpm_recv(peer, 0, back, sizeof(back), NULL, PATIENCE)) >= 0)
		OK(slmpm_send(peer, 0, back, (size_t)n, PATIENCE));
	return n == -SLMPM_ECLOSED ? 0 : 1;
}

static void meet(pid_t *child)
{
	static char url[48];
	slmpm_listener listener;

	snprintf(url, sizeof(url), "shm:uring-%d", (int)getpid());
	*child = child_start(guest, url, SECONDS);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	OK(slmpm_accept(listener, &peer, PATIENCE));
	OK(slmpm_unlisten(listener));
}

static void part(pid_t child)
{
	OK(slmpm_close(peer, PATIENCE));
	CHECK(child_wait(child) == 0, "the guest failed");
	slmpm_shut(ctx, 0);
}

/* There and back. */
static void talk(uint64_t seed)
{
	static const size_t sizes[] = {8, 1, 4000, 70000, 64, 20000, LONGEST, 0};

	for (uint64_t i = 0; i < LAPS; i++) {
		size_t n = sizes[i % 8];

		actor_fill(bytes, seed + i, n);
		OK(slmpm_send(peer, 0, bytes, n, PATIENCE));
		memset(bytes, 0, n);
		EXPECT(slmpm_recv(peer, 0, bytes, LONGEST, NULL, PATIENCE), (int64_t)n);
		CHECK(actor_filled(bytes, seed + i, n), "message %d of %zu bytes", (int)i, n);
	}
}

static bool has_ring(void)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *e;
	bool found = false;

	CHECK(all, "/proc/self/fd");
	while ((e = readdir(all))) {
		char text[64] = "";

		(void)!readlinkat(dirfd(all), e->d_name, text, sizeof(text) - 1);
		found |= strcmp(text, "anon_inode:[io_uring]") == 0;
	}
	closedir(all);
	return found;
}

/* ---- hinted for and refused ------------------------------------------------------------------ */

static void notified(char text[128])
{
	struct slmpm_fabric_info info = {.size = sizeof(info)};

	for (int i = 0; slmpm_fabric_at(i, &info) >= 0; i++)
		if (strcmp(info.name, "tcp") == 0)
			strcpy(text, info.detail);
}

static int run(void *arg)
{
	const struct trial *t = arg;
	char detail[128] = "";
	pid_t child;

	setenv("SLMPM_FABRIC", "tcp", 1);
	setenv("SLMPM_TCP_ENGINE", t->engine, 1);
	if (t->refusal.call && !refuse(&t->refusal))
		test_skip("no filter can be had");
	notified(detail);
	CHECK(strstr(detail, t->notified), "\"%s\" lacks \"%s\"", detail, t->notified);
	meet(&child);
	talk(1);
	CHECK(has_ring() == t->ring, "%s: a ring is %s", t->engine, t->ring ? "missing" : "there");
	part(child);
	CHECK(!has_ring(), "a ring stays behind");
	return 0;
}

/* What was found to work does so no more. */
static int refused_later(void *arg)
{
	const struct refusal r = {.call = SYS_io_uring_setup, .error = EMFILE};
	char detail[128];
	pid_t child;

	(void)arg;
	setenv("SLMPM_FABRIC", "tcp", 1);
	setenv("SLMPM_TCP_ENGINE", "uring", 1);
	notified(detail);
	if (!refuse(&r))
		return TEST_SKIPPED;
	meet(&child);
	talk(1);
	CHECK(!has_ring(), "a ring");
	part(child);
	return 0;
}

/* ---- from thread to thread ------------------------------------------------------------------- */

static void *go_on(void *seed)
{
	talk(*(uint64_t *)seed);
	return NULL;
}

/* The first thread ends, or waits; each has what the one before left with the kernel. */
static int threads(void *arg)
{
	pid_t child;

	setenv("SLMPM_FABRIC", "tcp", 1);
	setenv("SLMPM_TCP_ENGINE", arg, 1);
	meet(&child);
	for (uint64_t i = 1; i < 8; i++) {
		uint64_t seed = i * 1000;
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, go_on, &seed) == 0, "no thread");
		CHECK(pthread_join(thread, NULL) == 0, "join");
		if (i % 2)
			talk(i * 2000);
	}
	part(child);
	CHECK(!has_ring(), "a ring stays behind");
	return 0;
}

static bool works(void)
{
	char detail[128] = "";

	setenv("SLMPM_TCP_ENGINE", "uring", 1);
	notified(detail);
	return strstr(detail, "receives by io_uring");
}

static int ask(void *arg)
{
	(void)arg;
	return works() ? 0 : 1;
}

int main(void)
{
	bool can = child_run(ask, NULL, SECONDS) == 0;

	for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++) {
		if (trials[i].ring && !can)
			continue;
		CHECK(child_run(run, (void *)(uintptr_t)&trials[i], SECONDS) == 0, "trial %zu", i);
	}
	CHECK(child_run(refused_later, NULL, SECONDS) == 0, "refused later");
	CHECK(child_run(threads, (void *)(uintptr_t) "uring", SECONDS) == 0, "threads");
	CHECK(child_run(threads, (void *)(uintptr_t) "uring-send", SECONDS) == 0, "threads");
	if (!can)
		printf("io_uring is refused here: how it is used was not seen\n");
	return 0;
}
