/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks of written pages: a bit each, set by who is held up, taken by who looks. */
#include "slmpm/track/written.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "slmpm/track/bits.h"

#define AHEAD    16 /* pages that are opened at once, at most */
#define RUNS_MAX 8  /* more are protected as one, with what lies between */

int written_init(struct written *w, uintptr_t lo, uintptr_t hi, uint64_t page)
{
	uint64_t words = ((hi - lo) / page + WORD_BITS - 1) / WORD_BITS;
	uint64_t *room;

	*w = (struct written){
		.lo = lo,
		.hi = hi,
		.page = page,
		.words = words,
		.mapped = (size_t)(3 * words * sizeof(*room)),
	};
	room = mmap(NULL, w->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return -errno;
	w->marks = (_Atomic uint64_t *)room;
	w->always = (_Atomic uint64_t *)room + words;
	w->taken = room + 2 * words;
	return 0;
}

void written_free(struct written *w)
{
	(void)munmap(w->taken - 2 * w->words, w->mapped);
}

/* ---- marks ---------------------------------------------------------------------------------- */

void written_enter(struct written *w)
{
	atomic_fetch_add(&w->entered, 1);
}

void written_leave(struct written *w)
{
	atomic_fetch_add(&w->left, 1);
}

uintptr_t written_ahead(struct written *w, uintptr_t at)
{
	uint32_t n = 1;

	if (atomic_load_explicit(&w->behind, memory_order_relaxed) == at) {
		n = 2 * atomic_load_explicit(&w->ahead, memory_order_relaxed);
		n = n < AHEAD ? n : AHEAD;
		n = n ? n : 1; /* another thread's is seen in part */
	}
	if (n > (w->hi - at) / w->page)
		n = (uint32_t)((w->hi - at) / w->page);
	atomic_store_explicit(&w->ahead, n, memory_order_relaxed);
	atomic_store_explicit(&w->behind, at + n * w->page, memory_order_relaxed);
	return at + n * w->page;
}

bool written_clip(const struct written *w, uintptr_t *lo, uintptr_t *hi)
{
	*lo = *lo < w->lo ? w->lo : *lo / w->page * w->page;
	*hi = *hi > w->hi ? w->hi : (*hi + w->page - 1) / w->page * w->page;
	return *lo < *hi;
}

static bool written_set(const struct written *w, _Atomic uint64_t *bits, uintptr_t lo, uintptr_t hi)
{
	uint64_t from, to;

	if (!written_clip(w, &lo, &hi))
		return false;
	from = (lo - w->lo) / w->page;
	to = (hi - w->lo) / w->page;
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

/* ---- looks ---------------------------------------------------------------------------------- */

/* The first page from AT on that is taken, if TAKEN, or is not, before END or END. */
static uint64_t written_find(const struct written *w, uint64_t at, bool taken)
{
	uint64_t flip = taken ? 0 : UINT64_MAX, end = w->words * WORD_BITS;
	uint64_t word;

	if (at >= end)
		return end;
	word = (w->taken[at / WORD_BITS] ^ flip) & UINT64_MAX << at % WORD_BITS;
	while (!word) {
		at = (at / WORD_BITS + 1) * WORD_BITS;
		if (at >= end)
			return end;
		word = w->taken[at / WORD_BITS] ^ flip;
	}
	return at / WORD_BITS * WORD_BITS + (uint64_t)__builtin_ctzll(word);
}

bool written_next(struct written *w, uintptr_t *at, uintptr_t *lo, uintptr_t *hi)
{
	uint64_t from = written_find(w, (*at - w->lo) / w->page, true);

	if (from >= (w->hi - w->lo) / w->page)
		return false;
	*lo = w->lo + from * w->page;
	*hi = *at = w->lo + written_find(w, from, false) * w->page;
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

static void written_put_back(struct written *w)
{
	for (uint64_t i = 0; i < w->words; i++)
		if (w->taken[i])
			atomic_fetch_or(&w->marks[i], w->taken[i]);
	atomic_store(&w->any, true);
}

static bool protect_all(struct written *w, written_protect *protect, void *arg)
{
	uintptr_t at = w->lo, first = 0, lo, hi, end = 0;
	uint64_t runs = 0;

	for (; written_next(w, &at, &lo, &hi); runs++) {
		first = runs ? first : lo;
		end = hi;
	}
	if (runs > RUNS_MAX)
		return protect(arg, first, end);
	for (at = w->lo; written_next(w, &at, &lo, &hi);)
		if (!protect(arg, lo, hi))
			return false;
	return true;
}

void written_take(struct written *w, written_protect *protect, void *arg)
{
	uint64_t left = atomic_load(&w->left);
	bool marked = atomic_exchange(&w->any, false) && take_marks(w);

	if (!marked)
		for (uint64_t i = 0; i < w->words; i++)
			w->taken[i] = 0;
	if (marked && (!protect_all(w, protect, arg) || atomic_load(&w->entered) != left))
		written_put_back(w);
	if (atomic_load(&w->lasting))
		for (uint64_t i = 0; i < w->words; i++)
			w->taken[i] |= atomic_load(&w->always[i]);
}
