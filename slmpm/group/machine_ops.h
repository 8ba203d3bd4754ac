/* SPDX-License-Identifier: BSD-3-Clause */
/* What the room above does for groups between machines: operations within each of these (the room
 * `machine`). */
#ifndef SLMPM_MACHINE_OPS_H
#define SLMPM_MACHINE_OPS_H

#include "slmpm/group/group.h"

#define MACHINE_GATHERED (16u * 1024) /* bytes, of all: combined by rank */

/* Of G, between machines. */
struct machine_ops {
	/* 0, or -ENOMEM. */
	int (*open)(struct group *g);
	void (*close)(struct group *g);
	/* As messages_begin, of what m->run describes. */
	int (*begin)(struct group *g);
	/* The part of the operation that is under way within this machine goes on: 1: done; 0;
	 * negative: G is broken. */
	int (*step)(struct group *g);
	/* A part of it is done: 0: the next one has begun; 1: that was all; negative: G is broken. */
	int (*next)(struct group *g);
	/* The local group is broken: so is G, by what that says. */
	int (*failed)(struct group *g);
	/* G is broken: no more of the one under way. */
	void (*stop)(struct group *g);
	bool (*is_due)(const struct group *g);
	/* What is waited for is a part in memory. */
	bool (*is_local)(const struct group *g);
	/* What is broken of G and the local group breaks the other. */
	void (*inspect)(struct group *g);
	/* The size of LOCAL, a local group that forms, is known, by another's word. */
	void (*sized)(struct group *local);
	/* Does it wait for RANK, which is here? */
	bool (*awaits)(const struct group *g, uint32_t rank);
	/* Operations that RANK, which is here, has posted. */
	uint64_t (*came)(const struct group *g, uint32_t rank);
};

#endif
