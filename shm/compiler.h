/* SPDX-License-Identifier: BSD-3-Clause */
/* Words to the compiler: byte order, checks of the peer, likely paths, cold functions. */
#ifndef SHM_COMPILER_H
#define SHM_COMPILER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Everything two processes share is little-endian. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE_64(x) ((uint64_t)(x))
#define LITTLE_32(x) ((uint32_t)(x))
#define LITTLE_16(x) ((uint16_t)(x))
#else
#define LITTLE_64(x) __builtin_bswap64((uint64_t)(x))
#define LITTLE_32(x) __builtin_bswap32((uint32_t)(x))
#define LITTLE_16(x) __builtin_bswap16((uint16_t)(x))
#endif

/*
 * Marks a check of what the peer wrote (R1 to R12 of doc/reliability.md): PEER_FAULT(condition) is
 * true where the peer broke a rule. The bench alone builds without them, to show what they cost.
 */
#ifdef SLMPM_UNCHECKED
#define PEER_FAULT(condition) (0 && (condition))
#else
#define PEER_FAULT(condition) (condition)
#endif

static inline uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What A is more than B. */
static inline uint64_t excess_of(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define COLD        __attribute__((cold, noinline))
/* Lies beside the others that are hot: no change elsewhere in the library makes two of them share
 * places of the instruction caches. */
#define HOT         __attribute__((hot))
#define INLINE      inline __attribute__((always_inline))
#define NOINLINE    __attribute__((noinline))

#define CACHE_LINE 64u

/* SIZE bytes from AT on, which may be no address, are read soon: they come near meanwhile. */
static INLINE void fetch_ahead(const void *at, unsigned size)
{
#pragma GCC unroll 8
	for (unsigned i = 0; i < size; i += CACHE_LINE)
		__builtin_prefetch((const unsigned char *)at + i);
}

/* The line at AT, which may be no address, is written soon: it becomes this processor's alone. */
static INLINE void claim_ahead(const void *at)
{
#if defined(__x86_64__) || defined(__i386__)
	/* The builtin asks to read. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const unsigned char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

/* The same of a word's line, waited for. By hand: a compiler may make a load of an or of 0. */
static INLINE void claim_line(_Atomic uint64_t *at)
{
#if defined(__x86_64__)
	__asm__ volatile("lock; orq $0, %0" : "+m"(*at) : : "cc");
#else
	(void)atomic_fetch_or_explicit(at, 0, memory_order_relaxed);
#endif
}

/* SIZE bytes from AT on have been written, and another processor reads them next: their lines go to
 * the cache that both share, which is nearer to it. Processors that cannot pass over it. */
static INLINE void demote(const void *at, size_t size)
{
#if defined(__x86_64__)
	for (size_t i = 0; i < size; i += CACHE_LINE)
		__asm__ volatile("cldemote %0" : : "m"(((const unsigned char *)at)[i]));
#else
	(void)at;
	(void)size;
#endif
}

#endif
