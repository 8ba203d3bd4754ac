/* SPDX-License-Identifier: BSD-3-Clause */
/* Single accesses of 1 to 8 bytes: what is aligned nobody sees in parts. */
#ifndef SLMPM_MIRROR_WORDS_H
#define SLMPM_MIRROR_WORDS_H

#include <stdint.h>
#include <string.h>

typedef uint64_t word64 __attribute__((may_alias));
typedef uint32_t word32 __attribute__((may_alias));
typedef uint16_t word16 __attribute__((may_alias));

/* The longest step that is one access at T: as it is aligned, and no more than N. */
static inline uint64_t word_step(const unsigned char *t, uint64_t n)
{
	uint64_t most = 8;

	if ((uintptr_t)t & 7)
		most = (uintptr_t)t & -(uintptr_t)t & 7;
	while (most > n)
		most /= 2;
	return most;
}

static inline void word_store(unsigned char *t, const unsigned char *f, uint64_t n)
{
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	switch (n) {
	case 8:
		memcpy(&v64, f, 8);
		__atomic_store_n((word64 *)(void *)t, v64, __ATOMIC_RELAXED);
		return;
	case 4:
		memcpy(&v32, f, 4);
		__atomic_store_n((word32 *)(void *)t, v32, __ATOMIC_RELAXED);
		return;
	case 2:
		memcpy(&v16, f, 2);
		__atomic_store_n((word16 *)(void *)t, v16, __ATOMIC_RELAXED);
		return;
	default: __atomic_store_n(t, *f, __ATOMIC_RELAXED);
	}
}

#endif
