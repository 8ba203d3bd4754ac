/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/* native-only */
/*
 * What the kernel refuses: system calls that an older or stricter one lacks, descriptors, file
 * sizes, address space. Each is either replaced without notice or a clear error, never a crash,
 * and nothing is left behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/honest.h"
#include "tests/lib/raw_peer.h"
#include "tests/lib/refuse.h"
#include "tests/lib/settings.h"

#define LONG_MESSAGE ((size_t)300000)
#define HANDSHAKE_MS 2000

static unsigned char buffer[LONG_MESSAGE];
static char detail[256];

/* ---- everything, as far as it goes ---- */

static int echo(slmpm_peer host, char **words)
{
	int64_t n = -SLMPM_ECLOSED;

	alarm(30);
	if (words[0]) { /* limits of the host alone */
		struct rlimit l;

		for (int i = 0; i < RLIM_NLIMITS; i++)
			if (getrlimit((__rlimit_resource_t)i, &l) == 0) {
				l.rlim_cur = l.rlim_max;
				(void)setrlimit((__rlimit_resource_t)i, &l);
			}
	}
	if (slmpm_parent(&host) < 0)
		return 9;
	while ((n = slmpm_recv(host, 1, buffer, sizeof(buffer), NULL, PATIENCE)) >= 0)
		OK(slmpm_send(host, 2, buffer, (size_t)n, PATIENCE));
	return n == -SLMPM_ECLOSED ? 0 : 1;
}

static int note(int rc)
{
	snprintf(detail, sizeof(detail), "%s", slmpm_error_detail());
	return rc;
}

static int there_and_back(slmpm_peer peer, size_t n)
{
	int64_t rc;

	actor_fill(buffer, n, n);
	rc = slmpm_send(peer, 1, buffer, n, PATIENCE);
	if (rc == 0)
		rc = slmpm_recv(peer, 2, buffer, sizeof(buffer), NULL, PATIENCE);
	if (rc < 0)
		return note((int)rc);
	CHECK((size_t)rc == n && actor_filled(buffer, n, n), "%zu bytes came back wrong", n);
	return 0;
}

static int loan_there(slmpm_peer peer)
{
	void *at;
	int rc = slmpm_loan(peer, 1, LONG_MESSAGE, &at, PATIENCE);

	if (rc == 0) {
		actor_fill(at, 5, LONG_MESSAGE);
		rc = slmpm_commit(peer, at, LONG_MESSAGE, NULL);
	}
	if (rc == 0 &&
	    slmpm_recv(peer, 2, buffer, sizeof(buffer), NULL, PATIENCE) == (int64_t)LONG_MESSAGE)
		CHECK(actor_filled(buffer, 5, LONG_MESSAGE), "the loan came back wrong");
	else if (rc == 0)
		rc = -SLMPM_ESYSTEM;
	return rc < 0 ? note(rc) : 0;
}

/* Spawn, short and long messages, sleeping both ways, a loan, a death, the end. */
static int do_everything(const char *own_limits)
{
	struct slmpm_spawn_options options = {.size = sizeof(options)};
	char *words[] = {"-echo", (char *)(uintptr_t)own_limits, NULL};
	slmpm_peer peer, victim;
	slmpm_ctx ctx;
	int rc = note(slmpm_open(&ctx, NULL));

	if (rc < 0)
		return rc;
	options.ctx = ctx;
	rc = note(slmpm_spawn(&peer, actor_self(), words, &options));
	for (int i = 0; i < 20 && rc == 0; i++)
		rc = there_and_back(peer, (size_t)i);
	if (rc == 0)
		rc = there_and_back(peer, LONG_MESSAGE);
	if (rc == 0)
		rc = loan_there(peer);
	if (rc == 0)
		rc = note(slmpm_spawn(&victim, actor_self(), words, &options));
	if (rc == 0)
		rc = there_and_back(victim, 10);
	if (rc == 0) {
		OK(slmpm_kill(victim, 0));
		EXPECT(slmpm_recv(victim, 1, buffer, 1, NULL, PATIENCE), -SLMPM_EDEAD);
		EXPECT(slmpm_join(victim, NULL, PATIENCE), 128 + SIGKILL);
		EXPECT(slmpm_join(peer, NULL, PATIENCE), 0);
	}
	(void)slmpm_shut(ctx, PATIENCE);
	return rc;
}

/* ---- system calls ---- */

struct strictness {
	const char *name;
	struct refusal refusal;
	int error;        /* 0: works all the same */
	const char *word; /* in the detail */
};

static const struct strictness strictnesses[] = {
	{"membarrier", {SYS_membarrier, EPERM, 0, 0, 0}, 0, NULL},
	{"membarrier, expedited", {SYS_membarrier, EINVAL, 0, ~0u, 2}, 0, NULL},
	{"pidfd_open", {SYS_pidfd_open, ENOSYS, 0, 0, 0}, 0, NULL},
	{"SO_PEERPIDFD", {SYS_getsockopt, ENOPROTOOPT, 2, ~0u, 77}, 0, NULL},
	{"MFD_NOEXEC_SEAL", {SYS_memfd_create, EINVAL, 1, 8, 8}, 0, NULL},
	{"F_SEAL_FUTURE_WRITE", {SYS_fcntl, EINVAL, 2, ~0u, 16 | F_SEAL_SEAL}, 0, NULL},
	{"MADV_POPULATE_WRITE", {SYS_madvise, EINVAL, 2, ~0u, 23}, 0, NULL},
	{"madvise", {SYS_madvise, EINVAL, 0, 0, 0}, 0, NULL},
	{"sched_yield", {SYS_sched_yield, ENOSYS, 0, 0, 0}, 0, NULL},
	{"memfd_create", {SYS_memfd_create, EPERM, 0, 0, 0}, -1, "memory"},
	{"memfd_create, no such call", {SYS_memfd_create, ENOSYS, 0, 0, 0}, -1, "memory"},
	{"F_ADD_SEALS", {SYS_fcntl, EPERM, 1, ~0u, F_ADD_SEALS}, -1, "memory"},
	{"shared mmap", {SYS_mmap, ENOMEM, 3, 3, MAP_SHARED}, SLMPM_ENOMEM, "memory"},
	{"getrandom", {SYS_getrandom, ENOSYS, 0, 0, 0}, SLMPM_ESYSTEM, "control connection"},
	{"epoll_create1", {SYS_epoll_create1, EMFILE, 0, 0, 0}, SLMPM_ENOFILE, "epoll"},
	{"epoll_ctl", {SYS_epoll_ctl, ENOSPC, 0, 0, 0}, -1, "control connection"},
	{"socketpair", {SYS_socketpair, ENFILE, 0, 0, 0}, SLMPM_ENOFILE, "control socket"},
	{"execve", {SYS_execve, EACCES, 0, 0, 0}, SLMPM_EACCES, "cannot be started"},
};
#define STRICTNESSES (sizeof(strictnesses) / sizeof(*strictnesses))

static int be_strict(void *arg)
{
	const struct strictness *s = arg;
	struct holdings before = holdings_now();
	int rc;

	if (!refuse(&s->refusal))
		return TEST_SKIPPED;
	rc = do_everything(NULL);
	printf("without %-28s %s\n", s->name, rc ? detail : "it works");
	if (s->error == 0)
		CHECK(rc == 0, "without %s: %d (%s)", s->name, rc, detail);
	else
		CHECK(rc < 0 && (s->error < 0 || rc == -s->error) && strstr(detail, s->word),
		      "without %s: %d (%s)", s->name, rc, detail);
	holdings_expect(before, s->name);
	return 0;
}

/* ---- limits ---- */

static void limit(__rlimit_resource_t what, rlim_t value)
{
	struct rlimit l;

	CHECK(getrlimit(what, &l) == 0, "getrlimit");
	l.rlim_cur = value < l.rlim_max ? value : l.rlim_max;
	CHECK(setrlimit(what, &l) == 0, "setrlimit");
}

/* One more descriptor at a time: an error each time, until there are enough. */
static int few_descriptors(void *arg)
{
	struct holdings before = holdings_now();
	int refused = 0, rc = -1;

	(void)arg;
	(void)actor_self();
	for (rlim_t n = 3; rc < 0 && n < 100; n++) {
		limit(RLIMIT_NOFILE, n);
		rc = do_everything("own");
		limit(RLIMIT_NOFILE, 1000);
		CHECK(rc == 0 || rc == -SLMPM_ENOFILE, "with %d descriptors: %d (%s)", (int)n, rc,
		      detail);
		holdings_expect(before, "few descriptors");
		refused += rc < 0;
	}
	CHECK(rc == 0 && refused > 5, "%d times refused, then %d", refused, rc);
	printf("%d times out of descriptors\n", refused);
	return 0;
}

/* The same where the accelerator has too few: the host is told. */
static int few_descriptors_there(void *arg)
{
	struct holdings before = holdings_now();
	int refused = 0;

	(void)arg;
	for (int n = 4; n < 14; n++) {
		char *words[] = {"-few", (char[16]){0}, NULL};
		slmpm_peer peer;
		int rc;

		snprintf(words[1], 16, "%d", n);
		OK(slmpm_spawn(&peer, actor_self(), words, NULL));
		rc = there_and_back(peer, 10);
		if (rc == 0)
			rc = loan_there(peer);
		CHECK(rc == 0 || rc == -SLMPM_ENOFILE || rc == -SLMPM_EDEAD,
		      "with %d descriptors there: %d (%s)", n, rc, detail);
		refused += rc < 0;
		(void)slmpm_join(peer, NULL, PATIENCE);
	}
	CHECK(refused > 0 && refused < 10, "%d times refused", refused);
	before.descriptors += 3; /* the default context's */
	before.mappings += 2;
	holdings_expect(before, "few descriptors there");
	printf("%d times out of descriptors there\n", refused);
	return 0;
}

static int run_few(slmpm_peer host, char **words)
{
	limit(RLIMIT_NOFILE, (rlim_t)atoi(words[0]));
	words[0] = NULL;
	return echo(host, words);
}

/* What a context opens but once is open then. */
static void warm(slmpm_ctx ctx, slmpm_listener listener, const char *url)
{
	slmpm_peer a, b;

	OK(slmpm_connect(&a, ctx, url, PATIENCE));
	OK(slmpm_accept(listener, &b, PATIENCE));
	OK(slmpm_close(a, PATIENCE));
	OK(slmpm_close(b, PATIENCE));
	actor_nap(ctx);
}

/* What the listener has still half open goes, at the latest when its handshake is overdue. */
static void forget_half_open(slmpm_listener listener, struct holdings before)
{
	int64_t until = actor_now_ms() + 2 * HANDSHAKE_MS;
	slmpm_peer peer;

	while (slmpm_accept(listener, &peer, 30) == 0)
		OK(slmpm_close(peer, PATIENCE));
	do
		(void)slmpm_accept(listener, &peer, 10);
	while (holdings_now().descriptors > before.descriptors && actor_now_ms() < until);
}

/* Both ends of a connection in one process, by a name; over TCP; and by TCP away from it. */
static int few_for_a_pair(void *arg)
{
	const char *fabric = arg;
	struct slmpm_listener_info info = {.size = sizeof(info)};
	struct holdings before;
	slmpm_listener listener;
	slmpm_peer a, b;
	slmpm_ctx ctx;
	int refused = 0, rc = -1;
	char url[64];

	snprintf(url, sizeof(url), fabric ? "tcp://127.0.0.1:0" : "shm:few-%d", (int)getpid());
	settings_one_link(fabric ? fabric : "shm");
	settings_set("SLMPM_SECRET", "00112233445566778899aabbccddeeff");
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	OK(slmpm_listener_query(listener, &info));
	warm(ctx, listener, info.url);
	before = holdings_now();
	for (int n = before.descriptors; rc < 0 && n < 100; n++) {
		limit(RLIMIT_NOFILE, (rlim_t)n);
		rc = slmpm_connect(&a, ctx, info.url, 100);
		limit(RLIMIT_NOFILE, 1000);
		if (rc == 0)
			break;
		CHECK(rc == -SLMPM_ENOFILE || rc == -SLMPM_ETIMEOUT || rc == -SLMPM_EDEAD,
		      "with %d descriptors: %d (%s)", n, rc, slmpm_error_detail());
		refused++;
		forget_half_open(listener, before);
		holdings_expect(before, "few for a pair");
	}
	OK(rc);
	OK(slmpm_accept(listener, &b, PATIENCE));
	OK(slmpm_send(a, 1, "hello", 5, PATIENCE));
	EXPECT(slmpm_recv(b, 1, buffer, 5, NULL, PATIENCE), 5);
	CHECK(refused > 2, "%d times refused", refused);
	OK(slmpm_shut(ctx, PATIENCE));
	printf("%d times out of descriptors for a pair\n", refused);
	return 0;
}

static void limit_of(pid_t pid, rlim_t value)
{
	struct rlimit l;

	CHECK(prlimit(pid, RLIMIT_NOFILE, NULL, &l) == 0, "prlimit");
	l.rlim_cur = value;
	CHECK(prlimit(pid, RLIMIT_NOFILE, &l, NULL) == 0, "prlimit");
}

/* Lets our parent have descriptors once it sleeps, told by a byte that it is about to. */
static int relieve(void *arg)
{
	const int *notified = arg;
	char byte;

	CHECK(read(*notified, &byte, 1) == 1, "nothing is told");
	actor_await_state(getppid(), "S");
	limit_of(getppid(), 1000);
	return 0;
}

/* A connection comes where there is no descriptor for it: who waits takes it when there is one. */
static int relieved_in_accept(void *arg)
{
	struct holdings before = holdings_now();
	slmpm_listener listener;
	char name[64], url[80];
	struct pollfd shown;
	pid_t comer, helper;
	slmpm_peer peer;
	slmpm_ctx ctx;
	int notified[2];

	(void)arg;
	snprintf(name, sizeof(name), "relieved-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", name);
	CHECK(pipe(notified) == 0, "no pipe");
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	helper = child_start(relieve, &notified[0], 20);
	comer = child_start(honest_peer, name, 20);
	limit(RLIMIT_NOFILE, 3);
	shown = (struct pollfd){.fd = slmpm_fd(ctx), .events = POLLIN};
	CHECK(poll(&shown, 1, PATIENCE) == 1, "nobody comes");
	EXPECT(slmpm_accept(listener, &peer, 10), -SLMPM_ETIMEOUT);
	CHECK(poll(&shown, 1, 0) == 0, "it would be awake for ever");
	CHECK(write(notified[1], "", 1) == 1, "the pipe");
	OK(slmpm_accept(listener, &peer, PATIENCE));
	honest_works(peer);
	OK(slmpm_shut(ctx, PATIENCE));
	CHECK(child_wait(helper) == 0 && child_wait(comer) == 0, "see above");
	close(notified[0]);
	close(notified[1]);
	holdings_expect(before, "relieved in accept");
	return 0;
}

#define UNAUTHENTICATED 200

static int talk_nonsense(void *name)
{
	for (int i = 0; i < UNAUTHENTICATED; i++) {
		char reason[112];
		int fd = raw_connect(name);

		CHECK(fd >= 0, "the listener is not there");
		raw_say(fd, "nonsense", 8, NULL, 0);
		raw_hear_end(fd, reason);
		CHECK(strstr(reason, "impossible control packet"), "%d: \"%s\"", i, reason);
		close(fd);
	}
	return 0;
}

/* Nobody accepts them, nor is told of them: they take neither descriptors nor memory once they are
 * refused. */
static int many_strangers(void *arg)
{
	struct slmpm_event e = {.size = sizeof(e)};
	siginfo_t ended = {.si_pid = 0};
	struct holdings before;
	slmpm_listener listener;
	char name[64], url[80];
	slmpm_ctx ctx;
	pid_t pid;

	(void)arg;
	snprintf(name, sizeof(name), "strangers-%d", (int)getpid());
	snprintf(url, sizeof(url), "shm:%s", name);
	OK(slmpm_open(&ctx, NULL));
	OK(slmpm_listen(&listener, ctx, url));
	before = holdings_now();
	pid = child_start(talk_nonsense, name, 20);
	limit(RLIMIT_NOFILE, (rlim_t)before.descriptors + 10);
	do
		EXPECT(slmpm_next_event(ctx, &e, 10), 0);
	while (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && !ended.si_pid);
	CHECK(child_wait(pid) == 0, "see above");
	holdings_expect(before, "strangers");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int short_files(void *arg)
{
	struct holdings before = holdings_now();
	int rc;

	(void)arg;
	limit(RLIMIT_FSIZE, 65536); /* SIGXFSZ would end this process */
	rc = do_everything(NULL);
	CHECK(rc == -SLMPM_EFBIG, "files of 64 KiB: %d (%s)", rc, detail);
	printf("files of 64 KiB: %s\n", detail);
	holdings_expect(before, "short files");
	return 0;
}

/* A ring that fits, only loans do not. */
static int short_files_small_ring(void *arg)
{
	int rc;

	(void)arg;
	setenv("SLMPM_RING_SEGMENTS", "256", 1);
	limit(RLIMIT_FSIZE, 65536);
	rc = do_everything(NULL);
	CHECK(rc == -SLMPM_EFBIG && strstr(detail, "loan"), "a small ring: %d (%s)", rc, detail);
	return 0;
}

static rlim_t address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long long pages = 0;

	CHECK(f && fscanf(f, "%llu", &pages) == 1, "no statm");
	fclose(f);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int little_memory(void *arg)
{
	struct holdings before = holdings_now();
	int refused = 0, rc = -1;

	(void)arg;
	(void)actor_self();
	for (rlim_t more = 0; rc < 0 && more < 64 << 20; more += more < 2 << 20 ? 65536 : 1 << 20) {
		limit(RLIMIT_AS, address_space() + more);
		rc = do_everything("own");
		limit(RLIMIT_AS, RLIM_INFINITY);
		CHECK(rc == 0 || rc == -SLMPM_ENOMEM, "with %llu bytes more: %d (%s)",
		      (unsigned long long)more, rc, detail);
		holdings_expect(before, "little memory");
		refused += rc < 0;
	}
	CHECK(rc == 0 && refused > 5, "%d times refused, then %d", refused, rc);
	printf("%d times out of memory\n", refused);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"-echo", echo}, {"-few", run_few}, {NULL, NULL}};
	static const struct {
		const char *name;
		int (*body)(void *);
		const char *over;
	} limits[] = {
		{"few descriptors", few_descriptors, NULL},
		{"few descriptors there", few_descriptors_there, NULL},
		{"few for a pair", few_for_a_pair, NULL},
		{"few for a pair over TCP", few_for_a_pair, "tcp"},
		{"few for a pair that comes near", few_for_a_pair, "shm"},
		{"relieved in accept", relieved_in_accept, NULL},
		{"many strangers", many_strangers, NULL},
		{"short files", short_files, NULL},
		{"short files, small ring", short_files_small_ring, NULL},
		{"little memory", little_memory, NULL},
	};
	int wrong = 0;

	settings_one_link("shm");
	actor_begin(argc, argv, roles);
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	setenv("SLMPM_HANDSHAKE_MS", "2000", 1); /* HANDSHAKE_MS */
	for (size_t i = 0; i < STRICTNESSES; i++) {
		int rc = child_run(be_strict, (void *)(uintptr_t)&strictnesses[i], 20);

		if (rc == TEST_SKIPPED)
			test_skip("no system call filter can be had here");
		wrong += rc != 0;
		if (rc)
			fprintf(stderr, "without %s: ended with %d\n", strictnesses[i].name, rc);
	}
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		int rc = child_run(limits[i].body, (void *)(uintptr_t)limits[i].over, 20);

		wrong += rc != 0;
		if (rc)
			fprintf(stderr, "%s: ended with %d\n", limits[i].name, rc);
	}
	CHECK(wrong == 0, "%d of them failed", wrong);
	return 0;
}
