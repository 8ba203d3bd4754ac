/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions: the calls of both families. The older one (dacs_remote_mem_*, dacs_put, dacs_get)
 * names memory here by its address, the newer one (dacs_mem_*) by a handle as well. */
#include "slmpm/dacs/dacs_dma.h"

#include <stdlib.h>

DACS_ERR_T dacs_mem_create(void *addr, uint64_t size, DACS_MEM_ACCESS_MODE_T remote_access,
			   DACS_MEM_ACCESS_MODE_T local_access, dacs_mem_t *mem)
{
	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	return dacsi_leave(dacsi_region_create(DACSI_MEM, addr, size, (uint32_t)remote_access,
					       (uint32_t)local_access, mem));
}

DACS_ERR_T dacs_remote_mem_create(void *addr, uint64_t size, DACS_MEMORY_ACCESS_MODE_T access_mode,
				  dacs_remote_mem_t *mem)
{
	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	/* The newer family's numbers are the same. */
	return dacsi_leave(dacsi_region_create(DACSI_REMOTE, addr, size, (uint32_t)access_mode,
					       DACS_MEM_READ_WRITE, mem));
}

DACSI_SHARED_CALLS(mem, DACSI_MEM)
DACSI_SHARED_CALLS(remote_mem, DACSI_REMOTE)

/* ---- registration --------------------------------------------------------------------------- */

/* Nothing has to be pinned for a transfer: registrations are checked and counted, no more. */

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
	struct dacsi_registration **link;
	struct dacsi_process *process;
	struct dacsi_region *region;
	DACS_ERR_T rc = dacsi_partner(de, pid, &process);

	if (rc != DACS_SUCCESS)
		return rc;
	region = dacsi_handle_find_as(mem, DACSI_MEM, true, &rc);
	if (!region)
		return rc;
	link = &region->registrations;
	while (*link && (*link)->process != process)
		link = &(*link)->next;
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
	return dacsi_enter() ? dacsi_leave(change_registration(dst_de, dst_pid, mem, true)) :
			       DACS_ERR_NOT_INITIALIZED;
}

DACS_ERR_T dacs_mem_deregister(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mem_t mem)
{
	return dacsi_enter() ? dacsi_leave(change_registration(dst_de, dst_pid, mem, false)) :
			       DACS_ERR_NOT_INITIALIZED;
}

/* ---- asking --------------------------------------------------------------------------------- */

DACS_ERR_T dacs_mem_query(dacs_mem_t mem, DACS_MEM_ATTR_T attr, uint64_t *value)
{
	return dacsi_region_query(DACSI_MEM, mem, (unsigned)attr, value);
}

DACS_ERR_T dacs_remote_mem_query(dacs_remote_mem_t mem, DACS_REMOTE_MEM_ATTR_T attr,
				 uint64_t *value)
{
	return dacsi_region_query(DACSI_REMOTE, mem, (unsigned)attr, value);
}

DACS_ERR_T dacs_mem_limits_query(DACS_MEM_LIMITS_T attr, de_id_t tgt_de, dacs_process_id_t tgt_pid,
				 uint64_t *value)
{
	DACS_ERR_T rc = dacsi_enter_with(value);
	struct dacsi_process *process;

	if (rc != DACS_SUCCESS)
		return rc;
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
	const struct dacsi_dma_side to = {dst_remote, dst_list, dst_list_size};
	const struct dacsi_dma_side from = {src_local, src_list, src_list_size};

	return dacsi_dma(DACSI_MEM, DACSI_PUT | DACSI_LIST, &to, &from, wid, order, swap);
}

DACS_ERR_T dacs_mem_get_list(dacs_mem_t dst_local, dacs_dma_list_t *dst_list,
			     uint32_t dst_list_size, dacs_mem_t src_remote,
			     dacs_dma_list_t *src_list, uint32_t src_list_size, dacs_wid_t wid,
			     DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	const struct dacsi_dma_side to = {dst_local, dst_list, dst_list_size};
	const struct dacsi_dma_side from = {src_remote, src_list, src_list_size};

	return dacsi_dma(DACSI_MEM, DACSI_LIST, &to, &from, wid, order, swap);
}

DACS_ERR_T dacs_mem_put(dacs_mem_t dst_remote, uint64_t dst_offset, dacs_mem_t src_local,
			uint64_t src_offset, uint64_t size, dacs_wid_t wid, DACS_ORDER_ATTR_T order,
			DACS_BYTE_SWAP_T swap)
{
	const struct dacsi_dma_side to = {dst_remote, &(dacs_dma_list_t){dst_offset, size}, 1};
	const struct dacsi_dma_side from = {src_local, &(dacs_dma_list_t){src_offset, size}, 1};

	return dacsi_dma(DACSI_MEM, DACSI_PUT, &to, &from, wid, order, swap);
}

DACS_ERR_T dacs_mem_get(dacs_mem_t dst_local, uint64_t dst_offset, dacs_mem_t src_remote,
			uint64_t src_offset, uint64_t size, dacs_wid_t wid, DACS_ORDER_ATTR_T order,
			DACS_BYTE_SWAP_T swap)
{
	const struct dacsi_dma_side to = {dst_local, &(dacs_dma_list_t){dst_offset, size}, 1};
	const struct dacsi_dma_side from = {src_remote, &(dacs_dma_list_t){src_offset, size}, 1};

	return dacsi_dma(DACSI_MEM, 0, &to, &from, wid, order, swap);
}

DACS_ERR_T dacs_put(dacs_remote_mem_t dst, uint64_t dst_offset, void *src, uint64_t size,
		    dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	const struct dacsi_dma_side to = {dst, &(dacs_dma_list_t){dst_offset, size}, 1};
	const struct dacsi_dma_side from = {(uintptr_t)src, &(dacs_dma_list_t){0, size}, 1};

	return dacsi_dma(DACSI_REMOTE, DACSI_PUT, &to, &from, wid, order, swap);
}

DACS_ERR_T dacs_get(void *dst, dacs_remote_mem_t src, uint64_t src_offset, uint64_t size,
		    dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	const struct dacsi_dma_side to = {(uintptr_t)dst, &(dacs_dma_list_t){0, size}, 1};
	const struct dacsi_dma_side from = {src, &(dacs_dma_list_t){src_offset, size}, 1};

	return dacsi_dma(DACSI_REMOTE, 0, &to, &from, wid, order, swap);
}

DACS_ERR_T dacs_put_list(dacs_remote_mem_t dst, dacs_dma_list_t *dst_list, uint32_t dst_list_size,
			 void *src, dacs_dma_list_t *src_list, uint32_t src_list_size,
			 dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	const struct dacsi_dma_side to = {dst, dst_list, dst_list_size};
	const struct dacsi_dma_side from = {(uintptr_t)src, src_list, src_list_size};

	return dacsi_dma(DACSI_REMOTE, DACSI_PUT | DACSI_LIST, &to, &from, wid, order, swap);
}

DACS_ERR_T dacs_get_list(void *dst, dacs_dma_list_t *dst_list, uint32_t dst_list_size,
			 dacs_remote_mem_t src, dacs_dma_list_t *src_list, uint32_t src_list_size,
			 dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	const struct dacsi_dma_side to = {(uintptr_t)dst, dst_list, dst_list_size};
	const struct dacsi_dma_side from = {src, src_list, src_list_size};

	return dacsi_dma(DACSI_REMOTE, DACSI_LIST, &to, &from, wid, order, swap);
}
