/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of a collective: what one member of a group that meets by messages sends, receives,
 * waits for and combines, in which order. For programs that want to know what a collective will do,
 * to simulate, count or carry it out by themselves. Not a part of <slmpm.h>: include it beside
 * that.
 *
 * A plan depends on its specification alone; it needs no group, no peer and no context, and any
 * thread may use it, one at a time. It is made step by step and takes about a kilobyte, whatever
 * the number of steps.
 */
#ifndef SLMPM_API_PLAN_H
#define SLMPM_API_PLAN_H

#include <slmpm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Kinds and algorithms ------------------------------------------------------------------- */

/* "barrier", "allreduce", ... of a number of enum slmpm_coll_kind (<slmpm_group.h>), from 1;
 * NULL: there is none such. */
SLMPM_API const char *slmpm_plan_kind(uint32_t kind);
/* "ring", "tree", ... of the number of an algorithm, from 1; NULL: there is none such. */
SLMPM_API const char *slmpm_plan_algorithm(uint32_t algorithm);
/* Algorithm I, from 0, of those that KIND has. SLMPM_ENOENT: behind the last; SLMPM_EINVAL. */
SLMPM_API int slmpm_plan_algorithm_at(uint32_t kind, uint32_t i);

/* ---- Plans ---------------------------------------------------------------------------------- */

/* Flags of a specification. */
#define SLMPM_PLAN_IN_PLACE       1u /* the contribution lies in TO, there is no FROM */
/* Of reductions, where the algorithm is left open: ((a0 op a1) op a2) ... by rank; op is not
 * commutative. */
#define SLMPM_PLAN_RANK_ORDER     2u
#define SLMPM_PLAN_NONCOMMUTATIVE 4u
/* As the work-queue program of a group that meets by messages, an entry a step: a GATE before each
 * RECV that may not be posted yet, and an END. */
#define SLMPM_PLAN_PROGRAM        8u

/* COUNT, COUNTS, PLACES, TO_COUNTS and TO_PLACES are those of struct slmpm_coll. All arrays are to
 * stay until the plan is closed. */
struct slmpm_plan_spec {
	uint32_t size;
	uint32_t kind;
	uint32_t algorithm; /* its number; 0: the one that the library takes */
	uint32_t members;   /* of the group: from 1 to 2^24 */
	uint32_t rank;      /* whose steps are wanted */
	uint32_t root;
	uint32_t flags;
	uint32_t width; /* bytes of an element, by which the library chooses; 0: 8 */
	uint64_t count;
	uint64_t piece; /* elements of a message, of those algorithms that cut; 0: chosen */
	const uint64_t *counts, *places, *to_counts, *to_places;
	/* By rank the lowest rank on its machine; NULL: each member has one of its own. */
	const uint32_t *hosts;
};

struct slmpm_plan;

/* To be closed. SLMPM_EINVAL: no such kind, rank or root, or the kind has no such algorithm, arrays
 * or order; SLMPM_ELIMIT: more elements, or pieces, than can be counted; SLMPM_ENOMEM. */
SLMPM_API int slmpm_plan_open(struct slmpm_plan **plan, const struct slmpm_plan_spec *spec);
/*
 * The same by a text that says what each member does (slmpm_plan(3)); SPEC has no algorithm. The
 * text is read, and all members' steps are followed: SLMPM_EINVAL, with the line, the rank and why,
 * where they do not do what the kind says, whatever the order of messages, or the text is for
 * others.
 */
SLMPM_API int slmpm_plan_load(struct slmpm_plan **plan, const struct slmpm_plan_spec *spec,
			      const char *text);
SLMPM_API void slmpm_plan_close(struct slmpm_plan *plan);

struct slmpm_plan_info {
	uint32_t size;
	uint32_t algorithm;
	uint64_t scratch; /* elements that are needed beside FROM and TO */
};

SLMPM_API int slmpm_plan_query(const struct slmpm_plan *plan, struct slmpm_plan_info *info);

/* ---- Steps ---------------------------------------------------------------------------------- */

enum slmpm_plan_op {
	SLMPM_PLAN_SEND = 1, /* what lies AT, to PEER */
	SLMPM_PLAN_RECV = 2, /* from PEER, to AT */
	SLMPM_PLAN_WAIT = 3, /* until COUNT more receives of LANE have come */
	SLMPM_PLAN_FOLD = 4, /* AT = LEFT op RIGHT; AT may be one of them */
	SLMPM_PLAN_COPY = 5, /* AT = LEFT */
	SLMPM_PLAN_GATE = 6, /* until all before it is done but receives: SLMPM_PLAN_PROGRAM */
	SLMPM_PLAN_END = 7   /* the last one, as a GATE: SLMPM_PLAN_PROGRAM */
};

enum slmpm_plan_area {
	SLMPM_PLAN_FROM = 1, /* the caller's buffers */
	SLMPM_PLAN_TO = 2,
	SLMPM_PLAN_SCRATCH = 3
};

#define SLMPM_PLAN_AHEAD 1u /* a RECV that may be posted while SENDs before it are under way */
#define SLMPM_PLAN_LANES 3  /* lanes are numbers below that */

/*
 * Steps are begun in their order. A RECV is posted when all before it is done but receives, and is
 * waited for by a WAIT alone, which is for all that have been posted on its lane and not waited for
 * yet. A WAIT may pass while SENDs are under way. A SEND begins when those before it are done, FOLD
 * and COPY when all before them is done but receives. Messages of a pair are matched in their
 * order, and each is as long as its receive; no plan needs a SEND to be done before its RECV is
 * posted.
 */
struct slmpm_plan_step {
	uint32_t size;
	uint32_t op;    /* enum slmpm_plan_op */
	uint32_t flags; /* SLMPM_PLAN_AHEAD */
	uint32_t lane;  /* RECV, WAIT */
	uint32_t peer;  /* SEND, RECV: a rank */
	uint32_t round;
	uint32_t at_area, left_area, right_area; /* enum slmpm_plan_area */
	uint32_t reserved;
	uint64_t count;           /* elements; SEND, RECV: 0 is an empty message */
	uint64_t at, left, right; /* the first element in its area */
};

/* 1 and the next step, or 0: there is none left. SLMPM_EINVAL. */
SLMPM_API int slmpm_plan_next(struct slmpm_plan *plan, struct slmpm_plan_step *step);

#ifdef __cplusplus
}
#endif

#endif
