/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A record that one process writes and others read: two places and a `turn`, which says which of
 * them is whole, also when the writer ends, or stops, while it writes the other. Words are atomic;
 * the fences are a sequence lock's.
 */
#ifndef SLMPM_PLACES_H
#define SLMPM_PLACES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PLACES_TRIES 64

/* SIZE bytes, in words of which each is stored, or loaded, as one. */
static inline void words_store(void *to, const void *from, size_t size)
{
	_Atomic uint64_t *words = to;

	for (size_t at = 0; at < size; at += 8) {
		uint64_t word;

		memcpy(&word, (const unsigned char *)from + at, 8);
		atomic_store_explicit(words++, word, memory_order_relaxed);
	}
}

static inline void words_load(void *to, const void *from, size_t size)
{
	const _Atomic uint64_t *words = from;

	for (size_t at = 0; at < size; at += 8) {
		uint64_t word = atomic_load_explicit(words++, memory_order_relaxed);

		memcpy((unsigned char *)to + at, &word, 8);
	}
}

/* SIZE bytes into the one of PLACES, each of PLACE_SIZE bytes, that is not whole; then it is. */
static inline void places_fill(_Atomic uint64_t *turn, void *places, size_t place_size,
			       const void *from, size_t size)
{
	uint64_t next = atomic_load_explicit(turn, memory_order_relaxed) + 1;

	/* Who sees a word of it sees that the other place is the whole one: it reads this in
	 * vain. */
	atomic_thread_fence(memory_order_release);
	words_store((unsigned char *)places + (next & 1) * place_size, from, size);
	atomic_store_explicit(turn, next, memory_order_release);
}

/* A whole place: 1; 0: never used; -1: its owner was faster each time. */
static inline int places_read(const _Atomic uint64_t *turn, const void *places, size_t place_size,
			      void *to, size_t size)
{
	for (int i = 0; i < PLACES_TRIES; i++) {
		uint64_t now = atomic_load_explicit(turn, memory_order_acquire);

		if (!now)
			return 0;
		words_load(to, (const unsigned char *)places + (now & 1) * place_size, size);
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(turn, memory_order_relaxed) == now)
			return 1;
	}
	return -1;
}

#endif
