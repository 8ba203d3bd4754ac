/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking back what a peer was given. Pages that it has mapped cannot be taken out of its hands, so
 * the region goes on with fresh ones, and the mappings of all others go first.
 */
#include "slmpm/error.h"
#include "slmpm/link/link.h"
#include "slmpm/memory/memory.h"
#include "slmpm/wait.h"

struct revocation {
	struct context *ctx;
	slmpm_mem mem;
	const struct endpoint *ep;
};

/* Those who are to go on without the mapping have let go of it, and the revoked peer of what it
 * reaches without one. */
static bool is_quiet(void *arg)
{
	const struct revocation *v = arg;
	const struct region *region = region_get(v->mem);

	if (!region)
		return true;
	LIST_EACH(at, &region->grants) {
		const struct grant *g = LIST_ENTRY(at, struct grant, of_region);

		if (g->ep == v->ep ? g->ending && g->attached : g->letting)
			return false;
	}
	return true;
}

/* The others' mappings go, too: they show the old pages. */
static void ask_others(const struct region *region, const struct endpoint *ep)
{
	LIST_EACH(at, &region->grants) {
		struct grant *g = LIST_ENTRY(at, struct grant, of_region);

		if (g->ep == ep || !g->mapped || g->ending || g->letting)
			continue;
		g->letting = true;
		link_control(g->ep, WIRE_REGION_REVOKED, 1, g->id, NULL, 0);
	}
}

static int exchange_pages(struct region *region)
{
	int rc;

	/* One that does not answer would go on writing where nobody reads. */
	LIST_EACH(at, &region->grants) {
		struct grant *g = LIST_ENTRY(at, struct grant, of_region);

		if (g->letting)
			grant_take_back(g, WIRE_REGION_REVOKED);
	}
	rc = region->domain->fabric->alloc(region->domain, &region->memory);
	if (rc < 0)
		return error_system(rc, "fresh pages for a region are not to be had");
	LIST_EACH(at, &region->grants)
		LIST_ENTRY(at, struct grant, of_region)->mapped = false;
	region->exposed = false;
	return 0;
}

static int revoke(struct revocation *v, int timeout_ms)
{
	struct region *region = region_get(v->mem);
	bool exchange = region->exposed;
	int rc;

	LIST_EACH(at, &region->grants) {
		struct grant *g = LIST_ENTRY(at, struct grant, of_region);

		if (g->ep != v->ep)
			continue;
		exchange |= g->mapped;
		if (!g->ending)
			grant_take_back(g, WIRE_REGION_REVOKED);
	}
	exchange &= region->memory.allocated;
	region->exchanging += exchange;
	if (exchange)
		ask_others(region, v->ep);
	rc = is_quiet(v) ? 0 : wait_until(v->ctx, is_quiet, v, timeout_ms);
	region = region_get(v->mem);
	if (!region)
		return handle_error(&region_table, v->mem.id);
	region->exchanging -= exchange;
	if (exchange)
		return exchange_pages(region);
	return rc < 0 ? error_set(SLMPM_ETIMEOUT,
				  "a peer that reaches the memory by itself has not let go of it") :
			0;
}

int slmpm_mem_revoke(slmpm_mem mem, slmpm_peer peer, int timeout_ms)
{
	struct revocation v = {.mem = mem, .ep = endpoint_of(peer)};
	const struct region *region;
	int rc = 0;

	region = region_lock(mem, &rc);
	if (!region)
		return rc;
	v.ctx = region->ctx;
	rc = wait_forbidden(v.ctx, "slmpm_mem_revoke");
	if (rc == 0 && (!v.ep || endpoint_of(peer) != v.ep))
		rc = endpoint_bad_handle(peer);
	else if (rc == 0 && v.ep->ctx != v.ctx)
		rc = error_set(SLMPM_EINVAL, "%s belongs to another context than the region",
			       v.ep->name);
	if (rc == 0)
		rc = revoke(&v, timeout_ms);
	context_unlock(v.ctx);
	return rc;
}
