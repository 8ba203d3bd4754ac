/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of a group that breaks, and that goes on without those that are gone. */
#ifndef TESTS_LIB_SURVIVORS_H
#define TESTS_LIB_SURVIVORS_H

#include "tests/lib/circle.h"

/* RC is -ERROR, and its detail names PART. */
void survivors_fail(int rc, int error, const char *part);
/* Whatever has broken it, this process's operations end. */
void survivors_break(slmpm_group g);
/* All that are left call it. */
void survivors_shrink(slmpm_group g);
/* It has N members, of which this one is RANK, in GENERATION, and they sum TIMES. */
void survivors_sum(slmpm_group g, int n, int rank, unsigned generation, int times);
/* Of four members rank 3 dies, rank 2, whose process is STOPPED, and rank 1 come late: both are
 * named, rank 2 as suspect; when they have come all three agree that none of them is left out. */
void survivors_suspects(slmpm_group g, int rank, pid_t stopped);

#endif
