/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large puts that both sides copy. Where the source lies in a region that the target has mapped, the
 * call offers the front part to the target, copies the rest itself, and then what the target has not
 * come for. The call returns when every byte is in place.
 *
 * Who copies what is agreed on by the rules of split/split.h. The target takes a piece at a time (SHARE_TAKE); where the
 * origin has claimed it (SHARE_GIVE), it gives way and is through (SHARE_OVER). The origin waits for the target's end where
 * that has taken what it claims. A target that does not come is not waited for, and is offered nothing more until it
 * has; one that stops in a piece is, up to the call's deadline. What the put leaves behind then is that
 * one piece, which the target may still copy, from whatever the source has become: until it has said
 * that it is through, operations on its regions go by requests, which it takes up behind the piece.
 *
 * A segment of the ring is held back for each offer: all of it can be taken back however full the ring.
 */
#ifndef SLMPM_SHARE_H
#define SLMPM_SHARE_H

#include "slmpm/choice/choice.h"
#include "slmpm/endpoint.h"
#include "slmpm/region/memory.h"
#include "slmpm/base/wire.h"
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
	/* what the peer's engine is to do (ask.h) */
	struct list asks;      /* requests that wait for their turn */
	struct request *asked; /* the one whose offer is out; or NULL */
	uint64_t since;        /* ns: when it was offered */
	bool unreached;        /* the peer does not reach this process's own memory */
	struct choice choices[CHOICE_CLASSES]; /* alone, or shared */
	struct {                               /* the last put, if it is worth it */
		enum choice_note note;
		bool shared;
		uint64_t length, began, took; /* in ticks */
	} timed;
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

/* ---- the origin (share.c) ---------------------------------------------------------------------- */

/* Offers W, as it travels; false: not now. */
bool share_offer(struct endpoint *ep, const struct wire_share *w);
/* Takes all back that the target has not taken, however full the ring: true, `upto` and `over` say what it has. */
bool share_take_back(struct endpoint *ep);
/* The key by which the peer has mapped LEN bytes at AT, with ACCESS to them, and where they lie in that
 * region; or NULL. */
const struct grant *share_grant(const struct endpoint *ep, const void *at, uint64_t len,
				uint32_t access, uint64_t *offset);

/* ---- packets, for packets.c ------------------------------------------------------------------ */

void share_offered(struct endpoint *ep, const struct head *h);
void share_given(struct endpoint *ep, const struct head *h);
void share_taken(struct endpoint *ep, const struct head *h);

#endif
