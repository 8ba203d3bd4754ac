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

/* COUNT of a word's, from bit FROM on: both together 64 at most. */
static inline uint64_t bits_of_word(uint64_t from, uint64_t count)
{
	return count == 64 ? ~UINT64_C(0) : ((UINT64_C(1) << count) - 1) << from;
}

/* COUNT from FROM on. */
static inline void bits_set(uint64_t *bits, uint64_t from, uint64_t count)
{
	uint64_t end = from + count;

	while (from < end) {
		uint64_t bit = from & 63;
		uint64_t run = 64 - bit < end - from ? 64 - bit : end - from;

		bits[from >> 6] |= bits_of_word(bit, run);
		from += run;
	}
}

/* Clears those that are set from AT on, up to the end of that word: how many. */
static inline uint32_t bits_take_run(uint64_t *bits, uint64_t at)
{
	uint64_t bit = at & 63, clear = ~(bits[at >> 6] >> bit);
	uint32_t run = clear ? (uint32_t)__builtin_ctzll(clear) : 64;

	bits[at >> 6] &= ~bits_of_word(bit, run);
	return run;
}

#endif
