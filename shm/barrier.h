/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * membarrier(2): a full barrier in all threads of all processes that have registered for it, paid
 * for by the one that calls it. So what happens often (a store, then a load of who sleeps) needs a
 * compiler barrier only, and what is rare (going to sleep) pays for both sides.
 */
#ifndef SHM_BARRIER_H
#define SHM_BARRIER_H

#include <stdbool.h>

/* Can this process be fenced from outside (registers it), and fence others? Once, at set-up. */
bool barrier_works(void);
/* The sleeper's full barrier on behalf of those that do not fence. */
void barrier_all(void);

#endif
