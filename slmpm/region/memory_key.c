/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys: their 64 bytes, as doc/wire.md has them in a table; the calls that give and open them, and
 * those that share a region and accept it, which send the key themselves. */
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"
#include "slmpm/region/memory.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/link/wait.h"

#define GRANT_MS      1000 /* after so long a grant that has not come is none */
#define INSPECT_EVERY 32   /* keys given to a peer between scans of the descriptors */

/* ---- the bytes ------------------------------------------------------------------------------ */

static void key_write(struct slmpm_key *key, const struct grant *g)
{
	struct wire_key k = {
		.magic = LITTLE_32(WIRE_KEY_MAGIC),
		.access = LITTLE_32(g->access),
		.grant = LITTLE_64(g->id),
		.size = LITTLE_64(g->region->memory.size),
		.address = LITTLE_64((uint64_t)(uintptr_t)g->region->memory.base),
	};

	memcpy(k.secret, g->secret, KEY_SECRET);
	memcpy(key->bytes, &k, sizeof(k));
}

bool key_read(const struct slmpm_key *key, struct wire_key *k)
{
	unsigned char rest = 0;

	memcpy(k, key->bytes, sizeof(*k));
	k->magic = LITTLE_32(k->magic);
	k->access = LITTLE_32(k->access);
	k->grant = LITTLE_64(k->grant);
	k->size = LITTLE_64(k->size);
	k->address = LITTLE_64(k->address);
	for (size_t i = 0; i < sizeof(k->zero); i++)
		rest |= k->zero[i];
	return k->magic == WIRE_KEY_MAGIC && k->grant <= UINT32_MAX && !rest;
}

/* Takes as long wherever they differ. */
bool key_same_secret(const unsigned char *a, const unsigned char *b)
{
	unsigned char differ = 0;

	for (int i = 0; i < KEY_SECRET; i++)
		differ |= a[i] ^ b[i];
	__asm__("" : "+r"(differ)); /* the compiler may not end it early */
	return !differ;
}

/* ---- the calls ------------------------------------------------------------------------------ */

/* A peer that was started waits for nobody: it may connect late, or never. */
static int await_peer(struct endpoint *ep, slmpm_peer peer)
{
	int64_t ms = config_get()->handshake_ms;

	if (ep->state != SLMPM_PEER_CONNECTING || ep->ctx->handling ||
	    wait_connected(ep, (int)ms) != -SLMPM_ETIMEOUT)
		return 0;
	if (endpoint_of(peer) != ep || ep->state != SLMPM_PEER_CONNECTING)
		return 0;
	return error_set(SLMPM_ETIMEOUT, "slmpm_mem_key: %s has not connected within %lld ms",
			 ep->life->name, (long long)ms);
}

static int memory_key_give(slmpm_mem mem, struct endpoint *ep, slmpm_peer peer, uint32_t access,
			   struct slmpm_key *key)
{
	struct region *region = region_get(mem);
	struct grant *g;
	int rc = 0;

	if (endpoint_of(peer) != ep) /* by another thread, or a handler, meanwhile */
		return endpoint_bad_handle(peer);
	if (!region)
		return handle_error(&region_table, mem.id);
	g = grant_new(region, ep, access, &rc);
	if (!g)
		return rc;
	key_write(key, g);
	if (ep->rooms->regions->last % INSPECT_EVERY)
		monitor_pass(ep->ctx);
	else
		progress_opportunistic(ep->ctx);
	return 0;
}

int slmpm_mem_key(slmpm_mem mem, slmpm_peer peer, uint32_t access, struct slmpm_key *key)
{
	struct endpoint *ep = endpoint_of(peer);
	struct context *ctx;
	int rc;

	if (!key)
		return error_set(SLMPM_EINVAL, "slmpm_mem_key: nowhere to put the key");
	if (!ep || !endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	rc = await_peer(ep, peer);
	if (rc == 0)
		rc = memory_key_give(mem, ep, peer, access, key);
	/* What the peer has answered, or its end, may be there: who only calls again looks nowhere
	 * else. */
	if (rc == -SLMPM_EAGAIN || rc == -SLMPM_ELIMIT) {
		progress_opportunistic(ctx);
		rc = memory_key_give(mem, ep, peer, access, key);
	}
	context_unlock(ctx);
	return rc;
}

static bool is_notified(void *arg)
{
	const struct peer_wait *w = arg;

	return endpoint_of(w->peer) != w->ep || w->ep->state != SLMPM_PEER_UP ||
	       (int32_t)(w->ep->rooms->regions->notified - w->grant) >= 0;
}

/* A key may have come by a shorter route than the grant that goes ahead of it in the ring. */
static void await_grant(struct endpoint *ep, slmpm_peer peer, const struct slmpm_key *key)
{
	struct peer_wait w = {ep, peer, 0};
	struct wire_key k;

	if (link_maps(ep) || !key_read(key, &k) || ep->ctx->handling)
		return;
	w.grant = (uint32_t)k.grant;
	(void)wait_until(ep->ctx, is_notified, &w, GRANT_MS);
}

int slmpm_mem_open(slmpm_peer peer, const struct slmpm_key *key, slmpm_rmem *rmem)
{
	struct endpoint *ep = endpoint_of(peer);
	struct context *ctx;
	struct remote *r;
	int rc = 0;

	if (!key || !rmem)
		return error_set(SLMPM_EINVAL, "slmpm_mem_open: key %p, handle %p",
				 (const void *)key, (void *)rmem);
	if (!ep || !endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	if (ep->state == SLMPM_PEER_UP)
		await_grant(ep, peer, key);
	if (endpoint_of(peer) != ep) { /* closed by another thread, meanwhile */
		rc = endpoint_bad_handle(peer);
	} else if (ep->state == SLMPM_PEER_UP) {
		r = remote_offered(ep, key, &rc);
		if (r && remote_is_revoked(r)) /* though the packet that says so is not here yet */
			rc = error_set(SLMPM_EACCES, "%s has taken this key back", ep->life->name);
		else if (r)
			rc = remote_open(r, peer, rmem);
	} else {
		rc = endpoint_error(ep);
	}
	context_unlock(ctx);
	return rc;
}

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
