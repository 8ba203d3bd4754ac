/* SPDX-License-Identifier: BSD-3-Clause */
/* A seeded random generator, so that a failing run can be repeated. */
#ifndef TESTS_LIB_RANDOM_H
#define TESTS_LIB_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct rng {
	uint64_t state;
};

/* A Weyl sequence, its values mixed. */
static inline uint64_t rng_next(struct rng *g)
{
	uint64_t x = g->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

/* 0 .. n-1; n from 1 up. */
static inline uint32_t rng_below(struct rng *g, uint32_t n)
{
	return (uint32_t)((rng_next(g) >> 32) * n >> 32);
}

static inline bool rng_one_in(struct rng *g, uint32_t n)
{
	return rng_below(g, n) == 0;
}

/* The run's seed: SLMPM_TEST_SEED, else FALLBACK; printed, so that it can be set again. */
static inline uint64_t rng_run_seed(uint64_t fallback)
{
	const char *text = getenv("SLMPM_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : fallback;

	printf("seed %#llx (SLMPM_TEST_SEED repeats it)\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

#endif
