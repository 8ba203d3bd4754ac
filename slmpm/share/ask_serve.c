/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets that this side's engine does for a peer without one (ask.h). */
#include <string.h>

#include "slmpm/base/config.h"
#include "slmpm/engine/engine.h"
#include "slmpm/link/link.h"
#include "slmpm/share/ask.h"
#include "slmpm/message/fetch.h"
#include "slmpm/part.h"
#include "slmpm/rma/rma.h"

bool ask_is_sound(struct endpoint *ep, const struct head *h, const struct wire_share *w)
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

static bool is_get(const struct wire_share *w)
{
	return w->how & WIRE_SHARE_GET;
}

/* The origin's memory: *REMOTE as mapped here, or NULL for all of its process's. False: out of reach. */
static bool find_theirs(const struct endpoint *ep, const struct wire_share *w,
			struct remote **remote)
{
	unsigned op = is_get(w) ? FABRIC_WRITE : FABRIC_READ;
	uint32_t access = is_get(w) ? SLMPM_WRITE : SLMPM_READ;
	struct remote *r;

	*remote = NULL;
	if (w->how & WIRE_SHARE_ADDRESS)
		return ep->fetch && ep->fetch->peer.ops >> op & 1;
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

static void ask_serve_answer(struct endpoint *ep, uint64_t done)
{
	struct share *s = ep->share;

	s->in.done = done;
	if (ep->state == SLMPM_PEER_UP)
		link_control(ep, WIRE_SHARE_OVER, s->in.id, done, NULL, 0);
}

/* The engine has it no more. */
static void release(struct endpoint *ep, uint64_t done)
{
	struct share *s = ep->share;
	struct request *r = s->in.mover;

	s->in.mover = NULL;
	s->in.region->storing--;
	if (r->rma.remote)
		memory_done(r->rma.remote);
	request_drop(r);
	ep->stats->asked_here++;
	ep->stats->asked_here_bytes += done;
	ask_serve_answer(ep, done);
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
	const struct wire_share *w = &ep->share->in.offer;
	const struct slmpm_iov piece = {region_at(region, w->target.offset), w->target.length};
	struct request *r = request_new();

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
	struct share *s = ep->share;
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

int ask_serve(struct endpoint *ep)
{
	struct share *s = ep->share;
	const struct wire_share *w = &s->in.offer;
	struct remote *remote;
	bool able = find_ours(ep, w) && find_theirs(ep, w, &remote) && s->in.claim && !ep->closing;

	if (able && !share_notify(ep, WIRE_SHARE_TAKE, 0, w->target.length, NULL, 0))
		return 0;
	able = able && share_acknowledged(ep);
	if (ep->state != SLMPM_PEER_UP)
		return 1;
	s->in.waiting = false;
	if (!able || !ask_serve_begin(ep))
		ask_serve_answer(ep, 0);
	endpoint_refresh(ep);
	return 1;
}

void ask_stop(struct endpoint *ep)
{
	struct share *s = ep->share;
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
	struct share *s = ep->share;

	if (s && s->in.mover && s->in.offer.target.grant == grant)
		ask_stop(ep);
}
