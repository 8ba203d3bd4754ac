/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations over boards: each member publishes what others need of it and reads what it
 * needs of them. One is begun and then advanced until it is done, without waiting; operations of
 * one group are advanced in their order, one at a time.
 *
 * Reductions combine in the order of the ranks, in chunks that begin at the same elements at all
 * members: all have the same bits.
 */
#ifndef SLMPM_BOARD_FLAT_H
#define SLMPM_BOARD_FLAT_H

#include <slmpm_group.h>
#include <stdatomic.h>

#include "shm/compiler.h"
#include "slmpm/base/clock.h"
#include "slmpm/board/board.h"
#include "slmpm/calc/calc.h"

#define FLAT_SHORT 40 /* bytes of a contribution that lies in its post */

/* Of an operation longer than a post, one member as it is read. */
struct source {
	uint64_t at;               /* where what is needed of it begins on its ring */
	uint64_t offset;           /* and in its contribution */
	uint64_t need, got;        /* bytes; got: have been read */
	uint64_t present;          /* of need: were there with the post */
	const unsigned char *line; /* or in its post, or here */
	bool met;                  /* its post has been read and checked */
	bool streams;              /* more came after the post: its `written` says how much */
	bool reports;      /* its ring is used more than once: it is to know what has been read */
	uint64_t from, to; /* addresses of its own buffers, in its process */
	uint32_t from_in, to_in;     /* ids of the memories where they lie, or 0 */
	const unsigned char *result; /* `to` as it is mapped here */
};

struct choice;

/* What this member writes to its own ring: one piece of memory, or a block for each other one. */
struct flat_out {
	uint64_t length, done, at; /* bytes; at: on the ring */
	uint64_t table;            /* bytes of it that say where blocks lie */
	const unsigned char *from;
	const uint64_t *counts, *places;
	bool blocks, rotated;
	uint32_t first, last;          /* who reads it: first <= rank < last */
	uint32_t block, freeing;       /* being written; not known to be read yet: as they follow */
	uint64_t block_at, freeing_at; /* where they begin in the contribution */
	bool table_read;
};

/* What is the same in the next one; of a broadcast the root may differ. */
struct flat_same {
	uint32_t kind, type, op;
	uint64_t count;
	const void *from, *to;
	uint64_t what; /* is posted, but for the root of a broadcast */
};

struct flat {
	struct boards *b;
	const struct slmpm_coll *coll; /* stays as it is until this one is done */
	int (*turn)(struct flat *);    /* 1: done; 0: waits; negative */
	uint64_t number, what, count;  /* as they are posted */
	uint32_t waits_for;            /* a rank or BOARD_ANY, when it waits */
	uint32_t culprit;              /* of a negative error; or BOARD_NONE */
	uint32_t shift;                /* of an element's bytes */
	bool posted, in_place, again;
	bool moved; /* bytes have been written or read while it waits; operations_go_on takes note */
	uint8_t between; /* looks: flat_between_looks */
	/* By a short one: the number that is to be there; or NULL. */
	const _Atomic uint64_t *awaited;
	calc_kernel *kernel; /* NULL: of the program's own */
	enum calc_form form;
	bool adds;           /* one double of each, which needs no kernel */
	uint32_t next, last; /* sources: the first unfinished one, and behind the last */
	uint32_t here;       /* short ones: of those before it none is missing here */
	uint64_t bytes;      /* of this member's part, or of what each combines */
	unsigned char *to;
	const unsigned char *from; /* this member's contribution to that */
	/* Short ones. */
	_Alignas(16) unsigned char combined[FLAT_SHORT];
	uint32_t first; /* combining: the sources' first */
	/* Long ones. */
	struct flat_out out;
	uint32_t room_of;   /* whom writing waits for; BOARD_NONE */
	uint32_t data_of;   /* and reading */
	uint64_t chunk;     /* and where it is */
	unsigned char *put; /* where the result is made: `to`, or memory of its own */
	uint64_t most;      /* bytes that are combined at a time: whole elements */
	/* Of an operation of the program's own, three times as much; or NULL. */
	unsigned char *spare;
	bool own_done; /* this member's own block is where it belongs */
	uint64_t kept; /* or so much of it */
	/* Straight from and to the others' buffers: the next one that is waited for; all have offered
	 * that, as far as is known; this member's part is done. */
	uint32_t peer;
	bool offered, copied;
	/* The same in memory that all have mapped: how far this one is; in which its own buffers lie;
	 * each combines a piece and reads the others'; a result takes the place of a contribution. */
	bool shared, in_pieces, replaces;
	uint32_t stage, from_in, to_in;
	/* The next operation may be a repeat of this short one; flat_again may do that in one. */
	bool repeats, of_two;
	uint32_t generation;
	struct flat_same same;
	/* Of a long one this member measures which route to take, or NULL; since when, and since when
	 * all others are there (0: they are not). */
	struct choice *measured;
	uint64_t began, met;
};

/* ---- what is asked for (flat_check.c) -------------------------------------------------------- */

/* Whether C is one that rank RANK of SIZE can begin: 0, or -SLMPM_EINVAL with the detail set. */
int flat_check(const struct slmpm_coll *c, uint32_t size, uint32_t rank);
/* The same but for where its memory is: bytes that it needs there. */
int flat_needs(const struct slmpm_coll *c, uint32_t size, uint32_t rank, uint64_t *from_bytes,
	       uint64_t *to_bytes);

/* ---- doing it -------------------------------------------------------------------------------- */

/* Begins C, which has been checked, and posts it if that can be. Where it has a `combine`, it is
 * one of SLMPM_UINT8, whole elements by its width. 0, or -SLMPM_ENOMEM. */
int flat_begin(struct flat *f, struct boards *b, const struct slmpm_coll *c);
/* By the fields that count for its kind, each as it was stored: a wider load would wait until
 * stores of several have left the processor, and what was posted before them. */
static INLINE bool flat_is_same(const struct slmpm_coll *c, const struct flat_same *s,
				uint32_t size)
{
	uint32_t root = (uint32_t)c->root;

	if (c->kind != s->kind || c->flags)
		return false;
	if (c->kind == SLMPM_COLL_BARRIER)
		return true;
	if ((c->type ^ s->type) | (c->op ^ s->op) || c->count != s->count || c->from != s->from ||
	    c->to != s->to)
		return false;
	if ((uintptr_t)c->counts | (uintptr_t)c->places | (uintptr_t)c->to_counts |
	    (uintptr_t)c->to_places)
		return false;
	return c->kind != SLMPM_COLL_BROADCAST || root < size;
}

/* Whether C, which has no `combine`, is as the last one was, a broadcast perhaps by another root:
 * it needs neither flat_check nor flat_begin: flat_repeat does for it. */
static INLINE bool flat_repeats(const struct flat *f, const struct boards *b,
				const struct slmpm_coll *c)
{
	return f->repeats && f->b == b && f->generation == b->generation &&
	       flat_is_same(c, &f->same, b->size);
}

void flat_repeat(struct flat *f, struct boards *b, const struct slmpm_coll *c);
/* The same, and flat_step. */
int flat_again(struct flat *f, struct boards *b, const struct slmpm_coll *c);
/* It is a step of WHOLE, an operation of a group of which these boards' members are a part: what is
 * posted, and compared, is that one's, and the HISTORY of that group. Just behind flat_begin. */
void flat_step_of(struct flat *f, const struct slmpm_coll *whole, uint32_t history);
/* Posts it, where that takes no time: before what else is to be done between begin and step. */
void flat_post_early(struct flat *f);
/* Does all that can be done. 1: done; 0: waits for f->waits_for; else a negative error with the
 * detail set, by f->culprit. */
int flat_step(struct flat *f);
/* Between two of those. All post at about the same time, and a look at a line that is just about to
 * be written takes it away from its writer, who has to fetch it back first, and is late from then
 * on. Where lines are demoted there are few looks; how many was found by trial. Where they are not,
 * the first look has taken the line, and those behind it cost the writer nothing. */
static inline void flat_between_looks(const struct flat *f)
{
	for (unsigned i = 0; i < f->between; i++) {
		clock_between_polls();
		/* A hint: it is loaded once more, and checked. */
		if (f->awaited &&
		    atomic_load_explicit(f->awaited, memory_order_relaxed) >= f->number)
			break;
	}
}

/* It waits for rank R, among others: after flat_step has said 0. */
bool flat_waits_for(const struct flat *f, uint32_t r);
/* Then, whether it may be for one that needs this very processor. */
bool flat_waits_here(const struct flat *f);
/* By whose post it is to be woken: of several that are missing not the first for each member, as
 * those that are woken post one after the other. */
uint32_t flat_woken_by(const struct flat *f);
/* Begun, and no more of it: gives back what it has. Not after flat_step has said 1. A rank that is
 * stopped and may still write to its buffers when it goes on; BOARD_NONE: none. */
uint32_t flat_drop(struct flat *f);

#endif
