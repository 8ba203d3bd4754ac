/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory with a margin on both sides that nobody is to write. */
#ifndef TESTS_LIB_GUARDED_H
#define TESTS_LIB_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

/* SIZE bytes, all of one value, as the margins are; it stays until the process ends. */
unsigned char *guarded_new(size_t size);
/* The margins of such memory are as they were. */
bool guarded_is_whole(const unsigned char *base, size_t size);

#endif
