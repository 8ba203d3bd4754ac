/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory by which the members of a group on one machine meet: each has a board, a sealed
 * object that it alone can write and the others map read-only. A member posts on its own board and
 * reads the others'. This room knows memory and ranks; no context, no peer, no handle.
 *
 * What lies on a board is a member's word, and that member may lie: each word is loaded once and
 * checked, and only the copy is used.
 */
#ifndef SLMPM_BOARD_H
#define SLMPM_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#define BOARD_SLOTS 32u
#define BOARD_ANY   (UINT32_MAX - 1) /* in place of a rank: each one that is waited for */
#define BOARD_NONE  UINT32_MAX

struct attach_probe;
struct board;      /* as it lies in memory: layout.h */
struct flat_costs; /* what those of long blocks have cost: flat_route.c */
struct shared;     /* memory that they have mapped of one another: shared.h */
struct source;     /* what an operation needs of a member: flat.h */

/* Those of a group within a machine: in texts its members and operations are those of the whole.
 * Who is blamed may be another of that: its rank there, behind those of these. */
struct boards_local {
	const struct boards *of; /* of the group, ... */
	const uint32_t *ranks;   /* ... and by rank: that there */
	uint64_t done; /* the last one of which an operation there that has been done consists */
	struct {       /* operations: of which in the group each is a step */
		uint64_t number;
		uint32_t kind;
	} steps_of[BOARD_SLOTS];
};

/* Calls whose steps are operations: posts and marks hold which, where others hold what is done with
 * elements. A KIND for texts has it above these bits. */
enum board_call { BOARD_CALL_NONE, BOARD_CALL_SPLIT, BOARD_CALL_ALLOC };
#define BOARD_KIND_CALL 8

/* NULL: of none, or an unknown one. */
const char *boards_call_name(uint32_t call);
/* Of KIND, or the call above it; NULL likewise. */
const char *boards_kind_name(uint32_t kind);

struct boards { /* of one group, as one member has them */
	uint32_t size, rank;
	uint16_t crowded;  /* members for each processor, where there are several; else 0 */
	bool demotes;      /* `demote` does something on this processor */
	uint8_t rests;     /* of two, where it does not: by how long lines take (flat_short.c) */
	bool fences;       /* who posts fences: not all of them can be fenced from outside */
	uint32_t backed;   /* bytes of the own ring that have memory (boards_back) */
	struct board *own; /* NULL: rank is BOARD_NONE */
	const struct board **of; /* by rank; that of `rank` is own; NULL: not there yet */
	/* By rank, where to ring a member that says it sleeps (bell.h); -1: none */
	int *bells;
	int32_t *processes; /* by rank, for texts, and the group's TAG */
	int *watched;       /* by rank: descriptors of them, which are the caller's; -1: none */
	uint32_t tag;
	uint32_t lane;                 /* 1: the second board of each member's (boards_open_lane) */
	uint64_t posted;               /* on the own one */
	uint64_t reached;              /* all others have posted as many */
	uint64_t history;              /* of what has been begun so far */
	bool broken;                   /* it has said so */
	bool others_broke;             /* perhaps another one has */
	bool agrees;                   /* on who is gone, and sleeps though it is broken */
	uint64_t base;                 /* operations before this generation */
	uint64_t written;              /* position on the own ring, up to which it is taken */
	uint64_t freed;                /* what lies before this one has been read by all */
	uint64_t announced, *answered; /* sleeps: own, and those of the others */
	uint64_t bells_rung;
	uint32_t doing;                   /* of a lane: the tag of what it does, for texts; or 0 */
	uint32_t generation;              /* how often dead ones have been left out: agree.h */
	uint32_t *seats;                  /* by rank: the first one, when they met */
	uint32_t reach;                   /* of the others' own memory (reach.h) ... */
	struct attach_probe *probes;      /* ... by rank: what it has, */
	int32_t *numbers;                 /* in which process */
	struct source *sources;           /* by rank: of the operation under way */
	unsigned char *scratch;           /* BOARD_PIECE bytes */
	struct flat_costs *costs;         /* or NULL */
	struct shared *shared;            /* or NULL */
	uint64_t in_shared;               /* operations that were done there */
	bool shared_down;                 /* the last one has read from the back */
	uint32_t shared_ids;              /* the last one of these */
	uint64_t starts[BOARD_SLOTS];     /* where on the own ring the last operations began */
	const struct boards_local *local; /* NULL: they are all of a group's */
	enum board_call call;             /* the one under way */
	uint64_t step;                    /* the number of the operation that is its step */
};

/* Of which call operation NUMBER is a step. */
static inline enum board_call boards_call_of(const struct boards *b, uint64_t number)
{
	return b->step == number ? b->call : BOARD_CALL_NONE;
}

/* A new board, mapped writable, and its descriptor, by which others can map it read-only. 0, or a
 * negative errno. */
int board_make(struct board **own, int *fd);
/* Those of N other members, up to BOARD_MAPS, by their descriptors, which stay the caller's.
 * Returns how many are mapped: those before the one for which *ERROR is negative: -EPROTO: it is no
 * board that only its owner can write and none can cut short; -ENOTSUP: of a member of another byte
 * order. */
#define BOARD_MAPS 8u
uint32_t boards_map(const struct board **boards, const int *fds, uint32_t n, int *error);
/* The same of one: 0, or that error. */
int board_map(const struct board **board, int fd);
/* Memory in place of one: for what comes of its member by messages. NULL: there is none. */
struct board *board_copy(void);
void board_unmap(const struct board *board);

/* OWN (NULL: none, with RANK BOARD_NONE) and the arrays for SIZE members; the caller fills in of
 * and bells, then calls boards_met, and boards_close gives all of it back. 0, or -ENOMEM: OWN is
 * still the caller's. */
int boards_open(struct boards *b, struct board *own, uint32_t size, uint32_t rank);
/* All boards are there, before the first operation. */
void boards_met(struct boards *b);
void boards_close(struct boards *b);
/* Memory for the own ring up to position END, and for at least as much as there is: 0, or
 * -SLMPM_ENOMEM. */
int boards_back(struct boards *b, uint64_t end);

/*
 * A lane is a second sequence of operations of the same members: each has a second board for it,
 * behind its first one and mapped with that, which has no memory until it is used. All of it is as
 * of the first ones, but that their ends are said on those alone. B is that of OF, whose boards are
 * there, or none are (APART): 0, or -ENOMEM.
 */
int boards_open_lane(struct boards *b, const struct boards *of, bool apart);
/* OF's next generation has begun. */
void boards_follow(struct boards *b, const struct boards *of);
/* OF's group is broken, as this member has said: those that look at the lane see it there. */
void boards_end_lane(struct boards *b);
void boards_close_lane(struct boards *b);

/* ---- ends ------------------------------------------------------------------------------------ */

#define BOARD_MEMBER          "rank %u (process %d)" /* in texts */
#define BOARD_MEMBER_OF(b, r) boards_rank(b, r), boards_process(b, r)

static inline uint32_t boards_rank(const struct boards *b, uint32_t r)
{
	if (!b->local)
		return r;
	return r < b->size ? b->local->ranks[r] : r - b->size;
}

static inline int32_t boards_process(const struct boards *b, uint32_t r)
{
	return r < b->size ? b->processes[r] : b->local->of->processes[r - b->size];
}

/* Says on the own board that no more is posted: with ERROR 0 this member has left; else, a
 * negative SLMPM_E*, its group is broken, by CULPRIT (BOARD_NONE: none), in words WHY (NULL: those
 * of another). Rings all, or those that sleep where another has done so. Of one generation the
 * first word stands; leaving is for ever. */
void boards_end(struct boards *b, int error, uint32_t culprit, const char *why);
/* What rank R has said so: 0: nothing; else a negative error (-SLMPM_ECLOSED: it has left) and
 * *CULPRIT, R itself or the one that it names. */
int boards_ended(const struct boards *b, uint32_t r, uint32_t *culprit);
/* Rank R has left. */
bool boards_left(const struct boards *b, uint32_t r);
/* Whether another one has broken the group: its error, with *CULPRIT and the detail set; or 0. */
int boards_broken(const struct boards *b, uint32_t *culprit);
#define BOARD_WHICH 24
/* In texts, before an operation: which tag it has, in a lane. */
const char *boards_which(const struct boards *b, char text[BOARD_WHICH]);
/* In texts, what operation NUMBER, of KIND (and call), is: the call's, where it is a step of one;
 * NULL: of no kind. */
const char *boards_name(const struct boards *b, uint64_t number, uint32_t kind);
/* -ERROR; the detail is FORMAT of operation NUMBER of the group, of KIND (of which there is none:
 * it is not named). */
__attribute__((format(printf, 5, 6), cold)) int boards_error(const struct boards *b, int error,
							     uint64_t number, uint32_t kind,
							     const char *format, ...);

/* ---- steps ----------------------------------------------------------------------------------- */

struct board_step {
	uint64_t number;          /* of the last operation that a member has posted */
	uint32_t kind;            /* of that; 0: it is not known */
	uint64_t present, length; /* of its contribution, where that lies on its ring */
};

/* How far rank R is, which has a board, in its own words. */
void boards_step(const struct boards *b, uint32_t r, struct board_step *step);

/* ---- meetings -------------------------------------------------------------------------------- */

#define BOARD_LEFT UINT64_MAX /* comes to all meetings: none waits for it */

/* This member has come to meeting NUMBER, or BOARD_LEFT: others that wait for it are woken. */
void boards_come(struct boards *b, uint64_t number);
/* The last meeting that rank R has come to. */
uint64_t boards_came(const struct boards *b, uint32_t r);
/* The first of the others from rank R on that has not come to NUMBER, or the group's size. */
uint32_t boards_missing(const struct boards *b, uint64_t number, uint32_t r);

/* ---- sleep ----------------------------------------------------------------------------------- */

/* This member is to sleep until WHO (or BOARD_ANY) has posted, written or read something: it looks
 * once more after this, and sleeps only where there is still nothing. True: barrier_all before. */
bool boards_announce(struct boards *b, uint32_t who);
/* Awake again. A bell too many does no harm. */
void boards_awake(struct boards *b);
/* Rings at all that sleep, no matter for which member. */
void boards_wake_all(struct boards *b);

/* ---- connections among them ------------------------------------------------------------------ */

/* Of two members the lower makes a pair of sockets and gives one to the higher, by its bell: what
 * both say of that on their boards shows that no third has done it. */
#define PAIR_NONE  UINT64_C(0)
#define PAIR_ASKED ((UINT64_C(1) << 52) - 1)
#define PAIR_LACKS (UINT64_C(0xfff) << 40) /* no socket has such a number */

/* This member lacks what a connection takes: ERROR, an errno. By NUMBER two attempts differ. */
static inline uint64_t pair_of_lack(uint32_t number, int error)
{
	return PAIR_LACKS | (uint64_t)(number & 0xffffff) << 16 | ((uint32_t)error & 0x7fff);
}

/* Of such; 0: WHAT is none. */
static inline int pair_errno(uint64_t what)
{
	return what >= PAIR_LACKS && what != PAIR_ASKED ? (int)(what & 0x7fff) : 0;
}

/* This member says of its connection with R: that it asks for one, which socket (by a number that
 * the system never gives twice) it gives to R, what it lacks, or nothing any more. False: there are
 * too many now; one that it lacks makes room for others. */
bool boards_pair(struct boards *b, uint32_t r, uint64_t what);
/* What R says of its connection with this member. */
uint64_t boards_paired(const struct boards *b, uint32_t r);

#endif
