/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of messages of all lengths, both ways of a pair at once: each comes once, whole and in
 * order. */
#ifndef TESTS_LIB_NET_FLOW_H
#define TESTS_LIB_NET_FLOW_H

#include "tests/lib/net_pair.h"

void flows_open(const struct net_pair *p);
void flows_close(void);
/* Until so many in all have arrived both ways. */
void flows_run(const struct net *n, uint32_t limit);

#endif
