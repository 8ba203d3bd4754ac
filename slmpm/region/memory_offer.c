/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offers: peers' regions that nobody here has opened yet, told of over the control socket ahead of their
 * keys. All that a peer can make this process hold is counted; beyond SLMPM_KEYS mappings or
 * SLMPM_MAP_MAX bytes of them its regions are reached by requests.
 */
#include <stdlib.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"
#include "slmpm/link/wait.h"

static bool may_map(const struct endpoint *ep, uint64_t size)
{
	const struct config *config = config_get();

	return ep->rooms->regions->maps < config->keys && size <= (uint64_t)config->map_max &&
	       ep->rooms->regions->mapped <= (uint64_t)config->map_max - size;
}

/* What the fabric makes of BLOB, whose descriptor it takes or leaves; WORD of this side's speaks of the region. That it
 * lacks something here makes the way longer, not wrong. LOST: the descriptor found no room here. */
static int memory_offer_reach(struct remote *r, struct fabric_blob *blob, uint64_t word, bool lost)
{
	struct endpoint *ep = r->ep;
	bool foreign = ep->life->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);

	if ((!blob->length && (blob->fd >= 0 || word)) || word >= FABRIC_ACCESS_WORDS)
		return -SLMPM_EPROTO;
	if (!blob->length || lost || !mode_reaches((enum mode_rma)config_get()->rma) ||
	    !ep->link.fabric->reg || !ep->link.port->access ||
	    (blob->fd >= 0 && !may_map(ep, r->memory.size)))
		return 0;
	if (ep->link.fabric->reg(ep->link.port, &r->memory, false, r->memory.writable, blob) < 0)
		return -SLMPM_EPROTO;
	r->access_word = ep->link.port->access + word;
	if (r->memory.base) {
		ep->rooms->regions->maps++;
		ep->rooms->regions->mapped += r->memory.size;
	}
	if (foreign) { /* in the owner's byte order, and so by the owner */
		r->memory.ops &= ~(UINT32_C(1) << FABRIC_ATOMIC);
		r->memory.later &= ~(UINT32_C(1) << FABRIC_ATOMIC);
	}
	return 0;
}

/* A region nobody has a key to yet; NULL with *RC. */
static struct remote *offer_new(struct endpoint *ep, const struct wire_granted *granted, int *rc)
{
	uint32_t id = LITTLE_32(granted->grant), access = LITTLE_32(granted->access);
	uint64_t size = LITTLE_64(granted->size);
	struct remote *r = NULL;

	*rc = -SLMPM_EPROTO;
	if (!ep->rooms->regions->agreed || !id || !access || access & ~SLMPM_READ_WRITE || !size ||
	    size > INT64_MAX || remote_find(ep, id) ||
	    ep->rooms->regions->taken + link_deferred(ep, WIRE_REGION_UNMAPPED) >= WIRE_KEYS_MAX)
		return NULL;
	r = calloc(1, sizeof(*r));
	*rc = -SLMPM_ENOMEM;
	if (!r)
		return NULL;
	r->ep = ep;
	r->ctx = ep->ctx;
	r->grant = id;
	r->access = (uint8_t)access;
	r->memory.size = size;
	r->address = LITTLE_64(granted->address);
	r->memory.writable = access & SLMPM_WRITE;
	memcpy(r->secret, granted->secret, KEY_SECRET);
	list_init(&r->shared);
	return r;
}

static void offer_keep(struct remote *r)
{
	list_append(&r->ep->rooms->regions->offered, &r->node);
	r->ep->rooms->regions->taken++;
}

int memory_granted(struct endpoint *ep, const struct wire_grant *packet, size_t length, int *fd,
		   bool lost)
{
	struct fabric_blob blob = {.fd = *fd};
	struct remote *r;
	int rc;

	if (ep->state != SLMPM_PEER_UP)
		return 0; /* it comes too late */
	blob.length = length == sizeof(*packet) ? LITTLE_32(packet->blob_length) : UINT32_MAX;
	if (blob.length > sizeof(blob.bytes) || packet->zero || !link_maps(ep))
		return -SLMPM_EPROTO;
	memcpy(blob.bytes, packet->blob, blob.length);
	r = offer_new(ep, &packet->key, &rc);
	if (!r)
		return rc;
	rc = memory_offer_reach(r, &blob, LITTLE_32(packet->access_word), lost);
	*fd = blob.fd; /* what the fabric took is -1 now */
	if (rc < 0) {
		free(r);
		return rc;
	}
	offer_keep(r);
	return 0;
}

int memory_granted_in_band(struct endpoint *ep, uint32_t id, const struct head *h)
{
	struct fabric_blob blob = {.fd = -1};
	struct wire_granted granted;
	struct remote *r;
	int rc;

	if (h->length < sizeof(granted) || h->length > WIRE_CONTROL_MAX || link_maps(ep))
		return -SLMPM_EPROTO;
	memcpy(&granted, h->data, sizeof(granted));
	blob.length = h->length - (uint32_t)sizeof(granted);
	memcpy(blob.bytes, (const unsigned char *)h->data + sizeof(granted), blob.length);
	if (LITTLE_32(granted.grant) != id)
		return -SLMPM_EPROTO;
	r = offer_new(ep, &granted, &rc);
	if (!r)
		return rc;
	rc = memory_offer_reach(r, &blob, h->seq, false);
	if (rc < 0) {
		free(r);
		return rc;
	}
	ep->rooms->regions->notified = id;
	context_changed(ep->ctx);
	offer_keep(r);
	return 0;
}
