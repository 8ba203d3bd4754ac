/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls whose turn has not come: remote memory, memory regions, groups, mutexes. */
#include "slmpm/dacs_internal.h"

static DACS_ERR_T later(void)
{
	DACS_ERR_T rc = dacsi_enter();

	return rc == DACS_SUCCESS ? dacsi_leave(DACS_ERR_NOT_SUPPORTED_YET) : rc;
}

/* ---- Remote memory, old style ---- */

DACS_ERR_T dacs_remote_mem_create(void *addr, uint64_t size, DACS_MEMORY_ACCESS_MODE_T access_mode,
				  dacs_remote_mem_t *mem)
{
	(void)addr;
	(void)size;
	(void)access_mode;
	(void)mem;
	return later();
}

DACS_ERR_T dacs_remote_mem_share(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_remote_mem_t mem)
{
	(void)dst_de;
	(void)dst_pid;
	(void)mem;
	return later();
}

DACS_ERR_T dacs_remote_mem_accept(de_id_t src_de, dacs_process_id_t src_pid, dacs_remote_mem_t *mem)
{
	(void)src_de;
	(void)src_pid;
	(void)mem;
	return later();
}

DACS_ERR_T dacs_remote_mem_release(dacs_remote_mem_t *mem)
{
	(void)mem;
	return later();
}

DACS_ERR_T dacs_remote_mem_destroy(dacs_remote_mem_t *mem)
{
	(void)mem;
	return later();
}

DACS_ERR_T dacs_remote_mem_query(dacs_remote_mem_t mem, DACS_REMOTE_MEM_ATTR_T attr,
				 uint64_t *value)
{
	(void)mem;
	(void)attr;
	(void)value;
	return later();
}

DACS_ERR_T dacs_put(dacs_remote_mem_t dst, uint64_t dst_offset, void *src, uint64_t size,
		    dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	(void)dst;
	(void)dst_offset;
	(void)src;
	(void)size;
	(void)wid;
	(void)order;
	(void)swap;
	return later();
}

DACS_ERR_T dacs_get(void *dst, dacs_remote_mem_t src, uint64_t src_offset, uint64_t size,
		    dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	(void)dst;
	(void)src;
	(void)src_offset;
	(void)size;
	(void)wid;
	(void)order;
	(void)swap;
	return later();
}

DACS_ERR_T dacs_put_list(dacs_remote_mem_t dst, dacs_dma_list_t *dst_list, uint32_t dst_list_size,
			 void *src, dacs_dma_list_t *src_list, uint32_t src_list_size,
			 dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	(void)dst;
	(void)dst_list;
	(void)dst_list_size;
	(void)src;
	(void)src_list;
	(void)src_list_size;
	(void)wid;
	(void)order;
	(void)swap;
	return later();
}

DACS_ERR_T dacs_get_list(void *dst, dacs_dma_list_t *dst_list, uint32_t dst_list_size,
			 dacs_remote_mem_t src, dacs_dma_list_t *src_list, uint32_t src_list_size,
			 dacs_wid_t wid, DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	(void)dst;
	(void)dst_list;
	(void)dst_list_size;
	(void)src;
	(void)src_list;
	(void)src_list_size;
	(void)wid;
	(void)order;
	(void)swap;
	return later();
}

/* ---- Memory regions, new style ---- */

DACS_ERR_T dacs_mem_create(void *addr, uint64_t size, DACS_MEM_ACCESS_MODE_T remote_access,
			   DACS_MEM_ACCESS_MODE_T local_access, dacs_mem_t *mem)
{
	(void)addr;
	(void)size;
	(void)remote_access;
	(void)local_access;
	(void)mem;
	return later();
}

DACS_ERR_T dacs_mem_share(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mem_t mem)
{
	(void)dst_de;
	(void)dst_pid;
	(void)mem;
	return later();
}

DACS_ERR_T dacs_mem_register(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mem_t mem)
{
	(void)dst_de;
	(void)dst_pid;
	(void)mem;
	return later();
}

DACS_ERR_T dacs_mem_deregister(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mem_t mem)
{
	(void)dst_de;
	(void)dst_pid;
	(void)mem;
	return later();
}

DACS_ERR_T dacs_mem_accept(de_id_t src_de, dacs_process_id_t src_pid, dacs_mem_t *mem)
{
	(void)src_de;
	(void)src_pid;
	(void)mem;
	return later();
}

DACS_ERR_T dacs_mem_release(dacs_mem_t *mem)
{
	(void)mem;
	return later();
}

DACS_ERR_T dacs_mem_destroy(dacs_mem_t *mem)
{
	(void)mem;
	return later();
}

DACS_ERR_T dacs_mem_query(dacs_mem_t mem, DACS_MEM_ATTR_T attr, uint64_t *value)
{
	(void)mem;
	(void)attr;
	(void)value;
	return later();
}

DACS_ERR_T dacs_mem_limits_query(DACS_MEM_LIMITS_T attr, de_id_t tgt_de, dacs_process_id_t tgt_pid,
				 uint64_t *value)
{
	(void)attr;
	(void)tgt_de;
	(void)tgt_pid;
	(void)value;
	return later();
}

DACS_ERR_T dacs_mem_put(dacs_mem_t dst_remote, uint64_t dst_offset, dacs_mem_t src_local,
			uint64_t src_offset, uint64_t size, dacs_wid_t wid, DACS_ORDER_ATTR_T order,
			DACS_BYTE_SWAP_T swap)
{
	(void)dst_remote;
	(void)dst_offset;
	(void)src_local;
	(void)src_offset;
	(void)size;
	(void)wid;
	(void)order;
	(void)swap;
	return later();
}

DACS_ERR_T dacs_mem_get(dacs_mem_t dst_local, uint64_t dst_offset, dacs_mem_t src_remote,
			uint64_t src_offset, uint64_t size, dacs_wid_t wid, DACS_ORDER_ATTR_T order,
			DACS_BYTE_SWAP_T swap)
{
	(void)dst_local;
	(void)dst_offset;
	(void)src_remote;
	(void)src_offset;
	(void)size;
	(void)wid;
	(void)order;
	(void)swap;
	return later();
}

DACS_ERR_T dacs_mem_put_list(dacs_mem_t dst_remote, dacs_dma_list_t *dst_list,
			     uint32_t dst_list_size, dacs_mem_t src_local,
			     dacs_dma_list_t *src_list, uint32_t src_list_size, dacs_wid_t wid,
			     DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	(void)dst_remote;
	(void)dst_list;
	(void)dst_list_size;
	(void)src_local;
	(void)src_list;
	(void)src_list_size;
	(void)wid;
	(void)order;
	(void)swap;
	return later();
}

DACS_ERR_T dacs_mem_get_list(dacs_mem_t dst_local, dacs_dma_list_t *dst_list,
			     uint32_t dst_list_size, dacs_mem_t src_remote,
			     dacs_dma_list_t *src_list, uint32_t src_list_size, dacs_wid_t wid,
			     DACS_ORDER_ATTR_T order, DACS_BYTE_SWAP_T swap)
{
	(void)dst_local;
	(void)dst_list;
	(void)dst_list_size;
	(void)src_remote;
	(void)src_list;
	(void)src_list_size;
	(void)wid;
	(void)order;
	(void)swap;
	return later();
}

/* ---- Groups ---- */

DACS_ERR_T dacs_group_init(dacs_group_t *group, uint32_t flags)
{
	(void)group;
	(void)flags;
	return later();
}

DACS_ERR_T dacs_group_add_member(de_id_t de, dacs_process_id_t pid, dacs_group_t group)
{
	(void)de;
	(void)pid;
	(void)group;
	return later();
}

DACS_ERR_T dacs_group_close(dacs_group_t group)
{
	(void)group;
	return later();
}

DACS_ERR_T dacs_group_accept(de_id_t de, dacs_process_id_t pid, dacs_group_t *group)
{
	(void)de;
	(void)pid;
	(void)group;
	return later();
}

DACS_ERR_T dacs_group_leave(dacs_group_t *group)
{
	(void)group;
	return later();
}

DACS_ERR_T dacs_group_destroy(dacs_group_t *group)
{
	(void)group;
	return later();
}

DACS_ERR_T dacs_barrier_wait(dacs_group_t group)
{
	(void)group;
	return later();
}

/* ---- Mutexes ---- */

DACS_ERR_T dacs_mutex_init(dacs_mutex_t *mutex)
{
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_share(de_id_t dst_de, dacs_process_id_t dst_pid, dacs_mutex_t mutex)
{
	(void)dst_de;
	(void)dst_pid;
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_accept(de_id_t src_de, dacs_process_id_t src_pid, dacs_mutex_t *mutex)
{
	(void)src_de;
	(void)src_pid;
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_lock(dacs_mutex_t mutex)
{
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_try_lock(dacs_mutex_t mutex)
{
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_unlock(dacs_mutex_t mutex)
{
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_release(dacs_mutex_t *mutex)
{
	(void)mutex;
	return later();
}

DACS_ERR_T dacs_mutex_destroy(dacs_mutex_t *mutex)
{
	(void)mutex;
	return later();
}
