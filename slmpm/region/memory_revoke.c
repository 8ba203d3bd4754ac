/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking back what a peer was given. Its access words say so first, so that it begins nothing more
 * by itself. Pages that it has mapped cannot be taken out of its hands, so the region goes on with
 * fresh ones, and the mappings of all others go first.
 *
 * Until the last byte has been copied nothing is revoked, only suspended: who operates meanwhile
 * asks the owner, whose answer comes when the call has ended, one way or the other. So a call that
 * finds that its time is over undoes what it has done, and nobody has noticed.
 */
#include <errno.h>
#include <string.h>

#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/link.h"
#include "slmpm/region/memory.h"
#include "slmpm/link/wait.h"

struct revocation {
	struct context *ctx;
	slmpm_mem mem;
	const struct endpoint *ep; /* another peer may have the object before the call ends */
	uint64_t peer;             /* handle of the one that was named */
	uint32_t last;             /* id of the peer's youngest grant then: later ones stay */
	int timeout_ms;
	uint64_t deadline; /* ns; 0: none */
	uint64_t copying;  /* ns: kept for the copy, as fresh pages have taken */
	struct fabric_memory fresh;
};

/* Is G one that the peer had when the call began? */
static bool is_meant(const struct revocation *v, const struct grant *g)
{
	return g->ep == v->ep && handle_id(g->ep) == v->peer && (int32_t)(v->last - g->id) >= 0;
}

/* Does the peer have pages of the region, or may somebody who has no grant any more? */
static bool is_exposed(const struct revocation *v, const struct region *region)
{
	bool mapped = region->exposed;

	LIST_EACH_ENTRY(const struct grant, g, &region->grants, of_region)
		mapped |= is_meant(v, g) && g->mapped;
	return mapped && region->memory.allocated;
}

/* ---- suspended ------------------------------------------------------------------------------ */

/* Goes on without the mapping, or the address: by requests. */
static void ask_to_release(struct grant *g)
{
	if ((!g->mapped && !g->attached) || g->ending || g->releasing_mapping)
		return;
	g->releasing_mapping = true;
	link_control(g->ep, WIRE_REGION_REVOKED, 1, g->id, NULL, 0);
}

static void suspend(const struct revocation *v, struct region *region, bool exchange)
{
	LIST_EACH_ENTRY(struct grant, g, &region->grants, of_region) {
		bool revoked = is_meant(v, g);

		if (g->ending || (!revoked && !(exchange && g->mapped)))
			continue;
		grant_word_set(g, FABRIC_ACCESS_REQUEST);
		if (revoked ? g->attached : exchange)
			ask_to_release(g);
	}
}

/* Calls in other threads may have suspended some, too: the last of all goes by here. */
static void resume(const struct region *region)
{
	if (region->revoking)
		return;
	LIST_EACH_ENTRY(const struct grant, g, &region->grants, of_region)
		if (!g->ending)
			grant_word_set(g, FABRIC_ACCESS_DIRECT);
}

static void count_revoking(const struct revocation *v, struct region *region, uint32_t more)
{
	region->revoking += more;
	LIST_EACH_ENTRY(struct grant, g, &region->grants, of_region)
		if (is_meant(v, g))
			g->revoking += more;
}

/* Those who are to go on without the mapping have released it, and the revoked peer of what it
 * reaches without one. */
static bool is_quiet(void *arg)
{
	const struct revocation *v = arg;
	const struct region *region = region_get(v->mem);

	if (!region)
		return true;
	if (region->storing)
		return false;
	LIST_EACH_ENTRY(const struct grant, g, &region->grants, of_region)
		if (is_meant(v, g) ? g->attached : g->releasing_mapping)
			return false;
	return true;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static int memory_revoke_too_late(const struct revocation *v, const char *what)
{
	return late_error(v->ctx, NULL, v->timeout_ms, "nothing is revoked: %s", what);
}

static int make_fresh(struct revocation *v, const struct region *region)
{
	uint64_t began = clock_now();
	int rc;

	v->fresh = (struct fabric_memory){
		.size = region->memory.size,
		.writable = region->memory.writable,
		.deadline = v->deadline,
	};
	rc = region->domain->fabric->alloc(region->domain, &v->fresh);
	/* The first step is made whatever the time. */
	v->copying = region->memory.size > FABRIC_ALLOC_STEP ? clock_now() - began : 0;
	if (rc == -ETIMEDOUT)
		return memory_revoke_too_late(v, "the time was over before there were fresh pages");
	return rc < 0 ? error_system(rc, "fresh pages for a region are not to be had") : 0;
}

static int memory_revoke_copy(const struct revocation *v, const struct region *region)
{
	const uint64_t size = region->memory.size;

	for (uint64_t at = 0; at < size; at += FABRIC_ALLOC_STEP) {
		uint64_t n = size - at < FABRIC_ALLOC_STEP ? size - at : FABRIC_ALLOC_STEP;

		if (at && v->deadline && clock_now() >= v->deadline)
			return memory_revoke_too_late(
				v, "the time was over before the region was copied");
		memcpy((unsigned char *)v->fresh.base + at, region_at(region, at), n);
	}
	return 0;
}

static int exchange_pages(struct revocation *v, struct region *region)
{
	int rc = memory_revoke_copy(v, region);

	if (rc < 0)
		return rc;
	region->memory.fresh = &v->fresh;
	rc = region->domain->fabric->alloc(region->domain, &region->memory);
	region->memory.fresh = NULL;
	if (rc < 0)
		return error_system(rc, "fresh pages for a region cannot take their place");
	LIST_EACH_ENTRY(struct grant, g, &region->grants, of_region) {
		g->mapped = false;
		if (g->releasing_mapping) /* no answer: what it does reaches nothing any more */
			grant_take_back(g, WIRE_REGION_REVOKED);
	}
	region->exposed = false;
	return 0;
}

/* ---- the call ------------------------------------------------------------------------------- */

/* For the copy: twice what the fresh pages took, and a quarter of the rest where that is more, for
 * a copy may be slower. */
static uint64_t time_to_copy(const struct revocation *v, uint64_t now)
{
	uint64_t part = v->deadline > now ? (v->deadline - now) / 4 : 0;

	return !v->copying ? 0 : 2 * v->copying > part ? 2 * v->copying : part;
}

/* Long enough for the answers; what is left is for the copy. */
static void await_quiet(struct revocation *v)
{
	uint64_t now = clock_now(), until = v->deadline - time_to_copy(v, now);
	int most = !v->deadline ? -1 : until > now ? clock_ms(now, until, -1) : 0;

	if (!is_quiet(v))
		(void)wait_until(v->ctx, is_quiet, v, most);
}

/* What had to be waited for has been, or is late. */
static int memory_revoke_conclude(struct revocation *v, struct region *region)
{
	/* Another call may have exchanged them meanwhile. */
	bool exchange = is_exposed(v, region) && v->fresh.base;
	int rc;

	if (region->storing || (!v->fresh.base && !is_quiet(v)))
		return memory_revoke_too_late(
			v, "a process that reaches the memory by itself has not released it");
	suspend(v, region, exchange); /* another call may have resumed them */
	rc = exchange ? exchange_pages(v, region) : 0;
	if (rc < 0)
		return rc;
	LIST_EACH_ENTRY(struct grant, g, &region->grants, of_region)
		if (is_meant(v, g) && !g->ending)
			grant_take_back(g, WIRE_REGION_REVOKED);
	return 0;
}

static int revoke(struct revocation *v)
{
	struct region *region = region_get(v->mem);
	bool exchange = is_exposed(v, region);
	struct fabric_domain *domain = region->domain;
	int rc = exchange ? make_fresh(v, region) : 0;

	if (rc < 0)
		return rc;
	region->exchanging += exchange;
	count_revoking(v, region, 1);
	suspend(v, region, exchange);
	await_quiet(v);
	region = region_get(v->mem);
	if (region) {
		rc = memory_revoke_conclude(v, region);
		region->exchanging -= exchange;
		count_revoking(v, region, UINT32_MAX);
		resume(region);
	} else {
		rc = handle_error(&region_table, v->mem.id);
	}
	if (v->fresh.base)
		domain->fabric->dereg(domain, &v->fresh);
	return rc;
}

int slmpm_mem_revoke(slmpm_mem mem, slmpm_peer peer, int timeout_ms)
{
	struct revocation v = {.mem = mem, .ep = endpoint_of(peer), .timeout_ms = timeout_ms};
	int rc = 0;
	const struct region *region = region_lock(mem, &rc);

	if (!region)
		return rc;
	v.ctx = region->ctx;
	v.deadline = timeout_ms < 0 ? 0 : clock_deadline(timeout_ms);
	rc = context_forbids(v.ctx, "slmpm_mem_revoke");
	if (rc == 0 && (!v.ep || endpoint_of(peer) != v.ep))
		rc = endpoint_bad_handle(peer);
	else if (rc == 0 && v.ep->ctx != v.ctx)
		rc = error_set(SLMPM_EINVAL, "the peer belongs to another context than the region");
	if (rc == 0) {
		v.peer = handle_id(v.ep);
		v.last = v.ep->rooms->regions->last;
		rc = revoke(&v);
	}
	context_unlock(v.ctx);
	return rc;
}
