/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 60 */
/*
 * Two hundred hosts with accelerators and guests, killed at random moments: afterwards no process,
 * no shared memory, no name and no reservation is left, and this process is as it was.
 * SLMPM_TEST_KILLS sets another number.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"
#include "tests/lib/death.h"
#include "tests/lib/random.h"

#define KILLS        200
#define AT_ONCE      2
#define ELEMENTS     8
#define LONG_MESSAGE ((size_t)150000)
#define LATEST_US    30000 /* a host's life */

static unsigned char buffer[LONG_MESSAGE];
static char folder[] = "/tmp/slmpm-kills-XXXXXX";

/* ---- what they do until it ends ---- */

static size_t any_length(struct rng *g)
{
	return rng_below(g, rng_one_in(g, 8) ? LONG_MESSAGE : 300);
}

/* Says something and wants it back, as long as somebody is there. */
static int converse(slmpm_peer peer, struct rng *g, int64_t rounds)
{
	for (int64_t i = 0; i < rounds; i++) {
		size_t n = any_length(g);
		int64_t rc = slmpm_send(peer, 1, buffer, n, PATIENCE);

		if (rc == 0)
			rc = slmpm_recv(peer, 2, buffer, sizeof(buffer), NULL, PATIENCE);
		if (rc < 0)
			return (int)rc;
		CHECK((size_t)rc == n, "%zu bytes came back as %lld", n, (long long)rc);
	}
	return 0;
}

static int echo(slmpm_peer host)
{
	int64_t n;

	while ((n = slmpm_recv(host, 1, buffer, sizeof(buffer), NULL, PATIENCE)) >= 0)
		if (slmpm_send(host, 2, buffer, (size_t)n, PATIENCE) < 0)
			break;
	return 0;
}

static int accelerate(slmpm_peer host, char **words)
{
	struct rng g = {(uint64_t)atoll(words[0])};

	alarm(60);
	if (slmpm_parent(&host) < 0)
		return 1; /* it died before */
	if (rng_one_in(&g, 3)) {
		pid_t own = getpid();

		if (fork() == 0) { /* and one that looks on */
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (getppid() == own)
				(void)poll(NULL, 0, -1);
			_exit(0);
		}
	}
	return echo(host);
}

static int be_guest(void *arg)
{
	const char *url = arg;
	slmpm_ctx none = {0};
	slmpm_peer host;

	if (slmpm_connect(&host, none, url, 300) < 0)
		return 0;
	return echo(host);
}

/* A host's whole life, but that it is cut short. */
static int be_host(void *arg)
{
	struct rng g = {*(uint64_t *)arg};
	char url[96], seed[32];
	slmpm_peer accelerator, guest;
	slmpm_listener listener;
	uint32_t ids[2];
	slmpm_ctx ctx;

	OK(slmpm_open(&ctx, NULL));
	CHECK(slmpm_element_reserve(ctx, SLMPM_ELEMENT_ACCELERATOR, 2, ids) >= 0, "reserve: %s",
	      slmpm_error_detail());
	snprintf(url, sizeof(url), rng_one_in(&g, 2) ? "shm:%s/%d" : "shm:kills%.0s-%d", folder,
		 (int)getpid());
	OK(slmpm_listen(&listener, ctx, url));
	if (fork() == 0) {
		alarm(60);
		_exit(be_guest(url));
	}
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)(rng_next(&g) >> 2));
	accelerator = actor_spawn_with(
		&(struct slmpm_spawn_options){.size = sizeof(struct slmpm_spawn_options),
					      .ctx = ctx,
					      .flags = rng_below(&g, 2)},
		"-accelerate", seed, NULL);
	if (slmpm_accept(listener, &guest, 200) < 0) /* it was killed first */
		return 0;
	for (;;) {
		int rc = converse(rng_one_in(&g, 2) ? accelerator : guest, &g, 5);

		if (rc < 0) /* one of them was killed: the other is not enough */
			break;
	}
	(void)slmpm_shut(ctx, 100);
	return 0;
}

/* ---- who kills ---- */

/* A child of PID, or PID itself. */
static pid_t anyone_of(pid_t pid, struct rng *g)
{
	char path[64], line[256] = "";
	pid_t pids[16] = {pid};
	uint32_t n = 1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "r");
	if (f && fgets(line, sizeof(line), f))
		for (char *at = strtok(line, " "); at && n < 16; at = strtok(NULL, " "))
			pids[n++] = (pid_t)atoi(at);
	if (f)
		fclose(f);
	return pids[rng_below(g, n)];
}

static void sleep_us(uint32_t us)
{
	struct timespec t = {0, (long)us * 1000};

	(void)nanosleep(&t, NULL);
}

/* Orphans are ours. */
static void reap_everybody(void)
{
	int64_t until = actor_now_ms() + PATIENCE;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
		CHECK(actor_now_ms() < until, "somebody lives on");
		if (pid == 0)
			(void)poll(NULL, 0, 1);
	}
}

/* ---- what is left ---- */

struct remains {
	long shmem_kb;
	int names; /* in /dev/shm */
};

static int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	if (!d)
		return 0;
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static struct remains look_around(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	struct remains r = {0, entries("/dev/shm")};
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		(void)sscanf(line, "Shmem: %ld", &r.shmem_kb);
	if (f)
		fclose(f);
	return r;
}

/* Others may use shared memory meanwhile: a leak of ours would be 500 KiB a ring, and stay. */
static void nothing_left(struct remains before, struct holdings held, int kills)
{
	int64_t until = actor_now_ms() + 3000;
	struct remains now = look_around();
	slmpm_ctx ctx = {0};

	while (now.shmem_kb > before.shmem_kb + kills * 50 && actor_now_ms() < until) {
		(void)poll(NULL, 0, 10);
		now = look_around();
	}
	CHECK(now.shmem_kb <= before.shmem_kb + kills * 50, "%ld KiB of shared memory, before %ld",
	      now.shmem_kb, before.shmem_kb);
	CHECK(now.names <= before.names, "%d names in /dev/shm, before %d", now.names,
	      before.names);
	holdings_expect(held, "the killer");
	EXPECT(slmpm_element_count(ctx, SLMPM_ELEMENT_ACCELERATOR), ELEMENTS);
}

/* Sockets' paths may stay; a listener takes them over. */
static void take_paths_over(void)
{
	DIR *d = opendir(folder);
	slmpm_listener listener;
	slmpm_ctx ctx = {0};
	struct stat st;
	char path[512];
	int n = 0;

	CHECK(d, "the folder is gone");
	for (struct dirent *e; (e = readdir(d));) {
		snprintf(path, sizeof(path), "shm:%s/%.64s", folder, e->d_name);
		if (e->d_name[0] == '.' || stat(path + 4, &st) != 0)
			continue;
		if (S_ISREG(st.st_mode)) { /* the reservations: empty, and stays */
			CHECK(st.st_size == 0, "%s has %lld bytes", path + 4,
			      (long long)st.st_size);
			OK(unlink(path + 4));
			continue;
		}
		OK(slmpm_listen(&listener, ctx, path));
		OK(slmpm_unlisten(listener));
		n++;
	}
	closedir(d);
	CHECK(entries(folder) == 0, "something stays in %s", folder);
	printf("%d paths taken over\n", n);
}

int main(int argc, char **argv)
{
	static const struct actor roles[] = {{"-accelerate", accelerate}, {NULL, NULL}};
	const char *text = getenv("SLMPM_TEST_KILLS");
	int64_t slowest = 0;
	int kills = text ? atoi(text) : KILLS;
	struct remains before;
	struct holdings held;
	struct rng g;

	actor_begin(argc, argv, roles);
	g.state = rng_run_seed((uint64_t)time(NULL));
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "orphans cannot be adopted");
	CHECK(mkdtemp(folder), "no folder");
	setenv("SLMPM_RUN_DIR", folder, 1);
	setenv("SLMPM_ELEMENTS", "8", 1);
	setenv("SLMPM_LOG_LEVEL", "none", 1);
	setenv("SLMPM_ATTACH", "y", 1);
	before = look_around();
	held = holdings_now();
	for (int done = 0; done < kills; done += AT_ONCE) {
		int64_t begin = actor_now_ms();
		uint64_t seeds[AT_ONCE];
		pid_t hosts[AT_ONCE];

		for (int i = 0; i < AT_ONCE; i++) {
			seeds[i] = rng_next(&g);
			hosts[i] = child_start(be_host, &seeds[i], 60);
		}
		for (int i = 0; i < AT_ONCE; i++) {
			pid_t victim;

			sleep_us(rng_below(&g, LATEST_US / AT_ONCE));
			victim = anyone_of(hosts[i], &g);
			(void)kill(victim, SIGKILL);
			if (victim != hosts[i] && rng_one_in(&g, 2))
				(void)kill(hosts[i], SIGKILL);
		}
		reap_everybody();
		if (actor_now_ms() - begin > slowest)
			slowest = actor_now_ms() - begin;
	}
	CHECK(slowest < 3000 * actor_slow(), "a survivor took %lld ms", (long long)slowest);
	nothing_left(before, held, kills);
	take_paths_over();
	OK(rmdir(folder));
	printf("%d kills, nothing left, all over within %lld ms\n", kills, (long long)slowest);
	return 0;
}
