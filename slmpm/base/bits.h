/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of bits, in words of 64. */
#ifndef SLMPM_BASE_BITS_H
#define SLMPM_BASE_BITS_H

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

/* The first bit from AT on that is set, or with FLIP of all ones is not; END: none before it is. */
static inline uint64_t bits_find(const uint64_t *bits, uint64_t at, uint64_t end, uint64_t flip)
{
	uint64_t i = at / WORD_BITS, word;

	if (at >= end)
		return end;
	word = (bits[i] ^ flip) & UINT64_MAX << at % WORD_BITS;
	while (!word && ++i * WORD_BITS < end)
		word = bits[i] ^ flip;
	at = word ? i * WORD_BITS + (uint64_t)__builtin_ctzll(word) : end;
	return at < end ? at : end;
}

#endif
