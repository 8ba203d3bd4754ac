/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a piece of a test in a forked child that ends in bounded time. */
#ifndef TESTS_LIB_CHILD_H
#define TESTS_LIB_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#define CHILD_LATE (-1000) /* it was still running when its time was up */

/*
 * Forks a child that leaves with BODY(ARG) as its exit status. After SECONDS it is killed, and it
 * dies with the process that started it. Never returns in the child.
 */
pid_t child_start(int (*body)(void *), void *arg, unsigned seconds);
/* Reaps it: the exit status (0..255), the negative number of the signal that killed it, or
 * CHILD_LATE. */
int child_wait(pid_t pid);
/* Both. */
int child_run(int (*body)(void *), void *arg, unsigned seconds);
/* So many bytes of zeros that all children started from now on share with this process. */
void *child_common(size_t size);

#endif
