/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers with several links: that they stand, and by which one something went. */
#ifndef TESTS_LIB_LINKS_H
#define TESTS_LIB_LINKS_H

#include "tests/lib/actor.h"

/* Until one more link of a peer of the default context stands. */
void links_await(void);
/* That of a completion; -1: it tells none. */
int links_told(const struct slmpm_done *done);
/* Waits for REQ, which must succeed by that link. */
void links_expect(slmpm_req req, int link, const char *what);

#endif
