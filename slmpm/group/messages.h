/* SPDX-License-Identifier: BSD-3-Clause */
/* The collective operation of a group without boards that is under way, as its files see it. */
#ifndef SLMPM_MESSAGES_H
#define SLMPM_MESSAGES_H

#include "slmpm/group/group.h"
#include "slmpm/offload/offload.h"

struct machine;

enum stage { NOT_BEGUN, CONNECTS, RUNS, ASKS, LOCAL /* within this machine: machine_ops.h */ };

#define MARKS 30 /* of the last operations */

/* What a mark has a hash of, for texts. */
struct asked_for {
	uint64_t count; /* UINT64_MAX: a count for each member, ... */
	int32_t root;   /* ... and -1: none */
};

/* Where a member is, as it has said while it waited (stalled.c). */
struct stand {
	bool any;
	uint64_t until;  /* it says so again before: ns */
	uint64_t number; /* of its last operation, ... */
	uint32_t generation;
	uint32_t suspect;      /* ... in which it waits for this rank in the end, and 1; 0 */
	uint32_t marks[MARKS]; /* of the last ones, by number; 0: none */
	uint32_t blocked;      /* in a call of that tag; 0: in none */
	/* With the last one of its lane, and so many begun without a tag. */
	uint64_t blocked_number, begun;
	uint32_t about; /* low half of the number of that which it says this of */
	struct asked_for said;
};

struct messages {
	struct offload *offload;
	uint32_t generation;     /* that it is of */
	uint32_t processors;     /* as of plans */
	struct machine *machine; /* those on this machine, where some share one; or NULL */
	bool local;              /* they meet in memory, and so do those of all others */
	bool several;            /* members on each machine, on average: two or more */
	uint32_t *hosts; /* as of plans, where some members share a machine, not all; or NULL */
	/* Messages by rank, as offload_came counts them, before the operation and with it; ... */
	uint64_t *before, *expected;
	uint64_t *walked;     /* ... and as its plan is gone through */
	unsigned char *needs; /* by rank: of the operation under way (needs.c), which is: */
	enum stage stage;
	const struct slmpm_coll *coll;
	uint64_t number, done; /* of that; of the last one that has been done */
	struct offload_run run;
	uint32_t first; /* that may not be connected yet */
	uint64_t until; /* what is still to come of one that fails, or that has left, does; 0 */
	uint32_t marks[MARKS]; /* of the last operations, by number, without the history: ... */
	struct asked_for values[MARKS]; /* ... of the same; ... */
	uint32_t history;               /* ... what was before is compared as well */
	uint64_t stalled;               /* number of the operation that was inspected last, ... */
	uint64_t since, next; /* ... since when it waits, and when the others learn it again: ns */
	uint64_t interval;    /* ns until that, as they know; 0: they know of no wait */
	uint32_t suspect;     /* as they have learnt it: a rank, or BOARD_NONE */
	struct {              /* a member that does another operation says which ones it has done */
		bool any;
		int rank;
		uint32_t mark; /* of its message; 0: it differs in memory */
		bool answered;
		uint64_t until; /* ns: else it is done without */
	} asked;
};

/* Bytes of an element. */
uint32_t messages_width(const struct slmpm_coll *c);
/* The pieces that SPEC, of elements of WIDTH bytes, sends by the algorithm that it has now. */
void messages_piece(struct plan_spec *spec, uint32_t width);
/* m->run is the operation, all by messages, with MARK. */
void messages_describe(struct group *g, uint32_t mark);
/* What m->run describes begins, once all that it needs are connected. 0, or negative with the
 * detail set. */
int messages_exchange(struct group *g);
/* The group is broken by what others have said: the error. */
COLD int messages_broken_by(struct group *g);

/* ---- mark.c: which operation a message is of ------------------------------------------------- */

/* Of C, the group's NUMBER-th, of SIZE members, a step of CALL. */
uint32_t mark_of(const struct slmpm_coll *c, uint32_t size, uint64_t number, enum board_call call);
/* That of the operation that begins is noted, and goes with what was before. */
void mark_note(struct messages *m);
/* What there is of it besides a mark, in its place. */
uint32_t mark_with(uint32_t mark, uint32_t hash);
/* The first operation that RANK has done differently, as far as it has said; 0: none is known. */
COLD uint64_t mark_first_unlike(const struct group *g, uint32_t rank);
/* How RANK's message, which has the mark OTHER, or 0, differs: an error, the detail set. */
COLD int mark_differs(struct group *g, uint32_t other, int rank);

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
/* Each is the run's peer: 0; 1: one has been lost meanwhile, and is decided again; or negative with
 * the detail set, and *CULPRIT. */
int needs_connect(struct group *g, int *culprit);
/* Those that its next step waits for are noted: is RANK one? */
COLD void needs_note_awaited(struct group *g);
COLD bool needs_await(const struct group *g, uint32_t rank);
/* One whose connection has ended, and of which more is needed; -1. */
COLD int needs_ended(const struct group *g);
/* The first that has left, and of which nothing more is here; -1. It had done its part, which is on
 * its way. */
COLD int needs_left(const struct group *g);
COLD bool needs_come_of(const struct group *g, uint32_t rank);
/* What has come of GENERATION, which is over, and has not been read. */
COLD void needs_drop_unread(const struct group *g, uint32_t generation);

/* ---- stalled.c: where members are that wait -------------------------------------------------- */

/* All that are connected learn where this member is, once it has waited for a while. */
COLD void stalled_show(struct group *g);
/* RANK, which has sent OTHER, is to say where it is: `asked`. Only the first one is asked. */
COLD void stalled_ask(struct group *g, int rank, uint32_t other);
/* What RANK has said last; NULL: nothing, in this generation. */
const struct stand *stalled_stand(const struct group *g, uint32_t rank);
/* This member blocks in a call of TAG; what RANK has said so, or NULL: nothing. */
COLD void stalled_show_blocked(const struct group *g, uint32_t tag);
COLD const struct stand *stalled_blocked(const struct group *g, uint32_t rank);
/* RANK waits as well, as far as is known: for whom in the end; else it is late itself. */
COLD uint32_t stalled_for_whom(const struct group *g, uint32_t rank, uint64_t now);
/* Whom all wait for in the end, as far as is known; -1. */
COLD int stalled_suspect(struct group *g);

#endif
