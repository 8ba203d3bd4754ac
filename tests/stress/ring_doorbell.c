/* SPDX-License-Identifier: BSD-3-Clause */
/* waits */
/* timeout: 60 */
/*
 * The instant in which one side commits while the other falls asleep, hit over and over: either the
 * sleeper's last look sees the commit or the writer sees the sleeper. Both kinds of doorbell.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

#include "shm/doorbell.h"
#include "tests/lib/random.h"
#include "tests/lib/test.h"

#define MILLISECONDS 1200

struct meeting {
	_Alignas(128) _Atomic uint64_t commit; /* stands for a commit word */
	_Alignas(128) _Atomic uint64_t asleep;
	_Alignas(128) _Atomic uint64_t unused;    /* the writer never sleeps here */
	_Alignas(128) _Atomic uint64_t round;     /* the sleeper may go */
	_Alignas(128) _Atomic uint64_t inspected; /* it went, and ... */
	_Atomic bool saw;                         /* ... saw the commit */
	_Alignas(128) _Atomic uint64_t left;      /* the round is over for the writer */
	struct doorbell writer, sleeper;
};

static void wait_until(const _Atomic uint64_t *word, uint64_t value)
{
	for (uint32_t i = 1; atomic_load_explicit(word, memory_order_acquire) < value; i++)
		if (i % 2000 == 0)
			sched_yield();
}

static void linger(uint32_t turns)
{
	while (turns--)
		__asm__ volatile("" ::: "memory");
}

static void *sleep_often(void *arg)
{
	struct meeting *m = arg;

	for (uint64_t round = 1;; round++) {
		char bells[8];

		wait_until(&m->round, round);
		if (atomic_load_explicit(&m->left, memory_order_acquire) == UINT64_MAX)
			return NULL;
		doorbell_announce(&m->sleeper);
		doorbell_announced();
		if (doorbell_unfenced(&m->sleeper))
			barrier_all();
		m->saw = atomic_load_explicit(&m->commit, memory_order_acquire) == round;
		atomic_store_explicit(&m->inspected, round, memory_order_release);
		wait_until(&m->left, round);
		doorbell_retract(&m->sleeper);
		doorbell_retracted();
		doorbell_resume(&m->sleeper);
		while (recv(*m->sleeper.fd, bells, sizeof(bells), MSG_DONTWAIT) > 0)
			;
	}
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void commit_often(struct meeting *m, struct rng *g)
{
	uint64_t end = now_ms() + MILLISECONDS, round = 0, seen = 0, rung = 0;

	while (round % 64 || now_ms() < end) {
		uint64_t bells = m->writer.bells;

		atomic_store_explicit(&m->round, ++round, memory_order_release);
		linger(rng_below(g, m->sleeper.no_membarrier ? 400 : 4000));
		atomic_store_explicit(&m->commit, round, memory_order_release);
		doorbell_check(&m->writer);
		wait_until(&m->inspected, round);
		CHECK(m->saw || m->writer.bells > bells,
		      "round %llu: the sleeper missed the commit, the writer the sleeper",
		      (unsigned long long)round);
		seen += m->saw;
		rung += m->writer.bells > bells;
		atomic_store_explicit(&m->left, round, memory_order_release);
	}
	atomic_store_explicit(&m->left, UINT64_MAX, memory_order_release);
	atomic_store_explicit(&m->round, round + 1, memory_order_release);
	printf("%-10s %8llu meetings: %8llu seen in the last look, %8llu rung\n",
	       m->sleeper.no_membarrier ? "fences" : "membarrier", (unsigned long long)round,
	       (unsigned long long)seen, (unsigned long long)rung);
	fflush(stdout);
}

static void meet(bool fence, struct rng *g)
{
	static struct meeting m;
	pthread_t sleeper;
	static atomic_int bells[2];
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0, "no sockets");
	bells[0] = fds[0];
	bells[1] = fds[1];
	m = (struct meeting){.commit = 0};
	m.writer = (struct doorbell){.asleep_in = &m.asleep,
				     .asleep_out = &m.unused,
				     .fd = &bells[0],
				     .no_membarrier = fence,
				     .fence = fence};
	m.sleeper = (struct doorbell){.asleep_in = &m.unused,
				      .asleep_out = &m.asleep,
				      .fd = &bells[1],
				      .no_membarrier = fence,
				      .fence = fence};
	CHECK(pthread_create(&sleeper, NULL, sleep_often, &m) == 0, "no thread");
	commit_often(&m, g);
	pthread_join(sleeper, NULL);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	struct rng g = {rng_run_seed(0x646f6f7262656c6c)};

	meet(true, &g);
	if (barrier_works())
		meet(false, &g);
	else
		printf("without membarrier: that variant is skipped\n");
	return 0;
}
