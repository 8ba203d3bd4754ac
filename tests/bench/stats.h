/* SPDX-License-Identifier: BSD-3-Clause */
/* Medians, and estimates with their 95 % interval. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

struct estimate {
	double mid, low, high;
};

double median(const double *x, int n);

/* The middle of x with its interval; x must be symmetric about it, as logarithms of ratios are. */
struct estimate middle(const double *x, int n);
/* The same with an interval of 99.5 %. */
struct estimate middle_surely(const double *x, int n);

/* The ratio of paired samples, and their difference. */
struct estimate ratio(const double *a, const double *b, int n);
struct estimate ratio_surely(const double *a, const double *b, int n); /* 99.5 % */
struct estimate difference(const double *a, const double *b, int n);

/* The median with its interval, whatever the distribution. */
struct estimate central(const double *a, int n);

/* The middle of positive samples, taken on their logarithms. */
struct estimate typical(const double *a, int n);

#endif
