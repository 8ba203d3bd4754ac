/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by active messages, for what the fabric does not reach. Two forms: "am",
 * where each request or answer carries its bytes, a piece of the operation; and "tag", where the
 * request's handler puts an entry into a queue in which tagged messages with the bytes find their
 * place.
 *
 * emulate.c has the side that asks, emulate_serve.c the side whose memory it is, and what arrives.
 */
#ifndef SLMPM_EMULATE_H
#define SLMPM_EMULATE_H

#include "slmpm/am/am.h"
#include "slmpm/am/am_ack.h"
#include "slmpm/rma/rma.h"

#define EMULATE_WINDOW 64 /* requests under way in one direction; a power of two */
_Static_assert(AM_EMULATED_DEFERRED == 2 * EMULATE_WINDOW,
	       "room for all answers: those given up, too");

/* Numbers of the library's own handlers. */
enum emulate_id {
	EMULATE_WRITE = WIRE_AM_EMULATION, /* struct emulate_request; data */
	EMULATE_READ,                      /* struct emulate_request */
	EMULATE_ATOMIC,                    /* struct emulate_request, struct wire_atomic */
	EMULATE_NOTIFY,                    /* struct emulate_request */
	EMULATE_TAGGED_WRITE,              /* struct emulate_request; tagged messages follow */
	EMULATE_TAGGED_READ,               /* struct emulate_request; they come back */
	EMULATE_GIVE_UP,                   /* struct emulate_answer: no more of a tagged write */
	EMULATE_DONE,                      /* struct emulate_answer */
	EMULATE_DATA,                      /* struct emulate_answer; data: a read's */
	EMULATE_FAILED,                    /* struct emulate_answer */
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

struct entry {       /* of the queue matched by tag; or an answer that waits for room */
	uint16_t id; /* enum emulate_id; 0: free */
	uint32_t tag;
	int status;
	uint64_t got; /* bytes that have come, or gone */
	struct wire_target target;
};

struct emulation {                             /* of an endpoint */
	struct rma_slot slots[EMULATE_WINDOW]; /* `kind` is of enum emulate_id, `seq` the tag */
	uint32_t taken;                        /* of them */
	uint32_t giving_up; /* of those, of tagged writes of which bytes will not come */
	struct list going;  /* struct request: those with something to send */

	struct entry entries[EMULATE_WINDOW];
	uint32_t answering; /* of them: reads */
	uint32_t next;
	bool pushing;
};

/* ---- the side that asks ------------------------------------------------------------------ */

/* As a carrier of requests (struct rma_carrier). */
void emulate_start(struct request *r);
bool emulate_take_back(struct request *r);
/* At the endpoint's end; those who wait are told by others. */
void emulate_end(struct endpoint *ep);
void emulate_free(struct endpoint *ep);

/* ---- for the others ---------------------------------------------------------------------- */

/* One of the library's own numbers. */
void emulate_handle(struct endpoint *ep, const struct slmpm_am *am);
/* A message with WIRE_FLAG_TAGGED. */
void emulate_tagged(struct endpoint *ep, const struct head *h);
/* An active or tagged message, and its checksum is wrong. */
void emulate_damaged(struct endpoint *ep, uint16_t id);
/* Is there something to send? */
static inline bool emulate_has_work(const struct emulation *e)
{
	return e && (e->answering || e->giving_up || !list_empty(&e->going));
}
static inline void emulate_block(struct endpoint *ep)
{
	endpoint_block(ep, BLOCK_EMULATION, emulate_has_work(ep->rooms->emulation));
}
/* Sends it as far as there is room: packets. */
int emulate_push(struct endpoint *ep);

/* ---- between emulate.c and emulate_serve.c ----------------------------------------------- */

/* Of EP, made when it is first needed; NULL: no memory. */
struct emulation *emulate_state(struct endpoint *ep);
static inline uint32_t emulate_head_length(uint16_t id)
{
	return sizeof(struct emulate_request) +
	       (id == EMULATE_ATOMIC ? sizeof(struct wire_atomic) : 0);
}
/* A packet of R, or of none that this side asks for; without HEAD a tagged message: as am_post. */
int emulate_post(struct endpoint *ep, struct request *r, uint32_t stream, uint32_t imm,
		 const void *head, uint32_t head_len, const void *data, uint32_t len);
/* The answer A, in this machine's byte order, came as AM; tagged bytes of a read came as H. */
void emulate_take_answer(struct endpoint *ep, const struct slmpm_am *am,
			 const struct emulate_answer *a);
void emulate_tagged_answer(struct endpoint *ep, const struct head *h);
/* Answers with bytes, MOST packets: how many went. */
int emulate_push_answers(struct endpoint *ep, int most);

#endif
