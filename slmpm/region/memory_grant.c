/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grants: which peer may do what with which region. A table of the endpoint's finds one by its id,
 * the region's list finds them all; a grant that is taken back stays, refused to everybody, until
 * the peer has answered or ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "slmpm/base/bits.h"
#include "slmpm/base/error.h"
#include "slmpm/bond/secondary_state.h"
#include "slmpm/link/landing.h"
#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"
#include "slmpm/link/wait.h"
#include "slmpm/part.h"

#define ROOM_FIRST  8
#define GUESSES_MAX 16 /* requests with a key that never was */

/* ---- the table ------------------------------------------------------------------------------ */

static struct grant **slot(const struct endpoint *ep, uint32_t id)
{
	return &ep->rooms->regions->grants[id & (ep->rooms->regions->room - 1)];
}

static bool memory_grant_grow(struct endpoint *ep)
{
	uint32_t room = ep->rooms->regions->room ? ep->rooms->regions->room * 2 : ROOM_FIRST;
	struct grant **old = ep->rooms->regions->grants, **new = calloc(room, sizeof(*new));

	if (!new)
		return false;
	for (uint32_t i = 0; i < ep->rooms->regions->room; i++)
		if (old[i])
			new[old[i]->id & (room - 1)] = old[i];
	free(old);
	ep->rooms->regions->grants = new;
	ep->rooms->regions->room = room;
	return true;
}

static bool memory_grant_add(struct grant *g)
{
	struct endpoint *ep = g->ep;

	if (ep->rooms->regions->count >= ep->rooms->regions->room / 2 && !memory_grant_grow(ep))
		return false;
	do
		g->id = ++ep->rooms->regions->last;
	while (!g->id || *slot(ep, g->id));
	*slot(ep, g->id) = g;
	ep->rooms->regions->count++;
	return true;
}

static struct grant *memory_grant_find(const struct endpoint *ep, uint32_t id)
{
	struct grant *g = ep->rooms->regions->room ? *slot(ep, id) : NULL;

	return g && g->id == id ? g : NULL;
}

struct grant *grant_find(struct endpoint *ep, uint32_t id)
{
	struct grant *g = memory_grant_find(ep, id);

	return g && !g->ending ? g : NULL;
}

bool grant_address(struct endpoint *ep, uint32_t id, uint64_t *address)
{
	const struct grant *g = grant_find(ep, id);

	if (g && g->region)
		*address = (uint64_t)(uintptr_t)g->region->memory.base;
	return g && g->region;
}

/* ---- access words --------------------------------------------------------------------------- */

/*
 * One in the peer's own memory for each grant by which it reaches a region itself. The peer reads
 * it before each operation, so that a grant taken back has an end of which nobody has to be
 * notified first. A peer that sets words of its own harms its own operations.
 */
void grant_word_set(const struct grant *g, enum fabric_access access)
{
	if (g->has_word)
		link_set_access(g->ep, g->word, access);
}

static bool grant_word_take(struct grant *g)
{
	struct regions *all = g->ep->rooms->regions;

	if (!g->ep->link.port->access)
		return false;
	if (!all->words)
		all->words = calloc(FABRIC_ACCESS_WORDS / WORD_BITS, sizeof(*all->words));
	if (!all->words)
		return false;
	g->word = (uint32_t)bits_find(all->words, 0, FABRIC_ACCESS_WORDS, UINT64_MAX);
	g->has_word = g->word < FABRIC_ACCESS_WORDS;
	if (g->has_word) {
		all->words[g->word / WORD_BITS] |= UINT64_C(1) << g->word % WORD_BITS;
		grant_word_set(g, FABRIC_ACCESS_DIRECT);
	}
	return g->has_word;
}

/* A fabric whose owner's side does what the peer has begun (fabric_memory.later) stops doing it. */
static void grant_word_free(struct grant *g)
{
	if (!g->ending)
		grant_word_set(g, FABRIC_ACCESS_REVOKED);
	if (g->has_word)
		g->ep->rooms->regions->words[g->word / WORD_BITS] &=
			~(UINT64_C(1) << g->word % WORD_BITS);
	g->has_word = false;
}

/* Nothing is left of it here. */
static void grant_free(struct grant *g)
{
	struct endpoint *ep = g->ep;

	if (g->sharing)
		g->sharing->gone = true;
	if (g->region && g->mapped)
		g->region->exposed = true; /* its word that it is through is no proof */
	grant_word_free(g); /* the peer reads it no more: it has answered, or ended */
	list_remove(&g->of_region);
	if (memory_grant_find(ep, g->id) == g) {
		*slot(ep, g->id) = NULL;
		ep->rooms->regions->count--;
	}
	free(g);
	context_changed(ep->ctx);
}

/* ---- giving --------------------------------------------------------------------------------- */

/* What the peer needs to reach the region by itself, into BLOB; false: nothing. */
static bool describe_reach(struct grant *g, struct fabric_blob *blob)
{
	const struct fabric_domain *domain = secondary_memory(g->ep);
	const struct fabric *fabric = g->ep->link.fabric;
	struct fabric_memory *m = &g->region->memory;

	/* A fabric without memory of its own reaches any, but for counters. */
	if (!domain || g->region->word || (domain->fabric->alloc && g->region->domain != domain) ||
	    !fabric->reg || (m->allocated && g->region->exchanging))
		return false;
	/* What it did to a mirror by itself is not noticed here. */
	if (parts.mirrored(g->ep->ctx, m->base, m->size) || !grant_word_take(g))
		return false;
	blob->word = g->word;
	if (fabric->reg(g->ep->link.port, m, true, g->access & SLMPM_WRITE, blob) == 0 &&
	    (link_maps(g->ep) || blob->length <= WIRE_CONTROL_MAX - sizeof(struct wire_granted)))
		return true;
	grant_word_free(g);
	*blob = (struct fabric_blob){.fd = -1};
	return false;
}

static int send_grant(struct grant *g)
{
	struct fabric_memory *m = &g->region->memory;
	struct fabric_blob blob = {.fd = -1};
	bool reaches = describe_reach(g, &blob);
	struct wire_grant packet = {
		.key.grant = LITTLE_32(g->id),
		.key.access = LITTLE_32(g->access),
		.key.size = LITTLE_64(m->size),
		.key.address = LITTLE_64((uint64_t)(uintptr_t)m->base),
		.access_word = LITTLE_32(reaches ? g->word : 0),
		.blob_length = LITTLE_32(blob.length),
	};

	g->mapped = reaches && m->allocated && link_maps(g->ep);
	g->attached = reaches && !g->mapped;
	memcpy(packet.key.secret, g->secret, KEY_SECRET);
	if (!link_maps(g->ep)) { /* in the ring, in front of the key */
		unsigned char short_one[WIRE_CONTROL_MAX];

		memcpy(short_one, &packet.key, sizeof(packet.key));
		memcpy(short_one + sizeof(packet.key), blob.bytes, blob.length);
		link_control(g->ep, WIRE_REGION_GRANT, reaches ? g->word : 0, g->id, short_one,
			     (uint32_t)sizeof(packet.key) + blob.length);
		return 0;
	}
	memcpy(packet.blob, blob.bytes, blob.length);
	return parts.offer(g->ep, &packet, sizeof(packet), WIRE_GRANT, blob.fd);
}

static int may_give(struct region *region, struct endpoint *ep, uint32_t access)
{
	int64_t most = config_get()->keys;

	if (ep->ctx != region->ctx)
		return error_set(SLMPM_EINVAL, "%s belongs to another context than the region",
				 ep->life->name);
	if (!access || access & ~(SLMPM_READ_WRITE | SLMPM_COUNT))
		return error_set(SLMPM_EINVAL, "access %u to a region", access);
	if (access & ~region->access)
		return error_set(SLMPM_EACCES, "access %u to a region that gives %u", access,
				 region->access);
	if (region->destroying)
		return error_set(SLMPM_EBUSY, "the region is being destroyed");
	if (ep->state != SLMPM_PEER_UP)
		return endpoint_error(ep);
	if (!ep->rooms->regions->agreed)
		return error_set(SLMPM_ENOTSUP, "%s does not know regions", ep->life->name);
	if (ep->rooms->regions->count >= most)
		return error_set(SLMPM_ELIMIT, "%s holds %lld keys (SLMPM_KEYS)", ep->life->name,
				 (long long)most);
	return 0;
}

struct grant *grant_new(struct region *region, struct endpoint *ep, uint32_t access, int *rc)
{
	struct grant *g;

	*rc = may_give(region, ep, access);
	if (*rc < 0)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g) {
		*rc = error_set(SLMPM_ENOMEM, "for a key");
		return NULL;
	}
	list_init(&g->of_region);
	g->ep = ep;
	g->access = access;
	if (getrandom(g->secret, KEY_SECRET, 0) != KEY_SECRET)
		*rc = error_set(SLMPM_ESYSTEM, "no random bytes for a key");
	else if (!memory_grant_add(g))
		*rc = error_set(SLMPM_ENOMEM, "for a key");
	if (*rc == 0) {
		g->region = region;
		list_append(&region->grants, &g->of_region);
		*rc = send_grant(g);
		if (*rc == -EAGAIN || *rc == -ETOOMANYREFS || *rc == -ENOBUFS)
			*rc = error_set(SLMPM_EAGAIN, "%s has not taken the keys before yet",
					ep->life->name);
		else if (*rc == -EPIPE || *rc == -ECONNRESET)
			*rc = error_set(SLMPM_EAGAIN, "%s is hanging up", ep->life->name);
		else if (*rc < 0)
			*rc = error_system(*rc, "a region cannot be offered");
		if (*rc < 0)
			g->mapped = false;
	}
	if (*rc == 0)
		return g;
	grant_free(g);
	return NULL;
}

/* ---- taking back ---------------------------------------------------------------------------- */

void grant_take_back(struct grant *g, uint8_t opcode)
{
	g->ending = true;
	g->releasing_mapping = false;
	grant_word_set(g, FABRIC_ACCESS_REVOKED);
	landing_moved(g->ep);
	if (g->sharing)
		g->sharing->gone = true;
	g->sharing = NULL;
	parts.revoked(g->ep, g->id);
	link_control_whole(g->ep, opcode, 0, parts.received(g->ep), g->id, NULL, 0);
	context_changed(g->ep->ctx); /* another thread may wait for just this one */
}

/* Has ID been given to a grant? Answers to what has been forgotten since are no offence; to what
 * never was, are. */
static bool is_given(const struct endpoint *ep, uint32_t id)
{
	uint32_t start = (uint32_t)endpoint_start(ep);

	return id && id - start - 1 < ep->rooms->regions->last - start;
}

const char *grant_accepted(struct endpoint *ep, uint32_t id)
{
	struct grant *g = memory_grant_find(ep, id);

	if (PEER_FAULT(g ? g->accepted : !is_given(ep, id)))
		return "acceptance of a region";
	if (!g)
		return NULL;
	g->accepted = true;
	if (g->sharing)
		g->sharing->accepted = true;
	g->sharing = NULL;
	context_changed(ep->ctx);
	return NULL;
}

const char *grant_answered(struct endpoint *ep, uint32_t id, bool released, bool mapping)
{
	struct grant *g = memory_grant_find(ep, id);

	if (PEER_FAULT(g ? !released && !g->ending && !(mapping && g->releasing_mapping) :
			   !is_given(ep, id)))
		return "answer about a region";
	if (!g)
		return NULL;
	if (!mapping) {
		grant_free(g);
		return NULL;
	}
	if (g->releasing_mapping && g->region)
		g->region->exposed = true;
	g->mapped &= !g->releasing_mapping;
	g->attached &= !g->releasing_mapping;
	g->releasing_mapping = false;
	context_changed(ep->ctx);
	return NULL;
}

/* ---- a peer's requests ---------------------------------------------------------------------- */

struct grant *region_check(struct endpoint *ep, uint32_t id, const unsigned char *secret,
			   uint32_t access, uint64_t offset, uint64_t len, int *status)
{
	static const struct grant none;
	/* Masked by the table's size: no speculation beyond it. */
	struct grant *g = memory_grant_find(ep, id);
	bool same = key_same_secret(g ? g->secret : none.secret, secret);
	uint64_t size;

	*status = -SLMPM_EACCES;
	if (!g || !same || g->ending || access & ~g->access) {
		/* A key that was never given is a guess, and there are not many (2^-128 each). */
		if ((g ? !same : !is_given(ep, id)) &&
		    ++ep->rooms->regions->guesses >= GUESSES_MAX && !ep->link.broken)
			endpoint_break(ep, "key to a region, again and again");
		ep->stats->refused++;
		return NULL;
	}
	size = g->region->memory.size;
	if (offset > size || len > size - offset) {
		*status = -SLMPM_EINVAL;
		ep->stats->refused++;
		return NULL;
	}
	*status = 0;
	return g;
}

/* ---- the endpoint's ends -------------------------------------------------------------------- */

static bool nobody_attached(void *arg)
{
	const struct peer_wait *w = arg;
	const struct regions *all = w->ep->rooms->regions;

	if (endpoint_of(w->peer) != w->ep || w->ep->state != SLMPM_PEER_UP)
		return true;
	for (uint32_t i = 0; i < all->room; i++)
		if (all->grants[i] && all->grants[i]->attached)
			return false;
	return true;
}

int memory_close(struct endpoint *ep, int timeout_ms)
{
	struct peer_wait w = {ep, {handle_id(ep)}, 0};

	for (uint32_t i = 0; i < ep->rooms->regions->room; i++) {
		struct grant *g = ep->rooms->regions->grants[i];

		if (g && g->attached && !g->ending)
			grant_take_back(g, WIRE_REGION_REVOKED);
	}
	if (nobody_attached(&w) || wait_until(ep->ctx, nobody_attached, &w, timeout_ms) == 0)
		return 0;
	return error_set(SLMPM_ETIMEOUT, "%s has not released registered memory", ep->life->name);
}

void grant_end_all(struct endpoint *ep)
{
	for (uint32_t i = 0; i < ep->rooms->regions->room; i++)
		if (ep->rooms->regions->grants[i])
			grant_free(ep->rooms->regions->grants[i]);
	free(ep->rooms->regions->grants);
	free(ep->rooms->regions->words);
	ep->rooms->regions->grants = NULL;
	ep->rooms->regions->words = NULL;
	ep->rooms->regions->room = ep->rooms->regions->count = 0;
}
