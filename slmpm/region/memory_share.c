/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that share a region with a peer, and accept one of its. */
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"
#include "slmpm/link/wait.h"

/* ---- sharing -------------------------------------------------------------------------------- */

/* One call of slmpm_mem_share; another thread may close the peer or end the region meanwhile. */
struct share {
	slmpm_mem mem;
	slmpm_peer peer;
	struct endpoint *ep;
	uint32_t access, id;
	int rc;
	bool made; /* the offer, or the reason why not */
	struct sharing sharing;
};

/* Until the control socket takes it. */
static bool memory_share_offer(void *arg)
{
	struct share *s = arg;
	struct region *region = region_get(s->mem);
	struct endpoint *ep = endpoint_of(s->peer);
	struct slmpm_key key;
	struct grant *g;

	if (s->made)
		return true;
	if (!ep || !region) {
		s->rc = ep ? handle_error(&region_table, s->mem.id) : endpoint_bad_handle(s->peer);
		return s->made = true;
	}
	if (ep->state == SLMPM_PEER_CONNECTING)
		return false;
	g = grant_new(region, ep, s->access, &s->rc);
	if (g) {
		s->id = g->id;
		g->sharing = &s->sharing;
		key_write(&key, g);
		link_control(ep, WIRE_REGION_OFFER, 0, g->id, key.bytes, sizeof(key.bytes));
	}
	return s->made = s->rc != -SLMPM_EAGAIN;
}

static bool memory_share_answered(void *arg)
{
	const struct share *s = arg;

	return s->sharing.accepted || s->sharing.gone;
}

static int memory_share_one(struct share *s, int timeout_ms)
{
	uint64_t deadline = clock_deadline(timeout_ms);
	struct context *ctx = s->ep->ctx;
	int rc = wait_until(ctx, memory_share_offer, s, timeout_ms);
	struct grant *g;

	if (rc < 0)
		return late_from(ctx, s->ep, timeout_ms, "no offer could be made to");
	if (s->rc < 0)
		return s->rc;
	rc = wait_until(ctx, memory_share_answered, s, clock_ms(clock_now(), deadline, -1));
	if (s->sharing.accepted)
		return 0;
	if (endpoint_of(s->peer) != s->ep)
		return endpoint_bad_handle(s->peer);
	if (s->ep->state != SLMPM_PEER_UP)
		return endpoint_error(s->ep);
	if (s->sharing.gone)
		return error_set(SLMPM_ECANCELED, "the offer to %s was taken back",
				 s->ep->life->name);
	g = grant_find(s->ep, s->id);
	if (g)
		grant_take_back(g, WIRE_REGION_WITHDRAWN);
	return rc < 0 ? late_from(ctx, s->ep, timeout_ms, "a region was not accepted by") : rc;
}

int slmpm_mem_share(slmpm_mem mem, slmpm_peer peer, uint32_t access, int timeout_ms)
{
	struct share s = {.mem = mem, .peer = peer, .access = access, .ep = endpoint_of(peer)};
	struct context *ctx;
	int rc;

	if (!s.ep || !endpoint_lock(s.ep, peer))
		return endpoint_bad_handle(peer);
	ctx = s.ep->ctx;
	rc = context_forbids(ctx, "slmpm_mem_share");
	if (rc == 0)
		rc = memory_share_one(&s, timeout_ms);
	context_unlock(ctx);
	return rc;
}

/* ---- accepting ------------------------------------------------------------------------------ */

static bool has_offer(void *arg)
{
	const struct peer_wait *a = arg;

	return endpoint_of(a->peer) != a->ep || !list_empty(&a->ep->rooms->regions->shared) ||
	       (a->ep->state != SLMPM_PEER_UP && a->ep->state != SLMPM_PEER_CONNECTING);
}

static int accept_next(struct peer_wait *a, slmpm_rmem *rmem, int timeout_ms)
{
	int rc = wait_until(a->ep->ctx, has_offer, a, timeout_ms);

	if (endpoint_of(a->peer) != a->ep)
		return endpoint_bad_handle(a->peer);
	if (!list_empty(&a->ep->rooms->regions->shared))
		return remote_open(LIST_ENTRY(a->ep->rooms->regions->shared.next, struct remote,
					      shared),
				   a->peer, rmem);
	return rc < 0 ? late_from(a->ep->ctx, a->ep, timeout_ms, "no region was shared by") :
			endpoint_error(a->ep);
}

int slmpm_mem_accept(slmpm_peer peer, slmpm_rmem *rmem, int timeout_ms)
{
	struct peer_wait a = {endpoint_of(peer), peer, 0};
	struct context *ctx;
	int rc;

	if (!rmem)
		return error_set(SLMPM_EINVAL, "slmpm_mem_accept: nowhere to put the handle");
	if (!a.ep || !endpoint_lock(a.ep, peer))
		return endpoint_bad_handle(peer);
	ctx = a.ep->ctx;
	rc = timeout_ms ? context_forbids(ctx, "slmpm_mem_accept") : 0;
	if (rc == 0)
		rc = accept_next(&a, rmem, timeout_ms);
	context_unlock(ctx);
	return rc;
}

/* ---- the endpoint's life -------------------------------------------------------------------- */

void memory_begin(struct endpoint *ep)
{
	list_init(&ep->rooms->regions->offered);
	list_init(&ep->rooms->regions->open);
	list_init(&ep->rooms->regions->shared);
	ep->rooms->regions->last = (uint32_t)endpoint_start(ep);
}

void memory_up(struct endpoint *ep)
{
	ep->rooms->regions->notified = (uint32_t)endpoint_start_in(ep);
}
