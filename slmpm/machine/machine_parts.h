/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of machine.h have of one another. */
#ifndef SLMPM_MACHINE_PARTS_H
#define SLMPM_MACHINE_PARTS_H

#include "slmpm/board/flat.h"
#include "slmpm/group/messages.h"
#include "slmpm/group/operation.h"
#include "slmpm/machine/machine.h"

/* What is under way of an operation. */
enum machine_phase {
	MACHINE_FORMS,
	MACHINE_AGREES,
	MACHINE_GATHERS,
	MACHINE_EXCHANGES,
	MACHINE_FOLDS,
	MACHINE_SPREADS
};

struct machine {
	struct group *group;      /* the local one; NULL: not yet, none, or this member is alone */
	bool wants, asked;        /* connections for it; it has been founded or joined */
	bool decided;             /* by all, whether it is used: messages.local */
	uint32_t locals, rank;    /* local members; which of them this one is */
	uint32_t machines, index; /* of all; which of them this is, in the order of their lowest */
	uint32_t *ranks;          /* by local member: in the whole */
	/* By machine, a rank: the lowest; who leads where the root is elsewhere; and who does. */
	uint32_t *lowest, *heads, *leaders;
	uint32_t *place;  /* by rank: in the order of machines */
	uint64_t *counts; /* by machine: what all of it contribute */
	struct boards_local local;
	/* The operation: */
	enum machine_phase phase;
	struct offload_run run; /* as if all went by messages */
	uint32_t mark;          /* of the operation that waits for the group to form */
	bool gathers, folds;    /* contributions, to be combined by rank; that is to be done */
	uint32_t leader;        /* the local one: of `ranks` */
	int32_t word;           /* whether the group is there: here, then everywhere */
	struct collective op;   /* of the local group */
	struct slmpm_coll coll;
	int result; /* of op; 0: none yet */
	unsigned char *room;
	size_t room_len;
};

static inline bool machine_is_in_memory(const struct machine *n)
{
	return n->phase == MACHINE_GATHERS || n->phase == MACHINE_SPREADS;
}

/* ---- machine_life.c -------------------------------------------------------------------------- */

int machine_open(struct group *g);
void machine_leave(struct group *g);
void machine_close(struct group *g);

/* ---- machine_members.c ----------------------------------------------------------------------- */

/* Which one here RANK of the whole is; BOARD_NONE: it is elsewhere. */
uint32_t machine_rank(const struct machine *n, uint32_t rank);
/* Connections with those that this member forms the group with. */
void machine_want(struct group *g, bool want);
bool machine_is_decided(const struct group *g);
/* All that it needs is connected: 1; 0: not yet; negative: G is broken. */
int machine_connect(struct group *g);
/* It is that of the group as it is now. */
bool machine_is_current(const struct group *g);
bool machine_has_formed(const struct machine *n);
/* And ranks in it can be named in the whole. */
bool machine_is_used(const struct machine *n);
bool machine_awaits(const struct group *g, uint32_t rank);
uint64_t machine_came(const struct group *g, uint32_t rank);

/* ---- machine_form.c -------------------------------------------------------------------------- */

/* As machine_ops.sized. */
void machine_sized(struct group *local);
/* As machine_ops.step. */
int machine_form(struct group *g);
bool machine_can_be_used(const struct machine *n);
/* 0, or negative: all members begin to. */
int machine_agree(struct group *g);

#endif
