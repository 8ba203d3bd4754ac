/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters as regions: of one word, which is reached by atomic requests alone, so that who
 * waits for the counter learns of each. Keys, offers and their ends are those of any region.
 */
#include "slmpm/base/error.h"
#include "slmpm/completion/queue.h"
#include "slmpm/region/memory.h"

static struct region *region_of(struct counter *c)
{
	struct region *region = c->region;

	if (region)
		return region;
	region = region_new(c->ctx, SLMPM_COUNT);
	if (!region)
		return NULL;
	region->domain = NULL; /* no fabric reaches it */
	region->memory.size = sizeof(c->done);
	region->word = c;
	c->region = region;
	return region;
}

int slmpm_ctr_mem(slmpm_ctr ctr, slmpm_mem *mem)
{
	const struct region *region;
	struct counter *c;
	int rc = 0;

	if (!mem)
		return error_set(SLMPM_EINVAL, "slmpm_ctr_mem: no place for the handle");
	c = context_lock_object(&counter_table, ctr.id, &rc);
	if (!c)
		return rc;
	region = region_of(c);
	if (region)
		mem->id = handle_id(region);
	context_unlock(c->ctx);
	return region ? 0 : -SLMPM_ENOMEM;
}

void region_uncounted(struct counter *c)
{
	struct region *region = c->region;

	LIST_EACH_ENTRY(struct grant, g, &region->grants, of_region)
		if (!g->ending)
			grant_take_back(g, WIRE_REGION_REVOKED);
	region_free(region);
}
