/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan that a text describes: the steps of all members, in parts of a vector. */
#ifndef SLMPM_PLAN_TEXT_H
#define SLMPM_PLAN_TEXT_H

#include "slmpm/plan/plan.h"

#define PLAN_TEXT_MEMBERS 64 /* at most */
#define PLAN_TEXT_PARTS   64
#define PLAN_TEXT_INDEX   4096 /* parts of an area; as many as all members have */
#define PLAN_TEXT_STEPS   65536

/*
 * A block, of `count` elements, is cut in parts as even as can be. Index I of an area is part
 * I % parts of its block I / parts, and as long as that at all members: so what indices say of
 * lengths holds for any count.
 */
struct text_step {
	uint8_t op;    /* enum plan_op: SEND to COPY */
	uint8_t flags; /* PLAN_AHEAD */
	uint8_t lane, peer;
	uint8_t at_area, left_area, right_area;
	uint16_t at, left, right; /* the first index */
	uint16_t parts;
	uint32_t count; /* WAIT: receives */
	uint32_t line;
};

struct plan_text {
	uint32_t kind, members, parts;
	uint64_t least, most; /* bytes that it is for */
	uint32_t scratch;     /* indices */
	uint32_t properties;  /* PLAN_LINEAR, PLAN_COMMUTES: as proved, with root 0 */
	uint32_t hash;
	uint32_t begin[PLAN_TEXT_MEMBERS + 1]; /* of each rank's steps, and their end */
	struct text_step *step;
};

/* So many blocks AREA has at RANK, the root being 0; of SCRATCH 0. */
uint32_t plan_text_blocks(const struct plan_text *t, uint32_t rank, uint8_t area);

/* plan_proof.c: whether the steps come to their end in whatever order messages come, and do what
 * the kind says; then t->properties is set. 0, or negative with the detail set. */
int plan_text_prove(struct plan_text *t);

#endif
