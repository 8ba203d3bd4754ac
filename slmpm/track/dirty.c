/* SPDX-License-Identifier: BSD-3-Clause */
/* A bit for each byte that has changed, one for each word of these, one for each word of those. */
#include "slmpm/track/dirty.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "slmpm/base/bits.h"

int dirty_init(struct dirty *d, uint64_t size)
{
	uint64_t room[DIRTY_LEVELS], all = 0;
	uint64_t *at;

	*d = (struct dirty){.size = size};
	for (int i = 0; i < DIRTY_LEVELS; i++)
		all += room[i] = (i ? room[i - 1] : size) / WORD_BITS + 1;
	d->mapped = (size_t)all * sizeof(*at);
	at = mmap(NULL, d->mapped, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	for (int i = 0; i < DIRTY_LEVELS; at += room[i++])
		d->bits[i] = at;
	return 0;
}

void dirty_free(struct dirty *d)
{
	if (d->mapped)
		(void)munmap(d->bits[0], d->mapped);
	*d = (struct dirty){0};
}

/* ---- bits ----------------------------------------------------------------------------------- */

static void dirty_set(struct dirty *d, uint64_t lo, uint64_t hi)
{
	for (int level = 0; level < DIRTY_LEVELS; level++) {
		for (uint64_t i = lo / WORD_BITS; i <= (hi - 1) / WORD_BITS; i++)
			d->bits[level][i] |= bits_between(i, lo, hi);
		lo /= WORD_BITS;
		hi = (hi - 1) / WORD_BITS + 1;
	}
}

/* Of a level above goes what has nothing left below it. */
static void clear(struct dirty *d, uint64_t lo, uint64_t hi)
{
	for (uint64_t i = lo / WORD_BITS; i <= (hi - 1) / WORD_BITS; i++) {
		d->bits[0][i] &= ~bits_between(i, lo, hi);
		if (d->bits[0][i])
			continue;
		d->bits[1][i / WORD_BITS] &= ~(UINT64_C(1) << i % WORD_BITS);
		if (!d->bits[1][i / WORD_BITS])
			d->bits[2][i / WORD_BITS / WORD_BITS] &=
				~(UINT64_C(1) << i / WORD_BITS % WORD_BITS);
	}
}

/* The first bit of LEVEL that is set from FROM on and before END, or END: where its word has none
 * any more, the level above tells which one is next. */
static uint64_t dirty_find(const struct dirty *d, int level, uint64_t from, uint64_t end)
{
	uint64_t i = from / WORD_BITS;

	if (level + 1 < DIRTY_LEVELS && !(d->bits[level][i] & UINT64_MAX << from % WORD_BITS))
		from = dirty_find(d, level + 1, i + 1, end / WORD_BITS + 1) * WORD_BITS;
	return bits_find(d->bits[level], from, end, 0);
}

/* ---- runs ----------------------------------------------------------------------------------- */

static void spread(struct dirty *d)
{
	if (!d->many)
		dirty_set(d, d->lo, d->hi);
	d->many = true;
}

void dirty_add_slow_path(struct dirty *d, uint64_t lo, uint64_t hi)
{
	spread(d);
	dirty_set(d, lo, hi);
	d->lo = lo < d->lo ? lo : d->lo;
	d->hi = hi > d->hi ? hi : d->hi;
}

bool dirty_next(const struct dirty *d, uint64_t from, uint64_t *lo, uint64_t *hi)
{
	if (from < d->lo)
		from = d->lo;
	if (from >= d->hi)
		return false;
	*lo = d->many ? dirty_find(d, 0, from, d->hi) : from;
	*hi = d->many && *lo < d->hi ? bits_find(d->bits[0], *lo, d->size, UINT64_MAX) : d->hi;
	return *lo < d->hi;
}

void dirty_remove(struct dirty *d, uint64_t lo, uint64_t hi)
{
	uint64_t end;

	lo = lo < d->lo ? d->lo : lo;
	hi = hi > d->hi ? d->hi : hi;
	if (lo >= hi)
		return;
	if (lo > d->lo && hi < d->hi)
		spread(d);
	if (d->many)
		clear(d, lo, hi);
	if (hi == d->hi)
		d->hi = lo;
	else if (lo == d->lo)
		d->lo = hi;
	if (d->many && (d->hi <= d->lo || !dirty_next(d, d->lo, &d->lo, &end)))
		d->hi = d->lo;
	if (d->hi <= d->lo) {
		d->lo = d->hi = 0;
		d->many = false;
	}
}

uint64_t dirty_count(const struct dirty *d)
{
	uint64_t n = 0;

	for (uint64_t lo, hi = 0; dirty_next(d, hi, &lo, &hi);)
		n += hi - lo;
	return n;
}
