/* SPDX-License-Identifier: BSD-3-Clause */
/* A context's lock by its mutex; how the owner is favoured, and how the guest comes (lock.h). */
#include "slmpm/base/lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "slmpm/base/clock.h"

#define SPINS 32 /* tries before a thread sleeps: about the time that being woken takes */
#define STREAK                                                                                     \
	256 /* an owner that has it so often while the guest is out saves what fencing costs */
#define DRAIN_NS 100000

static long membarrier_private(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

void lock_init(struct lock *l)
{
	pthread_mutexattr_t recursive; /* a handler that runs under it may call what takes it */

	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&l->mutex, &recursive);
	pthread_mutexattr_destroy(&recursive);
	atomic_init(&l->shared, true);
}

void lock_prepare(struct lock *l)
{
	l->fences = membarrier_private(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
		    membarrier_private(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

void lock_dismiss(struct lock *l)
{
	atomic_store_explicit(&l->guest, 0, memory_order_relaxed);
}

/* ---- the favour ---------------------------------------------------------------------------- */

/* The owner has the mutex. It is in without it from now on. */
static void lock_favour(struct lock *l)
{
	l->streak = 0;
	atomic_store_explicit(&l->inside, 1, memory_order_relaxed);
	atomic_store_explicit(&l->shared, false, memory_order_release);
	pthread_mutex_unlock(&l->mutex);
}

/* A full barrier in the owner, wherever it is. Where the kernel refuses it although lock_prepare
 * had it (a filter was put on since) a pause takes its place, far longer than a store stays in a
 * store buffer; and the owner is not favoured again. */
static void fence_owner(struct lock *l)
{
	static const struct timespec pause = {0, DRAIN_NS};

	if (membarrier_private(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
		return;
	l->fences = l->favours = false;
	atomic_thread_fence(memory_order_seq_cst);
	nanosleep(&pause, NULL);
}

/* The guest has the mutex: the owner is favoured no more, and out. */
static void lock_claim(struct lock *l)
{
	unsigned n;

	l->streak = 0;
	if (atomic_load_explicit(&l->shared, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(&l->wanted, 1, memory_order_relaxed);
	atomic_store_explicit(&l->shared, true, memory_order_relaxed);
	fence_owner(l);
	/* Pairs with the release in lock_leave: what the owner did inside. */
	for (int i = 0; (n = atomic_load_explicit(&l->inside, memory_order_acquire)); i++)
		if (i < SPINS)
			clock_pause();
		else
			(void)syscall(SYS_futex, &l->inside, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, n,
				      NULL, NULL, 0);
	atomic_fetch_sub_explicit(&l->wanted, 1, memory_order_relaxed);
}

COLD void lock_wake(struct lock *l)
{
	(void)syscall(SYS_futex, &l->inside, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

/* ---- the mutex ----------------------------------------------------------------------------- */

/* Another thread has it: for a call's time, as a rule, and a sleep takes far longer. */
static void take_in_turn(struct lock *l)
{
	int spins = SPINS;

	atomic_fetch_add_explicit(&l->wanted, 1, memory_order_relaxed);
	while (spins-- && pthread_mutex_trylock(&l->mutex) != 0)
		clock_pause();
	if (spins < 0)
		pthread_mutex_lock(&l->mutex);
	atomic_fetch_sub_explicit(&l->wanted, 1, memory_order_relaxed);
}

bool lock_take(struct lock *l)
{
	bool waits = pthread_mutex_trylock(&l->mutex) != 0;

	if (UNLIKELY(waits))
		take_in_turn(l);
	if (lock_is_guest(l))
		lock_claim(l);
	else if (l->favours && ++l->streak > STREAK)
		lock_favour(l);
	return waits;
}

void lock_admit(struct lock *l)
{
	atomic_store_explicit(&l->guest, lock_self(), memory_order_relaxed);
	(void)lock_take(l); /* the owner may be favoured since there was a guest before */
	l->favours = l->fences;
}

/* The owner is in without the mutex: it goes on with it. */
static void lock_join(struct lock *l, unsigned n)
{
	atomic_store_explicit(&l->inside, 0, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&l->shared, memory_order_relaxed))
		lock_wake(l);
	while (n--)
		pthread_mutex_lock(&l->mutex);
}

int lock_wait(struct lock *l, pthread_cond_t *cond, uint64_t deadline)
{
	const struct timespec t = {
		.tv_sec = (time_t)(deadline / 1000000000),
		.tv_nsec = (long)(deadline % 1000000000),
	};
	bool guest = lock_is_guest(l);
	unsigned n = guest ? 0 : atomic_load_explicit(&l->inside, memory_order_relaxed);
	int rc;

	if (n) {
		lock_join(l, n); /* what is signalled from now on is not missed */
		return 0;
	}
	rc = deadline == UINT64_MAX ? pthread_cond_wait(cond, &l->mutex) :
				      pthread_cond_timedwait(cond, &l->mutex, &t);
	if (guest)
		lock_claim(l);
	return rc;
}
