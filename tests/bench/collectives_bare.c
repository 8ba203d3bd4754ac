/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the machine allows: collective operations without a library, checks or errors. Processes
 * store a number behind what they contribute, one line of a slot, and look at the others' until it
 * is there; more than processors yield. How long they wait before a look, whether a line is
 * demoted, and whether those that yield stay in step, is tried before each order, and the quickest
 * is taken. Orders and answers as slmpm_perftest has them with --serve: barrier, allreduce, and
 * bcast of two with roots in turn.
 * With NETWORKS each is on a host of namespaces, and meets the others by sockets.
 *	collectives_bare RANKS CPU,CPU [NETWORKS]
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/collectives_sockets.h"

enum { RANKS = 16, PROCESSORS = 2, SLOTS = 32, LINE = 64, SHORT = 40, MOST = 1024, NAME = 16 };
enum { PACES = 13, RUNS = 3, IN_STEP = 100 };

struct slot {
	_Alignas(LINE) _Atomic uint64_t number;
	double words[SHORT / sizeof(double)];
	_Alignas(LINE) double rest[MOST / sizeof(double)]; /* what is longer */
};

struct shared {
	_Alignas(LINE) atomic_uint turn; /* how many orders there have been */
	char test[NAME];
	uint64_t size, count;
	int each, over;
	_Alignas(LINE) atomic_int pace; /* chosen of paces[] */
	_Alignas(LINE) struct slot slots[RANKS][SLOTS];
};

/* Rests before the first look, between two; is the line demoted? Of more than processors: so often
 * one of another processor is looked at before the next yield; and is the post before the last
 * fetched back then, which who runs next waits for, and others have read? Of two: is the line of
 * this rank's next post claimed behind one, and does who waits for a root wait for that, not BEFORE
 * rests? */
static const struct pace {
	int before, between, demotes, looks, fetches, claims;
} paces[PACES] = {{3, 9, 1, 0, 0, 0},        {6, 6, 1, IN_STEP, 0, 0}, {9, 3, 1, 0, 0, 0},
		  {12, 1, 1, IN_STEP, 0, 0}, {1, 1, 0, 0, 0, 0},       {6, 6, 0, IN_STEP, 0, 0},
		  {12, 1, 0, IN_STEP, 0, 0}, {16, 1, 1, 0, 0, 0},      {1, 1, 0, 0, 1, 0},
		  {6, 6, 0, IN_STEP, 1, 0},  {0, 1, 0, 0, 0, 1},       {1, 1, 0, 0, 0, 1},
		  {6, 1, 0, 0, 0, 1}};

static struct shared *shared;
static int rank, ranks;
static int ways; /* by sockets; 0: in memory */
static uint64_t number;
static double from[MOST / sizeof(double)], to[MOST / sizeof(double)];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void rest(int n)
{
	for (int i = 0; i < n; i++)
#if defined(__x86_64__)
		__builtin_ia32_lfence();
#else
		__asm__ volatile("" : : : "memory");
#endif
}

static inline void demote_lines(const void *at, uint64_t bytes)
{
#if defined(__x86_64__)
	for (uint64_t i = 0; i < bytes; i += LINE)
		__asm__ volatile("cldemote %0" : : "m"(((const char *)at)[i]));
#else
	(void)at;
	(void)bytes;
#endif
}

/* Where the next post goes: the line becomes this processor's alone. */
static inline void claim_line(void)
{
	const struct slot *next = &shared->slots[rank][(number + 1) % SLOTS];

#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*next));
#else
	__builtin_prefetch(next, 1);
#endif
}

/* The same, waited for. By hand: a compiler may make a load of an or of 0. */
static inline void get_line(void)
{
	_Atomic uint64_t *next = &shared->slots[rank][(number + 1) % SLOTS].number;

#if defined(__x86_64__)
	__asm__ volatile("lock; orq $0, %0" : "+m"(*next) : : "cc");
#else
	(void)atomic_fetch_or(next, 0);
#endif
	rest(1);
}

/* ---- one operation --------------------------------------------------------------------------- */

static inline void post(uint64_t bytes, const struct pace *p)
{
	struct slot *s = &shared->slots[rank][number % SLOTS];

	if (bytes > SHORT) {
		memcpy(s->rest, from, bytes);
		if (p->demotes)
			demote_lines(s->rest, bytes);
	} else {
		memcpy(s->words, from, bytes);
	}
	atomic_store_explicit(&s->number, number, memory_order_release);
	if (p->demotes)
		demote_lines(s, LINE);
	if (p->claims)
		claim_line();
}

/* Rank R's contribution, when it is there. */
static inline const double *look(int r, uint64_t bytes, const struct pace *p)
{
	const struct slot *s = &shared->slots[r][number % SLOTS];
	int most = (r - rank) % PROCESSORS ? p->looks : 0, looks = most;

	while (atomic_load_explicit(&s->number, memory_order_acquire) < number) {
		if (ranks <= PROCESSORS || looks-- > 0) {
			rest(p->between);
		} else {
			if (p->fetches)
				__builtin_prefetch(&shared->slots[rank][(number - 1) % SLOTS]);
			sched_yield();
			looks = most;
		}
	}
	return bytes > SHORT ? s->rest : s->words;
}

static inline void all(uint64_t bytes, const struct pace *p)
{
	if (ways) {
		sockets_all((int)(p - paces), from, to, bytes);
		return;
	}
	post(bytes, p);
	if (ranks <= PROCESSORS)
		rest(p->before);
	for (int r = rank % PROCESSORS; p->looks && r < ranks; r += PROCESSORS)
		(void)(r == rank ? NULL : look(r, bytes, p));
	memcpy(to, from, bytes);
	for (int r = 0; r < ranks; r++) {
		const double *theirs = r == rank ? to : look(r, bytes, p);

		for (uint64_t i = 0; r != rank && i < bytes / sizeof(double); i++)
			to[i] += theirs[i];
	}
}

/* Of two: one way. */
static inline void from_root(uint64_t bytes, const struct pace *p)
{
	if ((int)(number % 2) == rank) {
		post(bytes, p);
		return;
	}
	if (p->claims)
		get_line();
	else
		rest(p->before);
	memcpy(to, look(1 - rank, bytes, p), bytes);
}

/* ---- many of them ---------------------------------------------------------------------------- */

static void repeat(uint64_t count, const struct pace *p, double *each)
{
	bool one_way = strcmp(shared->test, "bcast") == 0;
	uint64_t bytes = strcmp(shared->test, "barrier") ? shared->size : 0, before = now_ns(), now;

	for (uint64_t i = 0; i < count; i++) {
		number++;
		if (one_way)
			from_root(bytes, p);
		else
			all(bytes, p);
		if (!each)
			continue;
		now = now_ns();
		*each++ = (double)(now - before) / 1e3;
		before = now;
	}
}

/* The quickest pace, or way, of a few runs in turns: the first rank says which. */
static const struct pace *choose(void)
{
	const int tried = ways ? ways : PACES;
	uint64_t least[PACES], begin, ns;
	int best = 0;

	memset(least, 0xff, sizeof least);
	for (int run = 0; run < RUNS; run++)
		for (int i = 0; i < tried; i++) {
			begin = now_ns();
			repeat(shared->count / 16 * 2 + 2, &paces[i], NULL);
			ns = now_ns() - begin;
			least[i] = ns < least[i] ? ns : least[i];
		}
	for (int i = 1; i < tried; i++)
		best = least[i] < least[best] ? i : best;
	if (rank == 0)
		atomic_store(&shared->pace, best);
	number++;
	all(0, &paces[0]);
	return &paces[atomic_load(&shared->pace)];
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void answer(uint64_t ns, double *each)
{
	printf("{\"test\":\"%s\",\"size\":%llu,\"members\":%d,\"lat_us\":%g", shared->test,
	       (unsigned long long)shared->size, ranks, (double)ns / 1e3 / (double)shared->count);
	if (each) {
		qsort(each, shared->count, sizeof *each, by_value);
		printf(",\"lat_us_p50\":%g,\"lat_us_p99\":%g", each[shared->count / 2],
		       each[(shared->count * 99 + 99) / 100 - 1]);
	}
	printf("}\n");
	fflush(stdout);
}

static void obey(void)
{
	double *each = shared->each && rank == 0 ? calloc(shared->count, sizeof *each) : NULL;
	const struct pace *p = choose();
	uint64_t begin, ns;

	number++;
	all(0, p);
	begin = now_ns();
	repeat(shared->count, p, each);
	ns = now_ns() - begin;
	number++;
	all(0, p);
	if (rank == 0)
		answer(ns, each);
	free(each);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static bool may_obey(void)
{
	if (shared->count < 1 || shared->size > MOST)
		return false;
	if (strcmp(shared->test, "bcast") == 0)
		return ranks == 2;
	return strcmp(shared->test, "barrier") == 0 || strcmp(shared->test, "allreduce") == 0;
}

static void give_order(void)
{
	atomic_fetch_add(&shared->turn, 1);
	syscall(SYS_futex, &shared->turn, FUTEX_WAKE, ranks, NULL, NULL, 0);
}

static void lead(void)
{
	char line[256], word[NAME];
	unsigned long long size, count;

	while (fgets(line, sizeof line, stdin)) {
		int n = sscanf(line, "%15s %llu %llu %15s", shared->test, &size, &count, word);

		shared->size = size;
		shared->count = count;
		shared->each = n == 4 && strcmp(word, "each") == 0;
		if (n < 3 || !may_obey()) {
			printf("{\"error\":\"no such order\"}\n");
			fflush(stdout);
			continue;
		}
		give_order();
		obey();
	}
	shared->over = 1;
	give_order();
}

static void follow(void)
{
	for (unsigned seen = 0;; seen++) {
		while (atomic_load(&shared->turn) == seen)
			syscall(SYS_futex, &shared->turn, FUTEX_WAIT, seen, NULL, NULL, 0);
		if (shared->over)
			return;
		obey();
	}
}

static void bind_to(const unsigned cpu[PROCESSORS])
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu[rank % PROCESSORS], &set);
	sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
	unsigned cpu[PROCESSORS];

	ranks = argc == 3 || argc == 4 ? atoi(argv[1]) : 0;
	if (ranks < 2 || ranks > RANKS || sscanf(argv[2], "%u,%u", &cpu[0], &cpu[1]) != 2) {
		fprintf(stderr, "usage: %s RANKS CPU,CPU [NETWORKS]\n", argv[0]);
		return 2;
	}
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	for (int r = 1; r < ranks && rank == 0; r++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			rank = r;
		}
	bind_to(cpu);
	if (argc == 4 && (ways = sockets_open(argv[3], rank, ranks)) < 1)
		return 1;
	if (rank == 0)
		lead();
	else
		follow();
	return 0;
}
