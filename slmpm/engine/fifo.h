/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts into a FIFO: the bytes and a descriptor of where they would go wait in the target's reception
 * FIFO until its processor takes them, has its engine store them, or drops them. They travel as
 * active messages with numbers of the library's own, and cost credit until they are disposed of. One that is longer
 * than what may arrive without asking comes once no other such of the same peer is there.
 *
 * fifo_put.c is the side that puts, fifo.c the FIFO and what arrives, fifo_store.c what becomes of
 * its entries.
 */
#ifndef SLMPM_FIFO_H
#define SLMPM_FIFO_H

#include "slmpm/message/inbound.h"

struct operation;

enum fifo_id {
	FIFO_PUT = SLMPM_AM_ID_MAX + 17, /* struct fifo_put; data */
	FIFO_DONE,                       /* struct fifo_done */
	AM_CONFIRMED /* struct am_confirmed; head, data (message/am_confirm.c) */
};

/* Heads, little-endian. */
struct fifo_put {
	struct wire_target target;
	uint64_t tag; /* the answer's; 0: none is wanted */
	uint32_t imm, zero;
};
_Static_assert(sizeof(struct fifo_put) == 56, "wire layout");

struct fifo_done {
	uint64_t tag;
	uint32_t error, zero; /* SLMPM_E*, or 0 */
};
_Static_assert(sizeof(struct fifo_done) == 16, "wire layout");

/* Of an active message whose sender learns its end by FIFO_DONE, in front of the caller's head. */
struct am_confirmed {
	uint64_t tag;
	uint16_t id, head_len; /* the caller's */
	uint32_t zero;
};
_Static_assert(sizeof(struct am_confirmed) == 16, "wire layout");

struct fifo_entry {
	struct handle handle;
	struct context *ctx; /* stays: another thread may look just as it is freed */
	struct list node;    /* of the context's FIFO until it is taken; or alone */
	struct list of_peer; /* of the endpoint's */
	struct endpoint *ep;
	uint64_t mem, offset, len; /* as its origin proposes; a handle */
	unsigned char *memory;     /* head and bytes: freed with it */
	const unsigned char *data;
	uint64_t tag, charge;
	uint32_t imm;
	struct request *store; /* it is being stored, and nobody's any more ... */
	struct region *region; /* ... there */
	bool is_long;          /* announced: the credit does not bound it */
};

extern struct handle_table fifo_table;

/* Of a FIFO, or answered as its puts are. */
static inline bool fifo_is_own(uint32_t stream)
{
	return (uint16_t)(stream - FIFO_PUT) <= AM_CONFIRMED - FIFO_PUT;
}

/* ---- the side that puts ---------------------------------------------------------------------- */

/* O has SLMPM_FIFO and has been checked: what the call returns. */
int fifo_put(const struct operation *o);
/* By request_finish, for a request with a tag: true, and it waits for its answer now. */
bool fifo_awaits(struct request *r, int status);
/* Nobody waits for that answer any more. */
void fifo_abandon(struct request *r);

/* ---- what arrives, for am_handle.c ----------------------------------------------------------- */

/* May a message of several packets begin so? */
bool fifo_may_begin(const struct head *h);
/* TOTAL bytes of a message at DATA, whose CHARGE now is the FIFO's to give back. MEMORY: theirs, to
 * be kept; NULL: they are copied. */
void fifo_arrived(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
		  unsigned char *memory, uint64_t charge);

/* The answer to TAG, unless that is 0; and CHARGE is the peer's again once it has left. */
void fifo_answer(struct endpoint *ep, uint64_t tag, int status);
void fifo_settle(struct endpoint *ep, uint64_t tag, uint64_t charge, int status);

/* M, announced, is the peer's next: is it to come now? Else it is cleared later. */
bool fifo_clears(struct endpoint *ep, const struct inbound *m);
/* It may come now, if it still waits. */
void fifo_clear_next(struct endpoint *ep);

/* ---- ends ------------------------------------------------------------------------------------ */

/* Out of the FIFO; its origin learns STATUS, if it wants to, and has its credit back. */
void fifo_dispose(struct fifo_entry *e, int status);
/* Of an endpoint: what is being stored is stored, who waits for an answer gets its error; and of its
 * handle. */
void fifo_end(struct endpoint *ep);
void fifo_forget(struct endpoint *ep);

/* In a child of fork: handles of the parent's are stale. */
void fifo_fork(void);

#endif
