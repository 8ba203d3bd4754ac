/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers with several links: that they stand, and by which one something went. */
#ifndef TESTS_LIB_LINKS_H
#define TESTS_LIB_LINKS_H

#include "tests/lib/actor.h"

/* Until one more link of a peer of the default context stands. */
void links_await(void);
/* Two that are each other's in CTX get all their links, and part: what a context opens but once,
 * for whoever comes, is open then. */
void links_warm(slmpm_ctx ctx, slmpm_peer a, slmpm_peer b);
/* That of a completion; -1: it tells none. */
int links_told(const struct slmpm_done *done);
/* Waits for REQ, which must succeed by that link. */
void links_expect(slmpm_req req, int link, const char *what);

#endif
