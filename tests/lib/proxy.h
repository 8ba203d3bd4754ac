/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A relay between the two ends of TCP connections, a process of its own that delays, cuts and
 * corrupts. While one runs, connections that this process and its forks make to 127.0.0.1 go by way
 * of it: the test programs' connect() tells it where each was to go.
 */
#ifndef TESTS_LIB_PROXY_H
#define TESTS_LIB_PROXY_H

#include <stdint.h>

enum proxy_fate {
	PROXY_PASS,
	PROXY_RESET,      /* both ends of the connection are reset */
	PROXY_HALF_CLOSE, /* who receives sees the end; the other way goes on */
	PROXY_SILENCE,    /* nothing more is taken or passed on, not even an end */
	PROXY_CORRUPT,    /* the bits of ARG are turned over in that one byte */
	PROXY_TRICKLE,    /* byte by byte, ARG us apart */
	PROXY_DELAY,      /* each piece is held back for ARG us */
};

enum proxy_way { PROXY_FORTH, PROXY_BACK, PROXY_WAYS }; /* forth: from who connected */

struct proxy_rule {
	enum proxy_fate fate;
	uint64_t at; /* so many bytes pass before; PROXY_NOW: those that have */
	uint32_t arg;
};

#define PROXY_NOW         UINT64_MAX
#define PROXY_CONNECTIONS 64u /* in all, between two calls of proxy_forget */

/* Ends with this process at the latest. One at a time. */
void proxy_start(void);
void proxy_stop(void);
/* What will happen to the N-th connection from now on, from 0, or happens to it. */
void proxy_rule(unsigned n, enum proxy_way way, struct proxy_rule rule);
/* How many there have been, and what each passed on. */
unsigned proxy_connections(void);
uint64_t proxy_passed(unsigned n, enum proxy_way way);
/* Closes what is open, forgets the rules, and counts from 0 again. */
void proxy_forget(void);

#endif
