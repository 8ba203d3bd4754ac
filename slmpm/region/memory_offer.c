/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets about regions, and offers: peers' regions that nobody here has opened yet, announced
 * ahead of their keys. All that a peer can make this process hold is counted; beyond SLMPM_KEYS
 * mappings or SLMPM_MAP_MAX bytes of them its regions are reached by requests.
 */
#include <stdlib.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"

static bool may_map(const struct endpoint *ep, uint64_t size)
{
	const struct config *config = config_get();

	return ep->rooms->regions->maps < config->keys && size <= (uint64_t)config->map_max &&
	       ep->rooms->regions->mapped <= (uint64_t)config->map_max - size;
}

/* What the fabric makes of BLOB, whose descriptor it takes or leaves; WORD: the access word. What
 * is missing here makes the route longer, not wrong. LOST: the descriptor found no room here. */
static int memory_offer_reach(struct remote *r, struct fabric_blob *blob, uint64_t word, bool lost)
{
	struct endpoint *ep = r->ep;
	bool foreign = ep->life->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);

	if ((!blob->length && (blob->fd >= 0 || word)) || word >= FABRIC_ACCESS_WORDS ||
	    (blob->length && r->access == SLMPM_COUNT)) /* counted by its owner alone */
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

/* A counter is one word. */
static bool may_be_access(uint32_t access, uint64_t size)
{
	return access == SLMPM_COUNT ? size == sizeof(uint64_t) :
				       access && !(access & ~SLMPM_READ_WRITE);
}

/* A region nobody has a key to yet; NULL with *RC. */
static struct remote *offer_new(struct endpoint *ep, const struct wire_granted *granted, int *rc)
{
	uint32_t id = LITTLE_32(granted->grant), access = LITTLE_32(granted->access);
	uint64_t size = LITTLE_64(granted->size);
	struct remote *r = NULL;

	*rc = -SLMPM_EPROTO;
	if (!ep->rooms->regions->agreed || !id || !may_be_access(access, size) || !size ||
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

/* Takes an offer. The descriptor in BLOB is -1 afterwards if it was taken. */
static int offer_take(struct endpoint *ep, const struct wire_granted *granted,
		      struct fabric_blob *blob, uint64_t word, bool lost)
{
	int rc;
	struct remote *r = offer_new(ep, granted, &rc);

	if (!r)
		return rc;
	rc = memory_offer_reach(r, blob, word, lost);
	if (rc < 0) {
		free(r);
		return rc;
	}
	list_append(&ep->rooms->regions->offered, &r->node);
	ep->rooms->regions->taken++;
	return 0;
}

int memory_granted(struct endpoint *ep, const struct wire_grant *packet, size_t length, int *fd,
		   bool lost)
{
	struct fabric_blob blob = {.fd = *fd};
	int rc;

	if (ep->state != SLMPM_PEER_UP)
		return 0; /* it comes too late */
	blob.length = length == sizeof(*packet) ? LITTLE_32(packet->blob_length) : UINT32_MAX;
	if (blob.length > sizeof(blob.bytes) || packet->zero || !link_maps(ep))
		return -SLMPM_EPROTO;
	memcpy(blob.bytes, packet->blob, blob.length);
	rc = offer_take(ep, &packet->key, &blob, LITTLE_32(packet->access_word), lost);
	*fd = blob.fd;
	return rc;
}

/* ---- packets -------------------------------------------------------------------------------- */

/* The same in a ring, of a peer whose memory nobody maps. */
static const char *granted_in_band(struct endpoint *ep, uint32_t id, const struct head *h)
{
	static const char rule[] = "granted region";
	struct fabric_blob blob = {.fd = -1};
	struct wire_granted granted;
	int rc;

	if (h->length < sizeof(granted) || h->length > WIRE_CONTROL_MAX || link_maps(ep))
		return rule;
	memcpy(&granted, h->data, sizeof(granted));
	blob.length = h->length - (uint32_t)sizeof(granted);
	memcpy(blob.bytes, (const unsigned char *)h->data + sizeof(granted), blob.length);
	if (LITTLE_32(granted.grant) != id)
		return rule;
	rc = offer_take(ep, &granted, &blob, h->seq, false);
	if (rc == -SLMPM_ENOMEM)
		endpoint_lacks_memory(ep, "no memory for its regions");
	if (rc < 0)
		return rc == -SLMPM_ENOMEM ? NULL : rule;
	ep->rooms->regions->notified = id;
	context_changed(ep->ctx);
	return NULL;
}

static const char *offered(struct endpoint *ep, const struct head *h)
{
	struct slmpm_key key;
	struct remote *r;
	int rc;

	if (PEER_FAULT(h->length != sizeof(key.bytes)))
		return "length of an offered region";
	memcpy(key.bytes, h->data, sizeof(key.bytes));
	r = remote_offered(ep, &key, &rc);
	if (PEER_FAULT(!r || !list_empty(&r->shared)))
		return "key of an offered region";
	list_append(&ep->rooms->regions->shared, &r->shared);
	context_changed(ep->ctx);
	return NULL;
}

/* The rule that the packet breaks; or NULL. */
static const char *region_arrival(struct endpoint *ep, const struct head *h)
{
	uint64_t id = h->extent & WIRE_LENGTH_MASK;

	if (PEER_FAULT(!ep->rooms->regions->agreed ||
		       (h->seq > 1 && h->opcode != WIRE_REGION_GRANT) || id > UINT32_MAX ||
		       (h->opcode != WIRE_REGION_OFFER && h->opcode != WIRE_REGION_GRANT &&
			h->length)))
		return "packet about a region";
	switch (h->opcode) {
	case WIRE_REGION_GRANT: return granted_in_band(ep, (uint32_t)id, h);
	case WIRE_REGION_OFFER: return offered(ep, h);
	case WIRE_REGION_ACCEPTED: return grant_accepted(ep, (uint32_t)id);
	case WIRE_REGION_RELEASED: return grant_answered(ep, (uint32_t)id, true, false);
	case WIRE_REGION_UNMAPPED: return grant_answered(ep, (uint32_t)id, false, h->seq);
	default:
		return remote_taken_back(ep, (uint32_t)id, h->seq,
					 h->stream | (uint64_t)h->imm << 32);
	}
}

void memory_arrival(struct endpoint *ep, const struct head *h)
{
	const char *rule = region_arrival(ep, h);

	if (rule)
		endpoint_poison(ep, rule);
}
