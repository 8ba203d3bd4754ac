/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys: their 64 bytes, made for a peer and opened by it. doc/wire.md has them as a table. */
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/link/progress.h"
#include "slmpm/region/memory.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/link/wait.h"

#define GRANT_MS      1000 /* after so long a grant that has not come is none */
#define INSPECT_EVERY 32   /* keys given to a peer between scans of the descriptors */

/* ---- the bytes ------------------------------------------------------------------------------ */

void key_write(struct slmpm_key *key, const struct grant *g)
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
