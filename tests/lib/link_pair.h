/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a link in one process, connected by hand. */
#ifndef TESTS_LIB_LINK_PAIR_H
#define TESTS_LIB_LINK_PAIR_H

#include "tests/lib/link_end.h"

extern int link_pair_active; /* the side that began, of pairs made from now on */

struct link_pair {
	struct link_end end[SIDES];
	struct fabric_domain *domain[SIDES]; /* theirs */
	struct fabric_link *link[SIDES];
	int rounds; /* that connecting took */
};

/* Domains opened, links unconnected; CONFIG[SIDES]. */
void link_pair_make(struct link_pair *p, const struct fabric *f,
		    const struct fabric_config *config);
/* A round, both ways: what connect said on each side. Descriptors that nobody took are closed. */
void link_pair_round(struct link_pair *p, int round, int rc[SIDES]);
/* Asks those that do not know yet (2), until all do, one refuses, or MS have passed. */
void link_pair_settle(struct link_pair *p, int round, int rc[SIDES], int ms);
/* All rounds. */
void link_pair_connect(struct link_pair *p);
/* Made and connected. */
void link_pair_open(struct link_pair *p, const struct fabric *f, uint32_t segments,
		    uint32_t segment_size);
void link_pair_close(struct link_pair *p);
/* That connecting takes. */
int link_pair_rounds(const struct fabric *f);

#endif
