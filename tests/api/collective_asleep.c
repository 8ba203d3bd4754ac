/* SPDX-License-Identifier: BSD-3-Clause */
/* timeout: 90 */
/* waits */
/*
 * With SLMPM_ENGINE=thread started operations go on while no thread of the application is in a
 * call: one computes meanwhile, or all sleep; and nothing wakes up while nothing arrives.
 */
#include <dirent.h>
#include <slmpm_queue.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/crew.h"

#define MEMBERS 3
#define BATCH   4
#define LONG    200000 /* elements: rings are used several times */
#define NAP     10000  /* us */
#define QUIET   50000
#define TRIES   20
#define WAKE_US 500 /* of the processor in that time */

#define ROUNDS   12
#define ROUND_US 3000

static _Atomic int *reached; /* of all processes */

struct sums {
	int64_t *at[BATCH];
	slmpm_req req[BATCH];
};

/* Without a call that makes progress: so many operations that CTR counts have ended. */
static void until_ended(slmpm_ctr ctr, uint64_t n)
{
	struct slmpm_ctr_info info = {.size = sizeof(info)};
	int64_t end = actor_now_ms() + PATIENCE;

	while (info.done < n) {
		CHECK(actor_now_ms() < end, "%llu of %llu have ended",
		      (unsigned long long)info.done, (unsigned long long)n);
		usleep(NAP);
		OK(slmpm_ctr_query(ctr, &info));
	}
}

static void start(const struct crew *crew, int rank, struct sums *s, const struct slmpm_how *how)
{
	for (int k = 0; k < BATCH; k++) {
		struct slmpm_coll c = {.size = sizeof(c),
				       .kind = SLMPM_COLL_ALLREDUCE,
				       .type = SLMPM_INT64,
				       .op = SLMPM_CALC_SUM,
				       .from = SLMPM_IN_PLACE,
				       .count = k == BATCH - 1 ? LONG : 1};

		c.to = s->at[k] = malloc(c.count * sizeof(int64_t));
		CHECK(c.to, "no memory");
		for (uint64_t i = 0; i < c.count; i++)
			s->at[k][i] = (int64_t)i + rank;
		OK(slmpm_collective_start(crew->group[0], &c, how, how ? NULL : &s->req[k]));
	}
}

static void check(struct sums *s)
{
	for (int k = 0; k < BATCH; k++) {
		for (uint64_t i = 0; i < (k == BATCH - 1 ? LONG : 1); i++)
			CHECK(s->at[k][i] == (int64_t)i * MEMBERS + MEMBERS * (MEMBERS - 1) / 2,
			      "operation %d, element %llu: %lld", k, (unsigned long long)i,
			      (long long)s->at[k][i]);
		free(s->at[k]);
	}
}

/* Without a call: so many of the others have what they wait for. */
static void until(int n)
{
	int64_t end = actor_now_ms() + PATIENCE;

	while (atomic_load(reached) < n)
		CHECK(actor_now_ms() < end, "the others still wait");
}

static void one_computes(const struct crew *crew, int rank)
{
	struct slmpm_done d;
	struct sums s;

	start(crew, rank, &s, NULL);
	if (rank)
		for (int k = 0; k < BATCH; k++)
			EXPECT(slmpm_wait(&s.req[k], 1, &d, PATIENCE), 0);
	if (rank)
		atomic_fetch_add(reached, 1);
	else
		until(MEMBERS - 1);
	for (int k = 0; k < BATCH && !rank; k++)
		EXPECT(slmpm_wait(&s.req[k], 1, &d, PATIENCE), 0);
	check(&s);
	OK(slmpm_barrier(crew->group[0], PATIENCE));
}

/* What its first call finds has been done while all slept. */
static void all_sleep(const struct crew *crew, int rank)
{
	struct slmpm_how how = {.size = sizeof(how)};
	struct sums s;

	OK(slmpm_ctr_create(crew->ctx, &how.ctr));
	OK(slmpm_barrier(crew->group[0], PATIENCE));
	usleep((useconds_t)rank * 2 * NAP); /* some sleep by then */
	start(crew, rank, &s, &how);
	until_ended(how.ctr, BATCH);
	OK(slmpm_ctr_wait(how.ctr, BATCH, 0));
	check(&s);
	OK(slmpm_barrier(crew->group[0], PATIENCE));
}

static uint64_t processor_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* The least of some times, for others may compute here. */
static void is_quiet(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES && least > WAKE_US; i++) {
		uint64_t used = processor_us();

		usleep(QUIET);
		used = processor_us() - used;
		least = used < least ? used : least;
	}
	CHECK(actor_slow() > 1 || least <= WAKE_US, "%llu us of the processor",
	      (unsigned long long)least);
}

static void one_is_late(const struct crew *crew, int rank)
{
	struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_BARRIER};
	slmpm_req req;

	if (!rank) {
		until(MEMBERS - 1);
		OK(slmpm_barrier(crew->group[0], PATIENCE));
		return;
	}
	OK(slmpm_collective_start(crew->group[0], &c, NULL, &req));
	is_quiet();
	atomic_fetch_add(reached, 1);
	EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
}

/* Times that the other threads have gone to sleep. */
static long sleeps_of_others(void)
{
	struct rusage all, own;

	getrusage(RUSAGE_SELF, &all);
	getrusage(RUSAGE_THREAD, &own);
	return all.ru_nvcsw - own.ru_nvcsw;
}

static void await_others_asleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *e;

	CHECK(tasks, "no /proc/self/task");
	while ((e = readdir(tasks)))
		if (atoi(e->d_name) && atoi(e->d_name) != gettid())
			actor_await_state(atoi(e->d_name), "S");
	closedir(tasks);
}

/* What is started is posted and announced by the call: the engine's thread sleeps on until the last
 * one rings, which it does when that has been seen. */
static void a_start_wakes_none(const struct crew *crew, int rank)
{
	struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_BARRIER};
	long woken = 0;
	slmpm_req req;

	for (int i = 0; i < ROUNDS; i++) {
		OK(slmpm_barrier(crew->group[0], PATIENCE));
		while (rank && atomic_load(reached) <= i)
			usleep(ROUND_US);
		await_others_asleep();
		woken -= sleeps_of_others();
		OK(slmpm_collective_start(crew->group[0], &c, NULL, &req));
		usleep(ROUND_US);
		woken += sleeps_of_others();
		if (!rank)
			atomic_store(reached, i + 1);
		EXPECT(slmpm_wait(&req, 1, NULL, PATIENCE), 0);
	}
	CHECK(rank || woken <= ROUNDS / 2, "woken %ld times", woken);
}

/* Deadlines, too, and deaths. */
static void one_dies(const struct crew *crew, int rank)
{
	struct slmpm_how how = {.size = sizeof(how), .timeout_ms = rank == 1 ? 100 : 0};
	struct slmpm_coll c = {.size = sizeof(c), .kind = SLMPM_COLL_BARRIER};
	const int error = crew->arg ? SLMPM_ETIMEOUT : SLMPM_EDEAD;

	OK(slmpm_barrier(crew->group[0], PATIENCE)); /* by TCP one that was never connected may
						      * as well have left as died */
	if (rank == crew->victim) { /* once the others have begun, or have given up */
		while (atomic_load(reached) < MEMBERS - 1)
			usleep(NAP);
		_exit(0);
	}
	if (!crew->arg)
		how.timeout_ms = 0;
	OK(slmpm_ctr_create(crew->ctx, &how.ctr));
	OK(slmpm_collective_start(crew->group[0], &c, &how, NULL));
	if (!crew->arg)
		atomic_fetch_add(reached, 1);
	until_ended(how.ctr, 1);
	EXPECT(slmpm_ctr_wait(how.ctr, 1, 0), -error);
	REFUSED(slmpm_barrier(crew->group[0], PATIENCE), error, "rank 2");
	if (crew->arg)
		atomic_fetch_add(reached, 1);
}

int main(void)
{
	static crew_body *const bodies[] = {one_computes, all_sleep, one_is_late, one_dies};
	static const char *const ways[] = {"adaptive", "block"};
	struct crew crew = {.members = MEMBERS, .groups = 1, .victim = MEMBERS - 1};

	reached = child_common(sizeof(*reached));
	setenv("SLMPM_ENGINE", "thread", 1);
	/* ThreadSanitizer starts no threads in a child of such a process, as one with TCP is. */
	for (int w = 0; w < (actor_slow() > 1 ? 1 : 2); w++) {
		const uint64_t apart = w || actor_slow() > 1 ? 0 : 2;

		setenv("SLMPM_WAIT", ways[w], 1);
		for (int i = 0; i < 5; i++) {
			crew.body = bodies[i < 4 ? i : 3];
			crew.arg = i == 4 ? "late" : NULL;
			crew.flags = i % 2 && actor_slow() == 1 ? SLMPM_THREADS : 0;
			for (crew.apart = 0; crew.apart <= apart; crew.apart += 2) {
				*reached = 0;
				printf("%d, %s%s\n", i, ways[w], crew.apart ? ", TCP" : "");
				fflush(stdout);
				crew_run(&crew, 40);
			}
		}
	}
	if (actor_slow() > 1)
		return 0;
	*reached = 0;
	setenv("SLMPM_WAIT", "adaptive", 1);
	crew = (struct crew){.members = 2, .groups = 1, .body = a_start_wakes_none};
	crew_run(&crew, 40);
	return 0;
}
