/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers' regions: offered over the control socket ahead of their keys, opened by key, released. All
 * that a peer can make this process hold is counted; beyond SLMPM_KEYS mappings or SLMPM_MAP_MAX
 * bytes of them its regions are reached by requests.
 */
#include <stdlib.h>
#include <string.h>

#include "slmpm/connect/bootstrap.h"
#include "slmpm/connect/control.h"
#include "slmpm/error.h"
#include "slmpm/message/inbound.h"
#include "slmpm/link.h"
#include "slmpm/memory/memory.h"
#include "slmpm/wait.h"

struct handle_table remote_table = HANDLE_TABLE_FROM("peer's memory region", struct remote, ep);
_Atomic(unsigned char *) remote_guesses[REMOTE_GUESSES];

struct remote *remote_lock(slmpm_rmem rmem, int *rc)
{
	struct remote *r = remote_get(rmem);

	if (r && r->ctx->multiple) {
		struct context *ctx = r->ctx;

		pthread_mutex_lock(&ctx->lock);
		if (remote_get(rmem) == r && r->ctx == ctx)
			return r;
		pthread_mutex_unlock(&ctx->lock); /* another thread has just released it */
		r = NULL;
	}
	if (!r)
		*rc = handle_error(&remote_table, rmem.id);
	return r;
}

/* ---- offered -------------------------------------------------------------------------------- */

static struct remote *find_in(const struct list *list, uint32_t id)
{
	LIST_EACH(at, list) {
		struct remote *r = LIST_ENTRY(at, struct remote, node);

		if (r->grant == id)
			return r;
	}
	return NULL;
}

static struct remote *find(struct endpoint *ep, uint32_t id)
{
	struct remote *r = find_in(&ep->memory.offered, id);

	return r ? r : find_in(&ep->memory.open, id);
}

struct remote *remote_mapped(const struct endpoint *ep, uint32_t id)
{
	struct remote *r = find_in(&ep->memory.open, id);

	return r && r->memory.base && !r->revoked ? r : NULL;
}

static void guess(const struct remote *r, unsigned char *base)
{
	atomic_store_explicit(&remote_guesses[r->handle.index % REMOTE_GUESSES], base,
			      memory_order_relaxed);
}

/* One that is mapped, in a context of one thread and without mirrors. */
static void open_shortcut(struct remote *r)
{
	uint64_t ops = r->memory.ops;

	if (!r->memory.base || r->ctx->careful || mode_limits()->force == MODE_SMT || r->wish)
		return;
	if (!(r->access & SLMPM_READ))
		ops &= ~(UINT64_C(1) << FABRIC_READ | UINT64_C(1) << FABRIC_ATOMIC);
	if (!(r->access & SLMPM_WRITE))
		ops &= ~(UINT64_C(1) << FABRIC_WRITE | UINT64_C(1) << FABRIC_ATOMIC);
	if ((r->address | (uintptr_t)r->memory.base) % sizeof(uint64_t))
		ops &= ~(UINT64_C(1) << FABRIC_ATOMIC); /* a word here may be none there */
	r->direct = (struct shortcut){
		.base = r->memory.base,
		.size = r->size,
		.rma = r->ep->rma,
		.stats = r->ep->stats,
	};
	r->measured = (uint32_t)ops;
	guess(r, r->memory.base);
}

void remote_close_shortcuts(struct context *ctx)
{
	for (uint32_t i = 0; i < ctx->count; i++)
		LIST_EACH(at, &ctx->endpoints[i]->memory.open) {
			struct remote *r = LIST_ENTRY(at, struct remote, node);

			if (r->direct.ops | r->measured) /* else other threads may look */
				r->direct.ops = r->measured = 0;
		}
}

/* It is not reached any more, except by requests. */
static void unmap(struct remote *r)
{
	struct endpoint *ep = r->ep;

	if (r->direct.base) {
		guess(r, NULL);
		r->direct = (struct shortcut){0};
		r->measured = 0;
	}
	if (r->memory.base) {
		ep->memory.maps--;
		ep->memory.mapped -= r->size;
	}
	if (ep->link.fabric->dereg)
		ep->link.fabric->dereg(ep->link.port->domain, &r->memory);
	r->memory.base = NULL;
	r->memory.ops = 0;
}

static bool may_map(const struct endpoint *ep, uint64_t size)
{
	const struct config *config = config_get();

	return ep->memory.maps < config->keys && size <= (uint64_t)config->map_max &&
	       ep->memory.mapped <= (uint64_t)config->map_max - size;
}

/* What the fabric makes of it; that it lacks something here makes the way longer, not wrong. */
static int reach(struct remote *r, const struct wire_grant *packet, struct received *got, bool lost)
{
	struct endpoint *ep = r->ep;
	struct fabric_blob blob = {.length = LITTLE_32(packet->blob_length), .fds = {-1, -1}};
	bool foreign = ep->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	int rc;

	if (blob.length > sizeof(blob.bytes) || got->fd_count > 1 ||
	    (!blob.length && got->fd_count))
		return -SLMPM_EPROTO;
	if (!blob.length || lost || !mode_reaches((enum mode_rma)config_get()->rma) ||
	    !ep->link.fabric->reg || (got->fd_count && !may_map(ep, r->size)))
		return 0;
	memcpy(blob.bytes, packet->blob, blob.length);
	blob.fd_count = got->fd_count;
	blob.fds[0] = got->fd_count ? got->fds[0] : -1;
	rc = ep->link.fabric->reg(ep->link.port, &r->memory, false, r->memory.writable, &blob);
	if (got->fd_count)
		got->fds[0] = blob.fds[0]; /* what the fabric took is -1 now */
	if (rc < 0)
		return -SLMPM_EPROTO;
	if (r->memory.base) {
		ep->memory.maps++;
		ep->memory.mapped += r->size;
	}
	if (foreign) /* in the owner's byte order, and so by the owner */
		r->memory.ops &= ~(UINT64_C(1) << FABRIC_ATOMIC);
	return 0;
}

struct granted { /* of a grant */
	uint32_t id, access;
	uint64_t size, address;
	const unsigned char *secret;
};

/* A region nobody has a key to yet; NULL with *RC. */
static struct remote *offer_new(struct endpoint *ep, const struct granted *told, int *rc)
{
	struct remote *r = NULL;

	*rc = -SLMPM_EPROTO;
	if (!ep->memory.agreed || !told->id || !told->access || told->access & ~SLMPM_READ_WRITE ||
	    !told->size || told->size > INT64_MAX || find(ep, told->id) ||
	    ep->memory.taken + link_owed(ep, WIRE_REGION_LET_GO) >= WIRE_KEYS_MAX)
		return NULL;
	r = calloc(1, sizeof(*r));
	*rc = -SLMPM_ENOMEM;
	if (!r)
		return NULL;
	r->ep = ep;
	r->ctx = ep->ctx;
	r->grant = told->id;
	r->access = told->access;
	r->size = r->memory.size = told->size;
	r->address = told->address;
	r->memory.writable = told->access & SLMPM_WRITE;
	memcpy(r->secret, told->secret, KEY_SECRET);
	list_init(&r->shared);
	return r;
}

static void offer_keep(struct remote *r)
{
	list_append(&r->ep->memory.offered, &r->node);
	r->ep->memory.taken++;
}

int memory_granted(struct endpoint *ep, struct received *got, bool lost)
{
	const struct wire_grant *packet = &got->packet.grant;
	const struct granted told = {
		.id = LITTLE_32(packet->grant),
		.access = LITTLE_32(packet->access),
		.size = LITTLE_64(packet->size),
		.address = LITTLE_64(packet->address),
		.secret = packet->secret,
	};
	struct remote *r;
	int rc;

	if (ep->state != SLMPM_PEER_UP)
		return 0; /* it comes too late */
	if (got->length != sizeof(*packet) || !link_maps(ep))
		return -SLMPM_EPROTO;
	r = offer_new(ep, &told, &rc);
	if (!r)
		return rc;
	if (reach(r, packet, got, lost) < 0) {
		free(r);
		return -SLMPM_EPROTO;
	}
	offer_keep(r);
	return 0;
}

int memory_granted_in_band(struct endpoint *ep, uint32_t id, const struct head *h)
{
	struct wire_granted granted;
	struct granted told = {.id = id, .secret = granted.secret};
	struct remote *r;
	int rc;

	if (h->length != sizeof(granted) || link_maps(ep))
		return -SLMPM_EPROTO;
	memcpy(&granted, h->data, sizeof(granted));
	told.access = LITTLE_32(granted.access);
	told.size = LITTLE_64(granted.size);
	told.address = LITTLE_64(granted.address);
	r = offer_new(ep, &told, &rc);
	if (!r)
		return rc;
	ep->memory.told = id;
	wait_changed(ep->ctx);
	offer_keep(r);
	return 0;
}

static void offer_free(struct remote *r)
{
	unmap(r);
	list_remove(&r->node);
	list_remove(&r->shared);
	free(r);
}

/* ---- opened --------------------------------------------------------------------------------- */

static bool is_key_of(const struct remote *r, const struct key *k)
{
	return r->access == k->access && r->size == k->size && r->address == k->address &&
	       key_same_secret(r->secret, k->secret);
}

struct remote *remote_offered(struct endpoint *ep, const struct slmpm_key *key, int *rc)
{
	struct key k;
	struct remote *r;

	*rc = 0;
	if (!key_read(key, &k)) {
		*rc = error_set(SLMPM_EINVAL, "these bytes are no key");
		return NULL;
	}
	r = find_in(&ep->memory.offered, k.grant);
	if (!r) {
		/* What goes ahead of a key may still wait in the socket. */
		bootstrap_read_ahead(ep);
		r = find_in(&ep->memory.offered, k.grant);
	}
	if (r && is_key_of(r, &k))
		return r;
	r = find_in(&ep->memory.open, k.grant);
	if (r && !r->revoked && is_key_of(r, &k))
		*rc = error_set(SLMPM_EBUSY, "this region of %s is open already", ep->name);
	else
		*rc = error_set(SLMPM_EACCES, "%s has no such key for us, or has taken it back",
				ep->name);
	return NULL;
}

int remote_open(struct remote *offer, slmpm_peer by, slmpm_rmem *rmem)
{
	struct endpoint *ep = offer->ep;
	struct remote *r = handle_new(&remote_table);

	if (!r)
		return error_set(SLMPM_ENOMEM, "for a region of %s", ep->name);
	if (r->ctx != offer->ctx) /* else who looks at the last one here is not disturbed */
		r->ctx = offer->ctx;
	r->ep = ep;
	r->grant = offer->grant;
	r->access = offer->access;
	r->size = offer->size;
	r->address = offer->address;
	r->memory = offer->memory;
	r->unmapped = offer->unmapped;
	memcpy(r->secret, offer->secret, KEY_SECRET);
	list_init(&r->shared);
	r->wish = mode_memory_wish(ep, endpoint_wish(by));
	open_shortcut(r);
	list_append(&ep->memory.open, &r->node);
	list_remove(&offer->node);
	list_remove(&offer->shared);
	free(offer);
	link_control(ep, WIRE_REGION_ACCEPTED, 0, r->grant, NULL, 0);
	rmem->id = handle_id(r);
	return 0;
}

/* By requests: in which way (SLMPM_RMA). */
static const char *const paths[] = {"ring", "ring", "am", "tag"};

int slmpm_rmem_query(slmpm_rmem rmem, struct slmpm_mem_info *info)
{
	struct remote *r;
	int rc = 0;

	if (!info || info->size < sizeof(*info))
		return error_set(SLMPM_EINVAL, "slmpm_rmem_query: set .size of the structure");
	r = remote_lock(rmem, &rc);
	if (!r)
		return rc;
	*info = (struct slmpm_mem_info){
		.size = info->size,
		.access = r->revoked ? 0 : r->access,
		.kind = SLMPM_MEM_HOST,
		.mapped = r->memory.base != NULL,
		.length = r->size,
		.address = r->address,
	};
	strcpy(info->path, r->revoked || r->ep->state != SLMPM_PEER_UP ? "none" :
			   r->memory.base                              ? "map" :
			   r->memory.ops                               ? "attach" :
									 paths[config_get()->rma]);
	context_unlock(r->ctx);
	return 0;
}

/* ---- let go --------------------------------------------------------------------------------- */

static void answer(struct remote *r, bool mapping)
{
	if (!mapping)
		r->ep->memory.taken--;
	unmap(r);
	link_control(r->ep, WIRE_REGION_LET_GO, mapping, r->grant, NULL, 0);
}

void memory_let_go(struct remote *r)
{
	uint8_t owed = r->owed;

	r->owed = 0;
	if (r->ep->state != SLMPM_PEER_UP) {
		unmap(r);
		return;
	}
	if (owed & LET_GO_MAPPING)
		answer(r, true);
	if (owed & LET_GO_ALL)
		answer(r, false);
}

void remote_taken_back(struct endpoint *ep, uint32_t id, bool mapping)
{
	struct remote *r = find(ep, id);

	if (!r) {
		bootstrap_read_ahead(ep);
		r = find(ep, id);
	}
	if (!r || r->revoked) /* released meanwhile: the owner reads of that instead */
		return;
	if (PEER_FAULT(mapping && r->unmapped)) {
		endpoint_poison(ep, "revocation of a mapping");
		return;
	}
	r->unmapped |= mapping;
	r->revoked |= !mapping;
	r->owed |= mapping ? LET_GO_MAPPING : LET_GO_ALL;
	if (!r->copying)
		memory_let_go(r);
	if (!mapping && !handle_is_live(r)) /* never opened */
		offer_free(r);
	wait_changed(ep->ctx);
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
	struct remote *r;
	int rc = 0;

	r = remote_lock(rmem, &rc);
	if (!r)
		return rc;
	ctx = r->ctx;
	if (r->active || r->copying) {
		rc = error_set(SLMPM_EBUSY, "%u operations on the region are under way", r->active);
	} else {
		if (r->ep->state == SLMPM_PEER_UP && !r->revoked) {
			r->ep->memory.taken--;
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
	LIST_EACH(at, &ep->memory.offered)
		offer_free(LIST_ENTRY(at, struct remote, node));
	LIST_EACH(at, &ep->memory.open) {
		struct remote *r = LIST_ENTRY(at, struct remote, node);

		if (r->copying)
			r->owed |= LET_GO_ALL; /* the mapping goes with the last of them */
		else
			unmap(r);
	}
}

void memory_forget(struct endpoint *ep)
{
	LIST_EACH(at, &ep->memory.open)
		remote_free(LIST_ENTRY(at, struct remote, node));
}
