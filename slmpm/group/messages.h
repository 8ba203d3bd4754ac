/* SPDX-License-Identifier: BSD-3-Clause */
/* The collective operation of a group without boards that is under way, as its files see it. */
#ifndef SLMPM_MESSAGES_H
#define SLMPM_MESSAGES_H

#include "slmpm/group/group.h"
#include "slmpm/offload/offload.h"

enum stage { NOT_BEGUN, CONNECTS, RUNS };

struct messages {
	struct offload *offload;
	uint32_t generation; /* that it is of */
	bool shares;         /* as of plans */
	uint32_t *hosts;     /* as of plans, where some members share a machine, not all; or NULL */
	uint64_t *expected;  /* messages by rank, as offload_came counts them */
	unsigned char *needs; /* by rank: of the operation under way (needs.c), which is: */
	enum stage stage;
	const struct slmpm_coll *coll;
	uint64_t number;
	struct offload_run run;
	uint32_t first; /* that may not be connected yet */
	uint64_t until; /* what is still to come of one that fails, or that has left, does; 0 */
};

/* ---- mark.c: which operation a message is of ------------------------------------------------- */

/* Of C, the group's NUMBER-th, of SIZE members. */
uint32_t mark_of(const struct slmpm_coll *c, uint32_t size, uint64_t number);
/* What there is of it besides a mark, in its place. */
uint32_t mark_with(uint32_t mark, uint32_t hash);
/* How RANK's message, which has the mark OTHER, or 0, and ended the run with STATUS, differs: an
 * error, the detail set. */
COLD int mark_differs(struct group *g, uint32_t other, int rank, int status);

/* ---- needs.c: whose messages it needs, and the connections with them ------------------------- */

/* The first of the streams of GENERATION. */
uint32_t needs_stream(const struct group *g, uint32_t generation);
/* With which ranks RUN's plan exchanges messages, and how many of each. 0, or negative with the
 * detail set. */
int needs_find(struct group *g, const struct offload_run *run);
/* Connections with all of them are asked for; and not any more. */
void needs_want(struct group *g);
void needs_unwant(struct group *g);
/* There is one with each, or there can be none. */
bool needs_are_decided(struct group *g);
/* Each is the run's peer. 0, or negative with the detail set, and *CULPRIT. */
int needs_connect(struct group *g, int *culprit);
/* The first whose messages are missing; -1. */
int needs_missing(const struct group *g);
/* The first that has left, and of which nothing more is here; -1. */
COLD int needs_left(const struct group *g);
/* What has come of GENERATION, which is over, and has not been read. */
COLD void needs_drop_unread(const struct group *g, uint32_t generation);

#endif
