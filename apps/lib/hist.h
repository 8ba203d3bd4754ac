/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram of durations: 128 linear steps in each power of two, so that any percentile is known
 * to half a percent. No memory beyond the structure; adding costs a few instructions.
 */
#ifndef APPS_LIB_HIST_H
#define APPS_LIB_HIST_H

#include <stdint.h>
#include <string.h>

#define HIST_BITS    7
#define HIST_STEPS   (1u << HIST_BITS)
#define HIST_BUCKETS ((65 - HIST_BITS) * HIST_STEPS)

struct hist {
	uint64_t count, sum, min, max;
	uint64_t bucket[HIST_BUCKETS];
};

static inline void hist_clear(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

static inline unsigned hist_index(uint64_t v)
{
	unsigned shift;

	if (v < HIST_STEPS)
		return (unsigned)v;
	shift = 63u - HIST_BITS - (unsigned)__builtin_clzll(v); /* keeps the leading bits */
	return (shift + 1) * HIST_STEPS + (unsigned)(v >> shift) - HIST_STEPS;
}

/* The smallest value that falls into bucket I. */
static inline uint64_t hist_floor(unsigned i)
{
	unsigned shift = i / HIST_STEPS;

	return shift < 2 ? i : (uint64_t)(i % HIST_STEPS + HIST_STEPS) << (shift - 1);
}

static inline void hist_add_n(struct hist *h, uint64_t v, uint64_t n)
{
	h->count += n;
	h->sum += v * n;
	h->bucket[hist_index(v)] += n;
	if (v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
}

static inline void hist_add(struct hist *h, uint64_t v)
{
	hist_add_n(h, v, 1);
}

static inline void hist_merge(struct hist *into, const struct hist *h)
{
	into->count += h->count;
	into->sum += h->sum;
	into->min = h->min < into->min ? h->min : into->min;
	into->max = h->max > into->max ? h->max : into->max;
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->bucket[i] += h->bucket[i];
}

/* The value that a share Q (0 to 1) of all values does not exceed, to the bucket's middle. */
static inline double hist_quantile(const struct hist *h, double q)
{
	double want = q * (double)h->count;
	uint64_t seen = 0;

	for (unsigned i = 0; i < HIST_BUCKETS - 1; i++) {
		double middle;

		seen += h->bucket[i];
		if (!h->bucket[i] || (double)seen < want)
			continue;
		middle = (double)(hist_floor(i) + hist_floor(i + 1) - 1) / 2;
		if (middle < (double)h->min)
			middle = (double)h->min;
		return middle > (double)h->max ? (double)h->max : middle;
	}
	return (double)h->max;
}

#endif
