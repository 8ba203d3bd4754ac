/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal as an event, for a process that computes and calls nothing of the library meanwhile. */
#ifndef TESTS_LIB_NUDGE_H
#define TESTS_LIB_NUDGE_H

#include <signal.h>

#define NUDGE SIGUSR1

/* Before there is anybody who may send it: it is kept until it is waited for. */
void nudge_block(void);
/* Until somebody has sent it. */
void nudge_await(void);

#endif
