/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the code under test: while it runs, what it allocates lies here, and all of it can
 * be saved, put back and compared. Linked with --wrap=malloc and so on.
 */
#ifndef TESTS_MODEL_QUEUE_HEAP_H
#define TESTS_MODEL_QUEUE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From here to heap_leave, allocations are the code's under test. */
void heap_enter(void);
void heap_leave(void);
/* Empty, with nothing allocated. */
void heap_reset(void);
/* Requests that are free again are as new: no handle of them is known. */
void heap_sort_requests(void);
/* So many bytes, and they; the other way round. */
size_t heap_size(void);
unsigned char *heap_save(unsigned char *to);
const unsigned char *heap_restore(const unsigned char *from);
/* HASH goes on over all that is allocated. */
uint64_t heap_hash(uint64_t hash);

uint64_t heap_hash_bytes(uint64_t hash, const void *bytes, size_t size);

#endif
