/* SPDX-License-Identifier: BSD-3-Clause */
/* A group whose members have no memory together, for all have connected by TCP. */
#ifndef TESTS_LIB_APART_H
#define TESTS_LIB_APART_H

#include "tests/lib/circle.h"

#define APART_TAG     6
#define APART_MEMBERS 4
#define APART_ALL     0xff /* as circle.apart */
#define APART_SHORT   300  /* ms: what never comes */

/* Streams: to who founds, and of that, once all have come so far; before they leave. */
enum { APART_GO = 1, APART_DONE };

/* It has formed, and all have met. */
slmpm_group apart_join(slmpm_peer founder);
/* The members play PART, and DIES, or -1, is killed meanwhile. */
int apart_play(circle_part *part, void *arg, int dies);
/* It is broken for all, and stays so. */
void apart_stays_broken(slmpm_peer founder, slmpm_group group, int error);

#endif
