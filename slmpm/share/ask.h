/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long puts and gets of a side without an engine, which the peer's engine does. The origin offers the
 * whole of it (WIRE_SHARE_ENGINE): a put's bytes the target's engine fetches, a get's it stores. By
 * the rules of share.h: the target says that it takes all (TAKE), fences, looks, and injects it; its end
 * says how much is in place (OVER), and what is missing the origin copies itself: all, where the
 * target does not reach the memory. A target that does not take it in time has it taken back (GIVE).
 *
 * One at a time: the others wait in `asks`. What is here is reached by a region that the peer has
 * mapped, else as all of this process's memory is for messages that are fetched.
 *
 * ask.c is the origin; the target is in share_serve.c.
 */
#ifndef SLMPM_ASK_H
#define SLMPM_ASK_H

#include "slmpm/share/share.h"
#include "slmpm/request.h"

struct operation;
struct grant;

/* ---- the origin ------------------------------------------------------------------------------ */

/* The peer's engine is asked from this length on: UINT64_MAX where there is none, or one here. ENGINE: the peer
 * has one. */
uint64_t ask_least(const struct endpoint *ep, bool engine);

/* As a carrier of requests (struct rma_carrier). */
bool ask_reaches(const struct operation *o, bool *beyond);
void ask_start(struct request *r);
bool ask_take_back(struct request *r);
/* Offers the next; or copies what nobody has come for. How many things happened. */
int ask_step(struct endpoint *ep);
/* Until it is looked at again: ns; UINT64_MAX: there is none that the peer has not taken; 0: now. */
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

/* ---- the target ------------------------------------------------------------------------------ */

/* What it has taken goes no further; the origin hears how far it is. */
void ask_stop(struct endpoint *ep);
/* That grant is taken back. */
void ask_revoke(struct endpoint *ep, uint32_t grant);

/* ---- both ------------------------------------------------------------------------------------ */

void ask_end(struct endpoint *ep);

#endif
