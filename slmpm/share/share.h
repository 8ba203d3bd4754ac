/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large puts that both sides copy. Where the source lies in a region that the target has mapped, the
 * call offers the front part to the target, copies the rest itself, and then what the target has not
 * come for. The call returns when every byte is in place.
 *
 * Who copies what is agreed on by packets, and nothing is shared. The target says what it takes
 * (SHARE_TAKE), a piece at a time, fences, and takes in all that the origin has said: if the origin
 * has that piece now, the target gives way and is through (SHARE_OVER). The origin that wants some of
 * it back says so (SHARE_GIVE), fences, and takes in all that the target has said: what is not taken
 * is its own, else it waits for the target's end. Of two that want the same at least one sees the
 * other's word. A target that does not come is not waited for, and is offered nothing more until it
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

#define SHARE_LEAST ((uint64_t)32 << 10)  /* nothing shorter is looked at */
#define SHARE_PIECE ((uint64_t)128 << 10) /* so much does the target take at a time */

struct share { /* of an endpoint */
	/* ours: the last offer */
	uint64_t id;
	bool out, over; /* the peer has it; it is through */
	bool held;      /* a segment for its end */
	uint64_t limit, upto, done;
	/* what the peer's engine is to do (ask.h) */
	struct list asks;      /* requests that wait for their turn */
	struct request *asked; /* the one whose offer is out; or NULL */
	uint64_t since;        /* ns: when it was offered */
	bool given;            /* it has been asked back */
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
		bool waiting;
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
	return ep->share && ep->share->in.waiting;
}

/* ---- what is said (share.c) -------------------------------------------------------------------- */

/* In room that has been held back. */
bool share_post(struct endpoint *ep, uint8_t opcode, uint64_t route, uint64_t extent,
		const void *data, uint32_t length);
/* Now or not at all. */
bool share_notify(struct endpoint *ep, uint8_t opcode, uint64_t route, uint64_t extent,
		  const void *data, uint32_t length);
/* A segment of the ring for the word by which an offer is taken back; and not any more. */
bool share_hold(struct endpoint *ep);
void share_release(struct endpoint *ep);
/* The key by which the peer has mapped LEN bytes at AT, with ACCESS to them, and where they lie in that
 * region; or NULL. */
const struct grant *share_grant(const struct endpoint *ep, const void *at, uint64_t len,
				uint32_t access, uint64_t *offset);
/* All that the peer had said before it could hear what was said last. False: the peer has gone. */
bool share_acknowledged(struct endpoint *ep);

/* ---- packets, for packets.c ------------------------------------------------------------------ */

void share_offered(struct endpoint *ep, const struct head *h);
void share_given(struct endpoint *ep, const struct head *h);
void share_taken(struct endpoint *ep, const struct head *h);

#endif
