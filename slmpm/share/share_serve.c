/* SPDX-License-Identifier: BSD-3-Clause */
/* The target of share.h: the offer is copied here, or moved by this side's engine. */
#include <string.h>

#include "shm/copy.h"
#include "slmpm/base/config.h"
#include "slmpm/link/link.h"
#include "slmpm/stats.h"
#include "slmpm/share/share.h"
#include "slmpm/message/fetch.h"
#include "slmpm/part.h"
#include "slmpm/rma/rma.h"

#define BUDGET ((uint64_t)8 << 20) /* of a put before others have their turn */

static bool is_sound(struct endpoint *ep, const struct head *h, const struct wire_share *w)
{
	if (!w->how)
		return h->length == sizeof(*w);
	if (w->how & ~WIRE_SHARE_HOW || !(w->how & WIRE_SHARE_ENGINE) || !config_get()->engine)
		return false;
	if (!(w->how & WIRE_SHARE_ADDRESS))
		return h->length == sizeof(*w);
	return !w->grant && w->offset <= UINT64_MAX - w->target.length &&
	       (h->length == sizeof(*w) || (fetch_of(ep) && fetch_introduced(ep, h, sizeof(*w))));
}

void share_offered(struct endpoint *ep, const struct head *h)
{
	struct share *s = ep->rooms->share;
	struct wire_share w;

	if (endpoint_broke(ep, "offer of a share",
			   !s || share_waits(ep) || s->in.mover || h->length < sizeof(w) ||
				   h->flags || h->seq != s->in.id + 1))
		return;
	memcpy(&w, h->data, sizeof(w));
	rma_target_in(&w.target);
	w.offset = LITTLE_64(w.offset);
	w.grant = LITTLE_32(w.grant);
	w.how = LITTLE_32(w.how);
	if (endpoint_broke(ep, "offer of a share",
			   !w.target.length || w.target.length > SLMPM_MESSAGE_MAX ||
				   w.target.zero || !is_sound(ep, h, &w)))
		return;
	s->in.id = h->seq;
	s->in.offer = w;
	s->in.claim = w.target.length;
	s->in.done = 0;
	endpoint_block(ep, BLOCK_SHARE, true);
}

void share_given(struct endpoint *ep, const struct head *h)
{
	struct share *s = ep->rooms->share;
	uint64_t claim = h->extent & WIRE_LENGTH_MASK;

	if (endpoint_broke(ep, "share of a put",
			   !s || s->in.id == endpoint_start_in(ep) || h->seq != s->in.id ||
				   h->length || h->flags || claim > s->in.claim))
		return;
	s->in.claim = claim; /* of what has had its end it means nothing */
	if (s->in.mover)
		ask_stop(ep);
}

static bool is_get(const struct wire_share *w)
{
	return w->how & WIRE_SHARE_GET;
}

/* The origin's memory: *REMOTE as mapped here, or NULL, its process's. False: out of reach. */
static bool find_theirs(const struct endpoint *ep, const struct wire_share *w,
			struct remote **remote)
{
	unsigned op = is_get(w) ? FABRIC_WRITE : FABRIC_READ;
	uint32_t access = is_get(w) ? SLMPM_WRITE : SLMPM_READ;
	struct remote *r;

	*remote = NULL;
	if (w->how & WIRE_SHARE_ADDRESS)
		return ep->rooms->fetch && ep->rooms->fetch->peer.ops >> op & 1;
	*remote = r = remote_mapped(ep, w->grant);
	return r && r->access & access && w->offset <= r->memory.size &&
	       w->target.length <= r->memory.size - w->offset;
}

static struct region *find_ours(struct endpoint *ep, const struct wire_share *w)
{
	int status;
	const struct grant *g = region_check(ep, w->target.grant, w->target.secret,
					     is_get(w) ? SLMPM_READ : SLMPM_WRITE, w->target.offset,
					     w->target.length, &status);

	return g && !g->region->revoking ? g->region :
					   NULL; /* else its pages may be exchanged: by request */
}

/* ---- whoever copies ---------------------------------------------------------------------- */

/* Up to here this side copies next; then what the origin has said meanwhile is taken in. */
static bool share_take(struct endpoint *ep, uint64_t upto)
{
	struct packet p = {
		.opcode = WIRE_SHARE_TAKE,
		.seq = ep->rooms->share->in.id,
		.route = ep->rooms->share->in.done,
		.extent = upto,
	};

	return split_notify(ep, &p, NULL);
}

/* This side is through. */
static void share_end(struct endpoint *ep, uint64_t done)
{
	struct share *s = ep->rooms->share;

	endpoint_block(ep, BLOCK_SHARE, false);
	s->in.done = done;
	if (ep->state == SLMPM_PEER_UP)
		link_control(ep, WIRE_SHARE_OVER, s->in.id, done, NULL, 0);
}

/* Takes it, if the origin still leaves it, and copies it. */
static bool take_piece(struct endpoint *ep)
{
	struct share *s = ep->rooms->share;
	const struct wire_share *w = &s->in.offer;
	uint64_t from = s->in.done, left = s->in.claim > from ? s->in.claim - from : 0;
	uint64_t n = left < SHARE_PIECE ? left : SHARE_PIECE;
	const struct region *ours;
	struct remote *theirs;
	unsigned char *to;

	if (!n || !find_theirs(ep, w, &theirs) || !share_take(ep, from + n) ||
	    !split_catch_up(ep) || s->in.claim < from + n)
		return false;
	/* What was heard may have taken either away. */
	ours = find_ours(ep, w);
	if (!ours || !find_theirs(ep, w, &theirs))
		return false;
	to = (unsigned char *)region_at(ours, w->target.offset) + from;
	copy_bytes(to, (const unsigned char *)theirs->memory.base + w->offset + from, n);
	part_landed(ep->ctx, to, n);
	ep->rooms->figures->pieces_read++;
	s->in.done += n;
	return true;
}

/* ---- by this side's engine --------------------------------------------------------------- */

/* The engine has it no more. */
static void release(struct endpoint *ep, uint64_t done)
{
	struct share *s = ep->rooms->share;
	struct request *r = s->in.mover;

	s->in.mover = NULL;
	s->in.region->storing--;
	if (r->rma.remote)
		r->rma.remote->active--;
	request_drop(r);
	ep->stats->asked_here++;
	ep->stats->asked_here_bytes += done;
	share_end(ep, done);
}

/* The engine's hook. */
static void moved(struct request *r)
{
	struct endpoint *ep = r->ep;

	release(ep, r->result.status ? 0 : r->length);
	if (ep->state == SLMPM_PEER_UP)
		rma_wake(ep); /* a flush waits for all that the engine moves */
}

static struct request *ask_serve_prepare(struct endpoint *ep, struct region *region,
					 struct remote *remote)
{
	const struct wire_share *w = &ep->rooms->share->in.offer;
	const struct slmpm_iov piece = {region_at(region, w->target.offset), w->target.length};
	struct request *r = request_new(ep->ctx);

	if (!r)
		return NULL;
	(void)request_init(r, is_get(w) ? REQUEST_PUT : REQUEST_GET, ep->ctx, ep, 0, &piece, 1);
	list_init(&r->rma.live);
	r->numbered = true; /* it is not taken back */
	r->ended = moved;
	r->rma.remote = remote;
	r->rma.for_peer = true;
	r->rma.one = (struct slmpm_span){w->offset, w->target.length};
	r->rma.spans = &r->rma.one;
	r->rma.span_count = 1;
	return r;
}

/* It is this side's to do: what was said meanwhile may have taken either memory away. */
static bool ask_serve_begin(struct endpoint *ep)
{
	struct share *s = ep->rooms->share;
	const struct wire_share *w = &s->in.offer;
	struct region *region = find_ours(ep, w);
	struct remote *remote;
	struct request *r;

	if (!region || !find_theirs(ep, w, &remote) || s->in.claim < w->target.length)
		return false;
	r = ask_serve_prepare(ep, region, remote);
	if (!r)
		return false;
	s->in.mover = r;
	s->in.region = region;
	region->storing++;
	if (remote)
		remote->active++;
	if (rma_move_start(r) < 0)
		release(ep, 0);
	return true;
}

static int ask_serve(struct endpoint *ep)
{
	struct share *s = ep->rooms->share;
	const struct wire_share *w = &s->in.offer;
	struct remote *remote;
	bool able = find_ours(ep, w) && find_theirs(ep, w, &remote) && s->in.claim && !ep->closing;

	if (able && !share_take(ep, w->target.length))
		return 0;
	able = able && split_catch_up(ep);
	if (ep->state != SLMPM_PEER_UP)
		return 1;
	endpoint_block(ep, BLOCK_SHARE, false);
	if (!able || !ask_serve_begin(ep))
		share_end(ep, 0);
	return 1;
}

void ask_stop(struct endpoint *ep)
{
	struct share *s = ep->rooms->share;
	struct request *r = s->in.mover;
	uint64_t done;

	if (!r)
		return;
	done = rma_move_stop(r);
	if (r->kind == REQUEST_GET)
		part_landed(ep->ctx, r->pieces->base, done);
	release(ep, done);
}

void ask_revoke(struct endpoint *ep, uint32_t grant)
{
	struct share *s = ep->rooms->share;

	if (s && s->in.mover && s->in.offer.target.grant == grant)
		ask_stop(ep);
}

int share_step(struct endpoint *ep)
{
	struct share *s = ep->rooms->share;
	uint64_t from;

	if (!share_waits(ep))
		return 0;
	from = s->in.done;
	if (s->in.offer.how)
		return ask_serve(ep);
	while (take_piece(ep))
		if (s->in.done - from >= BUDGET)
			return 1;
	share_end(ep, s->in.done);
	return 1;
}
