/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory: the calls of the older family, in which memory here is named by its address. */
#include "slmpm/dacs/dacs_dma.h"

DACS_ERR_T dacs_remote_mem_create(void *addr, uint64_t size, DACS_MEMORY_ACCESS_MODE_T access_mode,
				  dacs_remote_mem_t *mem)
{
	uint32_t access = (uint32_t)access_mode; /* the newer family's numbers are the same */
	DACS_ERR_T rc = dacsi_enter();

	if (rc != DACS_SUCCESS)
		return rc;
	if (access != DACS_READ_ONLY && access != DACS_WRITE_ONLY && access != DACS_READ_WRITE)
		return dacsi_leave(DACS_ERR_INVALID_ATTR);
	return dacsi_leave(
		dacsi_region_create(DACSI_REMOTE, addr, size, access, DACS_MEM_READ_WRITE, mem));
}

DACSI_SHARED_CALLS(remote_mem, DACSI_REMOTE)

DACS_ERR_T dacs_remote_mem_query(dacs_remote_mem_t mem, DACS_REMOTE_MEM_ATTR_T attr,
				 uint64_t *value)
{
	return dacsi_region_query(DACSI_REMOTE, mem, (unsigned)attr, value);
}

DACS_ERR_T dacs_put(dacs_remote_mem_t dst, uint64_t dst_offset, void *src, uint64_t size,
		    dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	const dacs_dma_list_t there = {dst_offset, size}, here = {0, size};

	return dacsi_dma(&(struct dacsi_dma_call){
		.put = true,
		.family = DACSI_REMOTE,
		.remote = {dst, NULL, &there, 1},
		.local = {0, src, &here, 1},
		.wid = wid,
		.order = order,
		.swap = swap,
	});
}

DACS_ERR_T dacs_get(void *dst, dacs_remote_mem_t src, uint64_t src_offset, uint64_t size,
		    dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	const dacs_dma_list_t there = {src_offset, size}, here = {0, size};

	return dacsi_dma(&(struct dacsi_dma_call){
		.family = DACSI_REMOTE,
		.remote = {src, NULL, &there, 1},
		.local = {0, dst, &here, 1},
		.wid = wid,
		.order = order,
		.swap = swap,
	});
}

DACS_ERR_T dacs_put_list(dacs_remote_mem_t dst, dacs_dma_list_t *dst_list, uint32_t dst_list_size,
			 void *src, dacs_dma_list_t *src_list, uint32_t src_list_size,
			 dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	return dacsi_dma(&(struct dacsi_dma_call){
		.put = true,
		.list = true,
		.family = DACSI_REMOTE,
		.remote = {dst, NULL, dst_list, dst_list_size},
		.local = {0, src, src_list, src_list_size},
		.wid = wid,
		.order = order,
		.swap = swap,
	});
}

DACS_ERR_T dacs_get_list(void *dst, dacs_dma_list_t *dst_list, uint32_t dst_list_size,
			 dacs_remote_mem_t src, dacs_dma_list_t *src_list, uint32_t src_list_size,
			 dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	return dacsi_dma(&(struct dacsi_dma_call){
		.list = true,
		.family = DACSI_REMOTE,
		.remote = {src, NULL, src_list, src_list_size},
		.local = {0, dst, dst_list, dst_list_size},
		.wid = wid,
		.order = order,
		.swap = swap,
	});
}
