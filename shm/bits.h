/* SPDX-License-Identifier: BSD-3-Clause */
/* A bit each of many, in words of 64. */
#ifndef SHM_BITS_H
#define SHM_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool bit_is_set(const uint64_t *bits, uint64_t at)
{
	return bits[at >> 6] >> (at & 63) & 1;
}

static inline void bit_set(uint64_t *bits, uint64_t at)
{
	bits[at >> 6] |= UINT64_C(1) << (at & 63);
}

static inline void bit_clear(uint64_t *bits, uint64_t at)
{
	bits[at >> 6] &= ~(UINT64_C(1) << (at & 63));
}

/* COUNT from FROM on, if they lie within one word, and are not all of it. */
static inline bool bits_set_in_word(uint64_t *bits, uint64_t from, uint64_t count)
{
	if ((from & 63) + count > 63)
		return false;
	bits[from >> 6] |= ((UINT64_C(1) << count) - 1) << (from & 63);
	return true;
}

#endif
