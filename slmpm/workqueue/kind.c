/* SPDX-License-Identifier: BSD-3-Clause */
/* Of what kind a work request's work is, and how much. */
#include "slmpm/workqueue/workqueue.h"

#include "slmpm/choice/pick.h"
#include "slmpm/region/memory.h"

uint64_t work_bytes_of(const struct slmpm_wr *wr)
{
	uint64_t n = 0;

	for (int i = 0; i < wr->iov_count; i++)
		n += wr->iov[i].len;
	return n;
}

/* Requests through the ring are served in their order. What is done directly is done at once, or by
 * the engine, which others overtake; active messages are many. */
bool work_by_request(const struct slmpm_wr *wr, enum fabric_op op)
{
	const struct remote *remote = remote_get(wr->rmem);

	return remote && !(remote->memory.ops & UINT64_C(1) << op) &&
	       pick_form(remote->ep) == MODE_RMA_RING;
}

enum work_kind work_kind_of(const struct slmpm_wr *wr)
{
	if (wr->flags & (SLMPM_FENCE | SLMPM_BARRIER))
		return WORK_ALONE;
	if (UNLIKELY(wr->rctr.id))
		return wr->op == SLMPM_OP_SEND || wr->op == SLMPM_OP_AM ||
				       wr->op == SLMPM_OP_COUNT ?
			       WORK_COUNTED :
			       WORK_ALONE;
	switch (wr->op) {
	case SLMPM_OP_SEND:
	case SLMPM_OP_AM: return WORK_MESSAGE;
	case SLMPM_OP_GET: return WORK_GET;
	case SLMPM_OP_ATOMIC: return work_by_request(wr, FABRIC_ATOMIC) ? WORK_ATOMIC : WORK_ALONE;
	case SLMPM_OP_CALC:
	case SLMPM_OP_ENABLE:
	case SLMPM_OP_COUNT:
	case SLMPM_OP_PIPE: return WORK_ALONE;
	default:
		if (!work_by_request(wr, FABRIC_WRITE))
			return WORK_ALONE;
		return wr->flags & SLMPM_REMOTE ? WORK_REMOTE_PUT : WORK_PUT;
	}
}
