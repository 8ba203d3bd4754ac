/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One put to many. Of each put every member that takes part has a struct line: the origin those it
 * has begun, a target the last one of each origin. What is to be sent of it to another member is a
 * struct flow, from which packets are made when there is room: nothing is queued, and bytes are
 * handed on from where they were stored. Lines move by what arrives, with no call of the
 * application's.
 *
 * line.c has what both sides do, origin.c and target.c their parts, packet.c what travels, early.c
 * what of it comes too early, route.c how an origin chooses among the forms.
 */
#ifndef SLMPM_DEPOSIT_H
#define SLMPM_DEPOSIT_H

#include <slmpm_deposit.h>

#include "slmpm/am/am.h"
#include "slmpm/base/bits.h"
#include "slmpm/choice/choice.h"
#include "slmpm/group/pairing.h"
#include "slmpm/group/space.h"

struct queue;
struct request;
struct slmpm_am;

#define RANK_WORDS (SLMPM_GROUP_MAX / WORD_BITS)

struct ranks {
	uint64_t bits[RANK_WORDS];
};

static inline bool ranks_have(const struct ranks *s, uint32_t r)
{
	return s->bits[r / WORD_BITS] >> r % WORD_BITS & 1;
}

static inline void ranks_add(struct ranks *s, uint32_t r)
{
	s->bits[r / WORD_BITS] |= UINT64_C(1) << r % WORD_BITS;
}

static inline void ranks_drop(struct ranks *s, uint32_t r)
{
	s->bits[r / WORD_BITS] &= ~(UINT64_C(1) << r % WORD_BITS);
}

/* ---- what travels ---------------------------------------------------------------------------- */

/* Numbers of handlers. */
enum deposit_id {
	/* struct wire_deposit; two sets of ranks; of a request the order, if it is not by rank */
	DEPOSIT_WORD = WIRE_AM_DEPOSIT,
	DEPOSIT_DATA, /* struct wire_deposit_data; bytes */
	DEPOSIT_END
};

/* A bit of flow.due each, and sent in this order. */
enum deposit_word {
	WORD_REQUEST = 1, /* ranks: the line; agreed: of those before, in the form that forwards */
	WORD_ANSWER,      /* agreed: itself, or all that have */
	WORD_LOST,        /* the member `culprit` is not reached, for `error` */
	WORD_BEGIN,       /* ranks: the line; bytes follow */
	WORD_RESUME,      /* from `offset` on */
	WORD_HAVE,        /* agreed: who has all of it */
	WORD_STOP,        /* ranks: whom it is handed on to; nothing comes any more */
	WORD_LEAVE,       /* the same of one alone */
	WORD_LATE,        /* its deadline has passed: who answers? It is handed on */
	WORD_ALIVE,       /* agreed: these do */
	WORD_END
};

/* wire_deposit.flags */
#define DEPOSIT_FORWARD 1u /* REQUEST: of the form that forwards */
#define DEPOSIT_AGAIN   2u /* BEGIN: the receiver is to say from where on */

struct wire_deposit {
	uint64_t number; /* of the origin's puts in the group, from 1 */
	uint64_t offset, length;
	uint32_t origin;
	uint16_t word;
	uint8_t flags, generation; /* the latter of the group: ranks are those of it */
	uint32_t space, imm;
	uint32_t error, culprit; /* wire_error: of the first that has refused; and its rank */
	char text[SLMPM_REFUSAL];
};
_Static_assert(sizeof(struct wire_deposit) == 144, "wire layout");

/* What may follow its head. */
#define WORD_SETS_MAX (sizeof(uint64_t[2 * RANK_WORDS]) + sizeof(uint16_t[SLMPM_GROUP_MAX]))

struct wire_order {
	const unsigned char *ranks; /* of 16 bits each */
	uint32_t count;
};

/* The deposit bit: it is stored, and handed on by all but the last of the line. */
#define DEPOSIT_BIT 1u

struct wire_deposit_data {
	uint64_t number, at;
	uint32_t origin;
	uint16_t flags;
	uint8_t generation, zero;
};
_Static_assert(sizeof(struct wire_deposit_data) == 24, "wire layout");

/* ---- state ----------------------------------------------------------------------------------- */

struct flow { /* of a line, to one member */
	struct list node;
	uint32_t rank;
	uint32_t due;  /* of enum deposit_word, a bit each */
	bool again;    /* BEGIN: it is asked where it stands */
	bool feeds;    /* bytes, as they are there ... */
	uint64_t sent; /* ... and so many have been */
};

enum line_state {
	LINE_WAITS,   /* the origin's: for those before it */
	LINE_ASKS,    /* answers are awaited, or, of a target, the beginning */
	LINE_MOVES,   /* bytes */
	LINE_HAS_ALL, /* of a target */
	LINE_IS_OVER
};

struct refusal {
	int error; /* negative; 0: none */
	uint32_t culprit;
	char text[SLMPM_REFUSAL];
};

struct line {
	struct list node; /* of its group's */
	struct deposits *of;
	uint32_t origin; /* rank; the own one: the put is this process's */
	uint64_t number;
	uint32_t space, imm;
	uint64_t offset, len;
	bool forwards;     /* the form of the request */
	bool direct;       /* the origin's: the bytes go from it to each */
	unsigned char *at; /* where its bytes are here */
	uint64_t got;      /* of them, from the first on */
	/* The line's order, where it is not by rank; and of each rank the place in it, or UINT16_MAX. */
	uint16_t *order, *place;
	uint32_t ordered;
	struct ranks ranks; /* those of the line: asked, and later those that are to get it */
	struct ranks agreed, have;
	struct ranks alive;     /* of those that are asked whether they answer */
	struct refusal refusal; /* the first */
	enum line_state state;
	struct list flows;
	union {
		struct {
			struct ranks answered;
			uint32_t awaited; /* answers */
			bool anyway;
			bool asks;      /* it is late: who is alive? */
			uint32_t flags; /* SLMPM_PUT_ALL_* */
			struct request *request;
			uint64_t deadline; /* ns; UINT64_MAX: none */
			int timeout_ms;
			struct queue *answers;
			int (*ready)(void *arg);
			void *arg;
		} put;
		struct {
			struct space *used;
			struct queue *queue; /* room in it has been taken; or NULL */
			/* That of how when it was agreed to: another has not been asked. */
			void (*done)(const struct slmpm_deposit *d, int status, void *arg);
			void *base;
			uint32_t before, next; /* ranks; next: BOARD_NONE: it is the last */
			uint32_t lost;         /* of LOST, ... */
			int lost_for;          /* ... why: negative, ... */
			uint32_t lost_by;      /* ... and by the death of whom; or the same */
			bool passed;           /* those behind have all of it */
		} target;
	};
};

struct put_learned;

struct put_route {              /* of the put that is under way */
	struct put_learned *of; /* where it learns; or NULL */
	bool many;              /* targets */
	enum choice_note note;
	uint64_t since; /* ns */
};

struct deposits { /* of a group */
	struct group *group;
	struct list puts;  /* struct line: the first is under way, unless it is over */
	struct list lines; /* those of others */
	struct list early; /* struct early: requests by ranks that this member does not have yet */
	uint32_t early_count;
	uint64_t last;      /* number of an own one */
	bool beginning;     /* one begins now */
	struct list routes; /* struct put_learned, the one used last at the end */
	uint32_t route_count;
	struct put_route route;
	uint64_t due;    /* when they are inspected next: ns; UINT64_MAX: never */
	uint16_t *hosts; /* order.c; NULL: not known yet */
	struct slmpm_deposits how;
	struct queue *queue; /* that how.cq names */
};

/* NULL: there is no memory. */
struct deposits *deposits_of(struct group *g);

/* ---- line.c ---------------------------------------------------------------------------------- */

static inline uint32_t line_self(const struct line *l)
{
	return l->of->group->boards.rank;
}

static inline uint32_t line_size(const struct line *l)
{
	return l->of->group->boards.size;
}

/* The first behind RANK that is in S, in the line's order; BOARD_NONE: none. */
uint32_t line_after(const struct line *l, const struct ranks *s, uint32_t rank);
struct line *line_new(struct deposits *d, struct list *list, uint32_t origin);
void line_free(struct line *l);
/* WORD is to be sent to RANK. NULL: there is no memory. */
struct flow *line_send(struct line *l, uint32_t rank, enum deposit_word word);
struct flow *line_flow(const struct line *l, uint32_t rank);
void flow_end(struct line *l, struct flow *f);
/* What is yet to be sent of it is not any more. */
void line_cut(struct line *l);
/* There are bytes, or words: their peer is to have its turn. */
void flow_due(const struct line *l, const struct flow *f);
/* The first refusal, by CULPRIT, with ERROR (negative). */
__attribute__((format(printf, 4, 5))) void line_refuse(struct line *l, int error, uint32_t culprit,
						       const char *format, ...);
/* The member by which L is without RANK, for ERROR: one that lives has left the line because
 * another has broken the group by its death. */
uint32_t line_broken_by(const struct line *l, uint32_t rank, int error);
/* Refused by that. */
void line_refuse_left(struct line *l, int error, uint32_t rank, uint32_t by);
/* The application's functions run between these. */
void callback_begin(struct group *g);
void callback_end(struct group *g);

/* As of parts. */
int deposit_push(struct endpoint *ep);
bool deposit_has_work(const struct endpoint *ep);
void deposit_up(struct endpoint *ep);
void deposit_ended(struct endpoint *ep);
uint64_t deposit_deadlines(struct context *ctx, uint64_t now);
void deposit_leave(struct group *g, bool goes);

/* ---- order.c --------------------------------------------------------------------------------- */

/* L's order, at its origin. */
void line_order(struct line *l);
/* As line_after, where it has one. */
uint32_t order_after(const struct line *l, const struct ranks *s, uint32_t rank);
void order_fill(const struct line *l, unsigned char *to);
/* Each rank once, all of LINE among them. */
bool order_is_sound(const struct wire_order *o, const struct ranks *line, uint32_t size);
/* L's is O. False: there is no memory. */
bool order_take(struct line *l, const struct wire_order *o);

/* ---- packet.c -------------------------------------------------------------------------------- */

/* The next of F's packets: 1, 0: there is none, or as am_post. */
int flow_post(struct line *l, struct flow *f, struct endpoint *ep);
/* As parts.handle, of one of enum deposit_id. */
void deposit_arrived(struct endpoint *ep, const struct slmpm_am *am);

/* ---- early.c --------------------------------------------------------------------------------- */

/* AM is a word by other ranks than the group's. */
void early_arrived(struct deposits *d, struct endpoint *ep, const struct slmpm_am *am);
/* EP has ended, or the group: what has come by the one, or for the other, is dropped. */
void early_ended(const struct endpoint *ep);
void early_forget(struct deposits *d);
/* As of parts. */
void deposit_regrouped(struct group *g);

/* ---- origin.c -------------------------------------------------------------------------------- */

/* A word for it has come from RANK; in its own order of bytes. */
void put_word(struct line *l, uint32_t rank, const struct wire_deposit *w,
	      const struct ranks *agreed);
/* RANK has gone, or is not reached; it is by BY, if another has died. */
void put_lost(struct line *l, uint32_t rank, int error, uint32_t by);
/* It ends with STATUS: 0, or the refusal's. */
void put_end(struct line *l, int status);
/* The first that waits begins, when none is under way. */
void put_next(struct deposits *d);
/* Deadlines, those that are gone; when the next is. */
uint64_t put_tick(struct line *l, uint64_t now);

/* ---- route.c --------------------------------------------------------------------------------- */

/* L begins: the form of its request; all have answered. */
void route_ask(struct line *l);
void route_answered(const struct line *l);
/* Its bytes begin: by which route; they have all come. */
void route_move(struct line *l);
void route_moved(const struct line *l);
/* What was chosen: SLMPM_PUT_ALL_*. */
uint32_t route_flags(const struct line *l);
void routes_free(struct deposits *d);

/* ---- target.c -------------------------------------------------------------------------------- */

void target_word(struct deposits *d, uint32_t rank, const struct wire_deposit *w,
		 const struct ranks *line, const struct ranks *agreed,
		 const struct wire_order *order);
/* LEN bytes at DATA, from AT on. False: impossible. */
bool target_data(struct line *l, uint32_t rank, uint64_t at, const void *data, uint64_t len);
void target_lost(struct line *l, uint32_t rank, int error);
/* What has come has been sent on, or more has come. */
void target_inspect(struct line *l);
void target_end(struct line *l, int status);
struct line *target_line(const struct deposits *d, uint32_t origin);

#endif
