/* SPDX-License-Identifier: BSD-3-Clause */
/* What work queues are held against that needs no library: a cache line, a futex, four buffers. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/stats.h"
#include "tests/bench/work.h"

enum { TRIPS = 1000, ROUNDS = 21, WAKES = 200, BUFFERS = 4, LAPS = 5000, SETTLED_US = 20000 };

#define ASLEEP_NS 100000.0 /* after which a process that sleeps at once does so */

/* ---- a cache line ---------------------------------------------------------------------------- */

static void await(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load_explicit(word, memory_order_acquire) != value)
		relax();
}

/* One line, which is each side's in turn, as the probe of slmpm_perftest has it. */
static double time_trips(int number, uint32_t base)
{
	double begin = now_ns();

	for (uint32_t i = 1; i <= TRIPS; i++) {
		uint32_t out = base + 2 * i - 1, home = base + 2 * i;

		if (number == 0)
			atomic_store_explicit(&common->there, out, memory_order_release);
		await(&common->there, number ? out : home);
		if (number)
			atomic_store_explicit(&common->there, home, memory_order_release);
	}
	return (now_ns() - begin) / TRIPS / 2;
}

static void hop(int number)
{
	double taken[ROUNDS];

	bind_to(cpus[number]);
	meet(2);
	for (int i = 0; i < ROUNDS; i++)
		taken[i] = time_trips(number, (uint32_t)(2 * TRIPS * i));
	if (number == 0)
		common->result[0] = median(taken, ROUNDS);
}

bool bare_hop(double *ns)
{
	bool well = run_processes(2, hop);

	*ns = common->result[0];
	return well;
}

/* ---- a futex --------------------------------------------------------------------------------- */

static void sleep_while(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load_explicit(word, memory_order_acquire) == value)
		syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void wake_at(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void wake_other(void)
{
	for (uint32_t i = 1; i <= WAKES; i++) {
		busy_ns(ASLEEP_NS);
		atomic_store(&common->stamp, (uint64_t)now_ns());
		wake_at(&common->there, i);
		await(&common->back, i);
	}
}

static void be_woken(void)
{
	double taken[WAKES];

	for (uint32_t i = 1; i <= WAKES; i++) {
		sleep_while(&common->there, i - 1);
		taken[i - 1] = now_ns() - (double)atomic_load(&common->stamp);
		atomic_store(&common->back, i);
	}
	common->result[0] = median(taken, WAKES);
}

static void wake(int number)
{
	bind_to(cpus[number]);
	meet(2);
	if (number)
		be_woken();
	else
		wake_other();
}

bool bare_wake(double *ns)
{
	bool well = run_processes(2, wake);

	*ns = common->result[0];
	return well;
}

/* ---- a ring ---------------------------------------------------------------------------------- */

/* One word says whose turn it is. */
static void pass_token(int number)
{
	double begin;

	bind_to(cpus[number % 2]);
	meet(RING);
	usleep(SETTLED_US); /* as work_ring.c */
	meet(2 * RING);
	begin = now_ns();
	for (uint32_t i = (uint32_t)number; i < LAPS * RING; i += RING) {
		while (atomic_load_explicit(&common->there, memory_order_acquire) != i)
			sched_yield();
		atomic_store_explicit(&common->there, i + 1, memory_order_release);
	}
	if (number == RING - 1)
		common->result[0] = (now_ns() - begin) / LAPS / RING;
}

bool bare_ring(double *ns)
{
	bool well = run_processes(RING, pass_token);

	*ns = common->result[0];
	return well;
}

/* ---- four buffers ---------------------------------------------------------------------------- */

/* From one process to the next: how many buffers have been filled, and emptied. */
struct conveyor {
	_Alignas(128) _Atomic uint64_t filled;
	_Alignas(128) _Atomic uint64_t emptied;
	_Alignas(4096) char bytes[];
};

static struct conveyor *conveyors[2];
static uint64_t piece, pieces;

static char *buffer_of(struct conveyor *c, uint64_t i)
{
	return c->bytes + i % BUFFERS * piece;
}

/* The three have two processors. */
static void yield_until(const _Atomic uint64_t *count, uint64_t least)
{
	while (atomic_load_explicit(count, memory_order_acquire) < least)
		syscall(SYS_sched_yield);
}

static void *private_buffer(void)
{
	void *p = malloc(piece);

	if (!p)
		_exit(1);
	memset(p, 1, piece);
	return p;
}

static void fill_all(struct conveyor *to)
{
	const char *from = private_buffer();

	for (uint64_t i = 0; i < pieces; i++) {
		yield_until(&to->emptied, i < BUFFERS ? 0 : i - BUFFERS + 1);
		memcpy(buffer_of(to, i), from, piece);
		atomic_store_explicit(&to->filled, i + 1, memory_order_release);
	}
	yield_until(&to->emptied, pieces);
}

static void pass_all(struct conveyor *from, struct conveyor *to)
{
	for (uint64_t i = 0; i < pieces; i++) {
		yield_until(&from->filled, i + 1);
		yield_until(&to->emptied, i < BUFFERS ? 0 : i - BUFFERS + 1);
		memcpy(buffer_of(to, i), buffer_of(from, i), piece);
		atomic_store_explicit(&from->emptied, i + 1, memory_order_release);
		atomic_store_explicit(&to->filled, i + 1, memory_order_release);
	}
}

static void empty_all(struct conveyor *from)
{
	char *to = private_buffer();

	for (uint64_t i = 0; i < pieces; i++) {
		yield_until(&from->filled, i + 1);
		memcpy(to, buffer_of(from, i), piece);
		atomic_store_explicit(&from->emptied, i + 1, memory_order_release);
	}
	free(to);
}

/* Source and sink on one processor, as of slmpm_perftest. */
static void forward(int number)
{
	double begin;

	bind_to(cpus[number % 2]);
	meet(3);
	begin = now_ns();
	if (number == 0)
		fill_all(conveyors[0]);
	else if (number == 1)
		pass_all(conveyors[0], conveyors[1]);
	else
		empty_all(conveyors[1]);
	if (number == 2)
		common->result[0] = now_ns() - begin;
}

static struct conveyor *conveyor_map(void)
{
	void *p = mmap(NULL, sizeof(struct conveyor) + BUFFERS * piece, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

bool bare_forward(uint64_t bytes, uint64_t size, double *ns)
{
	bool well = true;

	piece = size;
	pieces = bytes / size;
	for (int i = 0; i < 2; i++)
		well = (conveyors[i] = conveyor_map()) && well;
	well = well && run_processes(3, forward);
	*ns = common->result[0];
	for (int i = 0; i < 2; i++)
		if (conveyors[i])
			munmap(conveyors[i], sizeof(struct conveyor) + BUFFERS * piece);
	return well;
}
