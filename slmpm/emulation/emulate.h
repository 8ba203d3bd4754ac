/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by active messages, for what the fabric does not reach. Two ways: "am", where
 * each request or answer carries its bytes, a piece of the operation; and "tag", where the request's
 * handler puts an entry into a queue in which tagged messages with the bytes find their place.
 *
 * emulate.c is the progress of both; emulate_send.c has the packets of who asks, emulate_serve.c the other
 * side, emulate_arrival.c checks what comes.
 */
#ifndef SLMPM_EMULATE_H
#define SLMPM_EMULATE_H

#include "slmpm/am/am.h"
#include "slmpm/message/inbound.h"
#include "slmpm/request.h"
#include "slmpm/am/am_ack.h"

#define EMULATE_WINDOW 64 /* requests under way in one direction; a power of two */
_Static_assert(AM_EMULATED_DEFERRED == 2 * EMULATE_WINDOW,
	       "room for all answers: those given up, too");

/* Numbers of the library's own handlers. */
enum emulate_id {
	EMULATE_WRITE = SLMPM_AM_ID_MAX + 1, /* struct emulate_request; data */
	EMULATE_READ,                        /* struct emulate_request */
	EMULATE_ATOMIC,                      /* struct emulate_request, struct wire_atomic */
	EMULATE_NOTIFY,                      /* struct emulate_request */
	EMULATE_TAGGED_WRITE,                /* struct emulate_request; tagged messages follow */
	EMULATE_TAGGED_READ,                 /* struct emulate_request; they come back */
	EMULATE_GIVE_UP,                     /* struct emulate_answer: no more of a tagged write */
	EMULATE_DONE,                        /* struct emulate_answer */
	EMULATE_DATA,                        /* struct emulate_answer; data: a read's */
	EMULATE_FAILED,                      /* struct emulate_answer */
	EMULATE_END
};

/* Heads, little-endian. */
struct emulate_request {
	struct wire_target target;
	uint32_t tag; /* the answer's, and that of tagged messages */
	uint32_t imm; /* NOTIFY; ATOMIC: enum slmpm_atomic_op */
};
_Static_assert(sizeof(struct emulate_request) == 48, "wire layout");

struct emulate_answer {
	uint64_t old; /* ATOMIC; FAILED: SLMPM_E* */
	uint32_t tag, zero;
};
_Static_assert(sizeof(struct emulate_answer) == 16, "wire layout");

/* The immediate of a tagged message. */
enum emulate_direction { EMULATE_OUT, EMULATE_BACK }; /* a write's bytes, a read's */

/* ---- the side that asks ---- */

struct emulated {           /* an operation, in pieces */
	struct list node;   /* of those with something to send, or alone */
	struct request *r;  /* NULL: nobody waits for it any more */
	struct slot *sends; /* tag: the write whose bytes go out */
	int span;
	uint64_t in_span, at; /* what goes next: in the span, in the request's bytes */
	uint32_t in_flight;   /* slots of its own */
	bool notify;          /* and is to be told when all is there */
	bool stopped;         /* what has not been sent is not any more */
	int status;
	uint64_t old;
};

struct slot {                /* a request that waits for its answer */
	struct emulated *op; /* NULL: free */
	uint16_t id;         /* enum emulate_id */
	uint16_t turn;       /* of this slot: a late answer finds another */
	uint64_t at;         /* read: where in the request's bytes */
	uint64_t length, got;
};

/* ---- the side whose memory it is ---- */

struct entry {       /* of the queue matched by tag; or an answer that is made as there is room */
	uint16_t id; /* enum emulate_id; 0: free */
	uint32_t tag;
	int status;
	uint64_t got; /* bytes that have come, or gone */
	struct wire_target target;
};

struct emulation { /* of an endpoint */
	struct slot slots[EMULATE_WINDOW];
	uint32_t taken;
	struct list going;   /* struct emulated */
	uint64_t operations; /* all there are */

	struct entry entries[EMULATE_WINDOW];
	uint32_t answering; /* of them: reads */
	uint32_t next;
	bool pushing;
};

/* ---- the side that asks ---------------------------------------------------------------------- */

/* As a carrier of requests (struct rma_carrier). */
void emulate_start(struct request *r);
bool emulate_take_back(struct request *r);
/* At the endpoint's end; those who wait are told by others. */
void emulate_end(struct endpoint *ep);
void emulate_free(struct endpoint *ep);

/* ---- for the others ------------------------------------------------------------------------- */

/* One of the library's own numbers. */
void emulate_handle(struct endpoint *ep, const struct slmpm_am *am);
/* A message with WIRE_FLAG_TAGGED. */
void emulate_tagged(struct endpoint *ep, const struct head *h);
/* An active or tagged message, and its checksum is wrong. */
void emulate_damaged(struct endpoint *ep, uint16_t id);
/* Is there something to send? */
static inline bool emulate_has_work(const struct emulation *e)
{
	return e && (e->answering || !list_empty(&e->going));
}
static inline void emulate_block(struct endpoint *ep)
{
	endpoint_block(ep, BLOCK_EMULATION, emulate_has_work(ep->rooms->emulation));
}
/* Sends it as far as there is room: packets; in its turn, where there is any. */
int emulate_push(struct endpoint *ep);
int emulate_turn(struct endpoint *ep);

/* ---- between emulate*.c ---------------------------------------------------------------------- */

/* Of EP, made when it is first needed; NULL: no memory. */
struct emulation *emulate_state(struct endpoint *ep);
uint32_t emulate_tag(const struct emulation *e, const struct slot *s);
/* The slot that TAG names, if one waits under it; E may be NULL. */
struct slot *emulate_slot_of(struct emulation *e, uint32_t tag);
/* The answer to S has come, or bytes of the read that it is. */
void emulate_answered(struct endpoint *ep, struct slot *s, int status, uint64_t old);
void emulate_take_data(struct endpoint *ep, struct slot *s, const void *data, uint64_t len);
static inline uint32_t emulate_head_length(uint16_t id)
{
	return sizeof(struct emulate_request) +
	       (id == EMULATE_ATOMIC ? sizeof(struct wire_atomic) : 0);
}
/* Sends the request HEAD, with a slot of its own and LEN bytes of DATA: 1, -EBUSY no slot is free, or as am_post. */
int emulate_ask(struct emulated *op, uint16_t id, void *head, const void *data, uint32_t len);
/* A packet of OP, or of none that this side asks for; without HEAD a tagged message: as am_post. */
int emulate_post(struct endpoint *ep, const struct emulated *op, uint32_t stream, uint32_t imm,
		 const void *head, uint32_t head_len, const void *data, uint32_t len);
/* Of OP the next packet: 1, -EAGAIN no room, -EBUSY not yet its turn, or another negative. */
int emulate_send(struct endpoint *ep, struct emulated *op);

/* The request Q came as AM, in this machine's byte order. */
void emulate_serve(struct endpoint *ep, const struct slmpm_am *am, const struct emulate_request *q);
void emulate_serve_give_up(struct endpoint *ep, uint32_t tag);
/* Tagged bytes of a write. */
void emulate_take_tagged(struct endpoint *ep, uint32_t tag, const void *data, uint32_t len);
/* Answers with bytes, MOST packets: how many went. */
int emulate_push_answers(struct endpoint *ep, int most);

#endif
