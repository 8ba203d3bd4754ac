/* SPDX-License-Identifier: BSD-3-Clause */
/* What a put or get is asked to move, checked and turned into SLMPM's terms. */
#include "slmpm/dacs/dacs_dma.h"

#include <limits.h>

#define QUAD 16 /* bytes: what a Cell processor transfers at once */

/* What SLMPM_DACS_STRICT asks of each element. */
static bool aligned(const struct dacsi_dma_call *call, uint64_t address, uint64_t size)
{
	uint64_t unit = QUAD;

	if (call->what & DACSI_LIST && size % QUAD)
		return false;
	if (size < QUAD)
		unit = UINT64_C(1) << (63 - __builtin_clzll(size));
	return address % unit == 0;
}

/* One side's list against the LIMIT bytes that lie at BASE. */
static DACS_ERR_T check_side(const struct dacsi_dma_call *call, const struct dacsi_dma_side *side,
			     uint64_t base, uint64_t limit, uint64_t *total)
{
	uint64_t unit = UINT64_C(1) << call->swap;

	*total = 0;
	for (uint32_t i = 0; i < side->count; i++) {
		uint64_t offset = side->list[i].offset, size = side->list[i].size;

		if (!size || size % unit || *total + size < *total)
			return DACS_ERR_INVALID_SIZE;
		if (offset > limit || size > limit - offset)
			return DACS_ERR_BUF_OVERFLOW;
		if (dacsi.set.strict && !aligned(call, base + offset, size))
			return DACS_ERR_NOT_ALIGNED;
		*total += size;
	}
	return DACS_SUCCESS;
}

static DACS_ERR_T check_lists(const struct dacsi_dma_call *call, const struct dacsi_region *remote,
			      const struct dacsi_region *local, uint64_t *total)
{
	const struct dacsi_dma_side *there = call->remote, *here = call->local;
	uint64_t base = local ? local->address : here->at, total_here;
	uint64_t limit = local ? local->size : UINTPTR_MAX - base;
	uint64_t pairs = (uint64_t)there->count * here->count;
	DACS_ERR_T rc;

	if (!there->list || !here->list)
		return DACS_ERR_INVALID_ADDR;
	/* Either gather or scatter. */
	if ((there->count != 1 && here->count != 1) || !pairs || pairs > INT_MAX)
		return DACS_ERR_INVALID_SIZE;
	rc = check_side(call, there, remote->address, remote->size, total);
	if (rc == DACS_SUCCESS)
		rc = check_side(call, here, base, limit, &total_here);
	if (rc == DACS_SUCCESS && (*total != total_here || *total > SLMPM_MESSAGE_MAX))
		rc = DACS_ERR_INVALID_SIZE;
	return rc;
}

static DACS_ERR_T find_ends(const struct dacsi_dma_call *call, struct dacsi_region **remote,
			    struct dacsi_region **local)
{
	uint32_t here = call->what & DACSI_PUT ? DACS_MEM_READ_ONLY : DACS_MEM_WRITE_ONLY;
	DACS_ERR_T rc;

	*remote = dacsi_handle_find_as(call->remote->at, call->family, false, &rc);
	*local = NULL;
	if (!*remote)
		return rc;
	if (call->family == DACSI_REMOTE)
		return call->local->at ? DACS_SUCCESS : DACS_ERR_INVALID_ADDR;
	*local = dacsi_handle_find_as(call->local->at, call->family, true, &rc);
	if (!*local)
		return rc;
	return (*local)->local_access & here ? DACS_SUCCESS : DACS_ERR_NO_PERM;
}

DACS_ERR_T dacsi_dma_check(const struct dacsi_dma_call *call, struct dacsi_region **remote,
			   struct dacsi_region **local, uint64_t *total)
{
	uint32_t there = call->what & DACSI_PUT ? DACS_MEM_WRITE_ONLY : DACS_MEM_READ_ONLY;
	DACS_ERR_T rc;

	if (!dacsi_wid_find(call->wid))
		return DACS_ERR_INVALID_WID;
	if ((unsigned)call->swap > DACS_BYTE_SWAP_DOUBLE_WORD ||
	    (unsigned)call->order > DACS_ORDER_ATTR_FENCE)
		return DACS_ERR_INVALID_ATTR;
	rc = find_ends(call, remote, local);
	if (rc == DACS_SUCCESS)
		rc = check_lists(call, *remote, *local, total);
	if (rc != DACS_SUCCESS)
		return rc;
	if (!((*remote)->remote_access & there))
		return DACS_ERR_NO_PERM;
	return (*remote)->is.process ? DACS_SUCCESS : DACS_ERR_DE_TERM;
}

void dacsi_dma_convert(const struct dacsi_dma_call *call, const struct dacsi_region *local,
		       struct slmpm_span *spans, struct slmpm_iov *pieces)
{
	const struct dacsi_dma_side *there = call->remote, *here = call->local;
	uintptr_t base = (uintptr_t)(local ? local->address : here->at);

	for (uint32_t i = 0; i < there->count; i++)
		spans[i] = (struct slmpm_span){there->list[i].offset, there->list[i].size};
	for (uint32_t i = 0; i < here->count; i++)
		pieces[i] = (struct slmpm_iov){(void *)(base + here->list[i].offset),
					       here->list[i].size};
}
