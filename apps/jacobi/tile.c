/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rectangle of the plate, twice: one iteration reads one copy and writes the other. Each cell
 * becomes the mean of its four neighbours, always added in the same order, so that it has the same
 * bits in each tile that has it.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/jacobi/jacobi.h"

#define HOT   100.0
#define WARM  60.0
#define LANES 8

/* What X, Y of a plate is at the beginning; -1 and SIDE are its borders, which stay so. The upper
 * one is hot in the middle, and the plate warm in two places. */
static double temperature(int64_t x, int64_t y, uint32_t side)
{
	double u = ((double)x + 0.5) / side, v = ((double)y + 0.5) / side;

	if (y < 0)
		return x < 0 || x >= side ? 0 : HOT * 4 * u * (1 - u);
	if (y >= side || x < 0 || x >= side)
		return 0;
	if ((u - 0.3) * (u - 0.3) + (v - 0.6) * (v - 0.6) < 0.02)
		return WARM;
	return (u - 0.75) * (u - 0.75) + (v - 0.75) * (v - 0.75) < 0.01 ? HOT : 0;
}

static int fill(struct tile *t)
{
	size_t cells = ((size_t)t->width + 2) * ((size_t)t->height + 2);

	for (unsigned i = 0; i < 2; i++) {
		t->cells[i] = malloc(cells * sizeof(double));
		if (!t->cells[i])
			return -SLMPM_ENOMEM;
		for (int64_t y = -1; y <= t->height; y++)
			for (int64_t x = -1; x <= t->width; x++)
				*tile_cell(t, i, x, y) = temperature(t->x + x, t->y + y, t->side);
	}
	return 0;
}

int tile_make(struct tile *t, uint32_t side)
{
	*t = (struct tile){.side = side, .width = side, .height = side};
	return fill(t);
}

/* Where part PART of PARTS begins. */
static uint32_t cut(uint32_t side, uint32_t part, uint32_t parts)
{
	return (uint32_t)((uint64_t)side * part / parts);
}

int tile_make_part(struct tile *t, uint32_t side, const struct slmpm_network *net, uint32_t node)
{
	const uint32_t *extent = net->extent;
	uint32_t at[3];
	int rc = slmpm_network_coords(net, node, at);

	if (rc < 0)
		return rc;
	*t = (struct tile){
		.side = side,
		.x = cut(side, at[0], extent[0]),
		.y = cut(side, at[1], extent[1]),
	};
	t->width = cut(side, at[0] + 1, extent[0]) - t->x;
	t->height = cut(side, at[1] + 1, extent[1]) - t->y;
	return fill(t);
}

void tile_free(struct tile *t)
{
	free(t->cells[0]);
	free(t->cells[1]);
}

/* ---- an iteration --------------------------------------------------------------------------- */

static void compute_row(double *restrict to, const double *at, const double *above,
			const double *below, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = 0.25 * (((above[i] + below[i]) + at[i - 1]) + at[i + 1]);
}

/* In lanes, which compilers turn into vectors: the greatest has no order. */
static double compare_row(const double *now, const double *before, int64_t n)
{
	double most[LANES] = {0}, change;
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (int k = 0; k < LANES; k++) {
			change = __builtin_fabs(now[i + k] - before[i + k]);
			most[k] = change > most[k] ? change : most[k];
		}
	for (; i < n; i++) {
		change = __builtin_fabs(now[i] - before[i]);
		most[0] = change > most[0] ? change : most[0];
	}
	for (int k = 1; k < LANES; k++)
		most[0] = most[k] > most[0] ? most[k] : most[0];
	return most[0];
}

double tile_sweep(struct tile *t, uint64_t iteration, int64_t from, int64_t to, int64_t left,
		  int64_t right)
{
	double residual = 0, change;

	for (int64_t y = from; y < to && left < right; y++) {
		const double *before = tile_cell(t, iteration - 1, left, y);
		double *now = tile_cell(t, iteration, left, y);

		compute_row(now, before, tile_cell(t, iteration - 1, left, y - 1),
			    tile_cell(t, iteration - 1, left, y + 1), right - left);
		change = compare_row(now, before, right - left);
		residual = change > residual ? change : residual;
	}
	return residual;
}

/* ---- edges ---------------------------------------------------------------------------------- */

/* The first cell of a line along SIDE, OUT cells out of the tile, and how far the next is. */
static double *line_of(const struct tile *t, uint64_t iteration, int side, int out, int64_t *stride)
{
	int64_t right = (int64_t)t->width - 1 + out, last = (int64_t)t->height - 1 + out;

	*stride = side < SLMPM_NETWORK_Y_UP ? (int64_t)t->width + 2 : 1;
	switch (side) {
	case SLMPM_NETWORK_X_UP: return tile_cell(t, iteration, right, 0);
	case SLMPM_NETWORK_X_DOWN: return tile_cell(t, iteration, -out, 0);
	case SLMPM_NETWORK_Y_UP: return tile_cell(t, iteration, 0, last);
	default: return tile_cell(t, iteration, 0, -out);
	}
}

uint32_t tile_length(const struct tile *t, int side)
{
	return side < SLMPM_NETWORK_Y_UP ? t->height : t->width;
}

void tile_edge(const struct tile *t, uint64_t iteration, int side, double *to)
{
	int64_t stride;
	const double *from = line_of(t, iteration, side, 0, &stride);

	for (uint32_t i = 0; i < tile_length(t, side); i++)
		to[i] = from[i * stride];
}

void tile_rim(struct tile *t, uint64_t iteration, int side, const double *from)
{
	int64_t stride;
	double *to = line_of(t, iteration, side, 1, &stride);

	for (uint32_t i = 0; i < tile_length(t, side); i++)
		to[i * stride] = from[i];
}
