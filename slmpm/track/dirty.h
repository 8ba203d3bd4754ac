/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which bytes of a region have changed. As long as they are one run, two numbers say so; else a bit
 * for each byte, with two levels of bits above them by which the next run is found. The memory for
 * bits is only addresses until it is used, so that adding never fails.
 */
#ifndef SLMPM_TRACK_DIRTY_H
#define SLMPM_TRACK_DIRTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIRTY_LEVELS 3

struct dirty {
	uint64_t lo, hi; /* what has changed lies between; lo == hi: nothing has */
	bool many;       /* not all of that: the bits tell */
	uint64_t *bits[DIRTY_LEVELS];
	uint64_t size; /* bytes of the region */
	size_t mapped;
};

/* For a region of SIZE bytes; a negative errno. */
int dirty_init(struct dirty *d, uint64_t size);
void dirty_free(struct dirty *d);
static inline bool dirty_is_empty(const struct dirty *d)
{
	return d->lo == d->hi;
}
void dirty_add_slow_path(struct dirty *d, uint64_t lo, uint64_t hi);
/* From LO to before HI, which lie in the region. */
static inline void dirty_add(struct dirty *d, uint64_t lo, uint64_t hi)
{
	if (!d->many && dirty_is_empty(d)) {
		d->lo = lo;
		d->hi = hi;
	} else if (d->many || lo > d->hi || hi < d->lo) {
		dirty_add_slow_path(d, lo, hi);
	} else {
		d->lo = lo < d->lo ? lo : d->lo;
		d->hi = hi > d->hi ? hi : d->hi;
	}
}
/* The first run that ends behind FROM, without what lies before FROM; false: there is none. */
bool dirty_next(const struct dirty *d, uint64_t from, uint64_t *lo, uint64_t *hi);
void dirty_remove(struct dirty *d, uint64_t lo, uint64_t hi);
/* All bytes that have changed. */
uint64_t dirty_count(const struct dirty *d);

#endif
