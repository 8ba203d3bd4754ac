/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links in front of another fabric's that are lost at a packet of the test's choosing, as a network
 * loses them: what was posted last does not arrive, and each end notices in its own time.
 */
#ifndef TESTS_LIB_LOSSY_H
#define TESTS_LIB_LOSSY_H

#include "tests/lib/link_pair.h"

struct wire { /* both ends', which lie in one process */
	uint64_t posted[SIDES], polled[SIDES];
	uint64_t reach[SIDES]; /* dead: so many of what a side has posted arrive */
	int deaf[SIDES];       /* and so many calls a side does not notice */
	bool dead;
	bool mute[SIDES];  /* what a side posts does not arrive, and nobody notices */
	uint32_t land_min; /* 0: payload comes at once */
	uint64_t carried[SIDES], in_flight[SIDES]; /* as told (FABRIC_LOAD) */
};

/* SIDE's link through W in front of LINK, which stays the caller's; to be freed. */
struct fabric_link *lossy_new(struct wire *w, int side, struct fabric_link *link);
/* The wire is cut: of what is under way from each side KEEP arrive. */
void lossy_cut(struct wire *w, const uint64_t keep[SIDES], const int deaf[SIDES]);
/* Of what is under way from SIDE KEEP arrive, and nothing that it posts from now on: ROOM packets
 * before the link is full. Nobody notices. */
void lossy_mute(struct wire *w, int side, uint64_t keep, int room);
/* Packets under way from SIDE. */
uint64_t lossy_under_way(const struct wire *w, int side);

extern const struct fabric lossy_fabric;
/* The same, which says that it has memory; it has none. */
extern const struct fabric lossy_memory;

#endif
