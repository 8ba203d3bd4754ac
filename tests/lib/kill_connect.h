/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process is killed at every system call of connecting, speaking and closing, on either side. The
 * other is never stuck, keeps nothing, and serves the next one; a path left behind is taken.
 */
#ifndef TESTS_LIB_KILL_CONNECT_H
#define TESTS_LIB_KILL_CONNECT_H

/* The listener at this address; up to so many kills of each side, 0: as many as there are places
 * for them. Fails the test, or skips it. */
void kill_connect_sweep(const char *at, long kills);

#endif
