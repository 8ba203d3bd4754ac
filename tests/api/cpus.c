/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processors accelerators get: by the setting, the topology, and how many the host has
 * itself. */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

static cpu_set_t all, one, other; /* of this machine; its first; another of it */
static char list[32];             /* the other, as written */

struct want {
	const char *setting;
	const cpu_set_t *host, *first, *second; /* masks: its own, of two accelerators */
};

static cpu_set_t mask_now(void)
{
	cpu_set_t set;

	CHECK(sched_getaffinity(0, sizeof(set), &set) == 0, "getaffinity");
	return set;
}

static void give(const cpu_set_t *set)
{
	CHECK(sched_setaffinity(0, sizeof(*set), set) == 0, "setaffinity");
}

static bool find_processors(void)
{
	int found[2] = {-1, -1}, n = 0;

	memset(&all, 0xff, sizeof(all));
	if (sched_setaffinity(0, sizeof(all), &all) != 0)
		return false;
	all = mask_now();
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET((size_t)i, &all))
			found[n++] = i;
	if (n < 2)
		return false;
	CPU_SET((size_t)found[0], &one);
	CPU_SET((size_t)found[1], &other);
	snprintf(list, sizeof(list), "%d", found[1]);
	return true;
}

/* ---- the accelerator ------------------------------------------------------------------------ */

static int says_mask(slmpm_peer host, char **words)
{
	cpu_set_t set = mask_now();

	(void)words;
	OK(slmpm_send(host, 0, &set, sizeof(set), PATIENCE));
	EXPECT(slmpm_recv(host, 0, NULL, 0, NULL, PATIENCE), -SLMPM_ECLOSED);
	return 0;
}

/* ---- the host ------------------------------------------------------------------------------- */

static slmpm_peer started_on(const cpu_set_t *want, const char *what)
{
	slmpm_peer peer = actor_spawn("mask", NULL, NULL);
	cpu_set_t set;

	EXPECT(slmpm_recv(peer, 0, &set, sizeof(set), NULL, PATIENCE), sizeof(set));
	CHECK(CPU_EQUAL(&set, want), "%s: %d processors, not the %d expected", what,
	      CPU_COUNT(&set), CPU_COUNT(want));
	return peer;
}

static int by_setting(void *arg)
{
	const struct want *w = arg;
	slmpm_peer first, second;
	cpu_set_t after;

	OK(setenv("SLMPM_CPUS", w->setting, 1));
	give(w->host);
	for (int round = 0; round < 2; round++) { /* those that have been joined do not count */
		first = started_on(w->first, w->setting);
		second = started_on(w->second, w->setting);
		actor_join(first, 0);
		actor_join(second, 0);
	}
	after = mask_now();
	CHECK(CPU_EQUAL(&after, w->host), "%s: the host's own mask is another", w->setting);
	return 0;
}

/* As slmpm_info -c shows it. */
static void reported(const char *what)
{
	struct slmpm_setting s = {.size = sizeof(s)};

	for (int i = 0; slmpm_setting_at(i, &s) == 0; i++)
		if (!strcmp(s.name, "CPUS")) {
			CHECK(strstr(s.text, what), "\"%s\" lacks \"%s\"", s.text, what);
			return;
		}
	CHECK(false, "no setting");
}

/* Who has enough for one is told so; with another there are three busy ones. */
static int counted(void *arg)
{
	cpu_set_t two;
	slmpm_peer peer;

	(void)arg;
	CPU_OR(&two, &one, &other);
	give(&two);
	reported("2 for 2 busy");
	peer = started_on(&two, "two processors");
	reported(CPU_EQUAL(&two, &all) ? "all of the cpuset's" : "2 for 3 busy");
	actor_join(peer, 0);
	reported("2 for 2 busy");
	give(&one);
	reported("1 for 2 busy");
	return 0;
}

/* ---- what cannot be read, or had ------------------------------------------------------------ */

static int unreadable(void *arg)
{
	char said[64];
	slmpm_ctx ctx;

	snprintf(said, sizeof(said), "SLMPM_CPUS=%.20s", (const char *)arg);
	OK(setenv("SLMPM_CPUS", arg, 1));
	REFUSED(slmpm_open(&ctx, NULL), SLMPM_EINVAL, said);
	return 0;
}

static int not_there(void *arg)
{
	char lacking[64], said[128];
	int highest = CPU_SETSIZE;
	slmpm_peer peer;
	cpu_set_t after;

	(void)arg;
	while (!CPU_ISSET((size_t)highest - 1, &all))
		highest--;
	snprintf(lacking, sizeof(lacking), "%s,%d", list, highest);
	snprintf(said, sizeof(said), "SLMPM_CPUS=%s: processor %d is none of ", lacking, highest);
	OK(setenv("SLMPM_CPUS", lacking, 1));
	give(&one);
	REFUSED(slmpm_spawn(&peer, actor_self(), NULL, NULL), SLMPM_EINVAL, said);
	after = mask_now();
	CHECK(CPU_EQUAL(&after, &one), "the host's own mask is another");
	return 0;
}

/* ---- the topology's ------------------------------------------------------------------------- */

static int write_topology(char path[32], const char *lines)
{
	int fd = mkstemp(strcpy(path, "/tmp/slmpm_cpus.XXXXXX"));

	CHECK(fd >= 0 && dprintf(fd, "%s", lines) > 0 && close(fd) == 0, "a file");
	return setenv("SLMPM_TOPOLOGY", path, 1);
}

static int by_topology(void *arg)
{
	char path[32], lines[64];

	(void)arg;
	snprintf(lines, sizeof(lines), "cpus inherit\nhost here\n cpus %s\n", list);
	OK(write_topology(path, lines));
	OK(setenv("SLMPM_CPUS", "cpuset", 1));
	give(&one);
	actor_join(started_on(&other, "the topology's"), 0);
	OK(unlink(path));
	return 0;
}

static int bad_topology(void *arg)
{
	const char *const *lines = arg;
	char path[32];
	slmpm_ctx ctx;

	OK(write_topology(path, lines[0]));
	REFUSED(slmpm_open(&ctx, NULL), SLMPM_EINVAL, lines[1]);
	OK(unlink(path));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"mask", says_mask}, {NULL, NULL}};
	static char *const bad[] = {"none",
				    "0-",
				    "-1",
				    "3-1",
				    "0,,1",
				    "0,",
				    "0;1",
				    " 0",
				    "0x1",
				    "8192",
				    "99999999999999999999"};
	static const char *const topologies[][2] = {
		{"host here\n cpus 0-\n", ":2: cpus 0-: auto, inherit"},
		{"cpus 0\nhost far\n remote ssh %h\n", ":2: host far has cpus and remote"},
	};

	actor_begin(argc, argv, roles);
	OK(unsetenv("SLMPM_CPUS"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(child_run(unreadable, bad[i], 10) == 0, "%s: see above", bad[i]);
	for (size_t i = 0; i < 2; i++)
		CHECK(child_run(bad_topology, (void *)(uintptr_t)topologies[i], 10) == 0,
		      "topology: see above");
	if (!find_processors())
		test_skip("one processor");

	struct want wants[] = {
		{"auto", &one, &all, &all},    {"auto", &all, &all, &all},
		{"inherit", &one, &one, &one}, {"cpuset", &one, &all, &all},
		{list, &one, &other, &other},
	};

	for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		CHECK(child_run(by_setting, &wants[i], 60) == 0, "setting %zu: see above", i);
	CHECK(child_run(counted, NULL, 30) == 0, "counted: see above");
	CHECK(child_run(not_there, NULL, 30) == 0, "not there: see above");
	CHECK(child_run(by_topology, NULL, 30) == 0, "topology: see above");
	return 0;
}
