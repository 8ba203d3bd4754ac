/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers' regions: opened by key, taken back by their owners, released. */
#include <stdlib.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/bond/secondary_state.h"
#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"
#include "slmpm/base/sized.h"
#include "slmpm/choice/pick.h"
#include "slmpm/part.h"

struct handle_table remote_table = HANDLE_TABLE_FROM("peer's memory region", struct remote, ep);

bool remote_is_revoked(const struct remote *r)
{
	return r->revoked || remote_access(r) == FABRIC_ACCESS_REVOKED;
}

static struct remote *find_in(const struct list *list, uint64_t id)
{
	LIST_EACH_ENTRY(struct remote, r, list, node)
		if (r->grant == id)
			return r;
	return NULL;
}

struct remote *remote_find(struct endpoint *ep, uint32_t id)
{
	struct remote *r = find_in(&ep->rooms->regions->offered, id);

	return r ? r : find_in(&ep->rooms->regions->open, id);
}

bool remote_address(struct endpoint *ep, uint32_t id, uint64_t *address)
{
	const struct remote *r = remote_find(ep, id);

	if (r)
		*address = r->address;
	return r;
}

struct remote *remote_mapped(const struct endpoint *ep, uint32_t id)
{
	struct remote *r = find_in(&ep->rooms->regions->open, id);

	return r && r->memory.base && !r->revoked && remote_access(r) == FABRIC_ACCESS_DIRECT ?
		       r :
		       NULL;
}

/* ---- shortcuts: what the fast paths know of a mapped region --------------------------------- */

#define LOCKED_OPS (UINT32_C(1) << FABRIC_WRITE)

_Atomic(unsigned char *) remote_guesses[REMOTE_GUESSES];

static void guess(const struct remote *r, unsigned char *base)
{
	atomic_store_explicit(&remote_guesses[r->handle.index % REMOTE_GUESSES], base,
			      memory_order_relaxed);
}

/* Of OPS what brings bytes here goes the slow path where they are to be noted for a mirror, or may
 * be the peer's to bring. The next operation is measured. */
static void memory_shortcut_guard(struct remote *r, uint32_t ops)
{
	r->guarded = list_empty(&r->ctx->mirrors) ? 0 : ops & ~(UINT32_C(1) << FABRIC_WRITE);
	if (r->ep->ask_min != UINT64_MAX) /* their length is compared there */
		r->guarded |= ops & UINT32_C(1) << FABRIC_READ;
	r->direct.ops = 0;
	r->measured = ops;
}

/* Operations that go by another fabric than the mapping's, unless they ask for one. */
static uint32_t memory_shortcut_elsewhere(const struct remote *r)
{
	const struct config *c = config_get();

	if (r->asked)
		return 0;
	return (uint32_t)secondary_is_elsewhere(r->ep, c->default_put) << FABRIC_WRITE |
	       (uint32_t)secondary_is_elsewhere(r->ep, c->default_rget) << FABRIC_READ;
}

static void remote_shortcut(struct remote *r)
{
	uint32_t ops = r->memory.ops;

	if (!r->memory.base || mode_limits()->force == MODE_SMT || r->hint)
		return;
	if (!(r->access & SLMPM_READ))
		ops &= ~(UINT32_C(1) << FABRIC_READ | UINT32_C(1) << FABRIC_ATOMIC);
	if (!(r->access & SLMPM_WRITE))
		ops &= ~(UINT32_C(1) << FABRIC_WRITE | UINT32_C(1) << FABRIC_ATOMIC);
	if ((r->address | (uintptr_t)r->memory.base) % sizeof(uint64_t))
		ops &= ~(UINT32_C(1) << FABRIC_ATOMIC); /* a word here may be none there */
	ops &= ~memory_shortcut_elsewhere(r);
	r->direct.base = r->memory.base;
	r->direct.size = r->memory.size;
	r->direct.rma = r->ep->rma;
	r->direct.stats = r->ep->stats;
	r->direct.access = r->access_word;
	if (r->ctx->multiple) {
		r->direct.locked = ops & LOCKED_OPS;
		return;
	}
	memory_shortcut_guard(r, ops);
	guess(r, r->memory.base);
}

static void remote_close_shortcut(struct remote *r)
{
	if (!r->direct.base)
		return;
	r->direct.base = NULL;
	r->direct.size = 0;
	r->direct.locked = 0;
	if (r->ctx->multiple) /* other threads may read the rest */
		return;
	guess(r, NULL);
	r->direct = (struct shortcut){0};
	r->measured = r->guarded = 0;
}

static void share_shortcut(struct remote *r)
{
	r->direct.locked = (r->direct.ops | r->measured | r->guarded) & LOCKED_OPS;
	r->direct.ops = r->measured = r->guarded = 0;
	guess(r, NULL);
}

void remote_share_shortcuts(struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count; i++)
		LIST_EACH(at, &ctx->endpoints[i]->rooms->regions->open)
			share_shortcut(LIST_ENTRY(at, struct remote, node));
}

void remote_guard_shortcuts(struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count; i++)
		LIST_EACH_ENTRY(struct remote, r, &ctx->endpoints[i]->rooms->regions->open, node) {
			uint32_t ops = r->direct.ops | r->measured | r->guarded;

			if (ops) /* else other threads may read */
				memory_shortcut_guard(r, ops);
		}
}

/* ---- opened --------------------------------------------------------------------------------- */

static bool is_key_of(const struct remote *r, const struct wire_key *k)
{
	return r->access == k->access && r->memory.size == k->size && r->address == k->address &&
	       key_same_secret(r->secret, k->secret);
}

struct remote *remote_offered(struct endpoint *ep, const struct slmpm_key *key, int *rc)
{
	struct wire_key k;
	struct remote *r;

	*rc = 0;
	if (!key_read(key, &k)) {
		*rc = error_set(SLMPM_EINVAL, "these bytes are no key");
		return NULL;
	}
	r = find_in(&ep->rooms->regions->offered, k.grant);
	if (!r) {
		/* What goes ahead of a key may still wait in the socket. */
		parts.read_ahead(ep);
		r = find_in(&ep->rooms->regions->offered, k.grant);
	}
	if (r && is_key_of(r, &k))
		return r;
	r = find_in(&ep->rooms->regions->open, k.grant);
	if (r && !r->revoked && is_key_of(r, &k))
		*rc = error_set(SLMPM_EBUSY, "this region of %s is open already", ep->life->name);
	else
		*rc = error_set(SLMPM_EACCES, "%s has no such key for us, or has taken it back",
				ep->life->name);
	return NULL;
}

int remote_open(struct remote *offer, slmpm_peer by, slmpm_rmem *rmem)
{
	struct endpoint *ep = offer->ep;
	struct remote *r = handle_new(&remote_table);

	if (!r)
		return error_set(SLMPM_ENOMEM, "for a region of %s", ep->life->name);
	if (r->ctx != offer->ctx) /* else who reads the last one here is not disturbed */
		r->ctx = offer->ctx;
	r->ep = ep;
	r->grant = offer->grant;
	r->access = offer->access;
	r->address = offer->address;
	r->memory = offer->memory;
	r->access_word = offer->access_word;
	r->unmapped = offer->unmapped;
	memcpy(r->secret, offer->secret, KEY_SECRET);
	list_init(&r->shared);
	r->asked = endpoint_hint(by);
	r->hint = r->memory.ops | r->memory.later ? pick_memory_hint(ep, r->asked) : r->asked;
	remote_shortcut(r);
	list_append(&ep->rooms->regions->open, &r->node);
	list_remove(&offer->node);
	list_remove(&offer->shared);
	free(offer);
	link_control(ep, WIRE_REGION_ACCEPTED, 0, r->grant, NULL, 0);
	rmem->id = handle_id(r);
	return 0;
}

/* By requests: in which form. */
static const char *const paths[] = {"ring", "ring", "am", "tag"};

int slmpm_rmem_query(slmpm_rmem rmem, struct slmpm_mem_info *info)
{
	struct remote *r;
	struct slmpm_mem_info now;
	bool revoked;
	int rc = sized_check_own("slmpm_rmem_query", info, sizeof(now));

	if (rc < 0)
		return rc;
	r = remote_lock(rmem, &rc);
	if (!r)
		return rc;
	revoked = remote_is_revoked(r);
	now = (struct slmpm_mem_info){
		.access = revoked ? 0 : r->access,
		.kind = SLMPM_MEM_HOST,
		.mapped = r->memory.base != NULL,
		.length = r->memory.size,
		.address = r->address,
	};
	strcpy(now.path, revoked || r->ep->state != SLMPM_PEER_UP ? "none" :
			 r->memory.later                          ? "fabric" :
			 !r->memory.ops                           ? paths[pick_form(r->ep)] :
			 r->memory.base                           ? "map" :
								    "attach");
	context_unlock(r->ctx);
	sized_give_own(info, &now, sizeof(now));
	return 0;
}

/* ---- released ------------------------------------------------------------------------------- */

/* It is not reached any more, except by requests. */
static void unmap(struct remote *r)
{
	struct endpoint *ep = r->ep;

	remote_close_shortcut(r);
	if (r->memory.base) {
		ep->rooms->regions->maps--;
		ep->rooms->regions->mapped -= r->memory.size;
	}
	if (ep->link.fabric->dereg)
		ep->link.fabric->dereg(ep->link.port->domain, &r->memory);
	r->memory.base = NULL;
	r->memory.ops = r->memory.later = 0;
	if (ep->state != SLMPM_PEER_UP) /* the word goes with the link */
		r->access_word = NULL;
}

static void memory_remote_answer(struct remote *r, bool mapping)
{
	if (!mapping)
		r->ep->rooms->regions->taken--;
	unmap(r);
	link_control(r->ep, WIRE_REGION_UNMAPPED, mapping, r->grant, NULL, 0);
}

void memory_release(struct remote *r)
{
	uint8_t deferred = r->deferred;

	r->deferred = 0;
	if (r->ep->state != SLMPM_PEER_UP) {
		unmap(r);
		return;
	}
	if (deferred & RELEASE_MAPPING)
		memory_remote_answer(r, true);
	if (deferred & RELEASE_ALL)
		memory_remote_answer(r, false);
}

static void offer_free(struct remote *r)
{
	unmap(r);
	list_remove(&r->node);
	list_remove(&r->shared);
	free(r);
}

const char *remote_taken_back(struct endpoint *ep, uint32_t id, bool mapping, uint64_t received)
{
	struct remote *r = remote_find(ep, id);

	if (!r) {
		parts.read_ahead(ep);
		r = remote_find(ep, id);
	}
	if (!r || r->revoked) /* released meanwhile: the owner reads of that instead */
		return NULL;
	if (PEER_FAULT(mapping && r->unmapped))
		return "revocation of a mapping";
	r->unmapped |= mapping;
	r->revoked |= !mapping;
	r->deferred |= mapping ? RELEASE_MAPPING : RELEASE_ALL;
	if (!r->copying)
		memory_release(r);
	if (!mapping && !handle_is_live(r)) /* never opened */
		offer_free(r);
	else if (!mapping)
		parts.refused(r, received);
	context_changed(ep->ctx);
	return NULL;
}

static void remote_free(struct remote *r)
{
	unmap(r);
	list_remove(&r->node);
	handle_free(&remote_table, r);
}

int slmpm_mem_release(slmpm_rmem rmem)
{
	struct context *ctx;
	int rc = 0;
	struct remote *r = remote_lock(rmem, &rc);

	if (!r)
		return rc;
	ctx = r->ctx;
	if (r->active || r->copying) {
		rc = error_set(SLMPM_EBUSY, "%u operations on the region are under way", r->active);
	} else {
		if (r->ep->state == SLMPM_PEER_UP && !r->revoked) {
			r->ep->rooms->regions->taken--;
			unmap(r);
			link_control(r->ep, WIRE_REGION_RELEASED, 0, r->grant, NULL, 0);
		}
		remote_free(r);
	}
	context_unlock(ctx);
	return rc;
}

void remote_end_all(struct endpoint *ep)
{
	LIST_EACH(at, &ep->rooms->regions->offered)
		offer_free(LIST_ENTRY(at, struct remote, node));
	LIST_EACH_ENTRY(struct remote, r, &ep->rooms->regions->open, node) {
		if (r->copying)
			r->deferred |= RELEASE_ALL; /* the mapping goes with the last of them */
		else
			unmap(r);
	}
}

void memory_forget(struct endpoint *ep)
{
	LIST_EACH(at, &ep->rooms->regions->open)
		remote_free(LIST_ENTRY(at, struct remote, node));
}
