/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finders of where the application has stored: a table of functions each. In
 * whole pages of the mirror's alone; which bytes of a page have changed the twin tells.
 */
#ifndef SLMPM_TRACK_FINDER_H
#define SLMPM_TRACK_FINDER_H

#include <stdbool.h>
#include <stdint.h>

struct range { /* whole pages of one mapping or several of one kind */
	uintptr_t lo, hi;
	uint64_t page;
	int protection; /* PROT_* as the application has it */
};

/* A finder's own structure begins with it. */
struct pages {
	const struct finder *finder;
	uintptr_t lo, hi;
};

struct finder {
	const char *name;
	/* From now on for RANGE; a negative errno. */
	int (*open)(struct pages **pages, const struct range *range);
	void (*close)(struct pages *pages);
	/* In a child, of its parent's: what would disturb either is given up, the rest stays. */
	void (*forked)(struct pages *pages);
	/* The next run of pages from *AT on that may have been written since the scan before: *LO
	 * to before *HI, and *AT behind it; a scan begins with the first page. What is stored from
	 * then on a later scan finds. 1, 0 there is none, a negative errno: anything may be. */
	int (*next)(struct pages *pages, uintptr_t *at, uintptr_t *lo, uintptr_t *hi);
	/* What lies there may be written without a fault until the next scan, and counts as
	 * written; NULL: nothing faults. */
	void (*unprotect)(struct pages *pages, uintptr_t lo, uintptr_t hi);
	/* Do any pages of this finder lie there? With UNPROTECT the same is done to them. From any
	 * thread; NULL: system calls may write everywhere. */
	bool (*lies)(uintptr_t lo, uintptr_t hi, bool unprotect);
};

/* The whole pages from LO to before HI, and what they are: 1, 0 there are none; -EACCES: not all of
 * it can be read and written, -ENOTSUP: not all in the same way; -ENOMEM: there is no memory. */
int finder_range(uintptr_t lo, uintptr_t hi, struct range *range);

extern const struct finder track_pagemap, track_fault, track_signal;

/* By a thread that is asked by the kernel: may it ask for what the kernel itself writes, too? */
bool track_fault_of_kernel(void);

#endif
