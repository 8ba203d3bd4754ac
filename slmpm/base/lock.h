/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a context: a mutex that a thread may take again while it has it. Where one thread
 * at a time shares it with a thread of the library, the guest, that one, the owner, comes to be
 * favoured: it goes in and out by plain stores, as long as the guest is out. The guest, which has
 * the mutex, takes the favour back: it says so, fences the owner by membarrier(2), and waits for
 * the owner to be out. So the owner, which stores that it is in and then loads whether it may,
 * needs no fence of its own.
 */
#ifndef SLMPM_BASE_LOCK_H
#define SLMPM_BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shm/compiler.h"

struct lock {
	pthread_mutex_t mutex;
	atomic_uint wanted;     /* threads that wait for it */
	atomic_uint inside;     /* the favoured owner is in: so often. It alone stores */
	atomic_bool shared;     /* none is favoured; who has the mutex stores */
	atomic_uintptr_t guest; /* lock_self of it; or 0 */
	/* The mutex's: */
	bool fences;     /* a guest can fence */
	bool favours;    /* there is, or was, such a guest */
	uint32_t streak; /* times the owner has had it since the guest */
};

void lock_init(struct lock *l);
/* A guest may come that may use membarrier, if the kernel has it. */
void lock_prepare(struct lock *l);
/* The calling thread is the guest from now on, and takes it. */
void lock_admit(struct lock *l);
/* The guest has ended. */
void lock_dismiss(struct lock *l);

/* Another for each thread that runs. */
static inline uintptr_t lock_self(void)
{
#if defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
#define LOCK_SELF
	return (uintptr_t)__builtin_thread_pointer();
#endif
#endif
#ifndef LOCK_SELF
	return (uintptr_t)pthread_self();
#endif
#undef LOCK_SELF
}

static inline bool lock_is_guest(const struct lock *l)
{
	return UNLIKELY(atomic_load_explicit(&l->guest, memory_order_relaxed) == lock_self());
}

static inline bool lock_is_wanted(const struct lock *l)
{
	return atomic_load_explicit(&l->wanted, memory_order_relaxed);
}

/* The favoured owner goes in. False: by lock_take. */
COLD void lock_wake(struct lock *l);
static inline bool lock_enter(struct lock *l)
{
	unsigned n = atomic_load_explicit(&l->inside, memory_order_relaxed);

	if (UNLIKELY(!n && atomic_load_explicit(&l->shared, memory_order_relaxed)) ||
	    lock_is_guest(l))
		return false;
	atomic_store_explicit(&l->inside, n + 1, memory_order_relaxed);
	/* With the guest's membarrier: either it sees the store, or this sees that it comes. */
	atomic_signal_fence(memory_order_seq_cst);
	/* Pairs with the release in lock_favour: it is later than all that the guest has done. */
	if (LIKELY(n || !atomic_load_explicit(&l->shared, memory_order_acquire)))
		return true;
	atomic_store_explicit(&l->inside, 0, memory_order_release);
	lock_wake(l);
	return false;
}

/* By the mutex, after a while asleep. True: it had to wait. */
bool lock_take(struct lock *l);

static inline void lock_leave(struct lock *l)
{
	unsigned n = atomic_load_explicit(&l->inside, memory_order_relaxed);

	if (UNLIKELY(!n) || lock_is_guest(l)) {
		pthread_mutex_unlock(&l->mutex);
		return;
	}
	/* Pairs with the acquire in lock_claim. */
	atomic_store_explicit(&l->inside, n - 1, memory_order_release);
	/* As in lock_enter: the guest that sleeps until then is seen. */
	atomic_signal_fence(memory_order_seq_cst);
	if (UNLIKELY(atomic_load_explicit(&l->shared, memory_order_relaxed)))
		lock_wake(l);
}

/* Without the lock until COND is signalled, or DEADLINE (ns of clock_now; UINT64_MAX: none), or
 * for no reason: 0, or an error number as of pthread_cond_timedwait. COND is signalled under the
 * lock. */
int lock_wait(struct lock *l, pthread_cond_t *cond, uint64_t deadline);

#endif
