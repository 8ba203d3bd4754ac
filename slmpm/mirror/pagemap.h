/* SPDX-License-Identifier: BSD-3-Clause */
/* Which pages have been written: userfaultfd write protection, asynchronous, and PAGEMAP_SCAN. */
#ifndef SLMPM_MIRROR_PAGEMAP_H
#define SLMPM_MIRROR_PAGEMAP_H

#include <stdbool.h>
#include <stdint.h>

struct pagemap {
	int fault, map;   /* descriptors */
	uintptr_t lo, hi; /* whole pages */
};

/* From now on for SIZE bytes at BASE; a negative errno. */
int pagemap_open(struct pagemap *p, const void *base, uint64_t size);
void pagemap_close(struct pagemap *p);
/* The next run of pages from *AT on that have been written since they were last told here; it is *LO
 * to before *HI, and *AT behind it. 1, 0 there is none, a negative errno. */
int pagemap_next(struct pagemap *p, uintptr_t *at, uintptr_t *lo, uintptr_t *hi);
/* Does all of that work? A real try; a negative errno. */
int pagemap_works(void);

#endif
