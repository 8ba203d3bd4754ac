/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts into a FIFO: the bytes and a descriptor of where they would go wait in the target's
 * reception FIFO until its processor takes them, has its engine store them, or drops them. They
 * travel as active messages with numbers of the library's own, and cost credit until they are
 * disposed of. One that is longer than what may arrive without asking comes once no other such of
 * the same peer is there.
 *
 * fifo_put.c is the side that puts, fifo.c the FIFO and what arrives, fifo_store.c what becomes of
 * its entries.
 */
#ifndef SLMPM_FIFO_H
#define SLMPM_FIFO_H

#include "slmpm/am/am_ack.h"

struct operation;

/* Little-endian. */
struct fifo_put {
	struct wire_target target;
	uint64_t tag; /* the answer's; 0: none is wanted */
	uint32_t imm, zero;
};
_Static_assert(sizeof(struct fifo_put) == FIFO_HEAD, "wire layout");

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

/* ---- the side that puts ---------------------------------------------------------------------- */

/* O has SLMPM_FIFO and has been checked: what the call returns. */
int fifo_put(const struct operation *o);

/* ---- what arrives, for am_ack.c ------------------------------------------------------------- */

/* TOTAL bytes of a FIFO_PUT at DATA, whose CHARGE now is the FIFO's to give back. MEMORY: theirs,
 * to be kept; NULL: they are copied. */
void fifo_arrived(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
		  unsigned char *memory, uint64_t charge);

/* ---- ends ------------------------------------------------------------------------------------ */

/* Out of the FIFO; its origin learns STATUS, if it wants to, and has its credit back. */
void fifo_dispose(struct fifo_entry *e, int status);
/* Of an endpoint: what is being stored is stored; and of its handle. */
void fifo_end(struct endpoint *ep);
void fifo_forget(struct endpoint *ep);

#endif
