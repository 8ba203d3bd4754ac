/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of both families: an offer has a key, which the partner's accept opens. From then on
 * SLMPM counts who has accepted. */
#include "slmpm/dacs/dacs_dma.h"

/* What SLMPM calls an access (DACS_MEM_*). */
static uint32_t rights(uint32_t access)
{
	return (access & DACS_MEM_READ_ONLY ? SLMPM_READ : 0) |
	       (access & DACS_MEM_WRITE_ONLY ? SLMPM_WRITE : 0);
}

DACS_ERR_T dacsi_region_create(enum dacsi_family family, void *addr, uint64_t size,
			       uint32_t remote_access, uint32_t local_access, uint64_t *handle)
{
	/* A region of the older family that no partner may reach is of no use. */
	uint32_t all = family == DACSI_MEM ? remote_access | local_access : remote_access;
	struct dacsi_region *region;
	int rc = 0;

	if (!all || all & ~(uint32_t)DACS_MEM_READ_WRITE)
		return DACS_ERR_INVALID_ATTR;
	if (!addr || !handle)
		return DACS_ERR_INVALID_ADDR;
	if (!size || size > INT64_MAX || (uintptr_t)addr + size < (uintptr_t)addr)
		return DACS_ERR_INVALID_SIZE;
	region = (struct dacsi_region *)dacsi_object_new(family, NULL);
	if (!region)
		return DACS_ERR_NO_RESOURCE;
	region->remote_access = remote_access;
	region->local_access = local_access;
	region->address = (uintptr_t)addr;
	region->size = size;
	if (remote_access)
		rc = slmpm_mem_register(dacsi.ctx, addr, size, rights(remote_access), &region->mem);
	if (rc < 0) {
		dacsi_object_free(&region->is);
		return rc == -SLMPM_EINVAL ? DACS_ERR_INVALID_ADDR : dacsi_code(rc);
	}
	*handle = region->is.number;
	return DACS_SUCCESS;
}

DACS_ERR_T dacsi_region_query(enum dacsi_family family, uint64_t handle, unsigned attr,
			      uint64_t *value)
{
	const struct dacsi_region *region;
	DACS_ERR_T rc = dacsi_enter_with(value);

	if (rc != DACS_SUCCESS)
		return rc;
	region = dacsi_handle_find(handle, family);
	if (!region)
		return dacsi_leave_fast(DACS_ERR_INVALID_HANDLE);
	if (attr > (family == DACSI_MEM ? DACS_LCL_MEM_PERM : DACS_RMT_MEM_PERM))
		return dacsi_leave_fast(DACS_ERR_INVALID_ATTR);
	*value = (uint64_t[]){
		[DACS_MEM_ADDR] = region->address,
		[DACS_MEM_SIZE] = region->size,
		[DACS_RMT_MEM_PERM] = region->remote_access,
		[DACS_LCL_MEM_PERM] = region->local_access,
	}[attr];
	return dacsi_leave_fast(DACS_SUCCESS);
}

/* ---- as a shared object --------------------------------------------------------------------- */

static DACS_ERR_T has_remote_access(const struct dacsi_object *object)
{
	return ((const struct dacsi_region *)object)->mem.id ? DACS_SUCCESS : DACS_ERR_NO_PERM;
}

static DACS_ERR_T offer_key(const struct dacsi_object *object, slmpm_peer partner,
			    struct dacsi_offer *offer)
{
	const struct dacsi_region *region = (const struct dacsi_region *)object;
	int rc = slmpm_mem_key(region->mem, partner, rights(region->remote_access), &offer->key);

	if (rc < 0)
		return rc == -SLMPM_EAGAIN ? DACS_WID_BUSY : dacsi_code(rc);
	offer->remote_access = region->remote_access;
	offer->local_access = region->local_access;
	return DACS_SUCCESS;
}

static DACS_ERR_T open_key(struct dacsi_object *object, const struct dacsi_offer *offer)
{
	struct dacsi_region *region = (struct dacsi_region *)object;
	struct slmpm_mem_info info = {.size = sizeof(info)};
	int rc = slmpm_mem_open(object->process->peer, &offer->key, &region->rmem);

	if (rc >= 0)
		rc = slmpm_rmem_query(region->rmem, &info);
	if (rc < 0)
		return rc == -SLMPM_EACCES || rc == -SLMPM_EINVAL ? DACS_WID_BUSY : dacsi_code(rc);
	region->remote_access = offer->remote_access;
	region->local_access = offer->local_access;
	region->address = info.address;
	region->size = info.length;
	return DACS_SUCCESS;
}

/* The wid of a transfer that has ended may not have been asked. */
static bool is_active(const struct dacsi_region *region)
{
	if (region->active)
		(void)dacsi_dma_poll_all();
	return region->active;
}

static DACS_ERR_T close_key(struct dacsi_object *object)
{
	struct dacsi_region *region = (struct dacsi_region *)object;

	/* What else goes wrong means that the owner is gone: it need not be notified. */
	if (is_active(region) || slmpm_mem_release(region->rmem) == -SLMPM_EBUSY)
		return DACS_ERR_RESOURCE_BUSY;
	return DACS_SUCCESS;
}

/* DACS_WID_BUSY while acceptors hold it, or a transfer of this process uses it. */
static DACS_ERR_T end_registration(struct dacsi_object *object)
{
	struct dacsi_region *region = (struct dacsi_region *)object;
	int rc = 0;

	if (is_active(region))
		return DACS_WID_BUSY;
	if (region->mem.id)
		rc = slmpm_mem_destroy(region->mem, 0);
	return rc == -SLMPM_EAGAIN ? DACS_WID_BUSY : dacsi_code(rc < 0 ? rc : 0);
}

static void forget_registrations(struct dacsi_object *object, const struct dacsi_process *process)
{
	dacsi_mem_unregister((struct dacsi_region *)object, process);
}

const struct dacsi_kind dacsi_region_kind = {
	.size = sizeof(struct dacsi_region),
	.withdrawn = DACS_ERR_INVALID_HANDLE,
	.shareable = has_remote_access,
	.key = offer_key,
	.accept = open_key,
	.leave = close_key,
	.destroy = end_registration,
	.forget = forget_registrations,
};
