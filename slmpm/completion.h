/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the end of a request is told when nobody waits for it: counted, or queued. A request whose
 * how names a counter or a queue has no handle of the caller's; it ends with completion_deliver.
 */
#ifndef SLMPM_COMPLETION_H
#define SLMPM_COMPLETION_H

#include "slmpm/request.h"

/* Does a call with HOW and REQ block until the operation is done? */
static inline bool completion_blocks(const struct slmpm_how *how, const slmpm_req *req)
{
	return !req && (!how || how->size < sizeof(*how) || (!how->ctr.id && !how->cq.id));
}

/* Before R is submitted: it will be told to how->ctr or how->cq, if there is one. Negative with the
 * detail set when the handle is wrong or of another context, or REQ is there too. */
int completion_bind(struct request *r, const struct slmpm_how *how, const slmpm_req *req);
/* By request_finish, for a request that was bound. */
void completion_deliver(struct request *r);

struct region;
/* A peer's notified put has landed in REGION: told to its counter and queue. */
void completion_notify(struct region *region, struct endpoint *ep, uint64_t offset, uint64_t len,
		       uint32_t imm);

#endif
