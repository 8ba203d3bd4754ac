/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages whose end is acknowledged to their sender: puts into a FIFO (slmpm/fifo), and
 * those of the application's that are confirmed (SLMPM_REMOTE: the handler has run, or there is
 * none). These travel behind a head with a tag, which the answer returns, behind the replies.
 */
#ifndef SLMPM_AM_ACK_H
#define SLMPM_AM_ACK_H

#include "slmpm/message/inbound.h"

#define FIFO_HEAD            56  /* bytes */
#define AM_EMULATED_DEFERRED 128 /* answers of the library's own that may wait for room */

enum am_ack_id {
	FIFO_PUT = WIRE_AM_ACK, /* struct fifo_put (fifo.c), FIFO_HEAD; data */
	AM_ACK,                 /* struct am_ack */
	AM_CONFIRMED            /* struct am_confirmed; head, data */
};

/* Heads, little-endian. */
struct am_ack {
	uint64_t tag;
	uint32_t error, zero; /* SLMPM_E*, or 0 */
};
_Static_assert(sizeof(struct am_ack) == 16, "wire layout");

/* In front of the caller's head. */
struct am_confirmed {
	uint64_t tag;
	uint16_t id, head_len; /* the caller's */
	uint32_t zero;
};
_Static_assert(sizeof(struct am_confirmed) == 16, "wire layout");

static inline bool am_ack_wanted(uint32_t stream)
{
	return (uint16_t)(stream - FIFO_PUT) <= AM_CONFIRMED - FIFO_PUT;
}

/* ---- who waits for an answer ---------------------------------------------------------------- */

/* R, with a tag, ends with STATUS: true, and it waits for its answer now. */
bool am_ack_awaits(struct request *r, int status);
/* R is taken back: nobody waits for its answer any more, or as message_withdraw. */
bool am_ack_withdraw(struct request *r);
/* The endpoint ends: who waits gets its error. */
void am_ack_end(struct endpoint *ep);

/* ---- what arrives --------------------------------------------------------------------------- */

/* May a message of several packets begin so? */
bool am_ack_may_begin(const struct head *h);
/* TOTAL bytes of a message at DATA, whose CHARGE goes back with its answer. MEMORY: theirs, to be
 * kept or freed; NULL: they are copied. */
void am_ack_arrived(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
		    unsigned char *memory, uint64_t charge);
/* The answer to TAG, unless that is 0; and CHARGE is the peer's again once it has left. */
void am_ack_settle(struct endpoint *ep, uint64_t tag, uint64_t charge, int status);

/* M, announced, is the peer's next: is it to come now? Else it is cleared later. */
bool am_ack_clears(struct endpoint *ep, const struct inbound *m);
/* It may come now, if it still waits. */
void am_ack_clear_next(struct endpoint *ep);

#endif
