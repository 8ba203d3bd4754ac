/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory by which the members of a group on one machine meet: each has a board, a sealed
 * object that it alone can write and the others map read-only. A member posts on its own board and
 * reads the others'. This room knows memory and ranks; no context, no peer, no handle.
 */
#ifndef SLMPM_BOARD_H
#define SLMPM_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#define BOARD_SIZE 65536 /* bytes of an object */

struct board; /* as it lies in memory: board.c */

/* Rank of who founds a group and is no member: it has no board of its own, and reads the others. */
#define BOARD_NONE UINT32_MAX

struct boards { /* of one group, as one process has them */
	uint32_t size, rank;
	struct board *own;       /* NULL: rank is BOARD_NONE */
	const struct board **of; /* by rank; that of `rank` is own; NULL: not there yet */
	int *bells;      /* by rank: where to ring a member that says that it sleeps (bell.h); -1 */
	uint64_t posted; /* on the own one */
};

/* A new board, mapped writable, and its descriptor, by which others can map it read-only. 0, or a
 * negative errno. */
int board_make(struct board **own, int *fd);
/* Another member's by its descriptor, which stays the caller's: -EPROTO: it is no board that only
 * its owner can write and none can cut short. */
int board_map(const struct board **board, int fd);
void board_unmap(const struct board *board);

/* OWN (NULL: none, with RANK BOARD_NONE) and the arrays for SIZE members; the caller fills in of
 * and bells, and boards_close gives all of it back. 0, or -ENOMEM: OWN is still the caller's. */
int boards_open(struct boards *b, struct board *own, uint32_t size, uint32_t rank);
/* All boards are there, before the first operation. */
void boards_met(struct boards *b);
void boards_close(struct boards *b);

/* Says on the own board that no more is posted: with ERROR 0 this member has left; else, a
 * negative SLMPM_E*, its group is broken, by CULPRIT (BOARD_NONE: none). Wakes all. The first word
 * stands. */
void boards_end(struct boards *b, int error, uint32_t culprit);
/* What rank R has said so: 0: nothing; else a negative error (-SLMPM_ECLOSED: it has left) and
 * *CULPRIT, R itself or the one that it names. */
int boards_ended(const struct boards *b, uint32_t r, uint32_t *culprit);

#endif
