/* SPDX-License-Identifier: BSD-3-Clause */
/* One side's view of the pair, and the tests that both sides run together. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdalign.h>
#include <stdatomic.h>

#include "tests/bench/peers/order.h"
#include "tests/bench/peers/pair.h"

#define EACH_MAX 20000u /* round trips or arrivals timed one by one in a sample */

/* Shared by the two sides beside their channel; nothing of it is on a timed path. */
struct area {
	alignas(128) _Atomic uint64_t arrived[2][16]; /* a line pair each */
	alignas(128) _Atomic uint64_t line;           /* the probe's */
	alignas(128) _Atomic uint32_t turn;           /* counts orders; side 1 sleeps on it */
	struct order order;
	uint64_t end_ns; /* when side 1 had the whole stream */
	int again;
	double each_us[EACH_MAX], rest_us[EACH_MAX];
	uint64_t cpu_ns[2]; /* of each side's process, within the last run with pauses */
	char blob[2][PAIR_BLOB];
};

struct pair {
	struct area *area;
	const struct peer *peer;
	int side, one_cpu;
	char *tx, *rx; /* private */
};

extern struct pair pair;

void measure_meet(void);
/* One-way time of a cache line between the two CPUs in ns, valid on side 0; 0 on one CPU. */
double measure_line(void);
/* What n messages took in ns, valid on side 0. Times of single ones are left in the area. */
double measure_run(const struct order *o, uint64_t n);

#endif
