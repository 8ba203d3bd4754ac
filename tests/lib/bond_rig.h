/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a bond in one process, over links that can be cut. */
#ifndef TESTS_LIB_BOND_RIG_H
#define TESTS_LIB_BOND_RIG_H

#include "slmpm/bond/bond.h"
#include "tests/lib/lossy.h"

struct rig {
	struct fabric_domain *domain[SIDES];
	struct fabric_link *link[SIDES]; /* the bonds */
	struct link_pair pair[BOND_PATHS];
	struct wire wire[BOND_PATHS];
	int paths; /* made */
};

struct rig_shape {
	uint32_t segments, segment_size;
	uint64_t log;
	uint32_t land_min;
	int paths; /* that both ends have from the beginning */
};

void rig_open(struct rig *r, const struct fabric *fabric, const struct rig_shape *shape);
/* The first path stores into the other side's memory, as far as both ends' bonds know. */
void rig_open_stored(struct rig *r, const struct fabric *fabric, const struct rig_shape *shape);
void rig_close(struct rig *r);
/* One more path, of which neither end knows: its number. */
int rig_path(struct rig *r, const struct fabric *fabric, const struct rig_shape *shape);
/* And now SIDE does. */
void rig_add(struct rig *r, int path, int side);
/* The same of one that stores. */
void rig_add_stored(struct rig *r, int path, int side);
/* Cuts a path with nothing lost that had been under way, or all of it; both ends notice at once. */
void rig_cut(struct rig *r, int path, bool all);
/* Sleep announced, or over, at SIDE, in the order in which the core does it. */
void rig_arm(struct rig *r, int side, bool on);
/* The next packet of a numbered stream has come, within some looks of both sides. */
void rig_take(struct rig *r, int side, uint64_t seed, uint32_t length);
/* Nothing comes, however often both sides look. */
void rig_quiet(struct rig *r);

#endif
