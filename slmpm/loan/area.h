/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loan areas: memory of one side that the other maps read-only, for messages built and read in
 * place. An area holds one message at a time and is used again when the reader is through. Where
 * nothing can be mapped, both sides have memory of their own for it, and packets keep it the same.
 */
#ifndef SLMPM_AREA_H
#define SLMPM_AREA_H

#include "slmpm/endpoint.h"

struct head;
struct request;

struct area {
	struct area *next;
	struct mapping map;
	uint32_t id;
	bool busy;       /* own: on loan or at the reader; the peer's: being read */
	bool damaged;    /* a copy of the peer's: some of its bytes are */
	uint64_t filled; /* and so many are here, of the next message or of that which is read */
	uint64_t seq;    /* own: the message's envelope ... */
	uint32_t queued; /* ... of which so many parts are not out yet, where it is copied */
};

struct loans { /* of an endpoint */
	struct area *areas, *peer_areas;
	uint64_t bytes, peer_bytes; /* of these */
	uint32_t next;              /* id of an own area */
	/* The loan that is open, of which ep->lent says where it lies: */
	uint32_t stream;
	void *data;
	struct area *area;
	uint64_t length, ready, charge;
	bool begun;
	uint8_t hint; /* mode_hint(): the link of the handle that it was asked for with */
};

void area_begin(struct endpoint *ep);
/* A free area of at least LENGTH bytes, marked busy; NULL with *RC and the detail set. */
struct area *area_take(struct endpoint *ep, uint64_t length, int *rc);
/* The reader has returned one of ours. */
void area_returned(struct endpoint *ep, const struct head *h);
/* The peer offers an area by control socket; FD -1: memory for a copy of it. -errno: refused. */
int area_offered(struct endpoint *ep, uint64_t id, uint64_t size, int fd);
/* The peer's area ID where N bytes at OFFSET come next; NULL: they cannot. */
struct area *area_next(struct endpoint *ep, uint64_t id, uint64_t offset, uint64_t n);
/* The peer put a message of up to CAPACITY bytes into its area ID; NULL: it cannot have. */
struct area *area_lent(struct endpoint *ep, uint32_t id, uint64_t capacity);
/* Through with it: give it back. */
void area_done(struct endpoint *ep, struct area *area);
/* Of an ended peer: those that nobody reads or builds a message in. */
void area_reclaim(struct endpoint *ep);
void area_free_all(struct endpoint *ep);

/* Where the loan that is open lies from now on, if there is one. */
static inline void loan_place(struct endpoint *ep, enum loan_place place)
{
	ep->lent = (uint8_t)place;
	endpoint_block(ep, BLOCK_LOAN, place == LENT_PACKET);
}
static inline void *area_at(const struct area *area, uint64_t offset)
{
	return (unsigned char *)area->map.base + offset;
}

/* As link_post_request: the word by which the peer finds what lies in AREA, the message's FIRST. */
int loan_post_word(struct endpoint *ep, struct area *area, const struct wire_loan *loan,
		   uint16_t flags, uint64_t route, bool first);

/* ---- where nothing can be mapped (loan_copy.c) ---------------------------------------------- */

/* Queues the bytes of the open loan up to LEN, and the word that they can be read. 0, or a negative
 * error with the detail set: nothing has changed. */
int loan_copy(struct endpoint *ep, uint64_t len, const struct slmpm_how *how, bool final);
/* As far as the link takes it: packets posted; *STOP when it takes no more. */
int loan_copy_push(struct endpoint *ep, struct request *r, bool *stop);

#endif
