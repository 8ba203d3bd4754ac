/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that this process may still take: what it has, and so much more. */
#ifndef TESTS_LIB_MEMORY_LIMIT_H
#define TESTS_LIB_MEMORY_LIMIT_H

#include <stdint.h>

/* MORE bytes beyond what is mapped now; 0: no limit. */
void memory_limit(uint64_t more);

#endif
