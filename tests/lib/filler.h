/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that can be checked. */
#ifndef TESTS_LIB_FILLER_H
#define TESTS_LIB_FILLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Byte I of a message with this SEED depends on both, and on nothing else. */
void actor_fill(void *to, uint64_t seed, size_t n);
bool actor_filled(const void *at, uint64_t seed, size_t n);

#endif
