/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One state and one step: both coroutines stand in front of an operation, the scheduler lets one of
 * them do it in one of the ways that are possible.
 */
#ifndef TESTS_MODEL_STEP_H
#define TESTS_MODEL_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "tests/model/explore.h"

void step_start(const struct search *s);
/* How many ways there are to go on; 0: none of the two can. */
unsigned step_ways(const struct search *s);
void step_take(const struct search *s, unsigned way);
/* The same, said aloud. */
void step_show(const struct search *s, unsigned way);
const char *step_fault(void);

uint64_t step_hash(const struct search *s);
size_t step_size(const struct search *s);
void step_save(const struct search *s, void *to);
void step_restore(const struct search *s, const void *from, size_t size);

#endif
