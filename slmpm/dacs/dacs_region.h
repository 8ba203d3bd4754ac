/* SPDX-License-Identifier: BSD-3-Clause */
/* A region, own or accepted, behind a dacs_remote_mem_t or dacs_mem_t. */
#ifndef SLMPM_DACS_REGION_H
#define SLMPM_DACS_REGION_H

#include "slmpm/dacs/dacs_object.h"

struct dacsi_registration {
	struct dacsi_registration *next;
	const struct dacsi_process *process;
	uint32_t count;
};

struct dacsi_region {
	struct dacsi_object is;
	uint32_t remote_access, local_access; /* DACS_MEM_* */
	uint32_t active;                      /* transfers of this process that use it */
	uint64_t address, size;               /* the owner's address */
	slmpm_mem mem;                        /* own; 0 where nobody else may reach it */
	slmpm_rmem rmem;
	struct dacsi_registration *registrations; /* own: with dacs_mem_register */
};

/* ---- dacs_region.c ---- */

extern const struct dacsi_kind dacsi_region_kind;

/* What the calls of both families do. */
DACS_ERR_T dacsi_region_create(enum dacsi_family family, void *addr, uint64_t size,
			       uint32_t remote_access, uint32_t local_access, uint64_t *handle);
/* ATTR as of dacs_mem_query; the other family has the first three. A whole call. */
DACS_ERR_T dacsi_region_query(enum dacsi_family family, uint64_t handle, unsigned attr,
			      uint64_t *value);

/* ---- dacs_mem.c ---- */

/* Drops REGION's registrations with PROCESS, or with all for NULL. */
void dacsi_mem_unregister(struct dacsi_region *region, const struct dacsi_process *process);

#endif
