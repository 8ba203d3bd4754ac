/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided calls. The short ways are at the top: a plain put or get on memory that is within
 * direct reach is a lookup, the checks and a copy. Every other operation is left to rma_operate.
 */
#include "slmpm/memory/rma_operate.h"

#include "shm/copy.h"
#include "slmpm/memory/direct.h"
#include "slmpm/base/error.h"
#include "slmpm/link/late.h"
#include "slmpm/message/message.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/link/progress.h"
#include "slmpm/request.h"
#include "slmpm/memory/share.h"
#include "slmpm/link/wait.h"

/* ---- the short ways ------------------------------------------------------------------------- */

COLD bool direct_come_by(struct context *ctx, uint64_t count)
{
	if (count % RMA_LOOK_EVERY) {
		monitor_come_by(ctx);
		return false;
	}
	progress_in_passing(ctx);
	return true;
}

/* After COUNT operations, some of which nobody has timed. */
static COLD void look_at(struct remote *remote, uint64_t count)
{
	const slmpm_rmem rmem = {handle_id(remote)};

	if (direct_come_by(remote->ctx, count) && remote_get(rmem) == remote)
		direct_measure(remote);
}

static int operate_one(const char *call, int kind, slmpm_rmem rmem, uint64_t offset, void *local,
		       size_t len, const struct slmpm_how *how, slmpm_req *req)
{
	struct slmpm_span span = {offset, len};
	struct slmpm_iov piece = {local, len};
	struct operation o = {
		.call = call,
		.rmem = rmem,
		.kind = kind,
		.access = kind == REQUEST_PUT ? SLMPM_WRITE : SLMPM_READ,
		.spans = &span,
		.span_count = 1,
		.pieces = &piece,
		.piece_count = 1,
		.how = how,
		.req = req,
	};

	return rma_operate(&o);
}

/* What goes the long way is measured there. */
static bool is_measured_here(const struct slmpm_how *how, const slmpm_req *req)
{
	return !req && direct_is_plain(how);
}

static COLD int put_measured(struct remote *remote, slmpm_rmem to, uint64_t offset,
			     const void *from, size_t len, const struct slmpm_how *how,
			     slmpm_req *req)
{
	uint64_t took = clock_ticks();
	int rc;

	direct_measured(remote);
	rc = slmpm_put(to, offset, from, len, how, req);
	took = clock_ticks() - took;
	if (rc == 0 && is_measured_here(how, req) && remote_get(to) == remote)
		monitor_timed(remote->ep, SLMPM_BY_PUT, len, from, took, took);
	return rc;
}

static COLD int get_measured(struct remote *remote, slmpm_rmem from, uint64_t offset, void *to,
			     size_t len, const struct slmpm_how *how, slmpm_req *req)
{
	uint64_t took = clock_ticks();
	int rc;

	direct_measured(remote);
	rc = slmpm_get(from, offset, to, len, how, req);
	took = clock_ticks() - took;
	if (rc == 0 && is_measured_here(how, req) && remote_get(from) == remote)
		monitor_timed(remote->ep, SLMPM_BY_GET, len, to, took, took);
	return rc;
}

static NOINLINE int put_slowly(slmpm_rmem to, uint64_t offset, const void *from, size_t len,
			       const struct slmpm_how *how, slmpm_req *req)
{
	struct remote *remote = remote_get(to);

	if (UNLIKELY(remote && remote->measured))
		return put_measured(remote, to, offset, from, len, how, req);
	return operate_one("slmpm_put", REQUEST_PUT, to, offset, (void *)(uintptr_t)from, len, how,
			   req);
}

static inline int get_shortly(struct remote *remote, uint64_t offset, void *to, size_t len)
{
	struct slmpm_stats *stats = remote->direct.stats;

	copy_payload(to, direct_at(remote, offset), len);
	/* Pairs with the release before what was read here, as by a fenced put. */
	atomic_thread_fence(memory_order_acquire);
	stats->get_bytes += len;
	if (UNLIKELY(!(++stats->gets % RMA_PASS_EVERY)))
		look_at(remote, stats->gets);
	return 0;
}

static NOINLINE int get_slowly(slmpm_rmem from, uint64_t offset, void *to, size_t len,
			       const struct slmpm_how *how, slmpm_req *req)
{
	struct remote *remote = remote_get(from);

	if (UNLIKELY(remote && remote->measured))
		return get_measured(remote, from, offset, to, len, how, req);
	if (!req && direct_misses_mirrors(remote, FABRIC_READ, to, len) &&
	    len < remote->ep->ask_min && direct_is_within(remote, offset, len) && (to || !len) &&
	    direct_is_plain(how))
		return get_shortly(remote, offset, to, len);
	return operate_one("slmpm_get", REQUEST_GET, from, offset, to, len, how, req);
}

int slmpm_put(slmpm_rmem to, uint64_t offset, const void *from, size_t len,
	      const struct slmpm_how *how, slmpm_req *req)
{
	struct remote *remote = remote_get(to);

	if (LIKELY(!req && direct_is_short(remote, FABRIC_WRITE) &&
		   direct_is_within(remote, offset, len) && (from || !len) &&
		   direct_is_plain(how))) {
		struct slmpm_stats *stats = remote->direct.stats;
		int shared = 0;

		if (UNLIKELY(len >= SHARE_LEAST)) {
			if (len >= remote->ep->ask_min)
				return put_slowly(to, offset, from, len, how, req);
			shared = share_put(remote, offset, from, len, how);
		}
		if (UNLIKELY(shared < 0))
			return shared;
		if (LIKELY(!shared))
			copy_payload(direct_at(remote, offset), from, len);
		stats->put_bytes += len;
		if (UNLIKELY(!(++stats->puts % RMA_PASS_EVERY)))
			look_at(remote, stats->puts);
		return 0;
	}
	return put_slowly(to, offset, from, len, how, req);
}

int slmpm_get(slmpm_rmem from, uint64_t offset, void *to, size_t len, const struct slmpm_how *how,
	      slmpm_req *req)
{
	struct remote *remote = remote_get(from);

	if (LIKELY(!req && direct_is_short(remote, FABRIC_READ) &&
		   direct_is_within(remote, offset, len) && (to || !len) && direct_is_plain(how)))
		return get_shortly(remote, offset, to, len);
	return get_slowly(from, offset, to, len, how, req);
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
	       !(f->ep->rma->holds & RMA_BEHIND);
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
	progress_in_passing(ctx); /* a peer that has died since is not reported visible */
	if (ep->state == SLMPM_PEER_UP && rma_is_settled(ep)) {
		rc = ep->rma->lost ? error_set(-ep->rma->lost, "%s refused an earlier operation",
					       ep->name) :
				     0;
		ep->rma->lost = 0;
		atomic_thread_fence(memory_order_seq_cst);
	} else if (ep->loan.data && !ep->loan.area) {
		rc = error_set(SLMPM_EBUSY, "slmpm_flush: a loan to %s is open", ep->name);
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
