/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members of a group without boards that are on one machine meet in memory all the same: they are a
 * group of their own, with boards. An operation goes within each machine first, by these, to one
 * member, the leader; by messages among the leaders; and within each machine again. The first
 * operation of a generation forms these groups, and all members agree on whether all are there:
 * else messages go, as within one that has none.
 */
#ifndef SLMPM_MACHINE_H
#define SLMPM_MACHINE_H

#include "slmpm/group/group.h"

#define MACHINE_GATHERED (16u * 1024) /* bytes, of all: combined by rank */

/* For the rooms' list (parts.c): of G, between machines. */
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
	/* G is broken: no more of the one under way. */
	void (*stop)(struct group *g);
	bool (*is_due)(const struct group *g);
	/* What is broken of G and the local group breaks the other. */
	void (*inspect)(struct group *g);
	/* The size of LOCAL, a local group that forms, is known, by another's word. */
	void (*sized)(struct group *local);
	/* Does it wait for RANK, which is here? */
	bool (*awaits)(const struct group *g, uint32_t rank);
	/* Operations that RANK, which is here, has posted. */
	uint64_t (*came)(const struct group *g, uint32_t rank);
};

extern const struct machine_ops machine_ops;

#endif
