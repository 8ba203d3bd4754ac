/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided operations that an engine moves; the region stays as it is meanwhile. */
#include <errno.h>
#include <stdatomic.h>

#include "slmpm/engine/engine.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"
#include "slmpm/message/fetch.h"
#include "slmpm/request.h"

int rma_move_start(struct request *r)
{
	struct remote *remote = r->rma.remote;
	int rc;

	if (!remote) /* an address: all of the peer's memory */
		return engine_start(r, &r->ep->rooms->fetch->peer, NULL);
	remote->copying++;
	rc = engine_start(r, &remote->memory, remote->access_word);
	if (rc < 0)
		memory_copied(remote);
	return rc;
}

uint64_t rma_move_stop(struct request *r)
{
	struct remote *remote = r->rma.transfer ? r->rma.remote : NULL;
	uint64_t at = engine_stop(r);

	if (remote)
		memory_copied(remote);
	return at;
}

void rma_engine_start(struct request *r)
{
	int rc = rma_move_start(r);

	if (rc < 0)
		request_finish(r, rc);
}

bool rma_engine_take_back(struct request *r)
{
	(void)rma_move_stop(r);
	return true;
}

void rma_move_end(struct endpoint *ep)
{
	if (!ep->moving)
		return;
	LIST_EACH_ENTRY(struct rma_work, w, &ep->one_sided, live)
		(void)rma_move_stop(LIST_ENTRY(w, struct request, rma));
}

static int status_of(int rc)
{
	return rc == 0       ? 0 :
	       rc == -EFAULT ? -SLMPM_EINVAL :
	       rc == -ESRCH  ? -SLMPM_EDEAD :
			       -SLMPM_ESYSTEM;
}

static void rma_move_go_on(struct request *r, int rc)
{
	struct remote *remote = r->rma.remote;

	if (rc == -EPERM &&
	    remote) /* not directly any more, and nobody else says so on that copy */
		remote->memory.ops = 0;
	if ((rc == -EPERM || rc == -ENOTSUP) && r->rma.ticket) {
		rma_retry(r);
		return;
	}
	/* Pairs with the release before what a get has read; what the thread has stored came with
	 * the lock. */
	if (r->kind == REQUEST_GET)
		atomic_thread_fence(memory_order_acquire);
	rma_part_done(r, status_of(rc), 0);
}

void rma_move_here(struct request *r, uint64_t from)
{
	struct remote *remote = r->rma.remote;

	rma_move_go_on(r, engine_copy(r, &remote->memory, remote->access_word, from));
}

void rma_moved(struct request *r, int rc)
{
	if (r->rma.remote)
		memory_copied(r->rma.remote);
	rma_move_go_on(r, rc);
}
