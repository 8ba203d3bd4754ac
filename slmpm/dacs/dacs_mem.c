/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions: the calls of the newer family, in which memory at both ends is named by handles. */
#include "slmpm/dacs/dacs_dma.h"
#include "slmpm/dacsbase/dacs_process.h"

#include <stdlib.h>

static bool is_access(DACS_MEM_ACCESS_MODE_T access)
{
	return access == DACS_MEM_NONE || access == DACS_MEM_READ_ONLY ||
	       access == DACS_MEM_WRITE_ONLY || access == DACS_MEM_READ_WRITE;
}

DACS_ERR_T dacs_mem_create(void *addr, uint64_t size, DACS_MEM_ACCESS_MODE_T remote_access,
			   DACS_MEM_ACCESS_MODE_T local_access, dacs_mem_t *mem)
{
	DACS_ERR_T rc = dacsi_enter();

	if (rc != DACS_SUCCESS)
		return rc;
	if (!is_access(remote_access) || !is_access(local_access) ||
	    (remote_access == DACS_MEM_NONE && local_access == DACS_MEM_NONE))
		return dacsi_leave(DACS_ERR_INVALID_ATTR);
	return dacsi_leave(dacsi_region_create(DACSI_MEM, addr, size, (uint32_t)remote_access,
					       (uint32_t)local_access, mem));
}

DACSI_SHARED_CALLS(mem, DACSI_MEM)

/* ---- registration --------------------------------------------------------------------------- */

/*
 * On shared memory there is nothing to be pinned for a transfer: what a registration says is
 * checked, and counted so that each is given back once.
 */
static struct dacsi_registration **find_registration(struct dacsi_region *region,
						     const struct dacsi_process *process)
{
	struct dacsi_registration **link = &region->registrations;

	while (*link && (*link)->process != process)
		link = &(*link)->next;
	return link;
}

void dacsi_mem_unregister(struct dacsi_region *region, const struct dacsi_process *process)
{
	struct dacsi_registration **link = &region->registrations, *registration;

	while ((registration = *link)) {
		if (process && registration->process != process) {
			link = &registration->next;
			continue;
		}
		*link = registration->next;
		free(registration);
	}
}

/* One more with that partner, or one fewer. */
static DACS_ERR_T change_registration(de_id_t de, dacs_process_id_t pid, dacs_mem_t mem, bool more)
{
	struct dacsi_region *region = dacsi_handle_find(mem, DACSI_MEM);
	struct dacsi_registration **link;
	struct dacsi_process *process;
	DACS_ERR_T rc = dacsi_partner(de, pid, &process);

	if (rc != DACS_SUCCESS)
		return rc;
	if (!region)
		return DACS_ERR_INVALID_HANDLE;
	if (!region->is.owner)
		return DACS_ERR_NOT_OWNER;
	link = find_registration(region, process);
	if (!*link && !more)
		return DACS_ERR_INVALID_TARGET;
	if (!*link) {
		*link = calloc(1, sizeof(**link));
		if (!*link)
			return DACS_ERR_NO_RESOURCE;
		(*link)->process = process;
	}
	if (more)
		(*link)->count++;
	else if (!--(*link)->count)
		dacsi_mem_unregister(region, process);
	return DACS_SUCCESS;
}

DACS_ERR_T dacs_mem_register(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mem_t mem)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc :
				    dacsi_leave(change_registration(dst_de, dst_pid, mem, true));
}

DACS_ERR_T dacs_mem_deregister(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mem_t mem)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc != DACS_SUCCESS ? rc :
				    dacsi_leave(change_registration(dst_de, dst_pid, mem, false));
}

/* ---- asking --------------------------------------------------------------------------------- */

DACS_ERR_T dacs_mem_query(dacs_mem_t mem, DACS_MEM_ATTR_T attr, uint64_t *value)
{
	return dacsi_region_query(DACSI_MEM, mem, (unsigned)attr, value);
}

DACS_ERR_T dacs_mem_limits_query(DACS_MEM_LIMITS_T attr, de_id_t tgt_de, dacs_process_id_t tgt_pid,
				 uint64_t *value)
{
	DACS_ERR_T rc = dacsi_enter();
	struct dacsi_process *process;

	if (rc != DACS_SUCCESS)
		return rc;
	if (!value)
		return dacsi_leave_fast(DACS_ERR_INVALID_ADDR);
	rc = dacsi_partner(tgt_de, tgt_pid, &process);
	if (rc != DACS_SUCCESS)
		return dacsi_leave_fast(rc);
	switch (attr) {
	case DACS_MEM_REGION_MAX_NUM: *value = DACSI_HANDLES; break;
	case DACS_MEM_REGION_MAX_SIZE: *value = INT64_MAX; break;
	case DACS_MEM_REGION_AVAIL: *value = DACSI_HANDLES - dacsi.handle_count; break;
	default: rc = DACS_ERR_INVALID_ATTR;
	}
	return dacsi_leave_fast(rc);
}

/* ---- transfers ------------------------------------------------------------------------------ */

DACS_ERR_T dacs_mem_put_list(dacs_mem_t dst_remote, dacs_dma_list_t *dst_list,
			     uint32_t dst_list_size, dacs_mem_t src_local,
			     dacs_dma_list_t *src_list, uint32_t src_list_size, dacs_wid_t wid,
			     DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	return dacsi_dma(&(struct dacsi_dma_call){
		.put = true,
		.list = true,
		.family = DACSI_MEM,
		.remote = {dst_remote, NULL, dst_list, dst_list_size},
		.local = {src_local, NULL, src_list, src_list_size},
		.wid = wid,
		.order = order,
		.swap = swap,
	});
}

DACS_ERR_T dacs_mem_get_list(dacs_mem_t dst_local, dacs_dma_list_t *dst_list,
			     uint32_t dst_list_size, dacs_mem_t src_remote,
			     dacs_dma_list_t *src_list, uint32_t src_list_size, dacs_wid_t wid,
			     DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	return dacsi_dma(&(struct dacsi_dma_call){
		.list = true,
		.family = DACSI_MEM,
		.remote = {src_remote, NULL, src_list, src_list_size},
		.local = {dst_local, NULL, dst_list, dst_list_size},
		.wid = wid,
		.order = order,
		.swap = swap,
	});
}

DACS_ERR_T dacs_mem_put(dacs_mem_t dst_remote, uint64_t dst_offset, dacs_mem_t src_local,
			uint64_t src_offset, uint64_t size, dacs_wid_t wid, DACS_ORDER_ATTR_T order,
			DACS_BYTE_SWAP_T swap)
{
	const dacs_dma_list_t there = {dst_offset, size}, here = {src_offset, size};

	return dacsi_dma(&(struct dacsi_dma_call){
		.put = true,
		.family = DACSI_MEM,
		.remote = {dst_remote, NULL, &there, 1},
		.local = {src_local, NULL, &here, 1},
		.wid = wid,
		.order = order,
		.swap = swap,
	});
}

DACS_ERR_T dacs_mem_get(dacs_mem_t dst_local, uint64_t dst_offset, dacs_mem_t src_remote,
			uint64_t src_offset, uint64_t size, dacs_wid_t wid, DACS_ORDER_ATTR_T order,
			DACS_BYTE_SWAP_T swap)
{
	const dacs_dma_list_t there = {src_offset, size}, here = {dst_offset, size};

	return dacsi_dma(&(struct dacsi_dma_call){
		.family = DACSI_MEM,
		.remote = {src_remote, NULL, &there, 1},
		.local = {dst_local, NULL, &here, 1},
		.wid = wid,
		.order = order,
		.swap = swap,
	});
}
