/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link of which one end is another program's: the other build's (other_build.h), perhaps another
 * machine's. Whatever a test does with that end is done there; what arrives comes back in copies.
 */
#ifndef TESTS_LIB_FAR_H
#define TESTS_LIB_FAR_H

#include "fabrics/fabric.h"

/* The side that SLMPM_TEST_FAR names, "left" or "right": 0, 1, or -1. */
int far_side(void);
/* REAL, or where there is a far side a table in its place that serves both ends. */
const struct fabric *far_fabric(const struct fabric *real);
/* This domain is of the far end: said before it is opened. */
void far_take(struct fabric_domain *domain);
/* What the other program holds; starts it. */
void far_held(int *descriptors, int *mappings);

#endif
