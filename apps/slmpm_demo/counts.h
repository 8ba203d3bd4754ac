/* SPDX-License-Identifier: BSD-3-Clause */
/* How many files have been hashed, of which size: each accelerator counts its own, and a reduction
 * over the group of the host and its accelerators adds them up. */
#ifndef DEMO_COUNTS_H
#define DEMO_COUNTS_H

#include <slmpm.h>
#include <slmpm_group.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTS_SIZES 10 /* empty, below 1 KiB, 4 KiB, 16 KiB and so on, and all above */
#define COUNTS_TAG   1u
#define COUNTS_MS    5000

struct counts {
	uint64_t files, bytes;
	uint64_t sizes[COUNTS_SIZES];
};

/* A file of BYTES. */
void counts_add(struct counts *c, uint64_t bytes);
void counts_subtract(struct counts *c, const struct counts *what);
/*
 * The sum of what all members of GROUP have counted. Those that have died are left out: the others
 * go on without them.
 */
int counts_reduce(slmpm_group group, const struct counts *own, struct counts *all);
/* "1 empty, 200 below 1 KiB", as far as there are any. */
const char *counts_text(const struct counts *c, char *text, size_t size);

#endif
