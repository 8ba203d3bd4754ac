/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of bytes in an array: found by halving, and moved up where one comes between. */
#include "slmpm/mirror/intervals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int intervals_init(struct intervals *f)
{
	f->runs = calloc(INTERVALS_MAX, sizeof(*f->runs));
	return f->runs ? 0 : -ENOMEM;
}

void intervals_free(struct intervals *f)
{
	free(f->runs);
	f->runs = NULL;
	f->count = 0;
}

/* Numbers go round. */
static bool counts(const struct intervals *f, const struct interval *run)
{
	return (int32_t)(run->number - f->stored) > 0;
}

static void sweep(struct intervals *f)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->count; i++)
		if (counts(f, &f->runs[i]))
			f->runs[kept++] = f->runs[i];
	f->count = kept;
	f->swept = f->stored;
}

/* Each run may part one that is there. */
bool intervals_have_room(struct intervals *f, uint32_t n)
{
	if (f->count + 2 * n > INTERVALS_MAX && f->swept != f->stored)
		sweep(f);
	return f->count + 2 * n <= INTERVALS_MAX;
}

/* The first run that ends behind FROM. */
static uint32_t intervals_find(const struct intervals *f, uint64_t from)
{
	uint32_t lo = 0, hi = f->count;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (f->runs[mid].hi > from)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Of what is there stays what it does not cover: a part before it, and one behind. */
void intervals_add(struct intervals *f, uint64_t lo, uint64_t hi, uint32_t number)
{
	uint32_t first = intervals_find(f, lo), end = first, n = 0;
	struct interval put[3];

	while (end < f->count && f->runs[end].lo < hi)
		end++;
	if (first < end && f->runs[first].lo < lo)
		put[n++] = (struct interval){f->runs[first].lo, lo, f->runs[first].number};
	put[n++] = (struct interval){lo, hi, number};
	if (first < end && f->runs[end - 1].hi > hi)
		put[n++] = (struct interval){hi, f->runs[end - 1].hi, f->runs[end - 1].number};
	if (first + n != end)
		memmove(&f->runs[first + n], &f->runs[end], (f->count - end) * sizeof(*f->runs));
	memcpy(&f->runs[first], put, n * sizeof(*put));
	f->count += first + n - end;
}

/* Before numbers have gone round what counts no more is removed, whoever asks. */
void intervals_stored(struct intervals *f, uint32_t stored, uint32_t numbered)
{
	f->stored = stored;
	if (stored == numbered)
		f->count = 0;
	if (stored - f->swept >= INTERVALS_MAX)
		sweep(f);
}

bool intervals_next(const struct intervals *f, uint64_t from, uint64_t end, uint64_t *lo,
		    uint64_t *hi)
{
	for (uint32_t i = intervals_find(f, from); i < f->count && f->runs[i].lo < end; i++) {
		const struct interval *run = &f->runs[i];

		if (!counts(f, run))
			continue;
		*lo = run->lo > from ? run->lo : from;
		*hi = run->hi;
		return true;
	}
	return false;
}
