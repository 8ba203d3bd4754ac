/* SPDX-License-Identifier: BSD-3-Clause */
/* A torus or mesh of three dimensions: each by itself is a ring or a line. */
#include "slmpm/network/network.h"

/* ---- one dimension -------------------------------------------------------------------------- */

struct line {
	uint32_t extent;
	bool wraps;
};

static struct line line_of(const struct slmpm_network *net, int dim)
{
	return (struct line){net->extent[dim], net->wrap >> dim & 1};
}

/* Hops upwards. */
static uint32_t line_climb(struct line line, uint32_t from, uint32_t to)
{
	return from <= to ? to - from : to + (line.extent - from);
}

static uint32_t line_hops(struct line line, uint32_t from, uint32_t to)
{
	uint32_t straight = from < to ? to - from : from - to;

	if (line.wraps && straight > line.extent - straight)
		return line.extent - straight;
	return straight;
}

static bool line_goes_up(struct line line, uint32_t from, uint32_t to)
{
	uint32_t up;

	if (!line.wraps)
		return from < to;
	up = line_climb(line, from, to);
	if (up == line.extent - up)
		return from % 2 == 0;
	return up < line.extent - up;
}

static uint32_t line_next(struct line line, uint32_t at, bool up)
{
	if (up)
		return at + 1 < line.extent ? at + 1 : line.wraps ? 0 : NETWORK_NONE;
	return at ? at - 1 : line.wraps ? line.extent - 1 : NETWORK_NONE;
}

/* ---- three ---------------------------------------------------------------------------------- */

void torus_coords(const struct slmpm_network *net, uint32_t rank, uint32_t at[NETWORK_DIMS])
{
	for (int d = 0; d < NETWORK_DIMS; d++) {
		at[d] = rank % net->extent[d];
		rank /= net->extent[d];
	}
}

uint32_t torus_rank(const struct slmpm_network *net, const uint32_t at[NETWORK_DIMS])
{
	return at[0] + net->extent[0] * (at[1] + net->extent[1] * at[2]);
}

uint32_t torus_neighbour(const struct slmpm_network *net, uint32_t rank, uint32_t link)
{
	const int dim = (int)(link / 2);
	uint32_t at[NETWORK_DIMS];

	torus_coords(net, rank, at);
	at[dim] = line_next(line_of(net, dim), at[dim], link % 2 == 0);
	return at[dim] == NETWORK_NONE ? NETWORK_NONE : torus_rank(net, at);
}

uint32_t torus_next(const struct slmpm_network *net, uint32_t from, uint32_t to)
{
	uint32_t here[NETWORK_DIMS], there[NETWORK_DIMS];

	torus_coords(net, from, here);
	torus_coords(net, to, there);
	for (int d = 0; d < NETWORK_DIMS; d++)
		if (here[d] != there[d])
			return (uint32_t)d * 2 + !line_goes_up(line_of(net, d), here[d], there[d]);
	return NETWORK_NONE;
}

uint32_t torus_hops(const struct slmpm_network *net, uint32_t from, uint32_t to)
{
	uint32_t here[NETWORK_DIMS], there[NETWORK_DIMS], hops = 0;

	torus_coords(net, from, here);
	torus_coords(net, to, there);
	for (int d = 0; d < NETWORK_DIMS; d++)
		hops += line_hops(line_of(net, d), here[d], there[d]);
	return hops;
}

/*
 * In channel 1 a packet only comes nearer to the border, behind which it goes on in channel 0, in
 * which it only comes nearer to the other one: no buffer waits for itself.
 */
uint32_t torus_channel(const struct slmpm_network *net, uint32_t from, uint32_t link, uint32_t to)
{
	const int dim = (int)(link / 2);
	uint32_t here[NETWORK_DIMS], there[NETWORK_DIMS];

	if (!(net->wrap >> dim & 1))
		return 0;
	torus_coords(net, from, here);
	torus_coords(net, to, there);
	return link % 2 == 0 ? here[dim] > there[dim] : here[dim] < there[dim];
}

uint32_t torus_diameter(const struct slmpm_network *net)
{
	uint32_t hops = 0;

	for (int d = 0; d < NETWORK_DIMS; d++)
		hops += net->wrap >> d & 1 ? net->extent[d] / 2 : net->extent[d] - 1;
	return hops;
}

/* ---- shapes --------------------------------------------------------------------------------- */

uint32_t torus_nodes(const uint32_t extent[NETWORK_DIMS])
{
	uint64_t nodes = 1;

	for (int d = 0; d < NETWORK_DIMS; d++) {
		nodes *= extent[d];
		if (nodes > NETWORK_NODES)
			return 0;
	}
	return (uint32_t)nodes;
}

/* The greatest divisor of N whose square is at most N. */
static uint32_t shorter_side(uint32_t n)
{
	uint32_t best = 1;

	for (uint32_t d = 2; (uint64_t)d * d <= n; d++)
		if (n % d == 0)
			best = d;
	return best;
}

/* N as the product of three whose sum is the least. */
static void three_sides(uint32_t n, uint32_t side[NETWORK_DIMS])
{
	uint64_t least = UINT64_MAX;

	for (uint32_t d = 1; (uint64_t)d * d * d <= n; d++) {
		uint32_t middle;

		if (n % d)
			continue;
		middle = shorter_side(n / d);
		if ((uint64_t)n / d / middle + middle + d >= least)
			continue;
		least = (uint64_t)n / d / middle + middle + d;
		side[0] = n / d / middle;
		side[1] = middle > d ? middle : d;
		side[2] = middle > d ? d : middle;
	}
}

bool torus_shape(uint32_t extent[NETWORK_DIMS], uint32_t nodes)
{
	uint32_t side[NETWORK_DIMS] = {1, 1, 1};
	int open = 0, next = 0;

	for (int d = 0; d < NETWORK_DIMS; d++) {
		if (!extent[d]) {
			open++;
			continue;
		}
		if (nodes % extent[d])
			return false;
		nodes /= extent[d];
	}
	if (open == 3) {
		three_sides(nodes, side);
	} else {
		side[1] = open == 2 ? shorter_side(nodes) : 1;
		side[0] = nodes / side[1];
	}
	for (int d = 0; d < NETWORK_DIMS; d++)
		if (!extent[d])
			extent[d] = side[next++];
	return open || nodes == 1;
}
