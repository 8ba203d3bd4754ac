/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waking a sleeping peer. The sleeper announces itself in the other side's memory, makes that
 * visible, looks at its rings once more and sleeps on descriptors; the other side looks at its own
 * memory after each commit and, seeing the announcement, sends a byte.
 *
 * The two look past each other unless one of them pays for a full barrier. Where both can use
 * membarrier(2) the sleeper pays for both and a send costs a compiler barrier only; else each side
 * fences. A side that has announced itself fences, too, until it has retracted that and fenced once
 * more: a sleeper needs no membarrier while the other side's announcement stands.
 */
#ifndef SHM_DOORBELL_H
#define SHM_DOORBELL_H

#include <stdbool.h>

#include "shm/barrier.h"
#include "shm/order.h"

struct doorbell {
	const _Atomic uint64_t *asleep_in; /* own memory: odd while the peer sleeps */
	_Atomic uint64_t *asleep_out;      /* the peer's memory: odd while this side sleeps */
	uint64_t rung;                     /* the announcement last answered: one bell each */
	uint64_t announced;                /* own word as last stored */
	const atomic_int *fd;              /* where a connected socket stands; -1: none any more */
	bool no_membarrier;                /* at one end or both: commits always fence */
	bool fence;      /* commits fence: no_membarrier, or this side is announced */
	uint64_t writes; /* remote stores */
	uint64_t bells;
	uint64_t *all; /* counts those of all its domain's links; or NULL */
};

/* Sends the byte; never blocks. A full socket means that the peer has enough to wake it. */
void doorbell_ring(struct doorbell *b, uint64_t announcement);

/* What the flag begins with where totals begin with START: even, awake. */
static inline uint64_t doorbell_first(uint64_t start)
{
	return start & ~UINT64_C(1);
}

/* After each commit and each publication: wakes the peer if it announced that it sleeps. */
static inline void doorbell_check(struct doorbell *b)
{
	uint64_t asleep;

	if (b->fence)
		/* Pairs with the fence in doorbell_announced. */
		ORDER_FENCE(bell_fence, memory_order_seq_cst);
	else
		/* Pairs with the sleeper's barrier_all. */
		ORDER_COMPILER_FENCE(bell_order);
	asleep = LITTLE_64(ORDER_LOAD(asleep_in, b->asleep_in, memory_order_relaxed));
	if (UNLIKELY((asleep & 1) && asleep != b->rung))
		doorbell_ring(b, asleep);
}

/* "I sleep": the caller then calls doorbell_announced, and scans its rings once more. */
static inline void doorbell_announce(struct doorbell *b)
{
	/* A new one even if the last still stands. */
	b->announced += 1 + (b->announced & ORDER_RULE(announce_odd));
	b->writes++;
	b->fence = b->fence || ORDER_RULE(announced_fence);
	/* Pairs with the acquire in doorbell_unfenced: what was committed before is seen there. */
	ORDER_STORE(announce, b->asleep_out, LITTLE_64(b->announced), memory_order_release);
}

/* One fence behind all links' announcements. Pairs with doorbell_check's, doorbell_retracted's. */
static inline void doorbell_announced(void)
{
	ORDER_FENCE(announce_fence, memory_order_seq_cst);
}

/* May the other side commit without a fence? Then the caller needs barrier_all as well. */
static inline bool doorbell_unfenced(const struct doorbell *b)
{
	uint64_t asleep;

	if (b->no_membarrier)
		return false;
	/* Pairs with the release in doorbell_announce. */
	asleep = LITTLE_64(ORDER_LOAD(asleep_seen, b->asleep_in, memory_order_acquire));
	return !(asleep & 1);
}

/* "I am awake again"; a bell too many does no harm. The caller then calls doorbell_retracted. */
static inline void doorbell_retract(struct doorbell *b)
{
	/* A link that came after the others were announced has nothing to retract. */
	if (!(b->announced & 1) && ORDER_RULE(retract_odd))
		return;
	b->announced++;
	b->writes++;
	ORDER_STORE(retract, b->asleep_out, LITTLE_64(b->announced), memory_order_relaxed);
}

/* One fence behind the retractions on all links. Pairs with that of doorbell_announced. */
static inline void doorbell_retracted(void)
{
	ORDER_FENCE(retract_fence, memory_order_seq_cst);
}

/* After doorbell_retracted: commits are as before the sleep. */
static inline void doorbell_resume(struct doorbell *b)
{
	b->fence = b->no_membarrier;
}

#endif
