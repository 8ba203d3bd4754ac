/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided calls: checks, lists, flush; others are in calls/put.c and atomic.c. */
#include "slmpm/rma/rma.h"

#include "slmpm/base/error.h"
#include "slmpm/completion/completion.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"
#include "slmpm/message/message.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/request.h"
#include "slmpm/rma/direct.h"

COLD bool direct_opportunistic(struct context *ctx, uint64_t count)
{
	if (count % RMA_INSPECT_EVERY) {
		monitor_opportunistic(ctx);
		return false;
	}
	progress_opportunistic(ctx);
	return true;
}

/* ---- checks ------------------------------------------------------------------------------ */

#define FLAGS                                                                                      \
	(SLMPM_MORE | SLMPM_FENCE | SLMPM_BARRIER | SLMPM_REMOTE | SLMPM_NOTIFY | SLMPM_FIFO |     \
	 MODE_LINK_MASK)

static int rma_check_spans(struct operation *o)
{
	const struct remote *remote = o->remote;
	uint64_t here = 0;

	o->length = 0;
	for (int i = 0; i < o->span_count; i++) {
		const struct slmpm_span *s = &o->spans[i];

		if (s->offset > remote->memory.size || s->len > remote->memory.size - s->offset)
			return error_set(SLMPM_EINVAL, "%s: %llu bytes at %llu of a region of %llu",
					 o->call, (unsigned long long)s->len,
					 (unsigned long long)s->offset,
					 (unsigned long long)remote->memory.size);
		if (s->len > SLMPM_MESSAGE_MAX - o->length)
			return error_set(SLMPM_ELIMIT, "%s: more than %llu bytes", o->call,
					 (unsigned long long)SLMPM_MESSAGE_MAX);
		o->length += s->len;
	}
	for (int i = 0; i < o->piece_count; i++) {
		if (o->pieces[i].len && !o->pieces[i].base)
			return error_set(SLMPM_EINVAL, "%s: piece %d is NULL", o->call, i);
		if (o->pieces[i].len > o->length - here) {
			here = UINT64_MAX; /* whatever it would be */
			break;
		}
		here += o->pieces[i].len;
	}
	if (!o->atomic && here != o->length)
		return error_set(SLMPM_EINVAL, "%s: the bytes here are not the %llu there", o->call,
				 (unsigned long long)o->length);
	return 0;
}

static int rma_check_access(const struct operation *o)
{
	const struct remote *remote = o->remote;
	uint32_t lacks = o->access & ~remote->access;

	if (remote->access == SLMPM_COUNT)
		return o->atomic && o->length == sizeof(uint64_t) ?
			       0 :
			       error_set(SLMPM_EACCES,
					 "%s: what %s grants is a counter: 64-bit atomic "
					 "operations alone reach it",
					 o->call, remote->ep->life->name);
	if (!lacks)
		return 0;
	return error_set(SLMPM_EACCES, "%s: %s allows no %s", o->call, remote->ep->life->name,
			 lacks & SLMPM_WRITE ? "writing" : "reading");
}

int rma_check(struct operation *o)
{
	const struct remote *remote = o->remote;
	uint32_t flags = o->kind == REQUEST_PUT ? FLAGS : FLAGS & ~(SLMPM_NOTIFY | SLMPM_FIFO);
	int rc = how_take(o->call, &o->full, o->how, flags);

	if (rc < 0)
		return rc;
	if (!(o->full.flags & (SLMPM_ON_LINK_MASK | SLMPM_FIFO)))
		o->full.flags |= remote->hint;
	if (o->span_count < 0 || o->piece_count < 0 || (o->span_count && !o->spans) ||
	    (o->piece_count && !o->pieces))
		return error_set(SLMPM_EINVAL, "%s: %d spans and %d pieces", o->call, o->span_count,
				 o->piece_count);
	rc = rma_check_spans(o);
	if (rc < 0)
		return rc;
	if (remote->ep->state != SLMPM_PEER_UP)
		return endpoint_error(remote->ep);
	if (remote_is_revoked(remote))
		return error_set(SLMPM_EACCES, "%s: %s has taken the region back", o->call,
				 remote->ep->life->name);
	return rma_check_access(o);
}

/* ---- lists and flush --------------------------------------------------------------------- */

int rma_operate_lists(const char *call, enum request_kind kind, slmpm_rmem rmem,
		      const struct slmpm_span *spans, int n, const struct slmpm_iov *pieces, int m,
		      const struct slmpm_how *how, slmpm_req *req)
{
	struct operation o = {
		.call = call,
		.rmem = rmem,
		.kind = kind,
		.access = kind == REQUEST_PUT ? SLMPM_WRITE : SLMPM_READ,
		.spans = spans,
		.span_count = n,
		.pieces = pieces,
		.piece_count = m,
		.how = how,
		.req = req,
	};

	return rma_operate(&o);
}

int slmpm_putv(slmpm_rmem to, const struct slmpm_span *spans, int n, const struct slmpm_iov *pieces,
	       int m, const struct slmpm_how *how, slmpm_req *req)
{
	return rma_operate_lists("slmpm_putv", REQUEST_PUT, to, spans, n, pieces, m, how, req);
}

int slmpm_getv(slmpm_rmem from, const struct slmpm_span *spans, int n,
	       const struct slmpm_iov *pieces, int m, const struct slmpm_how *how, slmpm_req *req)
{
	return rma_operate_lists("slmpm_getv", REQUEST_GET, from, spans, n, pieces, m, how, req);
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
