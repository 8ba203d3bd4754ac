/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations with tags. Each member holds those that it has started until all have, and does them
 * in a lane, a second sequence of operations beside that of the group, which all members do in one
 * order. Which come next they find out by a round, an operation of the lane's own: each gives the
 * tags that it holds, and those that all have given are next, in the order of rank 0. A member with
 * a new one begins a round; others that hold some come to it when they see that. So a round needs
 * no more than each member's next operation, and none waits for a tag that another has not started.
 */
#ifndef SLMPM_TAGS_H
#define SLMPM_TAGS_H

#include <string.h>

#include "slmpm/group/operation.h"

/* 0; -SLMPM_EBUSY, -SLMPM_ELIMIT, -SLMPM_ENOMEM, with the detail set: one of TAG may be held. */
int tags_may_hold(struct group *g, uint32_t tag);
/* OP, which may be, has a tag: it is the group's last. */
void tags_hold(struct collective *op);
/* They go on, as far as they can: how many have ended. */
int tags_go_on(struct group *g);
/* OP's deadline has passed: the group is broken. */
COLD void tags_late(struct collective *op, int timeout_ms);
/* The same of any whose has; else when the next one does: ns. */
uint64_t tags_deadlines(struct group *g, uint64_t now, bool *passed);
/* As operation_arm. */
bool tags_arm(struct group *g, bool asleep);
static inline bool tags_wait(const struct group *g)
{
	return g->lane && (g->lane->under_way || g->lane->holds);
}

/* The group begins its next generation; its context closes; it goes. */
void tags_follow(struct group *g);
void tags_shut(struct group *g);
void tags_free(struct group *g);

/* Of calls that block (blocked.c): the last one of the lane that has begun; TAG is
 * held, and a round that has begun names it; it is outstanding; rank R had not started it as it
 * began that round, which is over here. It fails: the group is broken by CULPRIT. */
uint64_t tags_number(const struct group *g);
bool tags_hold_named(const struct group *g, uint32_t tag);
bool tags_have(const struct group *g, uint32_t tag);
bool tags_have_not(const struct group *g, uint32_t r, uint32_t tag);
COLD void tags_fail(struct group *g, int error, uint32_t culprit);

/* Begun by this process; not ended. */
uint64_t tags_begun(const struct group *g);
uint32_t tags_outstanding(const struct group *g);
/* For those who ask how it stands: the Ith that is outstanding, those held first; NULL: behind the
 * last. Whether rank R is waited for. */
const struct collective *tags_at(const struct group *g, uint32_t i);
bool tags_await(const struct group *g, uint32_t r);
/* Of a lane: C is a round. */
static inline bool tags_is_round(const struct slmpm_coll *c)
{
	return !c->tag;
}

/* ---- what becomes of the group: of its lane, too --------------------------------------------- */

static inline void lane_learns(const struct group *g)
{
	g->lane->status = g->status;
	g->lane->culprit = g->culprit;
	g->lane->left = g->left;
	memcpy(g->lane->said, g->said, sizeof(g->said));
}

/* It is broken by this member. */
static inline void lane_broken(const struct group *g)
{
	if (!g->lane)
		return;
	lane_learns(g);
	g->lane->error = g->error;
	memcpy(g->lane->detail, g->detail, sizeof(g->detail));
	if (!g->apart)
		boards_end_lane(&g->lane->boards);
}

#endif
