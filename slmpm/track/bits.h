/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of bits, in words of 64. */
#ifndef SLMPM_TRACK_BITS_H
#define SLMPM_TRACK_BITS_H

#include <stdint.h>

#define WORD_BITS 64

/* Those of word I that lie from LO to before HI. */
static inline uint64_t bits_between(uint64_t i, uint64_t lo, uint64_t hi)
{
	uint64_t m = UINT64_MAX;

	if (i == lo / WORD_BITS)
		m &= UINT64_MAX << lo % WORD_BITS;
	if (i == (hi - 1) / WORD_BITS)
		m &= UINT64_MAX >> (WORD_BITS - 1 - (hi - 1) % WORD_BITS);
	return m;
}

#endif
