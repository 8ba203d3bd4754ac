/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which pages have been written, where whoever writes a protected page is held up until that is
 * noted: a thread or a signal handler marks the page and opens it, a look takes the marks and
 * protects the pages again. None of these waits for another.
 *
 * No store is lost. A look compares what it has taken after it has protected it: what was stored
 * before is there, what is stored later is held up and marked again. Only where a page is opened by
 * somebody who had marked it before it was taken, and opens it after it was protected, would it be
 * open without a mark; so a look that sees anybody between the two puts back all marks it has taken.
 */
#ifndef SLMPM_TRACK_WRITTEN_H
#define SLMPM_TRACK_WRITTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct written {
	uintptr_t lo, hi;
	uint64_t page;            /* bytes */
	uint64_t words;           /* of 64 pages */
	_Atomic uint64_t *marks;  /* since the last look */
	_Atomic uint64_t *always; /* cannot be protected again for sure: each look compares them */
	uint64_t *taken;          /* the look's */
	_Atomic bool any;         /* there are marks */
	_Atomic bool lasting;     /* some of ALWAYS */
	_Atomic uint64_t entered, left;
	_Atomic uintptr_t behind; /* what was opened last */
	_Atomic uint32_t ahead;   /* pages opened then */
	size_t mapped;
};

/* From LO to before HI, whole pages; a negative errno. */
int written_init(struct written *w, uintptr_t lo, uintptr_t hi, uint64_t page);
void written_free(struct written *w);

/* Rounds to whole pages, as far as these are watched; false: none is. */
bool written_clip(const struct written *w, uintptr_t *lo, uintptr_t *hi);

/* Around the marking and the opening of a page. These may run in a signal handler. */
void written_enter(struct written *w);
void written_mark(struct written *w, uintptr_t lo, uintptr_t hi);
void written_mark_always(struct written *w, uintptr_t lo, uintptr_t hi);
void written_leave(struct written *w);
/* Where to open to for a store to the page at AT: who goes through the memory from its front is held
 * up more and more seldom. */
uintptr_t written_ahead(struct written *w, uintptr_t at);

/* Protects LO to before HI again; false: it cannot be. */
typedef bool written_protect(void *arg, uintptr_t lo, uintptr_t hi);

/* A look begins: by one thread at a time. */
void written_take(struct written *w, written_protect *protect, void *arg);
/* The next run of what has been taken from *AT on: *LO to before *HI, and *AT behind it. */
bool written_next(struct written *w, uintptr_t *at, uintptr_t *lo, uintptr_t *hi);

#endif
