/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages that do not go through the ring. The sender announces where the bytes lie
 * (WIRE_FETCH); the receiver, once it has a receive for them, pulls them from the front, and the
 * sender, when it is there, pushes from the back: each side copies a share.
 *
 * Who copies what is agreed on by packets, and nothing is shared. Before a side touches a stretch it
 * says so (TAKE: all up to here is mine; GIVE: all from here is), fences, and takes in everything that
 * the other has said so far. Each does it in this order, so of two that want the same stretch at
 * least one sees the other's word; the sender, when it sees it, gives way, and the receiver waits for
 * what became of it. The same rule decides between a receiver that begins to read and a sender
 * that takes its message back (WITHDRAW) or would rather send it in packets (FETCH_SEND); there the
 * receiver gives way.
 *
 * push.c is the sending side, pull.c the receiving one, bulk.c what both need.
 */
#ifndef SLMPM_BULK_H
#define SLMPM_BULK_H

#include "slmpm/choice.h"
#include "slmpm/endpoint.h"
#include "slmpm/inbound.h"
#include "slmpm/request.h"

#define BULK_SHARE_MIN ((uint64_t)32 << 10) /* less is not worth two packets */
#define BULK_SHARE_MAX ((uint64_t)4 << 20)  /* a copy of so much keeps others waiting long enough */
#define BULK_ROOM      32 /* segments that are to be free before something is said that needs a sequel */

struct pull {             /* a message that this side fetches */
	struct list node; /* among those with a receive, or alone */
	struct inbound *m;
	uint32_t turn;  /* of the receives that it has had: what the sender says for an earlier
			   * one means nothing */
	bool told;      /* a TAKE of this turn is out */
	bool failed;    /* reading did: packets, once the sender writes no more */
	bool reading;   /* and its last one says so */
	bool asked;     /* the sender may take it back: it says so in a moment */
	bool sure;      /* what the sender said before it could see `upto` has been looked at */
	uint64_t limit; /* bytes wanted: all, or what the receive has room for */
	uint64_t at;    /* read so far, from the front */
	uint64_t upto;  /* told to be ours */
	uint64_t claim,
		done; /* the sender's: it has written from DONE on, and writes from CLAIM on */
	uint32_t count;
	struct wire_range ranges[WIRE_RANGES];
};

struct push {             /* a send whose message the peer fetches */
	struct list node; /* among those that have something to do, or alone */
	struct request *r;
	uint64_t since;   /* ns: announced */
	bool waiting;     /* it is not to wait long for a receive ... */
	bool hurried;     /* ... or not at all */
	uint32_t turn;    /* as the peer counts them */
	bool reading;     /* the peer may read now */
	bool told;        /* CLAIM is out, and not yet sure */
	bool asked;       /* FETCH_SEND is out */
	bool owes;        /* DONE has changed since it was last told */
	bool shared;      /* something was pushed */
	uint64_t address; /* of the peer's buffer; 0: there is no pushing */
	uint64_t limit, upto, claim, done;
};

struct bulk {                      /* of an endpoint */
	struct fabric_memory peer; /* all of the peer's memory; ops 0: not reached */
	bool introduced;           /* the peer has been told how ours is reached */
	struct choice
		choices[CHOICE_CLASSES]; /* in packets, or fetched: what it costs the sender */
	uint64_t timed, since; /* a message that goes in packets: envelope, and when it began, ns */
	struct list pulls, pushes;
	struct pull *pulling; /* in hand; NULL once it has gone */
	struct push *pushing;
};

/* The handshake is through and the peer takes WIRE_FETCH. */
void bulk_open(struct endpoint *ep);
/* The endpoint has ended: nothing is under way any more. */
void bulk_end(struct endpoint *ep);
void bulk_free(struct endpoint *ep);
/* It is about to end: takes the receives of fetched messages back; false: not all of them yet. */
bool bulk_let_go(struct endpoint *ep);
/* One step of what is under way; how many things happened. */
int bulk_step(struct endpoint *ep);
/* The call returns to the application: tells that nothing is being read meanwhile. */
void bulk_rest(struct endpoint *ep);
void bulk_rest_all(struct context *ctx);

static inline bool bulk_busy(const struct endpoint *ep)
{
	return ep->bulk && (!list_empty(&ep->bulk->pulls) || !list_empty(&ep->bulk->pushes));
}

/* ---- sending: the way (push_way.c) ----------------------------------------------------------- */

/* Has fetching been the shorter way of late, or is it to be tried? */
bool push_is_shorter(const struct endpoint *ep, uint64_t length);
/* R begins to go in packets; and its last one is out. */
void push_packets(struct endpoint *ep, const struct request *r);
void push_sent(struct endpoint *ep, const struct request *r);
/* A message of LENGTH has been announced; and P's sender goes on. */
void push_tried(struct endpoint *ep, uint64_t length);
void push_learn(struct endpoint *ep, const struct push *p);

/* ---- sending (push.c) ------------------------------------------------------------------------ */

/* Is R to be announced, in place of its first packet? */
bool push_wants(const struct endpoint *ep, const struct request *r);
/* As link.c's begin: 1, -EAGAIN, or another negative. */
int push_announce(struct endpoint *ep, struct request *r);
/* R waits for the peer no longer, or was never announced so. */
void push_forget(struct request *r);
/* Its sender only tries: what may go in packets does so now. */
void push_hurry(struct request *r);
/* Takes it back. False: the peer may be reading; it ends, soon, in either way. */
bool push_take_back(struct request *r);
int push_step(struct endpoint *ep, struct push *p);
void push_taken(struct endpoint *ep, const struct head *h);
void push_over(struct endpoint *ep, const struct head *h);

/* ---- receiving (pull.c) ---------------------------------------------------------------------- */

void pull_announced(struct endpoint *ep, const struct head *h);
void pull_given(struct endpoint *ep, const struct head *h);
/* A WITHDRAW that is only a question, or its end: true. */
bool pull_is_asked(struct endpoint *ep, const struct head *h, struct inbound *m);
/* The sender would rather send it. */
void pull_sent(struct endpoint *ep, const struct head *h);
/* M, announced so, has its receive. */
void pull_begin(struct inbound *m);
/* And loses it: false when the sender may be writing into its memory. */
bool pull_take_back(struct inbound *m);
void pull_forget(struct inbound *m);
int pull_step(struct endpoint *ep, struct pull *p);
/* Nothing is read until the next step. */
void pull_rest(struct endpoint *ep, struct pull *p);

/* ---- both ------------------------------------------------------------------------------------ */

/* NULL: no memory. */
struct bulk *bulk_of(struct endpoint *ep);
/* Posts it now or not at all. Payload and, the first time, how our memory is reached. */
bool bulk_say(struct endpoint *ep, uint8_t opcode, uint64_t seq, uint64_t route, uint64_t extent,
	      const void *data, uint32_t length);
/* How the peer's is reached, in BYTES behind a payload of LENGTH; false: the peer broke a rule. */
bool bulk_introduced(struct endpoint *ep, const struct head *h, uint32_t length);
/* Little room is left for words: what the application holds in a ring may keep it so for ever. */
bool bulk_is_scarce(struct endpoint *ep);
/* All that the peer has said until now has been heard. What was just said stands before it. */
bool bulk_heard(struct endpoint *ep);

#endif
