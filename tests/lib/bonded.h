/* SPDX-License-Identifier: BSD-3-Clause */
/* Bonds as fabrics of their own, for the tests that every fabric passes: connecting one connects
 * all its links, one after the other. */
#ifndef TESTS_LIB_BONDED_H
#define TESTS_LIB_BONDED_H

#include "fabrics/fabric.h"

/* Two links of fabrics that are built in, alike or not ("shm+tcp"); NULL behind the last. */
const struct fabric *bonded_at(int i);
bool bonded_is(const struct fabric *fabric);

#endif
