/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that runs out: this program's malloc and calloc, which fail when they are told to. */
#ifndef TESTS_LIB_STARVE_H
#define TESTS_LIB_STARVE_H

#include <stdbool.h>

/* The N-th allocation from now on, from 1, and all behind it fail. */
void starve_from(unsigned n);
/* No more. True: some did. */
bool starve_end(void);

#endif
