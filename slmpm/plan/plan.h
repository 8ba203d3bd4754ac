/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules of collective operations for members that meet by messages: what one member sends,
 * receives and combines, in which order. A plan depends on the numbers in its specification alone,
 * and is made step by step, a round at a time, in constant memory. This room knows ranks and
 * elements; no peer, no address, no type.
 */
#ifndef SLMPM_PLAN_H
#define SLMPM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* ---- steps ----------------------------------------------------------------------------------- */

enum plan_op {
	PLAN_SEND = 1, /* `at` to `peer` */
	PLAN_RECV,     /* into `at` from `peer`: one more under way on `lane` */
	PLAN_WAIT, /* until `count` receives of `lane` have come, beyond those waited for before */
	PLAN_FOLD, /* at = left OP right, each `count` elements; `at` may be one of them */
	PLAN_COPY, /* at = left */
	PLAN_GATE, /* of a program: until all before it is done but receives */
	PLAN_END   /* of a program, its last: as a GATE */
};

enum plan_area {
	PLAN_FROM = 1, /* the caller's buffers; in place there is no FROM */
	PLAN_TO,
	PLAN_SCRATCH /* plan.scratch elements, what is in them is no matter */
};

/*
 * Steps are begun in their order. A RECV is posted and nothing waits for it but a WAIT; without
 * PLAN_AHEAD it is posted when all before it is done but receives, with it also while sends before
 * it are under way, which read nothing of where it goes. A WAIT may pass while sends are under way.
 * A SEND begins when those before it are done; to the same rank they may go together. FOLD and COPY
 * begin when all before them is done but receives.
 *
 * Messages of a pair are matched in their order; a RECV is as long as its SEND. No plan needs a
 * SEND to be done before its receiver posts the RECV. A WAIT is for all receives that have been
 * posted on its lane and not yet waited for, so that counting them is enough.
 */
#define PLAN_AHEAD 1u
#define PLAN_LANES 3 /* numbers below that */

struct plan_step {
	uint8_t op;    /* enum plan_op */
	uint8_t flags; /* RECV: PLAN_AHEAD */
	uint8_t at_area, left_area, right_area;
	uint8_t lane; /* RECV, WAIT */
	uint16_t reserved;
	uint32_t peer; /* SEND, RECV: rank */
	uint32_t round;
	uint64_t count;           /* elements; SEND, RECV: 0 is an empty message */
	uint64_t at, left, right; /* first elements in their areas */
};

/* ---- specification --------------------------------------------------------------------------- */

/* The numbers of enum slmpm_coll_kind. */
enum plan_kind {
	PLAN_BARRIER = 1,
	PLAN_BROADCAST,
	PLAN_REDUCE,
	PLAN_ALLREDUCE,
	PLAN_SCATTER,
	PLAN_GATHER,
	PLAN_ALLGATHER,
	PLAN_ALLTOALL,
	PLAN_REDUCE_SCATTER,
	PLAN_SCAN,
	PLAN_EXSCAN,
	PLAN_KINDS
};

enum plan_algorithm {
	PLAN_AUTO = 0, /* none is given */
	PLAN_DISSEMINATION,
	PLAN_TREE,
	PLAN_BINOMIAL,
	PLAN_CHAIN,
	PLAN_FLAT,
	PLAN_RECURSIVE_DOUBLING,
	PLAN_RING,
	PLAN_REDUCE_BROADCAST,
	PLAN_PAIRWISE,
	PLAN_BRUCK,
	PLAN_BINARY,    /* over a tree of ranks breadth-first */
	PLAN_STAR,      /* by way of one rank, or few, which exchange messages with each */
	PLAN_HOSTS,     /* within each machine first */
	PLAN_TEXT,      /* as a text says */
	PLAN_ALGORITHMS /* as many, PLAN_AUTO with them */
};

/* struct plan_spec.flags */
#define PLAN_IN_PLACE       1u /* the contribution lies in TO */
/* plan_choose takes a PLAN_LINEAR one; one that is not PLAN_COMMUTES. */
#define PLAN_RANK_ORDER     2u
#define PLAN_NONCOMMUTATIVE 4u
/* As entries of one channel of a work queue, in which a receive is posted while sends are under
 * way: a GATE before each that may not be, and an END. */
#define PLAN_PROGRAM        8u

struct plan_text;

/* As struct slmpm_coll; the same at all members but for `rank`, PLAN_IN_PLACE, and the counts and
 * places of an ALLTOALL. The arrays stay the caller's, and are read as long as the plan is. */
struct plan_spec {
	uint32_t kind;      /* enum plan_kind */
	uint32_t algorithm; /* enum plan_algorithm */
	uint32_t size, rank, root;
	uint32_t flags;
	uint64_t count;
	const uint64_t *counts, *places, *to_counts, *to_places;
	uint64_t piece; /* elements of a message of a chain, a star; 0: as the plan thinks best */
	const uint32_t *hosts; /* by rank: the lowest one on its machine; NULL: each has one */
	const struct plan_text *text; /* of PLAN_TEXT, which it fits */
	const uint64_t *limits; /* of plan_choose, PLAN_LIMITS of them; NULL: the table's own */
	uint32_t processors;    /* that members share, so the least work counts; 0: it does not */
	/* By rank: whose the steps' peers are, where others of them do not take part; or NULL. */
	const uint32_t *members;
};

/* Up to how many bytes a kind's vectors are short, in place of what the table says: powers of two,
 * of each kind from the lowest on; 0: as it says. */
#define PLAN_LIMIT_BITS 5
enum plan_limit { PLAN_LIMIT_ANY, PLAN_LIMIT_RANK /* in the order of the ranks */, PLAN_LIMITS };

static inline uint32_t plan_limit_of(uint64_t limits, uint32_t kind)
{
	return (uint32_t)(limits >> (kind - 1) * PLAN_LIMIT_BITS) & ((1u << PLAN_LIMIT_BITS) - 1);
}

/* ---- plans ----------------------------------------------------------------------------------- */

#define PLAN_ROUND   8          /* steps of a round, at most */
#define PLAN_MEMBERS (1u << 24) /* at most */

struct plan_blocks {    /* a block of elements for each rank */
	uint64_t count; /* of each, or of all where they are a `cut` */
	const uint64_t *counts, *places;
	uint32_t size;
	bool cut;        /* the members divide `count` */
	uint32_t rank;   /* the last one that was asked for, ... */
	uint64_t before; /* ... and the counts of those below it together */
};

struct plan_part {
	uint8_t area;
	uint64_t first;
};

struct plan {
	uint64_t scratch; /* elements */
	/* The rest is the room's own. */
	struct plan_spec spec;
	const struct plan_method *method;
	uint32_t phase, round; /* those that come next */
	uint8_t made, given;   /* steps of the last round */
	bool behind;           /* the phase's first RECV is yet to come: it waits for its turn */
	bool begun;            /* an exscan has a result */
	bool sends;            /* some may be under way that no step has waited for */
	bool ended;            /* the END has been given */
	uint8_t input;         /* the area of the contribution */
	/* SCRATCH begins with so many slots of so many elements, for so many rounds' receives. */
	uint32_t slots, rounds;
	uint64_t slot;
	uint64_t piece;   /* elements that are combined at a time, ... */
	uint64_t own;     /* ... and where the contribution to them begins */
	uint32_t pending; /* receives that are yet to be waited for */
	uint32_t hosts,
		place;    /* by machines: of them; where this one is among these, from the root's */
	uint32_t next;    /* where the next child is looked for */
	uint32_t centres; /* of a star */
	struct plan_part have; /* what this member has combined so far */
	struct plan_blocks from, to;
	struct plan_step step[PLAN_ROUND];
};

/* 0; -SLMPM_EINVAL: no such kind or rank, or the kind has no such algorithm; PLAN_AUTO is none.
 * -SLMPM_ELIMIT: more elements, or pieces of them, than can be counted. */
int plan_begin(struct plan *p, const struct plan_spec *spec);
/* The next step; false: there is none left. */
bool plan_next(struct plan *p, struct plan_step *step);
/* From the first step again. */
void plan_again(struct plan *p);

/* ---- algorithms ------------------------------------------------------------------------------ */

/* Reductions: ((a0 OP a1) OP a2)... by rank, whatever else is chosen. */
#define PLAN_LINEAR   1u
/* Reductions: OP is commutative; all others combine neighbours, the lower rank's on the left. */
#define PLAN_COMMUTES 2u

/* What a kind has: the I-th, from 0, or PLAN_AUTO behind the last. */
enum plan_algorithm plan_algorithm_at(uint32_t kind, uint32_t i);
/* PLAN_LINEAR, PLAN_COMMUTES. */
uint32_t plan_properties(uint32_t kind, enum plan_algorithm algorithm);
const char *plan_name(enum plan_algorithm algorithm);
/* "allreduce", and so on; NULL: no such kind. */
const char *plan_kind_name(uint32_t kind);
/* Whether ALGORITHM combines in the order that the flags ask for. */
bool plan_keeps_order(const struct plan_spec *spec, uint32_t algorithm);
/* PLAN_AUTO: there is none of this name. */
enum plan_algorithm plan_by_name(const char *name);
/* Whether one of these properties does. */
bool plan_suits_order(const struct plan_spec *spec, uint32_t properties);
/* What a kind takes: a root, a block of each member (COUNTS), others that come (TO_COUNTS), an
 * operation that combines. */
#define PLAN_ROOT     1u
#define PLAN_BLOCKS   2u
#define PLAN_EXCHANGE 4u
#define PLAN_COMBINES 8u
/* 0 of what is no kind, too. */
uint32_t plan_takes(uint32_t kind);

/* The one for so many members and elements of WIDTH bytes in spec->count, spec->counts. */
enum plan_algorithm plan_choose(const struct plan_spec *spec, uint32_t width);
/* All that one member has at one end. */
uint64_t plan_bytes(const struct plan_spec *spec, uint32_t width);

/* Of a star of SIZE members that share so many processors: each has another member at least. */
uint32_t plan_star_centres(uint32_t size, uint32_t processors);

/* ---- texts (plan_text.c) --------------------------------------------------------------------- */

/* The plans of all members as a text describes them, once it has been proved that they do what
 * their kind says. 0, or negative with the detail set: the line, the rank and why. */
int plan_text_load(struct plan_text **out, const char *text);
void plan_text_free(struct plan_text *t);
/* Whether it is for this operation, of elements of WIDTH bytes. */
bool plan_text_fits(const struct plan_text *t, const struct plan_spec *spec, uint32_t width);
uint32_t plan_text_kind(const struct plan_text *t);
uint32_t plan_text_members(const struct plan_text *t);
/* As many steps does the rank have that has most of them. */
uint32_t plan_text_longest(const struct plan_text *t);
/* Texts of the same steps have the same, not 0. */
uint32_t plan_text_hash(const struct plan_text *t);

#endif
