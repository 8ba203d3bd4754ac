/* SPDX-License-Identifier: BSD-3-Clause */
/* One side's view of the pair, and the tests that both sides run together. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdalign.h>
#include <stdatomic.h>

#include "tests/bench/peers/order.h"
#include "tests/bench/peers/pair.h"

#define EACH_MAX 20000u /* round trips or arrivals timed one by one in a sample */

/* How far a burst after a pause has come: its 10th message, its 100th, its last. */
enum { TO_10, TO_100, TO_ALL, PAUSE_MARKS };

/* Shared by the two sides beside their channel; nothing of it is on a timed path. */
struct area {
	alignas(128) _Atomic uint64_t arrived[2][16]; /* a line pair each */
	alignas(128) _Atomic uint64_t line;           /* the probe's */
	alignas(128) _Atomic uint32_t turn;           /* counts orders; side 1 sleeps on it */
	struct order order;
	uint64_t end_ns; /* when side 1 had the whole stream */
	int again;
	double each_us[EACH_MAX];
	double behind_us[PAUSE_MARKS][EACH_MAX]; /* the messages behind the first of each burst */
	uint64_t mark_ns[PAUSE_MARKS];           /* of a burst one way, as side 1 saw it */
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

/* Bursts after pauses (pauses.c): what n of them took in ns. */
double pauses_run(const struct order *o, uint64_t n);
void pauses_answer(const struct order *o, struct answer *a);

/* What the tests are made of. */
uint64_t measure_now(void);
void measure_say(uint64_t i, const struct order *o);
void measure_hear(const struct order *o);
void measure_sort(double *x, size_t n);

void measure_meet(void);
/* One-way time of a cache line between the two CPUs in ns, valid on side 0; 0 on one CPU. */
double measure_line(void);
/* What n messages took in ns, valid on side 0. Times of single ones are left in the area. */
double measure_run(const struct order *o, uint64_t n);

#endif
