/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A binary tree with its ranks breadth-first. Counted from 1 a node is its parent's number with one
 * more bit behind: what is said of ancestors is said of leading bits.
 */
#include "slmpm/network/network.h"

static uint32_t tree_level(uint32_t rank)
{
	return 31u - (uint32_t)__builtin_clz(rank + 1);
}

void tree_coords(uint32_t rank, uint32_t at[NETWORK_DIMS])
{
	at[0] = tree_level(rank);
	at[1] = rank + 1 - (1u << at[0]);
	at[2] = 0;
}

uint32_t tree_rank(const uint32_t at[NETWORK_DIMS])
{
	if (at[0] > 30 || at[1] >> at[0] || at[2])
		return NETWORK_NONE;
	return (1u << at[0]) + at[1] - 1;
}

uint32_t tree_neighbour(const struct slmpm_network *net, uint32_t rank, uint32_t link)
{
	uint64_t child = (uint64_t)rank * 2 + link;

	if (link == SLMPM_NETWORK_PARENT)
		return rank ? (rank - 1) / 2 : NETWORK_NONE;
	return child < net->nodes ? (uint32_t)child : NETWORK_NONE;
}

uint32_t tree_next(uint32_t from, uint32_t to)
{
	const uint32_t high = tree_level(from), low = tree_level(to);

	if (from == to)
		return NETWORK_NONE;
	if (low <= high || (to + 1) >> (low - high) != from + 1)
		return SLMPM_NETWORK_PARENT;
	return (to + 1) >> (low - high - 1) & 1 ? SLMPM_NETWORK_RIGHT : SLMPM_NETWORK_LEFT;
}

uint32_t tree_hops(uint32_t from, uint32_t to)
{
	uint32_t a = tree_level(from), b = tree_level(to), level = a < b ? a : b, differ;

	differ = ((from + 1) >> (a - level)) ^ ((to + 1) >> (b - level));
	if (differ) /* the common ancestor has those bits that lie above the first of these */
		level -= 32u - (uint32_t)__builtin_clz(differ);
	return a - level + b - level;
}

/* From one node of the last level to the root, and down to the lowest on its other side. */
uint32_t tree_diameter(uint32_t nodes)
{
	const uint32_t level = tree_level(nodes - 1);
	uint32_t place = nodes - (1u << level);

	if (!level)
		return 0;
	return level * 2 - (place < 1u << (level - 1));
}
