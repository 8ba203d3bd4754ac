/* SPDX-License-Identifier: BSD-3-Clause */
/* The target of a put that both sides copy: an offer of the peer's, and what is taken of it (share.h). */
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/share/ask.h"
#include "slmpm/share/share.h"
#include "slmpm/sendrecv/arrival.h"
#include "slmpm/part.h"
#include "slmpm/rma/rma.h"

#define BUDGET ((uint64_t)8 << 20) /* and so much before others have their turn */

void share_offered(struct endpoint *ep, const struct head *h)
{
	struct share *s = ep->share;
	struct wire_share w;

	if (PEER_FAULT(!s || s->in.waiting || s->in.mover || h->length < sizeof(w) || h->flags ||
		       h->seq != s->in.id + 1)) {
		endpoint_poison(ep, "offer of a share");
		return;
	}
	memcpy(&w, h->data, sizeof(w));
	rma_target_in(&w.target);
	w.offset = LITTLE_64(w.offset);
	w.grant = LITTLE_32(w.grant);
	w.how = LITTLE_32(w.how);
	if (PEER_FAULT(!w.target.length || w.target.length > SLMPM_MESSAGE_MAX || w.target.zero ||
		       !ask_is_sound(ep, h, &w))) {
		endpoint_poison(ep, "offer of a share");
		return;
	}
	s->in.id = h->seq;
	s->in.offer = w;
	s->in.claim = w.target.length;
	s->in.done = 0;
	s->in.waiting = true;
	endpoint_refresh(ep);
}

void share_given(struct endpoint *ep, const struct head *h)
{
	struct share *s = ep->share;
	uint64_t claim = h->extent & WIRE_LENGTH_MASK;

	if (PEER_FAULT(!s || s->in.id == endpoint_start_in(ep) || h->seq != s->in.id || h->length ||
		       h->flags || claim > s->in.claim)) {
		endpoint_poison(ep, "share of a put");
		return;
	}
	s->in.claim = claim; /* of what has had its end it means nothing */
	if (s->in.mover)
		ask_stop(ep);
}

/* The peer's region as we have it mapped; NULL: not any more, or it never was. */
static const unsigned char *source_of(const struct endpoint *ep, const struct wire_share *w)
{
	const struct remote *r = remote_mapped(ep, w->grant);

	if (!r || !(r->access & SLMPM_READ) || w->offset > r->memory.size ||
	    w->target.length > r->memory.size - w->offset)
		return NULL;
	return (const unsigned char *)r->memory.base + w->offset;
}

/* Takes it, if the origin still leaves it, and copies it. */
static bool take_piece(struct endpoint *ep)
{
	struct share *s = ep->share;
	const struct wire_share *w = &s->in.offer;
	uint64_t from = s->in.done, left = s->in.claim > from ? s->in.claim - from : 0;
	uint64_t n = left < SHARE_PIECE ? left : SHARE_PIECE;
	const unsigned char *source;
	struct grant *g;
	int status;

	if (!n || !source_of(ep, w) ||
	    !share_notify(ep, WIRE_SHARE_TAKE, from, from + n, NULL, 0) ||
	    !share_acknowledged(ep) || s->in.claim < from + n)
		return false;
	/* What was heard may have taken either away. */
	g = region_check(ep, w->target.grant, w->target.secret, SLMPM_WRITE, w->target.offset,
			 w->target.length, &status);
	source = source_of(ep, w);
	if (!g || !source)
		return false;
	memcpy((unsigned char *)region_at(g->region, w->target.offset) + from, source + from, n);
	part_landed(ep->ctx, (unsigned char *)region_at(g->region, w->target.offset) + from, n);
	ep->pieces_read++;
	s->in.done += n;
	return true;
}

int share_step(struct endpoint *ep)
{
	struct share *s = ep->share;
	uint64_t from;

	if (!share_waits(ep))
		return 0;
	from = s->in.done;
	if (s->in.offer.how)
		return ask_serve(ep);
	while (take_piece(ep))
		if (s->in.done - from >= BUDGET)
			return 1;
	s->in.waiting = false;
	link_control(ep, WIRE_SHARE_OVER, s->in.id, s->in.done, NULL, 0);
	endpoint_refresh(ep);
	return 1;
}
