/* SPDX-License-Identifier: BSD-3-Clause */
/* What is measured: the metrics, the sizes, and the bar of each cell. */
#ifndef BENCH_CELL_H
#define BENCH_CELL_H

#include <stddef.h>

enum metric { LAT, TLAT, BW, TBW, LOAN, P99, ASLEEP_SOCKET, ASLEEP_UCX, ONE_CPU, CHECKS, METRICS };
enum { SIZES = 9 };

/* Whom a metric is measured against; systems say which of these they are. */
extern const size_t SIZE[SIZES];

struct metric_kind {
	const char *name, *title, *unit;
	const char *order, *options; /* the words of the order */
	const char *key;             /* of the answer */
	const char *ours, *rival;    /* class of systems that stand for us, and against us */
	int more;                    /* more is better */
	int idle;                    /* a fixed, small count: every message waits */
	int at_once;                 /* streams: ours may say MORE up to this size */
	double bar[SIZES];           /* of ours over the rival's; 0: none */
};

extern const struct metric_kind KIND[METRICS];
extern const double HOPS_BAR[SIZES]; /* latency of ours in hops, at most */

const char *size_name(int size);

/* Keeps only the cells of a list such as "lat:8,tlat:64K,bw"; 0, or -1 naming the bad word. */
int cells_choose(const char *list, const char **bad);
int cell_chosen(enum metric m, int size);
/* Whether the metric is measured at that size at all. */
int cell_exists(enum metric m, int size);

#endif
