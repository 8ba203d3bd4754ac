/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hodges-Lehmann on the logarithms of paired ratios, with the interval that inverts Wilcoxon's
 * signed-rank test. The two samples of a pair are neighbours in time, so what the host does to both
 * cancels before anything is averaged; a burst that hits one of them moves few of the averages; and
 * nothing is drawn at random: the same samples always give the same verdict.
 */
#include "tests/bench/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle_of_sorted(const double *x, int n)
{
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static double *allocate(int n)
{
	double *x = malloc((size_t)n * sizeof *x);

	if (!x)
		abort();
	return x;
}

double median(const double *x, int n)
{
	double *sorted, m;

	if (n == 0)
		return NAN;
	sorted = allocate(n);
	memcpy(sorted, x, (size_t)n * sizeof *x);
	qsort(sorted, (size_t)n, sizeof *sorted, by_value);
	m = middle_of_sorted(sorted, n);
	free(sorted);
	return m;
}

static struct estimate middle_within(const double *x, int n, double deviations)
{
	int pairs = n * (n + 1) / 2, cut, k = 0;
	double spread = sqrt((double)n * (n + 1) * (2 * n + 1) / 24.0);
	struct estimate e = {NAN, NAN, NAN};
	double *w;

	if (n == 0)
		return e;
	w = allocate(pairs);
	for (int i = 0; i < n; i++)
		for (int j = i; j < n; j++)
			w[k++] = (x[i] + x[j]) / 2;
	qsort(w, (size_t)pairs, sizeof *w, by_value);
	/* Too few samples leave the whole range. */
	cut = (int)floor(pairs / 2.0 - deviations * spread);
	if (cut < 0)
		cut = 0;
	e = (struct estimate){middle_of_sorted(w, pairs), w[cut], w[pairs - 1 - cut]};
	free(w);
	return e;
}

struct estimate middle(const double *x, int n)
{
	return middle_within(x, n, 1.96);
}

struct estimate middle_surely(const double *x, int n)
{
	return middle_within(x, n, 2.81);
}

static struct estimate back_from_logarithm(struct estimate e)
{
	return (struct estimate){exp(e.mid), exp(e.low), exp(e.high)};
}

static struct estimate ratio_by(const double *a, const double *b, int n,
				struct estimate (*by)(const double *x, int n))
{
	double *x = allocate(n + 1);
	struct estimate e;

	for (int i = 0; i < n; i++)
		x[i] = log(a[i] / b[i]);
	e = back_from_logarithm(by(x, n));
	free(x);
	return e;
}

struct estimate ratio(const double *a, const double *b, int n)
{
	return ratio_by(a, b, n, middle);
}

struct estimate ratio_surely(const double *a, const double *b, int n)
{
	return ratio_by(a, b, n, middle_surely);
}

struct estimate difference(const double *a, const double *b, int n)
{
	double *x = allocate(n + 1);
	struct estimate e;

	for (int i = 0; i < n; i++)
		x[i] = a[i] - b[i];
	e = middle(x, n);
	free(x);
	return e;
}

struct estimate central(const double *a, int n)
{
	/* So many of n fall below the true median as heads of a coin. */
	int cut = (int)floor(n / 2.0 - 0.98 * sqrt(n));
	struct estimate e = {NAN, NAN, NAN};
	double *sorted;

	if (n == 0)
		return e;
	sorted = allocate(n);
	memcpy(sorted, a, (size_t)n * sizeof *sorted);
	qsort(sorted, (size_t)n, sizeof *sorted, by_value);
	if (cut < 0)
		cut = 0;
	e = (struct estimate){middle_of_sorted(sorted, n), sorted[cut], sorted[n - 1 - cut]};
	free(sorted);
	return e;
}

struct estimate typical(const double *a, int n)
{
	double *x = allocate(n + 1);
	struct estimate e;

	for (int i = 0; i < n; i++)
		x[i] = log(a[i]);
	e = back_from_logarithm(middle(x, n));
	free(x);
	return e;
}
