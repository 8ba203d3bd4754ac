/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which pages have been written, where whoever writes a protected page is held up until that is
 * noted: a thread or a signal handler marks the page and opens it, a scan takes the marks and
 * protects the pages again. None of these waits for another.
 *
 * No store is lost. A scan compares what it has taken after it has protected it: what was stored
 * before is there, what is stored later is held up and marked again. Only where a page is opened by
 * somebody who had marked it before it was taken, and opens it after it was protected, would it be
 * open without a mark; so a scan that sees anybody between the two puts back all marks.
 */
#ifndef SLMPM_TRACK_WRITTEN_H
#define SLMPM_TRACK_WRITTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slmpm/track/finder.h"

struct written;

/* LO to before HI is protected again, if ON, or opened: 0, or a negative errno. */
typedef int written_protect(struct written *w, uintptr_t lo, uintptr_t hi, bool on);

struct written { /* a finder's own structure begins with it */
	struct pages pages;
	written_protect *protect;
	uint64_t page;            /* bytes */
	uint64_t words;           /* of 64 pages */
	_Atomic uint64_t *marks;  /* since the last scan */
	_Atomic uint64_t *always; /* cannot be protected again for sure: each scan compares them */
	uint64_t *taken;          /* the scan's */
	_Atomic bool any;         /* there are marks */
	_Atomic bool lasting;     /* some of ALWAYS */
	_Atomic uint64_t entered, left;
	_Atomic uintptr_t behind; /* what was opened last */
	_Atomic uint32_t ahead;   /* pages opened then */
};

/* SIZE bytes, zero but for the struct written with which they begin; NULL: no memory. */
void *written_new(size_t size, const struct finder *finder, const struct range *range,
		  written_protect *protect);
void written_free(struct written *w);

void written_mark(struct written *w, uintptr_t lo, uintptr_t hi);
void written_mark_always(struct written *w, uintptr_t lo, uintptr_t hi);
/* Marks and opens whole pages of it. May run in a signal handler, as the next: as PROTECT. */
int written_open(struct written *w, uintptr_t lo, uintptr_t hi);
/* For a store at AT, its page and some behind it: who goes through the memory from its front is
 * held up more and more seldom. */
int written_open_at(struct written *w, uintptr_t at);

/* As a finder's; a scan by one thread at a time. */
void written_unprotect(struct pages *pages, uintptr_t lo, uintptr_t hi);
int written_next(struct pages *pages, uintptr_t *at, uintptr_t *lo, uintptr_t *hi);

#endif
