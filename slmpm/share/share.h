/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large puts that both sides copy. Where the source lies in a region that the target has mapped,
 * the call offers the front part to the target, copies the rest itself, and then what the target
 * has not come for. The call returns when every byte is in place.
 *
 * Who copies what is agreed on by the rules of split/split.h. The target takes a piece at a time
 * (SHARE_TAKE); where the origin has claimed it (SHARE_GIVE), it gives way and is through
 * (SHARE_OVER). The origin waits for the target's end where that has taken what it claims. A target
 * that does not come is not waited for, and is offered nothing more until it has; one that stops in
 * a piece is, up to the call's deadline. What the put leaves behind then is that one piece, which
 * the target may still copy, from whatever the source has become: until it has said that it is
 * through, operations on its regions go by requests, which it takes up behind the piece.
 *
 * A segment of the ring is held back for each offer: all of it can be taken back however full the
 * ring.
 *
 * Long puts and gets of a side without an engine, which the peer's engine does. The origin offers
 * the whole of it (WIRE_SHARE_ENGINE): a put's bytes the target's engine fetches, a get's it
 * stores. By the rules of split.h: the target says that it takes all (TAKE), fences, looks, and
 * injects it; its end says how much is in place (OVER), and what is missing the origin copies
 * itself: all, where the target does not reach the memory. A target that does not take it in time
 * has it taken back (GIVE).
 *
 * One at a time: the others wait in `asks`. What is here is reached by a region that the peer has
 * mapped, else as all of this process's memory is for messages that are fetched.
 *
 * ask.c is the origin; the target is in share_serve.c.
 */
#ifndef SLMPM_SHARE_H
#define SLMPM_SHARE_H

#include "slmpm/choice/choice.h"
#include "slmpm/endpoint.h"
#include "slmpm/region/memory.h"
#include "slmpm/base/wire.h"
#include "slmpm/request.h"
#include "slmpm/split/split.h"

#define SHARE_LEAST ((uint64_t)32 << 10)  /* nothing shorter is looked at */
#define SHARE_PIECE ((uint64_t)128 << 10) /* so much does the target take at a time */

struct share { /* of an endpoint */
	/* ours: the last offer */
	uint64_t id;
	bool out, over; /* the peer has it; it is through */
	bool given;     /* all of it has been asked back */
	struct split_room room;
	uint32_t held; /* for that */
	uint64_t limit, upto, done;
	/* what the peer's engine is to do (ask.c) */
	struct list asks;      /* requests that wait for their turn */
	struct request *asked; /* the one whose offer is out; or NULL */
	uint64_t since;        /* ns: when it was offered */
	bool unreached;        /* the peer does not reach this process's own memory */
	struct choice choices[CHOICE_CLASSES]; /* alone, or shared */
	struct choice_last last;               /* put */
	/* the peer's */
	struct {
		uint64_t id, claim, done;
		struct wire_share offer; /* in this machine's byte order */
		struct request *mover;   /* has it in this side's engine; or NULL */
		struct region *region;   /* ... and this region */
	} in;
};

/* The handshake is through and the peer takes the packets. */
void share_open(struct endpoint *ep);
void share_free(struct endpoint *ep);
/* A put to mapped memory, all checks passed: 1, it is done; 0: the call copies; negative with the
 * detail set. HOW is plain (direct_is_plain). */
int share_put(struct remote *to, uint64_t offset, const void *from, uint64_t len,
	      const struct slmpm_how *how);
/* The peer's offer, if there is one. */
int share_step(struct endpoint *ep);

static inline bool share_waits(const struct endpoint *ep)
{
	return endpoint_is_blocked(ep, BLOCK_SHARE);
}

/* ---- the origin (share.c) ---------------------------------------------------------------- */

/* Offers W, as it travels; false: not now. */
bool share_offer(struct endpoint *ep, const struct wire_share *w);
/* Takes back what the target has not taken, however full the ring. False: not now. */
bool share_take_back(struct endpoint *ep);
/* The key by which the peer has mapped LEN bytes at AT, with ACCESS to them, and where they lie in
 * that region; or NULL. */
const struct grant *share_grant(const struct endpoint *ep, const void *at, uint64_t len,
				uint32_t access, uint64_t *offset);

/* ---- packets, for packets.c -------------------------------------------------------------- */

void share_offered(struct endpoint *ep, const struct head *h);
void share_given(struct endpoint *ep, const struct head *h);
void share_taken(struct endpoint *ep, const struct head *h);

/* ---- what the peer's engine is asked for, the origin ------------------------------------- */

/* The peer's engine is asked from this length on: UINT64_MAX where there is none, or one here.
 * ENGINE: the peer has one. */
uint64_t ask_least(const struct endpoint *ep, bool engine);

/* As a carrier of requests (struct rma_carrier). */
bool ask_reaches(const struct operation *o, bool *beyond);
void ask_start(struct request *r);
bool ask_take_back(struct request *r);
/* Offers the next; or copies what nobody has come for. How many things happened. */
int ask_step(struct endpoint *ep);
/* When an offer that the peer has not taken is due, in ns; UINT64_MAX: there is none; 0: now. */
uint64_t ask_deadlines(struct context *ctx, uint64_t now);
/* R's peer has stopped amidst it: leaves it. The peer; or NULL, it is none such. */
struct endpoint *ask_abandon(struct request *r);
/* Before an orderly end: nobody moves bytes here. */
bool ask_release(struct endpoint *ep);
/* The peer has said something about the offer. */
void ask_answered(struct endpoint *ep);

/* Is something to be done by ask_step? */
static inline bool ask_waits(const struct endpoint *ep)
{
	const struct share *s = ep->rooms->share;

	return s && (!list_empty(&s->asks) || (s->asked && !s->upto));
}
static inline void ask_block(struct endpoint *ep)
{
	endpoint_block(ep, BLOCK_ASK, ask_waits(ep));
}

/* ---- the target -------------------------------------------------------------------------- */

/* What it has taken goes no further; the origin hears how far it is. */
void ask_stop(struct endpoint *ep);
/* That grant is taken back. */
void ask_revoke(struct endpoint *ep, uint32_t grant);

/* ---- both -------------------------------------------------------------------------------- */

void ask_end(struct endpoint *ep);

#endif
