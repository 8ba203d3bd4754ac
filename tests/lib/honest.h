/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that keeps to the rules, beside one that does not: it must not come to harm. */
#ifndef TESTS_LIB_HONEST_H
#define TESTS_LIB_HONEST_H

#include "tests/lib/actor.h"

/* For child_start: connects to the address ARG ("shm:" may be left out) and answers until it is closed. */
int honest_peer(void *arg);
/* It answers, and soon. */
void honest_works(slmpm_peer honest);

#endif
