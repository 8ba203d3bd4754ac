/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking puts and gets between regions whose caller has no engine and whose peer has one, against
 * the same without any, and against what two bare processes take for it (asks_bare.c): "asks
 * CPU,CPU [PAIRS [PLACEMENT]]" prints Markdown. Each sample has two fresh processes; those of a
 * pair follow each other, either first. The settings of the environment hold for both
 * (SLMPM_ASK_MIN).
 */
#include <sched.h>
#include <signal.h>
#include <slmpm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/asks_bare.h"
#include "tests/bench/plain.h"
#include "tests/bench/stats.h"

enum { PAIRS = 200, SIZES = 7, OPS = 2, PLACEMENTS = 4, PATIENCE_MS = 20000 };
enum { KEYS, ORDERS, RESULTS }; /* streams */

#define LARGEST  ((size_t)64 << 20)
#define SAMPLE_S 0.02

static const size_t sizes[SIZES] = {64 << 10, 256 << 10, 1 << 20, 4 << 20,
				    16 << 20, 32 << 20,  LARGEST};
static const char *const ops[OPS] = {"put", "get"};

static const struct placement {
	const char *name;
	bool connected, first_calls; /* first: who spawns, or listens */
} placements[PLACEMENTS] = {
	{"spawned, the accelerator's engine", false, true},
	{"spawned, the host's engine", false, false},
	{"connected, the engine of who connects", true, true},
	{"connected, the engine of who listens", true, false},
};

struct cost {
	double wall, cpu, copy; /* seconds of an operation; of a memcpy */
};

struct results {
	struct cost of[OPS][SIZES];
	bool whole;
};

static unsigned cpus[2];
static struct results *taken; /* shared by all processes but those that were spawned */

static double clock_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pin(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* ---- the two processes ---------------------------------------------------------------------- */

struct pair {
	slmpm_peer peer;
	slmpm_mem mem;
	slmpm_rmem remote;
	char *bytes;
};

static void open_regions(struct pair *p)
{
	struct slmpm_key key;
	void *base;

	ok(slmpm_mem_alloc((slmpm_ctx){0}, LARGEST, SLMPM_READ_WRITE, &p->mem, &base), "region");
	p->bytes = base;
	memset(base, 1, LARGEST);
	ok(slmpm_mem_key(p->mem, p->peer, SLMPM_READ_WRITE, &key), "key");
	ok(slmpm_send(p->peer, KEYS, &key, sizeof key, PATIENCE_MS), "send");
	ok(slmpm_recv(p->peer, KEYS, &key, sizeof key, NULL, PATIENCE_MS), "recv");
	ok(slmpm_mem_open(p->peer, &key, &p->remote), "open");
}

static void operate(const struct pair *p, int op, size_t size)
{
	ok(op ? slmpm_get(p->remote, 0, p->bytes, size, NULL, NULL) :
		slmpm_put(p->remote, 0, p->bytes, size, NULL, NULL),
	   ops[op]);
}

static double copy_of(const struct pair *p, char *spare, size_t size)
{
	double begin = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	int n = 0;

	for (; n < 2 || clock_of(CLOCK_PROCESS_CPUTIME_ID) < begin + SAMPLE_S / 4; n++) {
		memcpy(spare, p->bytes, size);
		__asm__ volatile("" : : "r"(spare) : "memory");
	}
	return (clock_of(CLOCK_PROCESS_CPUTIME_ID) - begin) / n;
}

static struct cost cost_of(const struct pair *p, char *spare, int op, size_t size)
{
	struct cost c = {.copy = copy_of(p, spare, size)};
	double begin = 0, cpu = 0, warm = clock_of(CLOCK_MONOTONIC) + SAMPLE_S / 4;
	int n = 0;

	for (; n < 3 || clock_of(CLOCK_MONOTONIC) < warm; n++)
		operate(p, op, size);
	begin = clock_of(CLOCK_MONOTONIC);
	cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	for (n = 0; n < 3 || clock_of(CLOCK_MONOTONIC) < begin + SAMPLE_S; n++)
		operate(p, op, size);
	c.wall = (clock_of(CLOCK_MONOTONIC) - begin) / n;
	c.cpu = (clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) / n;
	return c;
}

/* FAR: it has no memory in common with who asked for the results. */
static void call(slmpm_peer peer, bool far)
{
	struct pair p = {.peer = peer};
	struct results r = {.whole = true};
	char *spare = malloc(LARGEST);

	open_regions(&p);
	if (!spare)
		_exit(1);
	memset(spare, 1, LARGEST);
	for (int op = 0; op < OPS; op++)
		for (int s = 0; s < SIZES; s++)
			r.of[op][s] = cost_of(&p, spare, op, sizes[s]);
	if (!far)
		*taken = r;
	ok(slmpm_send(peer, RESULTS, &r, sizeof r, PATIENCE_MS), "results");
	(void)slmpm_close(peer, PATIENCE_MS);
	_exit(0);
}

static void own(slmpm_peer peer, bool far)
{
	struct pair p = {.peer = peer};
	struct results r;

	open_regions(&p);
	ok(slmpm_recv(peer, RESULTS, &r, sizeof r, NULL, 10 * PATIENCE_MS), "results");
	if (!far)
		*taken = r;
	(void)slmpm_close(peer, PATIENCE_MS);
	_exit(0);
}

static const char *engine(bool calls, bool asks)
{
	return !calls && asks ? "thread" : "none";
}

static void second(char **argv)
{
	slmpm_peer host;

	pin((unsigned)atoi(argv[2]));
	ok(slmpm_parent(&host), "parent");
	if (argv[3][0] == 'c')
		call(host, true);
	own(host, true);
}

static void spawn(const struct placement *w, bool asks)
{
	char set[40], cpu[12], *argv[] = {"--second", cpu, w->first_calls ? "own" : "call", NULL},
			       *envp[] = {set, NULL};
	struct slmpm_spawn_options how = {
		.size = sizeof how, .envp = envp, .flags = SLMPM_SPAWN_DIE_WITH_HOST};
	slmpm_peer peer;

	snprintf(set, sizeof set, "SLMPM_ENGINE=%s", engine(!w->first_calls, asks));
	snprintf(cpu, sizeof cpu, "%u", cpus[1]);
	ok(slmpm_spawn(&peer, "/proc/self/exe", argv, &how), "spawn");
	pin(cpus[0]);
	if (w->first_calls)
		call(peer, false);
	own(peer, false);
}

static void first(const struct placement *w, bool asks, int ready)
{
	slmpm_listener listener;
	slmpm_peer peer;
	char url[48];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("SLMPM_ENGINE", engine(w->first_calls, asks), 1);
	if (!w->connected)
		spawn(w, asks);
	pin(cpus[0]);
	snprintf(url, sizeof url, "shm:asks-%d", (int)getpid());
	ok(slmpm_listen(&listener, (slmpm_ctx){0}, url), "listen");
	if (write(ready, url, sizeof url) != sizeof url)
		_exit(1);
	ok(slmpm_accept(listener, &peer, PATIENCE_MS), "accept");
	if (w->first_calls)
		call(peer, false);
	own(peer, false);
}

static void guest(const struct placement *w, bool asks, int ready)
{
	slmpm_peer peer;
	char url[48];

	pin(cpus[1]);
	setenv("SLMPM_ENGINE", engine(!w->first_calls, asks), 1);
	if (read(ready, url, sizeof url) != sizeof url)
		_exit(1);
	ok(slmpm_connect(&peer, (slmpm_ctx){0}, url, PATIENCE_MS), "connect");
	if (w->first_calls)
		own(peer, false);
	call(peer, false);
}

/* ---- samples -------------------------------------------------------------------------------- */

static bool sample(const struct placement *w, bool asks, struct results *r)
{
	pid_t child[2] = {0};
	int ready[2];

	taken->whole = false;
	if (pipe(ready))
		return false;
	if ((child[0] = fork()) == 0)
		first(w, asks, ready[1]);
	if (w->connected && (child[1] = fork()) == 0)
		guest(w, asks, ready[0]);
	close(ready[0]);
	close(ready[1]);
	for (int i = 0; i < 2; i++)
		if (child[i] > 0)
			waitpid(child[i], NULL, 0);
	*r = *taken;
	return r->whole;
}

static double samples[2][OPS][SIZES][PAIRS]; /* without an engine, with one */
static double spent[OPS][SIZES][PAIRS];
static double bare[SIZES][PAIRS];

static bool take_bare(int i)
{
	double taken_s[SIZES];

	if (!bare_sample(cpus, sizes, SIZES, SAMPLE_S, taken_s))
		return false;
	for (int s = 0; s < SIZES; s++)
		bare[s][i] = taken_s[s];
	return true;
}

static bool take_pair(const struct placement *w, int i)
{
	struct results r[2];

	for (int n = 0; n < 2; n++) {
		bool asks = (n ^ i) & 1;

		if (!sample(w, asks, &r[asks]))
			return false;
	}
	for (int op = 0; op < OPS; op++)
		for (int s = 0; s < SIZES; s++) {
			const struct cost *c = &r[1].of[op][s];

			samples[0][op][s][i] = r[0].of[op][s].wall;
			samples[1][op][s][i] = c->wall;
			spent[op][s][i] = c->cpu / c->copy;
		}
	return take_bare(i);
}

static void print(const struct placement *w, int n)
{
	for (int op = 0; op < OPS; op++) {
		printf("| %s, %s |", ops[op], w->name);
		for (int s = 0; s < SIZES; s++) {
			struct estimate e = ratio(samples[1][op][s], samples[0][op][s], n);

			printf(" %.2f (%.2f to %.2f) |", e.mid, e.low, e.high);
		}
		printf("\n| of two bare processes' time |");
		for (int s = 0; s < SIZES; s++) {
			struct estimate e = ratio(samples[1][op][s], bare[s], n);

			printf(" %.2f (%.2f to %.2f) |", e.mid, e.low, e.high);
		}
		printf("\n| without, us; the caller's processor time, of a memcpy's |");
		for (int s = 0; s < SIZES; s++)
			printf(" %.0f; %.2f |", median(samples[0][op][s], n) * 1e6,
			       median(spent[op][s], n));
		printf("\n");
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int pairs = argc > 2 ? atoi(argv[2]) : 15, only = argc > 3 ? atoi(argv[3]) : 0;

	if (argc == 4 && !strcmp(argv[1], "--second"))
		second(argv);
	if (argc < 2 || sscanf(argv[1], "%u,%u", &cpus[0], &cpus[1]) != 2 || pairs < 1 ||
	    pairs > PAIRS || only < 0 || only > PLACEMENTS) {
		fprintf(stderr, "usage: %s CPU,CPU [1 to %d pairs [placement, 1 to %d]]\n", argv[0],
			PAIRS, PLACEMENTS);
		return 2;
	}
	taken = mmap(NULL, sizeof *taken, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (taken == MAP_FAILED)
		return 1;
	printf("| | 64 KiB | 256 KiB | 1 MiB | 4 MiB | 16 MiB | 32 MiB | 64 MiB |\n"
	       "| --- | --: | --: | --: | --: | --: | --: | --: |\n");
	for (int w = 0; w < PLACEMENTS; w++) {
		if (only && w != only - 1)
			continue;
		for (int i = 0; i < pairs; i++)
			if (!take_pair(&placements[w], i))
				return 1;
		print(&placements[w], pairs);
	}
	return 0;
}
