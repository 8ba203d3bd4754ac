/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private memory that is mapped twice in a row: what begins before its end goes on at its beginning,
 * in one piece.
 */
#ifndef SHM_DOUBLE_MAPPING_H
#define SHM_DOUBLE_MAPPING_H

#include <stddef.h>

struct double_mapping {
	void *base;  /* 2 * size bytes of addresses */
	size_t size; /* bytes of memory: whole pages */
};

/* At least SIZE bytes, accounted for; where the kernel can, pages come with their use. A negative errno leaves
 * M empty: destroying it does nothing. */
int double_mapping_create(struct double_mapping *m, const char *label, size_t size);
void double_mapping_destroy(struct double_mapping *m);

#endif
