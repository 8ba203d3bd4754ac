/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided calls: lists, and flush; those of one range are in calls/put.c, one word's in atomic.c. */
#include "slmpm/rma/rma.h"

#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/message/message.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/request.h"
#include "slmpm/rma/direct.h"
#include "slmpm/rma/rma_operate.h"

COLD bool direct_opportunistic(struct context *ctx, uint64_t count)
{
	if (count % RMA_INSPECT_EVERY) {
		monitor_opportunistic(ctx);
		return false;
	}
	progress_opportunistic(ctx);
	return true;
}

/* ---- lists and flush ------------------------------------------------------------------------ */

int slmpm_putv(slmpm_rmem to, const struct slmpm_span *spans, int n, const struct slmpm_iov *pieces,
	       int m, const struct slmpm_how *how, slmpm_req *req)
{
	struct operation o = {
		.call = "slmpm_putv",
		.rmem = to,
		.kind = REQUEST_PUT,
		.access = SLMPM_WRITE,
		.spans = spans,
		.span_count = n,
		.pieces = pieces,
		.piece_count = m,
		.how = how,
		.req = req,
	};

	return rma_operate(&o);
}

int slmpm_getv(slmpm_rmem from, const struct slmpm_span *spans, int n,
	       const struct slmpm_iov *pieces, int m, const struct slmpm_how *how, slmpm_req *req)
{
	struct operation o = {
		.call = "slmpm_getv",
		.rmem = from,
		.kind = REQUEST_GET,
		.access = SLMPM_READ,
		.spans = spans,
		.span_count = n,
		.pieces = pieces,
		.piece_count = m,
		.how = how,
		.req = req,
	};

	return rma_operate(&o);
}

struct flushed {
	struct endpoint *ep;
	uint64_t id; /* another thread may free it */
};

/* What an operation has left to the peer when its call ended is through, too. */
static bool nothing_moves(void *arg)
{
	const struct flushed *f = arg;

	return handle_id(f->ep) != f->id || f->ep->state != SLMPM_PEER_UP ||
	       !(f->ep->rma->holds & (RMA_BEHIND | RMA_LEFT));
}

static int let_end(struct flushed *f, int timeout_ms)
{
	int rc = wait_until(f->ep->ctx, nothing_moves, f, timeout_ms);

	if (handle_id(f->ep) != f->id)
		return rc;
	if (rc == -SLMPM_ETIMEOUT)
		return late_from(f->ep->ctx, f->ep, -1, "an operation is still under way at");
	return rc == 0 && f->ep->state != SLMPM_PEER_UP ? endpoint_error(f->ep) : rc;
}

int slmpm_flush(slmpm_peer peer, int timeout_ms)
{
	struct endpoint *ep = endpoint_of(peer);
	struct request r = {.piece_count = 0};
	struct flushed f = {.ep = ep};
	struct context *ctx;
	int rc;

	if (!ep || !endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	f.id = handle_id(ep);
	progress_opportunistic(ctx); /* a peer that has died since is not reported visible */
	if (ep->state == SLMPM_PEER_UP && rma_is_settled(ep)) {
		rc = ep->rma->lost ? error_set(-ep->rma->lost, "%s refused an earlier operation",
					       ep->life->name) :
				     0;
		ep->rma->lost = 0;
		atomic_thread_fence(memory_order_seq_cst);
	} else if (ep->lent == LENT_PACKET) {
		rc = error_set(SLMPM_EBUSY, "slmpm_flush: a loan to %s is open", ep->life->name);
	} else {
		rc = request_init(&r, REQUEST_PUT, ctx, ep, 0, NULL, 0);
		list_init(&r.rma.live);
		r.flags = SLMPM_FENCE;
		r.rma.answered = r.rma.remotely = true;
		if (rc == 0)
			rc = message_await(&r, timeout_ms);
	}
	if (rc == 0 && !nothing_moves(&f))
		rc = let_end(&f, timeout_ms);
	context_unlock(ctx);
	return rc;
}
