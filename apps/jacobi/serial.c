/* SPDX-License-Identifier: BSD-3-Clause */
/* The same by one process, and whether that is the same: each bit of each cell. */
#include <string.h>

#include "apps/jacobi/jacobi.h"

static struct progress iterate(struct tile *t, const struct task *task)
{
	struct progress p = {0, 0};

	do {
		p.iteration++;
		p.residual = tile_sweep(t, p.iteration, 0, t->height, 0, t->width);
	} while (p.iteration < task->iterations && p.residual > task->tolerance);
	return p;
}

/* The first cell that differs; side * side: none. */
static uint64_t compare(const struct tile *t, uint64_t iteration, const double *plate)
{
	const size_t row = t->side * sizeof(double);

	for (uint32_t y = 0; y < t->side; y++) {
		const double *here = tile_cell(t, iteration, 0, y);
		const double *there = plate + (uint64_t)y * t->side;

		if (memcmp(here, there, row) == 0)
			continue;
		for (uint32_t x = 0; x < t->side; x++)
			if (memcmp(here + x, there + x, sizeof(*here)) != 0)
				return (uint64_t)y * t->side + x;
	}
	return (uint64_t)t->side * t->side;
}

static int judge(const struct run *run, struct progress p, uint64_t differs, double seconds)
{
	const double cells = (double)run->task.side * run->task.side;
	const struct progress *end = &run->result.end;

	if (p.iteration != end->iteration || memcmp(&p.residual, &end->residual, sizeof(double))) {
		fprintf(stderr,
			"jacobi: the serial run has ended after %llu iterations, residual %.17g, "
			"not %llu, %.17g\n",
			(unsigned long long)p.iteration, p.residual,
			(unsigned long long)end->iteration, end->residual);
		return 1;
	}
	if (differs < (uint64_t)run->task.side * run->task.side) {
		fprintf(stderr, "jacobi: the serial run has another value of cell %llu, %llu\n",
			(unsigned long long)(differs % run->task.side),
			(unsigned long long)(differs / run->task.side));
		return 1;
	}
	printf("  %-10s equal to the serial run, which did %.3g cell updates/s\n", "result",
	       cells * (double)p.iteration / seconds);
	return 0;
}

int verify(const struct run *run)
{
	double began = seconds_now();
	struct progress p;
	struct tile t;
	int failed;

	if (tile_make(&t, run->task.side) < 0) {
		fprintf(stderr, "jacobi: no memory for the serial run\n");
		tile_free(&t);
		return 1;
	}
	p = iterate(&t, &run->task);
	began = seconds_now() - began;
	failed = judge(run, p, compare(&t, p.iteration, run->plate), began);
	tile_free(&t);
	return failed;
}
