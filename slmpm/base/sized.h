/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Structures that begin with their size, which callers of an older or a newer header give otherwise
 * than this library has it: slmpm(7), Structures, is the rule.
 */
#ifndef SLMPM_BASE_SIZED_H
#define SLMPM_BASE_SIZED_H

#include <stddef.h>

/* What may lie behind the members that this library knows; more is no size but chance. */
#define SIZED_BEYOND 4096

/* -SLMPM_EINVAL with the detail set unless AT, SIZE bytes long, can be a structure of KNOWN. */
int sized_check(const char *call, const void *at, size_t size, size_t known);
/* Likewise of one that begins with its size; AT may be NULL, which is wrong, too. */
int sized_check_own(const char *call, const void *at, size_t known);
/* FULL, of KNOWN bytes, as GIVEN has it, zero where that ends. -SLMPM_EINVAL: as above, or GIVEN
 * sets what this library does not know. */
int sized_take(const char *call, void *full, const void *given, size_t known);
/* TO, of SIZE bytes as checked before, as FULL has it, zero where that ends, of the given size. */
void sized_give(void *to, size_t size, const void *full, size_t known);
/* Likewise; its size stands in it. */
void sized_give_own(void *to, const void *full, size_t known);

#endif
