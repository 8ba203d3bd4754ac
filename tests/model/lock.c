/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a context whose owner is favoured, and the guest, which has the mutex and takes the
 * favour back: the real one (slmpm/base/lock.h, lock.c), its atomics and system calls the
 * checker's. Who is in writes what the other reads, so two that are in together are a race.
 */
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/model/sides.h"
#include "tests/model/world.h"

static unsigned lock_load(const volatile void *word, memory_order order);
static void lock_store(volatile void *word, uint64_t value, memory_order order);
static long lock_call(long number, ...);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_thread_fence
#undef atomic_signal_fence
#define atomic_load_explicit(word, order)         lock_load((word), (order))
#define atomic_store_explicit(word, value, order) lock_store((word), (value), (order))
#define atomic_fetch_add_explicit(word, n, order) ((void)(word))
#define atomic_fetch_sub_explicit(word, n, order) ((void)(word))
#define atomic_thread_fence(order)                model_fence(SITE_none, (order))
#define atomic_signal_fence(order)                model_compiler_fence(SITE_none)
#define syscall(...)                              lock_call(__VA_ARGS__)

#include "slmpm/base/lock.c"

enum { OWNER = WRITER, GUEST = READER };
enum { OF_OWNER, OF_GUEST, SEGMENTS }; /* payload, of who writes it */

#define INSIDE (&machine_words[WORD_WRITER_ASLEEP]) /* stored by the owner */
#define SHARED (&machine_words[WORD_READER_ASLEEP]) /* by the guest, and ... */
#define MUTEX  (&machine_words[WORD_CONSUMED])      /* ... 1: it has given the mutex back */

static const struct scenario *scenario;

static struct both {
	struct lock lock;
	unsigned inside; /* its own words, as each has stored them */
	bool shared;
	bool ended[THREADS];
} both;

static unsigned lock_load(const volatile void *word, memory_order order)
{
	bool guest = world.running == GUEST;

	switch ((const volatile char *)word - (const char *)&both.lock) {
	case offsetof(struct lock, inside):
		return guest ? (unsigned)model_load(SITE_none, INSIDE, order) : both.inside;
	case offsetof(struct lock, shared):
		return guest ? both.shared : (unsigned)model_load(SITE_none, SHARED, order);
	default: return 0; /* the owner is not the guest */
	}
}

static void lock_store(volatile void *word, uint64_t value, memory_order order)
{
	switch ((volatile char *)word - (char *)&both.lock) {
	case offsetof(struct lock, inside):
		both.inside = (unsigned)value;
		model_store(SITE_none, INSIDE, value, order);
		break;
	case offsetof(struct lock, shared):
		both.shared = value;
		model_store(SITE_none, SHARED, value, order);
		break;
	default: model_fault("the checker: a store to another word");
	}
}

/* A wake-up that comes before the sleep ends that, as no kernel does: then it is slept again. */
static void futex(int op, unsigned value)
{
	model_fence(SITE_none, memory_order_seq_cst);
	if ((op & FUTEX_CMD_MASK) == FUTEX_WAKE)
		model_bell();
	else if (model_load(SITE_none, INSIDE, memory_order_relaxed) == value)
		(void)model_sleep();
}

static long lock_call(long number, ...)
{
	va_list args;

	va_start(args, number);
	if (number == SYS_membarrier) {
		model_barrier();
	} else {
		int op;

		(void)va_arg(args, void *);
		op = va_arg(args, int);
		futex(op, va_arg(args, unsigned));
	}
	va_end(args);
	return 0;
}

/* ---- the two ------------------------------------------------------------------------------- */

static _Noreturn void end_here(int t)
{
	both.ended[t] = true;
	model_end();
}

static void take_mutex(void)
{
	while (!model_load(SITE_none, MUTEX, memory_order_acquire))
		model_wait(MUTEX);
	if (model_read_payload(OF_GUEST, false) != 1)
		model_fault("what the guest has done is lost");
	model_write_payload(OF_OWNER, false, 0);
	end_here(OWNER);
}

/* In and out by the favour, in once more within; by the mutex in the end. */
static void play_owner(void)
{
	for (unsigned i = 1; i <= scenario->send; i++) {
		if (!lock_enter(&both.lock))
			take_mutex();
		model_write_payload(OF_OWNER, false, i);
		if (i == scenario->send) {
			if (!lock_enter(&both.lock))
				model_fault("it cannot go in again");
			lock_leave(&both.lock);
			model_write_payload(OF_OWNER, false, i + 1);
		}
		lock_leave(&both.lock);
	}
	end_here(OWNER);
}

static void play_guest(void)
{
	lock_claim(&both.lock);
	(void)model_read_payload(OF_OWNER, false);
	model_write_payload(OF_GUEST, false, 1);
	model_store(SITE_none, MUTEX, 1, memory_order_release);
	end_here(GUEST);
}

static void nothing(void) {}

static const char *settled(void)
{
	if (!both.ended[GUEST])
		return "stuck: the guest is never woken";
	return both.ended[OWNER] ? NULL : "stuck: the owner";
}

struct search lock_search(const struct scenario *s)
{
	scenario = s;
	return (struct search){
		.entry = {play_owner, play_guest},
		.segments = SEGMENTS,
		.reverse = 1u << OF_GUEST,
		.private = &both,
		.private_size = sizeof(both),
		.canonical = nothing,
		.settled = settled,
		.states_max = 20000000,
	};
}
