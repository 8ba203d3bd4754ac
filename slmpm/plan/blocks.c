/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks of a vector, one of each rank: how long they are and where they lie. */
#include "slmpm/plan/rounds.h"

#define MOST (1ull << 60) /* elements: sums of a few such can be counted */

bool blocks_begin(struct plan_blocks *b, uint32_t size, uint64_t count, const uint64_t *counts,
		  const uint64_t *places)
{
	uint64_t sum = 0;

	*b = (struct plan_blocks){.count = count, .counts = counts, .places = places, .size = size};
	if (!counts)
		return !__builtin_mul_overflow(count, size, &sum) && sum <= MOST;
	for (uint32_t r = 0; r < size; r++)
		if (__builtin_add_overflow(sum, counts[r], &sum))
			return false;
	return sum <= MOST;
}

uint64_t blocks_count(const struct plan_blocks *b, uint32_t rank)
{
	if (b->counts)
		return b->counts[rank];
	return b->cut ? b->count / b->size + (rank < b->count % b->size) : b->count;
}

static uint64_t before_in_cut(const struct plan_blocks *b, uint32_t rank)
{
	uint64_t longer = b->count % b->size;

	return b->count / b->size * rank + (rank < longer ? rank : longer);
}

uint64_t blocks_before(struct plan_blocks *b, uint32_t rank)
{
	if (!b->counts)
		return b->cut ? before_in_cut(b, rank) : b->count * rank;
	if (rank < b->rank / 2)
		b->rank = 0, b->before = 0;
	while (b->rank < rank)
		b->before += b->counts[b->rank++];
	while (b->rank > rank)
		b->before -= b->counts[--b->rank];
	return b->before;
}

uint64_t blocks_place(struct plan_blocks *b, uint32_t rank)
{
	return b->places ? b->places[rank] : blocks_before(b, rank);
}

uint64_t blocks_range(struct plan_blocks *b, uint32_t lo, uint32_t hi)
{
	uint64_t before = blocks_before(b, lo);

	return blocks_before(b, hi) - before;
}

uint64_t blocks_most(const struct plan_blocks *b)
{
	uint64_t most = blocks_count(b, 0);

	if (!b->counts)
		return most;
	for (uint32_t r = 1; r < b->size; r++)
		if (b->counts[r] > most)
			most = b->counts[r];
	return most;
}
