/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks of written pages: a bit each, set by who is held up, taken by a scan. */
#include "slmpm/track/written.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "slmpm/base/bits.h"

#define AHEAD    16 /* pages that are opened at once, at most */
#define RUNS_MAX 8  /* more are protected as one, with what lies between */

void *written_new(size_t size, const struct finder *finder, const struct range *range,
		  written_protect *protect)
{
	uint64_t words = ((range->hi - range->lo) / range->page + WORD_BITS - 1) / WORD_BITS;
	struct written *w = calloc(1, size + (size_t)(3 * words * sizeof(uint64_t)));
	uint64_t *room;

	if (!w)
		return NULL;
	room = (uint64_t *)(void *)((char *)w + size);
	*w = (struct written){
		.pages = {finder, range->lo, range->hi},
		.protect = protect,
		.page = range->page,
		.words = words,
		.marks = (_Atomic uint64_t *)room,
		.always = (_Atomic uint64_t *)room + words,
		.taken = room + 2 * words,
	};
	return w;
}

void written_free(struct written *w)
{
	free(w);
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* Where to open to for a store to the page at AT. */
static uintptr_t written_ahead(struct written *w, uintptr_t at)
{
	uint32_t n = 1;

	if (atomic_load_explicit(&w->behind, memory_order_relaxed) == at) {
		n = 2 * atomic_load_explicit(&w->ahead, memory_order_relaxed);
		n = n < AHEAD ? n : AHEAD;
		n = n ? n : 1; /* another thread's is seen in part */
	}
	if (n > (w->pages.hi - at) / w->page)
		n = (uint32_t)((w->pages.hi - at) / w->page);
	atomic_store_explicit(&w->ahead, n, memory_order_relaxed);
	atomic_store_explicit(&w->behind, at + n * w->page, memory_order_relaxed);
	return at + n * w->page;
}

/* Rounds to whole pages, as far as these are watched; false: none is. */
static bool written_clip(const struct written *w, uintptr_t *lo, uintptr_t *hi)
{
	*lo = *lo < w->pages.lo ? w->pages.lo : *lo / w->page * w->page;
	*hi = *hi > w->pages.hi ? w->pages.hi : (*hi + w->page - 1) / w->page * w->page;
	return *lo < *hi;
}

static bool written_set(const struct written *w, _Atomic uint64_t *bits, uintptr_t lo, uintptr_t hi)
{
	uint64_t from, to;

	if (!written_clip(w, &lo, &hi))
		return false;
	from = (lo - w->pages.lo) / w->page;
	to = (hi - w->pages.lo) / w->page;
	for (uint64_t i = from / WORD_BITS; i <= (to - 1) / WORD_BITS; i++)
		atomic_fetch_or(&bits[i], bits_between(i, from, to));
	return true;
}

void written_mark(struct written *w, uintptr_t lo, uintptr_t hi)
{
	if (written_set(w, w->marks, lo, hi))
		atomic_store(&w->any, true);
}

void written_mark_always(struct written *w, uintptr_t lo, uintptr_t hi)
{
	if (written_set(w, w->always, lo, hi))
		atomic_store(&w->lasting, true);
}

/* Marked first: whoever may go on finds it so. */
int written_open(struct written *w, uintptr_t lo, uintptr_t hi)
{
	int rc;

	atomic_fetch_add(&w->entered, 1);
	written_mark(w, lo, hi);
	rc = w->protect(w, lo, hi, false);
	atomic_fetch_add(&w->left, 1);
	return rc;
}

int written_open_at(struct written *w, uintptr_t at)
{
	at = at / w->page * w->page;
	return written_open(w, at, written_ahead(w, at));
}

void written_unprotect(struct pages *pages, uintptr_t lo, uintptr_t hi)
{
	struct written *w = (struct written *)pages;

	if (written_clip(w, &lo, &hi))
		(void)written_open(w, lo, hi);
}

/* ---- scans ---------------------------------------------------------------------------------- */

/* The next run of what has been taken from *AT on. */
static bool next_taken(const struct written *w, uintptr_t *at, uintptr_t *lo, uintptr_t *hi)
{
	uint64_t end = (w->pages.hi - w->pages.lo) / w->page;
	uint64_t from = bits_find(w->taken, (*at - w->pages.lo) / w->page, end, 0);

	if (from == end)
		return false;
	*lo = w->pages.lo + from * w->page;
	*hi = *at = w->pages.lo + bits_find(w->taken, from, end, UINT64_MAX) * w->page;
	return true;
}

/* False: none was marked. */
static bool take_marks(struct written *w)
{
	uint64_t all = 0;

	for (uint64_t i = 0; i < w->words; i++) {
		w->taken[i] = atomic_load_explicit(&w->marks[i], memory_order_relaxed) ?
				      atomic_exchange(&w->marks[i], 0) :
				      0;
		all |= w->taken[i];
	}
	return all;
}

static bool protect_all(struct written *w)
{
	uintptr_t at = w->pages.lo, first = 0, lo, hi, end = 0;
	uint64_t runs = 0;

	for (; next_taken(w, &at, &lo, &hi); runs++) {
		first = runs ? first : lo;
		end = hi;
	}
	if (runs > RUNS_MAX)
		return w->protect(w, first, end, true) == 0;
	for (at = w->pages.lo; next_taken(w, &at, &lo, &hi);)
		if (w->protect(w, lo, hi, true) < 0)
			return false;
	return true;
}

/* A scan begins. */
static void written_take(struct written *w)
{
	uint64_t left = atomic_load(&w->left);
	bool marked = atomic_exchange(&w->any, false) && take_marks(w);

	if (!marked)
		for (uint64_t i = 0; i < w->words; i++)
			w->taken[i] = 0;
	if (marked && (!protect_all(w) || atomic_load(&w->entered) != left)) {
		for (uint64_t i = 0; i < w->words; i++)
			if (w->taken[i])
				atomic_fetch_or(&w->marks[i], w->taken[i]);
		atomic_store(&w->any, true);
	}
	if (atomic_load(&w->lasting))
		for (uint64_t i = 0; i < w->words; i++)
			w->taken[i] |= atomic_load(&w->always[i]);
}

int written_next(struct pages *pages, uintptr_t *at, uintptr_t *lo, uintptr_t *hi)
{
	struct written *w = (struct written *)pages;

	if (*at == pages->lo)
		written_take(w);
	return *at < pages->hi && next_taken(w, at, lo, hi);
}
