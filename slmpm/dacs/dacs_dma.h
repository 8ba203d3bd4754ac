/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions, and puts and gets between them, single and in lists. */
#ifndef SLMPM_DACS_DMA_H
#define SLMPM_DACS_DMA_H

#include "slmpm/dacs/dacs_message.h"
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

enum { DACSI_PUT = 1, DACSI_LIST = 2 }; /* what a call is, of the list calls or not */

struct dacsi_dma_side {
	uint64_t at; /* a region's handle; of memory here in the older family its address */
	const dacs_dma_list_t *list;
	uint32_t count;
};

struct dacsi_dma_call { /* a put or get as it was called */
	enum dacsi_family family;
	uint32_t what;
	const struct dacsi_dma_side *remote, *local;
	dacs_wid_t wid;
	DACS_ORDER_ATTR_T order;
	DACS_BYTE_SWAP_T swap;
};

/* ---- dacs_dma_check.c ---- */

/* Whether CALL may be done: its ends (*LOCAL may be NULL) and the *TOTAL bytes it moves. */
DACS_ERR_T dacsi_dma_check(const struct dacsi_dma_call *call, struct dacsi_region **remote,
			   struct dacsi_region **local, uint64_t *total);
/* Its lists in SLMPM's terms. */
void dacsi_dma_convert(const struct dacsi_dma_call *call, const struct dacsi_region *local,
		       struct slmpm_span *spans, struct slmpm_iov *pieces);

/* ---- dacs_dma.c ---- */

/* A put or get as WHAT says, whole. */
DACS_ERR_T dacsi_dma(enum dacsi_family family, uint32_t what, const struct dacsi_dma_side *to,
		     const struct dacsi_dma_side *from, dacs_wid_t wid, DACS_ORDER_ATTR_T order,
		     DACS_BYTE_SWAP_T swap);
/* Moves a wid's transfers on, and starts those whose turn has come. */
bool dacsi_dma_poll(struct dacsi_wid *wid);
/* The same for all there are. */
bool dacsi_dma_poll_all(void);
/* Forgets a wid's transfers, whose requests have ended with the context. */
void dacsi_dma_abandon(struct dacsi_wid *wid);

#endif
