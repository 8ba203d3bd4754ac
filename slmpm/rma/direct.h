/* SPDX-License-Identifier: BSD-3-Clause */
/* The fast paths of one-sided calls, where a mapped region needs no more than a lookup and the
 * access; and atomic operations as the machine does them. */
#ifndef SLMPM_DIRECT_H
#define SLMPM_DIRECT_H

#include <stdatomic.h>
#include <string.h>

#include "slmpm/completion/completion.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"
#include "slmpm/part.h"

/* Direct operations alone make no progress; once in a while they do. Powers of two. */
#define RMA_INSPECT_EVERY 1024 /* between inspections of the peers */
#define RMA_PASS_EVERY    128  /* and of what others are shown */

/* After COUNT of them, each RMA_PASS_EVERY: the one or, true, the other (rma.c). */
bool direct_opportunistic(struct context *ctx, uint64_t count);

/* Nothing asked for before holds direct operations up, nor does the owner (as remote_access). */
static inline bool direct_is_free(const struct remote *remote)
{
	return !(remote->direct.rma->holds |
		 atomic_load_explicit(remote->direct.access, memory_order_relaxed));
}

/* So of mapped memory, in a context of one thread, by who has the rights. */
static inline bool direct_is_short(const struct remote *remote, unsigned op)
{
	return remote && remote->direct.ops >> op & 1 && direct_is_free(remote);
}

/* The same in a context with mirrors, of what brings its bytes into none: that is yet to be seen.
 * Asked where direct_is_short has said no. */
static inline bool direct_is_guarded(const struct remote *remote, unsigned op)
{
	return remote && remote->guarded >> op & 1 && !remote->measured && direct_is_free(remote);
}

/* The same in a context of several threads, by the one that has the lock. */
static inline bool direct_is_locked(const struct remote *remote, unsigned op)
{
	return remote->direct.locked >> op & 1 && direct_is_free(remote);
}

/* One has been measured. Nothing is written where threads share the context: they take no lock. */
static inline void direct_measured(struct remote *remote)
{
	if (!remote->measured)
		return;
	remote->direct.ops |= remote->measured & ~remote->guarded;
	remote->measured = 0;
}

static inline bool direct_is_within(const struct remote *remote, uint64_t offset, uint64_t len)
{
	return offset <= remote->direct.size && len <= remote->direct.size - offset &&
	       len <= SLMPM_MESSAGE_MAX;
}

/* Nothing that a finished call has not done anyway. */
static inline bool direct_is_plain(const struct slmpm_how *how)
{
	return how_is_plain(how, SLMPM_MORE | SLMPM_REMOTE);
}

static inline void *direct_at(const struct remote *remote, uint64_t offset)
{
	return remote->direct.base + offset;
}

/* The word will be changed, if the checks allow it: they take less time than its line does. */
static inline void direct_claim(slmpm_rmem mem, uint64_t offset)
{
	const unsigned char *base = atomic_load_explicit(&remote_guesses[mem.id % REMOTE_GUESSES],
							 memory_order_relaxed);

	claim_ahead((const void *)((uintptr_t)base + offset));
}

#define DIRECT_ATOMIC(type, bits)                                                                  \
	static inline uint64_t direct_atomic_##bits(void *at, int op, uint64_t operand,            \
						    uint64_t compare)                              \
	{                                                                                          \
		_Atomic type *word = at;                                                           \
		type expected = (type)compare;                                                     \
                                                                                                   \
		if (op == SLMPM_FETCH_ADD)                                                         \
			return atomic_fetch_add(word, (type)operand);                              \
		if (op == SLMPM_SWAP)                                                              \
			return atomic_exchange(word, (type)operand);                               \
		(void)atomic_compare_exchange_strong(word, &expected, (type)operand);              \
		return expected;                                                                   \
	}
DIRECT_ATOMIC(uint32_t, 32)
DIRECT_ATOMIC(uint64_t, 64)
#undef DIRECT_ATOMIC

/* One atomic operation on the aligned word at AT, in this machine's byte order: what was there. */
static inline uint64_t direct_atomic(void *at, int op, int bits, uint64_t operand, uint64_t compare)
{
	return bits == 64 ? direct_atomic_64(at, op, operand, compare) :
			    direct_atomic_32(at, op, operand, compare);
}

/* Into the caller's uint32_t or uint64_t, or nowhere. */
static inline void direct_give_old(void *to, int bits, uint64_t old)
{
	const uint32_t half = (uint32_t)old;

	if (to && bits == 64)
		memcpy(to, &old, sizeof(old));
	else if (to)
		memcpy(to, &half, sizeof(half));
}

#endif
