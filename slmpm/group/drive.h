/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations at the behest of who has founded the group. Each member is asked first, by the
 * connection by which it has joined, and has taken all that the operation needs by the time it
 * agrees; once all have, it begins at each. What the founder says to members comes in order, and is
 * the same at each: so is the order of their operations.
 *
 * drive.c has the founder's side, driven.c that of members. A founder that is a member calls what a
 * message would bring.
 */
#ifndef SLMPM_DRIVE_H
#define SLMPM_DRIVE_H

#include "slmpm/group/operation.h"

struct slmpm_am;

/* ---- what travels ---------------------------------------------------------------------------- */

/* Numbers of handlers. */
enum drive_id {
	DRIVE_PREPARE = WIRE_AM_DRIVE, /* struct wire_drive */
	DRIVE_WORD,                    /* struct wire_drive_word */
	DRIVE_END
};

enum drive_word {
	DRIVE_GO = 1, /* to members */
	DRIVE_STOP,   /* it is not to begin; where it has, the group breaks, for `error` */
	DRIVE_AGREED, /* from members */
	DRIVE_ENDED,  /* done; or refused, or failed, for `error` */
	DRIVE_LATE,   /* to members: its deadline has passed: for whom do they wait? */
	DRIVE_AWAITS, /* from members: for `culprit` */
	DRIVE_WORDS
};

struct drive_address {   /* which one */
	uint64_t group;  /* the founder's handle: as it came */
	uint64_t number; /* of the founder's in it, from 1 */
	uint32_t join;   /* number of the member's JOIN */
	uint32_t rank;   /* the member's: as it came */
};

struct wire_drive {
	struct drive_address which;
	uint64_t from, to, count;
	uint32_t kind, type, op, root, flags, from_space, to_space, imm;
};
_Static_assert(sizeof(struct wire_drive) == 80, "wire layout");

#define DRIVE_TEXT 96

struct wire_drive_word {
	struct drive_address which;
	uint32_t word, error;   /* wire_error */
	uint32_t culprit, zero; /* rank, or UINT32_MAX */
	char text[DRIVE_TEXT];
};
_Static_assert(sizeof(struct wire_drive_word) == 136, "wire layout");

/* ---- the founder's side (drive.c) ------------------------------------------------------------ */

/* RANK, itself or by a message, says that it has agreed, or that it has ended: STATUS, for TEXT; or
 * for whom it waits. drives_settle follows. */
void drive_answer(struct group *g, uint32_t rank, uint64_t number, enum drive_word word, int status,
		  uint32_t culprit, const char *text);
/* What follows from answers. */
void drives_settle(struct group *g);
/* As of parts. */
void drive_arrived(struct endpoint *ep, const struct slmpm_am *am);
void drive_peer_ended(struct endpoint *ep);
uint64_t drives_deadlines(struct context *ctx, uint64_t now);
/* The group goes. */
void drives_shut(struct group *g);

/* G is one that can be driven: 0, or negative with the detail set. */
int drive_suits(const struct group *g, const char *call);

/* ---- a member's (driven.c) ------------------------------------------------------------------- */

/* Asked: it answers. EP: the founder, or NULL: this process. */
void driven_prepare(struct endpoint *ep, const struct wire_drive *w);
/* G, the member's own, gets WORD of number NUMBER; CULPRIT: a rank or not. False: the founder
 * breaks the protocol. */
bool driven_word(struct group *g, uint64_t number, enum drive_word word, int status,
		 uint32_t culprit, const char *text);
/* EP founded the group, and has ended. */
void driven_orphaned(struct group *g, struct endpoint *ep);
/* The group goes. */
void driven_leave(struct group *g);

#endif
