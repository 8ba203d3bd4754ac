/* SPDX-License-Identifier: BSD-3-Clause */
/* What a piece of the application's memory is made of. */
#ifndef SLMPM_TRACK_BACKING_H
#define SLMPM_TRACK_BACKING_H

#include <stdint.h>

struct backing {
	uint64_t page;  /* the largest */
	int protection; /* PROT_* */
};

/* From LO to before HI. -EACCES: not all of it can be read and written, -ENOTSUP: not all of it in
 * the same way; -ENOMEM: there is none. */
int backing_of(uintptr_t lo, uintptr_t hi, struct backing *b);

#endif
