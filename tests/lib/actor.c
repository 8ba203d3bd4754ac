/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting a test program as its own accelerator; looking at processes. */
#include "tests/lib/actor.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/other_build.h"
#include "tests/lib/settings.h"

const char *actor_self(void)
{
	static char path[4096];
	ssize_t n = path[0] ? 1 : readlink("/proc/self/exe", path, sizeof(path) - 1);

	CHECK(n > 0, "this program's path is not to be had");
	return path;
}

void actor_begin(int argc, char **argv, const struct actor *roles)
{
	slmpm_peer host = {0};

	if (argc < 2)
		return;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (; roles->name; roles++) {
		if (strcmp(argv[1], roles->name) != 0)
			continue;
		if (roles->name[0] != '-')
			EXPECT(slmpm_parent(&host), 0);
		exit(roles->play(host, argv + 2));
	}
	CHECK(false, "no role %s", argv[1]);
}

/* "tests/FOLDER/NAME": what is the same in every build. */
static const char *program_name(void)
{
	const char *self = actor_self(), *tests = NULL;

	for (const char *at = self; (at = strstr(at, "/tests/")); at++)
		tests = at + 1;
	CHECK(tests, "%s is not in a folder tests", self);
	return tests;
}

slmpm_peer actor_spawn_with(const struct slmpm_spawn_options *options, const char *role,
			    const char *a, const char *b)
{
	char *all[OTHER_WORDS + 4] = {(char *)(uintptr_t)actor_self()};
	struct slmpm_spawn_options usual = {.size = sizeof(usual)};
	slmpm_peer peer;
	int n = other_build(all, program_name());

	n = n ? n : 1;
	all[n] = (char *)(uintptr_t)role;
	all[n + 1] = (char *)(uintptr_t)a;
	all[n + 2] = a ? (char *)(uintptr_t)b : NULL;
	all[n + 3] = NULL;
	if (!options && settings_current())
		usual.envp = (char *const *)(uintptr_t)settings_current()->peer;
	EXPECT(slmpm_spawn(&peer, all[0], all + 1, options ? options : &usual), 0);
	return peer;
}

slmpm_peer actor_spawn(const char *role, const char *a, const char *b)
{
	return actor_spawn_with(NULL, role, a, b);
}

slmpm_peer actor_spawn_ready(const char *role)
{
	slmpm_peer child = actor_spawn(role, NULL, NULL);

	EXPECT(slmpm_recv(child, 0, NULL, 0, NULL, PATIENCE), 0);
	return child;
}

void actor_join(slmpm_peer peer, int code)
{
	EXPECT(slmpm_join(peer, NULL, PATIENCE), code);
}

/* The peer's machine may have the other byte order. */
void actor_tell(slmpm_peer peer, int word)
{
	uint32_t said = htole32((uint32_t)word);

	OK(slmpm_send(peer, ACTOR_WORDS, &said, sizeof(said), PATIENCE));
}

void actor_hear(slmpm_peer peer, int word)
{
	uint32_t heard = 0;

	EXPECT(slmpm_recv(peer, ACTOR_WORDS, &heard, sizeof(heard), NULL, PATIENCE), sizeof(heard));
	EXPECT((int)le32toh(heard), word);
}

struct slmpm_stats actor_stats(slmpm_peer peer)
{
	struct slmpm_stats stats;

	OK(slmpm_peer_stats(peer, &stats, sizeof(stats)));
	return stats;
}

void actor_pair(slmpm_ctx ctx, slmpm_peer *a, slmpm_peer *b)
{
	static unsigned number;
	slmpm_listener listener;
	char url[64];

	snprintf(url, sizeof(url), "shm:pair-%d-%u", (int)getpid(), number++);
	EXPECT(slmpm_listen(&listener, ctx, url), 0);
	EXPECT(slmpm_connect(a, ctx, url, PATIENCE), 0);
	EXPECT(slmpm_accept(listener, b, PATIENCE), 0);
	EXPECT(slmpm_unlisten(listener), 0);
}

#define SETTLED UINT32_C(0x5e771ed) /* a stream of nobody's */

void actor_settle(slmpm_peer a, slmpm_peer b)
{
	const slmpm_peer ends[] = {a, b, a, b};

	for (int i = 0; i < 3; i++) {
		EXPECT(slmpm_send(ends[i], SETTLED, NULL, 0, PATIENCE), 0);
		EXPECT(slmpm_recv(ends[i + 1], SETTLED, NULL, 0, NULL, PATIENCE), 0);
	}
}

void actor_nap(slmpm_ctx ctx)
{
	do
		(void)slmpm_progress(ctx);
	while (slmpm_arm(ctx) == 1);
	(void)slmpm_progress(ctx);
}

int actor_events(slmpm_ctx ctx, uint32_t type)
{
	struct slmpm_event e = {.size = sizeof(e)};
	int n = 0;

	while (slmpm_next_event(ctx, &e, 0) == 1)
		n += e.type == type;
	return n;
}

void actor_idle(slmpm_ctx ctx, unsigned *times)
{
	struct pollfd p = {.fd = slmpm_fd(ctx), .events = POLLIN};

	if (++*times < 32)
		(void)sched_yield();
	else if (slmpm_arm(ctx) == 0)
		(void)poll(&p, 1, 1);
}

int64_t actor_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int actor_slow(void)
{
	static const struct {
		const char *name;
		int times;
	} slow[] = {{"SLMPM_TEST_PEER", 10}, {"SLMPM_EMULATOR", 10}, {"SLMPM_SAN", 5}};

	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		const char *set = getenv(slow[i].name);

		if (set && *set)
			return slow[i].times;
	}
	return 1;
}

bool actor_tries(size_t i)
{
	const char *quick = getenv("SLMPM_TEST_QUICK"), *sanitizer = getenv("SLMPM_SAN");

	if ((!quick || !*quick) && (!sanitizer || strcmp(sanitizer, "thread") != 0))
		return true;
	for (const char *at = program_invocation_short_name; *at; at++)
		i += (unsigned char)*at;
	return i % 3 == 0;
}

/* The process's totals by peer: made with its first connection, and kept. */
static bool is_totals(DIR *d, const char *name)
{
	char target[64] = "";

	return readlinkat(dirfd(d), name, target, sizeof(target) - 1) > 0 &&
	       strstr(target, "memfd:slmpm-totals");
}

int actor_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = -1; /* its own */

	CHECK(d, "no /proc/self/fd");
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.' && !is_totals(d, e->d_name);
	closedir(d);
	return n;
}

bool actor_is_twice(const char *line)
{
	/* Named from 6.2 on. */
	return strstr(line, "[anon_shmem:slmpm-") || strstr(line, "/dev/zero (deleted)");
}

int actor_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long inode, last = 0;
	char line[512];
	int n = 0;

	CHECK(f, "no /proc/self/maps");
	while (fgets(line, sizeof(line), f)) {
		n += strstr(line, "memfd:slmpm") && !strstr(line, "memfd:slmpm-totals");
		if (!actor_is_twice(line) || sscanf(line, "%*s %*s %*s %*s %lu", &inode) != 1)
			continue;
		/* What a test shares with its children lies in one place. */
		n += inode == last ? 2 : 0;
		last = inode;
	}
	fclose(f);
	return n;
}

void actor_await_state(int pid, const char *states)
{
	int64_t until = actor_now_ms() + PATIENCE;

	for (;;) {
		struct timespec pause = {0, 200000};
		char path[64], line[256] = "", *end;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		f = fopen(path, "r");
		if (f && fgets(line, sizeof(line), f))
			end = strrchr(line, ')');
		else
			end = NULL;
		if (f)
			fclose(f);
		if (strchr(states, end ? end[2] : 'X'))
			return;
		CHECK(actor_now_ms() < until, "process %d never came to state %s", pid, states);
		nanosleep(&pause, NULL);
	}
}
