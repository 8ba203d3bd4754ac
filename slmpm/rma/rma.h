/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations: what an endpoint knows of its own and of the peer's. Where memory can be
 * reached directly they are done at once, in the call (calls/put.c, atomic.c), and nothing of this
 * is used. Else they become requests through the ring: rma_request.c has the side that asks,
 * rma_serve.c the side whose memory it is.
 */
#ifndef SLMPM_RMA_H
#define SLMPM_RMA_H

#include <slmpm.h>
#include <stdbool.h>
#include <stdint.h>

#include "slmpm/base/wire.h"
#include "slmpm/request.h"

/* Operations under way in one direction that want an answer; and Writes of several packets. */
#define RMA_WINDOW 16

/* ---- the side that asks ------------------------------------------------------------------ */

struct rma_slot { /* of ours: waits for its answer */
	bool taken, damaged;
	bool out;      /* `seq` is given */
	bool refused;  /* and its caller has been told, the answer is still to come */
	uint16_t kind; /* enum request_kind */
	uint64_t seq;
	struct request *request; /* NULL: nobody waits for it any more */
	uint64_t at;             /* read: where in the request's bytes the response goes */
	uint64_t length, got;
};

/* ---- the side whose memory it is --------------------------------------------------------- */

struct rma_write { /* a Write of the peer's of which packets are missing */
	bool open; /* else free */
	uint64_t seq;
	uint64_t got;
	struct wire_target target; /* in this machine's byte order */
	uint32_t imm, flags;
	int status; /* refused or damaged: the rest is dropped */
};

struct rma_job { /* an answer that is deferred */
	uint64_t seq;
	uint8_t opcode; /* its: WIRE_READ_ONLY for any response, WIRE_ACKNOWLEDGE ...; 0: free */
	int status;
	uint64_t old;
	uint64_t sent; /* read: bytes of the response */
	struct wire_target target;
};

/* What holds direct operations up: bits of `holds`. */
enum {
	RMA_BARRIER = 1, /* `barrier` is under way */
	RMA_FENCED = 2,  /* a put that has ended for its caller is out and not settled */
	RMA_BEHIND = 4,  /* the peer may still write for a put that has ended (share.h) */
	RMA_LEFT = 8     /* the fabric has operations whose calls have ended (rma_post.c) */
};

struct rma { /* of an endpoint */
	struct rma_slot slots[RMA_WINDOW];
	uint32_t taken;   /* slots */
	uint32_t open;    /* Writes of several packets under way */
	uint64_t seq;     /* requests numbered so far */
	uint64_t wrote;   /* an answer from this one on: all that changes memory is done */
	uint64_t settled; /* all up to this one are done over there */
	uint64_t tickets;
	uint64_t barrier;   /* RMA_BARRIER: ticket of the first that holds up later ones; else 0 */
	uint64_t fenced;    /* RMA_FENCED: number of the last such put */
	uint8_t holds;      /* RMA_BARRIER, ... */
	uint64_t directs;   /* operations done at once, but for the shortest way */
	int lost;           /* an answer that nobody waited for told of this failure */
	struct list parked; /* by ticket */

	struct posts *posts; /* operations that the fabric completes later; NULL: none yet */

	uint64_t received; /* requests of the peer's: the number of the last */
	struct rma_write writes[RMA_WINDOW];
	struct rma_job jobs[RMA_WINDOW];
	uint32_t job_count, next_job; /* who goes on when there is room */
	/* Writes that wanted no answer: the first and the last to fail since the last flush. */
	int unanswered, failed;
	uint64_t unanswered_seq, failed_seq;
	unsigned char *stage;
};

/* So many of KIND more, or fewer, are left to others than the call. */
COLD void rma_count(struct endpoint *ep, enum request_kind kind, int64_t more, int64_t bytes);
void rma_begin(struct endpoint *ep);
/* It is connected: the peer's numbers begin where it says. */
void rma_up(struct endpoint *ep);
void rma_free(struct endpoint *ep);
/* The last request of the peer's that has come. */
uint64_t rma_received(const struct endpoint *ep);
/* REMOTE is taken back: what its owner had not received by the request RECEIVED ends at once. */
void rma_refused(struct remote *remote, uint64_t received);
/* At the endpoint's end: all of its one-sided requests end with its error. */
void rma_end(struct endpoint *ep);

/* Are all earlier operations on that peer done, as they must be for a fenced one? */
bool rma_is_settled(const struct endpoint *ep);
/* Would one with FLAGS, not by packets, overtake some that have ended here, not yet there? */
bool rma_overtakes(const struct rma *m, uint32_t flags);

/* ---- as a call asks for it ---------------------------------------------------------------- */

struct operation { /* what a call asks for */
	const char *call;
	slmpm_rmem rmem;
	enum request_kind kind;
	uint32_t access; /* the rights that it needs */
	const struct slmpm_span *spans;
	int span_count;
	const struct slmpm_iov *pieces;
	int piece_count;
	struct fabric_atomic *atomic; /* or NULL */
	void *old;
	const struct slmpm_how *how;
	slmpm_req *req;
	/* set by rma_operate and its parts */
	struct remote *remote;
	struct slmpm_how full;
	uint64_t length;
	struct mode mode;
	bool routed; /* the mode's link was chosen, too */
};

/* Checks it, chooses its route and does it or begins it: what the call returns. */
int rma_operate(struct operation *o);
/* The same of a put or get, N spans there and M pieces here. */
int rma_operate_lists(const char *call, enum request_kind kind, slmpm_rmem rmem,
		      const struct slmpm_span *spans, int n, const struct slmpm_iov *pieces, int m,
		      const struct slmpm_how *how, slmpm_req *req);

/* Is it sound, and allowed? Fills in what it asks for; the context is locked. */
int rma_check(struct operation *o);

/* ---- requests (request_ops) -------------------------------------------------------------- */

/* To its queue; the endpoint is UP. */
int rma_submit(struct request *r);
/* May one that has not begun begin? Also if it is not the first. */
bool rma_ready(struct endpoint *ep, struct request *r, bool first);
/* As far as it goes: packets posted; *STOP when the link takes no more. */
int rma_push(struct endpoint *ep, struct request *r, bool *stop);
/* Takes an unfinished one back: its memory is not touched again, what an answer brings is dropped.
 * False: the peer's engine or the fabric has it, or it is done. */
bool rma_take_back(struct request *r);
struct endpoint *rma_abandon(struct request *r);
/* R ends: it is none of ours any more. */
void rma_finished(struct request *r);
/* A part of R has come back; OLD: what an atomic operation found. */
void rma_part_done(struct request *r, int status, uint64_t old);

/* ---- who carries them -------------------------------------------------------------------- */

enum rma_by {
	RMA_BY_RING,   /* packets of their own (rma_request.c): 0 */
	RMA_BY_ENGINE, /* this side's (rma_move.c) */
	RMA_BY_PEER,   /* the peer's engine (ask.c) */
	RMA_BY_FABRIC, /* the fabric, whose poll tells of the end (rma_post.c) */
	RMA_BY_AM,     /* active messages (emulate.h) */
	RMA_CARRIERS
};

struct rma_carrier {
	/* Could it carry O? *BEYOND: but for where O's memory here lies. */
	bool (*reaches)(const struct operation *o, bool *beyond);
	/* R has its turn: rma_part_done, rma_retry or request_finish goes on with it. */
	void (*start)(struct request *r);
	/* R's memory is not looked at any more. False: not for now. */
	bool (*take_back)(struct request *r);
	/* It was not taken back, and its carrier does not go on: as of request_ops; or NULL. */
	struct endpoint *(*abandon)(struct request *r);
};

/* By enum rma_by. The rooms above hand theirs in (parts.c). */
extern const struct rma_carrier rma_carriers[RMA_CARRIERS];

enum rma_by rma_carrier_of(const struct request *r);

/* ---- moved by an engine (rma_move.c) ----------------------------------------------------- */

/* As engine_start and engine_stop; the peer's region is not released meanwhile. */
int rma_move_start(struct request *r);
uint64_t rma_move_stop(struct request *r);
/* At the endpoint's end, before its requests, whose bytes they are. */
void rma_move_end(struct endpoint *ep);
/* The engine is through with R: 0, or negative as of the fabric. */
void rma_moved(struct request *r, int rc);
/* R's bytes from FROM on, by who calls; and goes on with R. */
void rma_move_here(struct request *r, uint64_t from);
/* The engine could not move R: by packets, then. */
void rma_retry(struct request *r);

/* ---- done by the fabric, later (rma_post.c) ---------------------------------------------- */

void rma_post_start(struct request *r);
bool rma_post_take_back(struct request *r);
struct endpoint *rma_post_abandon(struct request *r);
/* What the fabric has told of, and what it takes now: how many. */
int rma_post_step(struct endpoint *ep);
/* At the endpoint's end, before its requests, whose bytes it reaches. */
void rma_post_end(struct endpoint *ep);

/* ---- packets, for packets.c -------------------------------------------------------------- */

void rma_response(struct endpoint *ep, const struct head *h);
void *rma_place_response(struct endpoint *ep, const struct fabric_arrival *a);
void rma_acknowledged(struct endpoint *ep, const struct head *h);
void rma_atomic_acknowledged(struct endpoint *ep, const struct head *h);

void rma_serve_write(struct endpoint *ep, const struct head *h);
void *rma_place_write(struct endpoint *ep, const struct fabric_arrival *a);
void rma_serve_read(struct endpoint *ep, const struct head *h);
void rma_serve_atomic(struct endpoint *ep, const struct head *h);
void rma_serve_notify(struct endpoint *ep, const struct head *h);
/* Are there answers to go out, other than the bytes of reads? For an orderly end. */
bool rma_has_deferred(const struct endpoint *ep);
void rma_serve_withdrawn(struct endpoint *ep, const struct head *h);
/* Answers that are deferred, as far as there is room: packets posted. */
int rma_serve(struct endpoint *ep);

/* ---- what requests say of memory, in whatever form they travel (rma_target.c) ------------ */

/* As they travel, little-endian: a range of REMOTE, the operands of R. */
struct wire_target rma_target(const struct remote *remote, uint64_t offset, uint64_t length);
struct wire_atomic rma_operands(const struct request *r);
/* As they came, in this machine's byte order. False: no operands of a word of LENGTH. */
void rma_target_in(struct wire_target *t);
bool rma_operands_in(struct wire_atomic *a, const void *from, uint64_t length);
/* Where T lies, if EP may do ACCESS there; NULL and *STATUS. */
struct region *rma_find(struct endpoint *ep, const struct wire_target *t, uint32_t access,
			int *status);
/* The word at T, if EP may change it; NULL and *STATUS. *COUNTER: it is that one's; or NULL. */
void *rma_word(struct endpoint *ep, const struct wire_target *t, struct counter **counter,
	       int *status);
/* N bytes of a Write to T behind the first GOT: stored, unless *STATUS is negative. Its region;
 * NULL: refused. */
struct region *rma_store(struct endpoint *ep, const struct wire_target *t, uint64_t got,
			 const void *data, uint32_t n, int *status);
/* A notification costs what a message without bytes does: false, the peer has ended. And it goes to
 * the region's targets, or, of no region, to none. */
bool rma_charge(struct endpoint *ep);
void rma_notified(struct endpoint *ep, const struct region *region, const struct wire_target *t,
		  uint32_t imm, enum slmpm_protocol by);
/* Changes it, in this machine's byte order, against all others who do the same: what was there. */
uint64_t rma_change(struct endpoint *ep, void *at, struct counter *counter, int op,
		    const struct wire_atomic *a);
/* Is LENGTH of LEFT bytes what a packet of several has, or the LAST? */
bool rma_is_part(const struct endpoint *ep, bool last, uint32_t length, uint64_t left);
/* N bytes of a packet: with checksums a copy, which stays as it is. NULL: no memory. */
const void *rma_staged(struct endpoint *ep, const void *data, uint32_t n);

/* ---- between the files of this room ------------------------------------------------------ */

/* The carriers of this room (struct rma_carrier). */
void rma_ring_start(struct request *r);
bool rma_ring_take_back(struct request *r);
void rma_engine_start(struct request *r);
bool rma_engine_take_back(struct request *r);

/* Those that waited for a slot or for an end go on. */
void rma_wake(struct endpoint *ep);
/* Nobody waits for the answers to R's requests that are out. */
void rma_detach(const struct request *r);

#endif
