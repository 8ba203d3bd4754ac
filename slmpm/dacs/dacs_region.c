/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions behind the handles of both remote-memory families: how they begin and end. */
#include "slmpm/dacs/dacs_dma.h"
#include "slmpm/dacs/dacs_process.h"
#include "slmpm/dacs/dacs_share.h"
#include "slmpm/dacs/dacs_wait.h"

#include <stdlib.h>

struct dacsi_region *dacsi_region_find(uint64_t handle, enum dacsi_family family)
{
	return dacsi_handle_find(handle, family);
}

struct dacsi_region *dacsi_region_new(enum dacsi_family family)
{
	struct dacsi_region *region = calloc(1, sizeof(*region));

	if (region && !dacsi_handle_give(&region->is, family)) {
		free(region);
		return NULL;
	}
	return region;
}

void dacsi_region_free(struct dacsi_region *region)
{
	dacsi_handle_take(&region->is);
	dacsi_mem_unregister(region, NULL);
	free(region);
}

/* The region at place I of the table, or NULL. */
static struct dacsi_region *at(uint32_t i)
{
	struct dacsi_object *object = dacsi.handles[i];

	return object && object->family <= DACSI_MEM ? (struct dacsi_region *)object : NULL;
}

void dacsi_region_orphan(struct dacsi_process *process)
{
	for (uint32_t i = 0; i < dacsi.handle_places; i++) {
		struct dacsi_region *region = at(i);

		if (!region)
			continue;
		if (region->process == process)
			region->process = NULL;
		dacsi_mem_unregister(region, process);
	}
}

/* SLMPM's side of them has ended with the context. */
void dacsi_region_end(void)
{
	for (uint32_t i = 0; i < dacsi.handle_places; i++)
		if (at(i))
			dacsi_region_free(at(i));
}

/* ---- begin and end -------------------------------------------------------------------------- */

uint32_t dacsi_region_rights(uint32_t access)
{
	return (access & DACS_MEM_READ_ONLY ? SLMPM_READ : 0) |
	       (access & DACS_MEM_WRITE_ONLY ? SLMPM_WRITE : 0);
}

DACS_ERR_T dacsi_region_create(enum dacsi_family family, void *addr, uint64_t size,
			       uint32_t remote_access, uint32_t local_access, uint64_t *handle)
{
	struct dacsi_region *region;
	int rc = 0;

	if (!addr || !handle)
		return DACS_ERR_INVALID_ADDR;
	if (!size || size > INT64_MAX || (uintptr_t)addr + size < (uintptr_t)addr)
		return DACS_ERR_INVALID_SIZE;
	region = dacsi_region_new(family);
	if (!region)
		return DACS_ERR_NO_RESOURCE;
	region->owner = true;
	region->remote_access = remote_access;
	region->local_access = local_access;
	region->address = (uintptr_t)addr;
	region->size = size;
	if (remote_access)
		rc = slmpm_mem_register(dacsi.ctx, addr, size, dacsi_region_rights(remote_access),
					&region->mem);
	if (rc < 0) {
		dacsi_region_free(region);
		return rc == -SLMPM_EINVAL ? DACS_ERR_INVALID_ADDR : dacsi_code(rc);
	}
	*handle = region->is.number;
	return DACS_SUCCESS;
}

DACS_ERR_T dacsi_region_release(enum dacsi_family family, uint64_t *handle)
{
	struct dacsi_region *region;

	if (!handle)
		return DACS_ERR_INVALID_ADDR;
	region = dacsi_region_find(*handle, family);
	if (!region)
		return DACS_ERR_INVALID_HANDLE;
	if (region->owner)
		return DACS_ERR_OWNER;
	/* The wid of a transfer that has ended may not have been asked. */
	if (region->active)
		dacsi_dma_poll_all();
	/* What else goes wrong means that the owner is gone: nobody has to be told. */
	if (region->active || slmpm_mem_release(region->rmem) == -SLMPM_EBUSY)
		return DACS_ERR_RESOURCE_BUSY;
	dacsi_region_free(region);
	*handle = 0;
	return DACS_SUCCESS;
}

/* DACS_WID_BUSY while acceptors hold it, or a transfer of this process uses it. */
static DACS_ERR_T try_destroy(struct dacsi_region *region)
{
	int rc = 0;

	if (region->active)
		dacsi_dma_poll_all();
	if (region->active)
		return DACS_WID_BUSY;
	if (region->mem.id)
		rc = slmpm_mem_destroy(region->mem, 0);
	if (rc == -SLMPM_EAGAIN)
		return DACS_WID_BUSY;
	if (rc < 0)
		return dacsi_code(rc);
	dacsi_region_free(region);
	return DACS_SUCCESS;
}

DACS_ERR_T dacsi_region_destroy(enum dacsi_family family, uint64_t *handle)
{
	struct dacsi_region *region;
	struct dacsi_pause pause;
	uint64_t wanted;
	DACS_ERR_T rc;

	if (!handle)
		return DACS_ERR_INVALID_ADDR;
	wanted = *handle;
	dacsi_pause_begin(&pause);
	for (;;) {
		region =
			dacsi_region_find(wanted, family); /* another thread may have been faster */
		if (!region)
			return DACS_ERR_INVALID_HANDLE;
		if (!region->owner)
			return DACS_ERR_NOT_OWNER;
		dacsi_share_withdraw(region);
		rc = try_destroy(region);
		if (rc != DACS_WID_BUSY)
			break;
		rc = dacsi_pause(&pause);
		if (rc != DACS_SUCCESS)
			return rc;
	}
	if (rc == DACS_SUCCESS)
		*handle = 0;
	return rc;
}
