/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of this process: made, registered, described, ended. */
#include "slmpm/region/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "slmpm/completion/completion.h"
#include "slmpm/domain.h"
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/completion/queue.h"
#include "slmpm/base/sized.h"
#include "slmpm/link/wait.h"

struct handle_table region_table = HANDLE_TABLE_FROM("memory region", struct region, node);

/* ---- coming to be --------------------------------------------------------------------------- */

static int memory_check(const char *call, const void *out, size_t size, uint32_t access)
{
	if (!out)
		return error_set(SLMPM_EINVAL, "%s: nowhere to put the handle", call);
	if (!access || access & ~SLMPM_READ_WRITE)
		return error_set(SLMPM_EINVAL, "%s: access %u", call, access);
	if (!size)
		return error_set(SLMPM_EINVAL, "%s: a region of no bytes", call);
	return 0;
}

struct region *region_new(struct context *ctx, uint32_t access)
{
	struct region *region = handle_new(&region_table);

	if (!region) {
		error_set(SLMPM_ENOMEM, "for a memory region");
		return NULL;
	}
	if (region->ctx != ctx) /* else who reads the last one here is not disturbed */
		context_own(&region->ctx, ctx);
	region->access = access;
	region->domain = domain_with_memory(ctx);
	region->memory.writable = access & SLMPM_WRITE;
	list_init(&region->grants);
	list_append(&ctx->regions, &region->node);
	return region;
}

/* Memory that no fabric maps is the process's own. */
static int allocate(struct region *region)
{
	struct fabric_memory *m = &region->memory;
	struct sysinfo machine;
	void *base;

	/* Its pages are taken at once: of more than there are the kernel would end processes. */
	if (sysinfo(&machine) != 0 ||
	    m->size / machine.mem_unit > (uint64_t)machine.totalram + machine.totalswap)
		return -ENOMEM;
	if (region->domain)
		return region->domain->fabric->alloc(region->domain, m);
	base = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	m->base = base;
	return 0;
}

static void forget_notified(struct region *region)
{
	if (region->counter)
		region->counter->users--;
	if (region->queue)
		region->queue->users--;
	region->counter = NULL;
	region->queue = NULL;
}

void region_free(struct region *region)
{
	struct fabric_memory *m = &region->memory;
	struct fabric_domain *domain = region->domain;

	LIST_EACH_ENTRY(struct grant, g, &region->grants, of_region) {
		list_remove(&g->of_region);
		g->region = NULL; /* it ends with the peer's answer */
	}
	if (region->allocated && m->base && !m->allocated)
		(void)munmap(m->base, m->size);
	else if (domain)
		domain->fabric->dereg(domain, m);
	forget_notified(region);
	if (region->word)
		region->word->region = NULL;
	list_remove(&region->node);
	handle_free(&region_table, region);
}

/* Of SIZE bytes at *BASE; with NULL there they are allocated, and their place is put there. */
static int region_make(slmpm_ctx handle, void **base, size_t size, uint32_t access, slmpm_mem *mem)
{
	struct region *region;
	int rc = 0;
	struct context *ctx = context_get(handle, &rc);

	if (!ctx)
		return rc;
	context_lock(ctx);
	region = region_new(ctx, access);
	if (region) {
		region->allocated = !*base;
		region->memory.base = *base;
		region->memory.size = size;
		rc = region->allocated ? allocate(region) : 0;
		if (rc < 0) {
			rc = error_system(rc, "memory for a region is not to be had");
			region_free(region);
		} else {
			mem->id = handle_id(region);
			*base = region->memory.base;
		}
	}
	context_unlock(ctx);
	return region ? rc : -SLMPM_ENOMEM;
}

int slmpm_mem_alloc(slmpm_ctx ctx, size_t size, uint32_t access, slmpm_mem *mem, void **base)
{
	int rc = memory_check("slmpm_mem_alloc", base ? (void *)mem : NULL, size, access);
	void *at = NULL;

	if (rc == 0)
		rc = region_make(ctx, &at, size, access, mem);
	if (rc == 0)
		*base = at;
	return rc;
}

int slmpm_mem_register(slmpm_ctx ctx, void *base, size_t size, uint32_t access, slmpm_mem *mem)
{
	int rc = memory_check("slmpm_mem_register", mem, size, access);

	if (rc < 0)
		return rc;
	if (!base || size > UINTPTR_MAX - (uintptr_t)base)
		return error_set(SLMPM_EINVAL, "slmpm_mem_register: %zu bytes at %p", size, base);
	return region_make(ctx, &base, size, access, mem);
}

/* ---- what it is like ------------------------------------------------------------------------ */

static uint64_t acceptors(const struct region *region)
{
	uint64_t n = 0;

	LIST_EACH_ENTRY(const struct grant, g, &region->grants, of_region)
		n += g->accepted && !g->ending && !g->revoking;
	return n;
}

int slmpm_mem_query(slmpm_mem mem, struct slmpm_mem_info *info)
{
	struct region *region;
	struct slmpm_mem_info now;
	int rc = sized_check_own("slmpm_mem_query", info, sizeof(now));

	if (rc < 0)
		return rc;
	region = region_lock(mem, &rc);
	if (!region)
		return rc;
	now = (struct slmpm_mem_info){
		.access = region->access,
		.kind = SLMPM_MEM_HOST,
		.mapped = region->memory.allocated,
		.length = region->memory.size,
		.address = (uint64_t)(uintptr_t)region->memory.base,
		.acceptors = acceptors(region),
	};
	context_unlock(region->ctx);
	sized_give_own(info, &now, sizeof(now));
	return 0;
}

int slmpm_mem_notify(slmpm_mem mem, slmpm_ctr ctr, slmpm_cq cq)
{
	struct counter *counter;
	struct queue *queue;
	int rc = 0;
	struct region *region = region_lock(mem, &rc);

	if (!region)
		return rc;
	rc = completion_find(region->ctx, ctr, cq, &counter, &queue);
	if (rc == 0) {
		forget_notified(region);
		region->counter = counter;
		region->queue = queue;
		if (counter)
			counter->users++;
		if (queue)
			queue->users++;
	}
	context_unlock(region->ctx);
	return rc;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Another thread may end the region meanwhile. */
struct ending {
	struct context *ctx;
	slmpm_mem mem;
};

/* Its memory is reached by nobody who keeps to the rules: mapped pages may stay mapped. */
static bool memory_is_free(void *arg)
{
	const struct ending *e = arg;
	const struct region *region = region_get(e->mem);

	if (!region)
		return true;
	if (region->storing)
		return false;
	LIST_EACH_ENTRY(const struct grant, g, &region->grants, of_region)
		if (g->ending ? g->attached : g->accepted)
			return false;
	return true;
}

static int destroy(struct ending *e, int timeout_ms)
{
	uint64_t deadline = clock_deadline(timeout_ms);
	int rc = wait_until(e->ctx, memory_is_free, e, timeout_ms);
	struct region *region = region_get(e->mem);

	if (rc == 0 && region) {
		region->destroying++;
		/* Keys that nobody has opened: nobody shall any more. */
		LIST_EACH_ENTRY(struct grant, g, &region->grants, of_region)
			if (!g->ending)
				grant_take_back(g, WIRE_REGION_REVOKED);
		rc = wait_until(e->ctx, memory_is_free, e, clock_ms(clock_now(), deadline, -1));
		region = region_get(e->mem);
		if (region)
			region->destroying--;
	}
	if (!region)
		return handle_error(&region_table, e->mem.id);
	if (rc < 0)
		return late_error(e->ctx, NULL, timeout_ms,
				  "%llu acceptors have not released the region",
				  (unsigned long long)acceptors(region));
	region_free(region);
	return 0;
}

int slmpm_mem_destroy(slmpm_mem mem, int timeout_ms)
{
	struct ending e = {.mem = mem};
	int rc = 0;
	struct region *region = region_lock(mem, &rc);

	if (!region)
		return rc;
	e.ctx = region->ctx;
	rc = context_forbids(e.ctx, "slmpm_mem_destroy");
	if (rc == 0)
		rc = destroy(&e, timeout_ms);
	context_unlock(e.ctx);
	return rc;
}

void memory_shut(struct context *ctx)
{
	while (!list_empty(&ctx->regions))
		region_free(LIST_ENTRY(ctx->regions.next, struct region, node));
}

/* The mappings did not come along, the descriptors did. */
void memory_forked(void)
{
	for (uint32_t i = 0; i < region_table.count; i++) {
		struct region *region = handle_slot(&region_table, i);

		if (!(atomic_load(&region->handle.generation) & 1) || !region->memory.allocated)
			continue;
		region->memory.base = NULL;
		region->domain->fabric->dereg(region->domain, &region->memory);
	}
}
