/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes, memory that both see, two futexes: the least that an asked operation can take
 * here. */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/asks_bare.h"
#include "tests/bench/plain.h"

enum { SIZES_MAX = 16, COPIERS = 2 };

#define PIECE ((size_t)256 << 10) /* as the engine's */

static struct shared {
	_Atomic uint32_t asked, done; /* operations; copiers that have ended */
	_Atomic size_t next;          /* byte that nobody has begun */
	size_t size;
	double taken_s[SIZES_MAX];
	_Atomic uint32_t whole;
} * at;

static char *from, *to;

static void bind_to(const unsigned *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < COPIERS; i++)
		CPU_SET(cpu[i], &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void bind_to_one(unsigned cpu)
{
	bind_to((unsigned[]){cpu, cpu});
}

/* While *WORD is VALUE. */
static void sleep_at(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load_explicit(word, memory_order_acquire) == value)
		syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void wake_all(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- who copies ------------------------------------------------------------------------------ */

static void copy_pieces(void)
{
	size_t begin = 0;

	while ((begin = atomic_fetch_add(&at->next, PIECE)) < at->size) {
		size_t left = at->size - begin;

		memcpy(to + begin, from + begin, left < PIECE ? left : PIECE);
	}
}

static void *copier(void *unused)
{
	for (uint32_t seen = 0;; seen++) {
		sleep_at(&at->asked, seen);
		copy_pieces();
		if (atomic_fetch_add(&at->done, 1) + 1 == COPIERS * (seen + 1))
			wake_all(&at->done);
	}
	return unused;
}

static void serve(const unsigned cpus[2], size_t largest)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(to, 1, largest);
	bind_to(cpus);
	if (pthread_create(&thread, NULL, copier, NULL))
		_exit(1);
	bind_to_one(cpus[1]);
	(void)copier(NULL);
}

/* ---- who asks -------------------------------------------------------------------------------- */

static void ask(size_t size)
{
	uint32_t number = atomic_load_explicit(&at->asked, memory_order_relaxed) + 1, done;

	at->size = size;
	atomic_store_explicit(&at->next, 0, memory_order_relaxed);
	atomic_store_explicit(&at->asked, number, memory_order_release);
	wake_all(&at->asked);
	while ((done = atomic_load_explicit(&at->done, memory_order_acquire)) != COPIERS * number)
		sleep_at(&at->done, done);
}

static double cost_of_asking(size_t size, double sample_s)
{
	double begin = now();
	int n = 0;

	for (; n < 3 || now() < begin + sample_s / 4; n++)
		ask(size);
	begin = now();
	for (n = 0; n < 3 || now() < begin + sample_s; n++)
		ask(size);
	return (now() - begin) / n;
}

static void call(unsigned cpu, const size_t *sizes, int count, double sample_s)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bind_to_one(cpu);
	memset(from, 1, sizes[count - 1]);
	for (int s = 0; s < count; s++)
		at->taken_s[s] = cost_of_asking(sizes[s], sample_s);
	atomic_store(&at->whole, 1);
	_exit(0);
}

static void *share(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

bool bare_sample(const unsigned cpus[2], const size_t *sizes, int count, double sample_s,
		 double *taken_s)
{
	size_t largest = sizes[count - 1];
	pid_t caller, server;
	bool whole = false;

	at = share(sizeof *at);
	from = share(largest);
	to = share(largest);
	if (at == MAP_FAILED || from == MAP_FAILED || to == MAP_FAILED || count > SIZES_MAX)
		return false;
	if ((server = fork()) == 0)
		serve(cpus, largest);
	if ((caller = fork()) == 0)
		call(cpus[0], sizes, count, sample_s);
	if (caller > 0)
		waitpid(caller, NULL, 0);
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	if ((whole = atomic_load(&at->whole)))
		memcpy(taken_s, at->taken_s, sizeof *taken_s * (size_t)count);
	munmap(at, sizeof *at);
	munmap(from, largest);
	munmap(to, largest);
	return whole;
}
