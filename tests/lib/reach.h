/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of one end of a link that the other reaches, in tests with cmocka. */
#ifndef TESTS_LIB_REACH_H
#define TESTS_LIB_REACH_H

#include "tests/lib/link_pair.h"

#define REACH_SIZE ((uint64_t)200000)

/* Skips the test where the fabric under test has none. */
void reach_or_skip(void);
/* What RIGHT makes of what LEFT says of M. */
struct fabric_memory reach_from_right(struct link_pair *p, struct fabric_memory *m, bool writable);
/* READ, WRITE or ATOMIC: what post said. */
int reach(struct fabric_link *l, uint8_t op, struct fabric_memory *m, uint64_t offset, void *data,
	  uint64_t size);
/* Writes and reads of many lengths at both edges and between; FAR lies at NEAR, REACH_SIZE
 * bytes. */
void reach_exchange(struct fabric_link *l, struct fabric_memory *far, unsigned char *near);

#endif
