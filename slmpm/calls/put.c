/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast paths of puts and gets: on memory that is within direct reach a plain one is a lookup,
 * the checks and a copy, and a large put one that both sides copy. All others are left to
 * rma_operate.
 */
#include "shm/copy.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/request.h"
#include "slmpm/rma/direct.h"
#include "slmpm/share/share.h"

#define LOCKED_MOST 1024 /* bytes that are copied under the lock */

/* After COUNT operations, some of which nobody has timed. */
static COLD void put_inspect_one(struct remote *remote, uint64_t count)
{
	const slmpm_rmem rmem = {handle_id(remote)};

	if (direct_opportunistic(remote->ctx, count) && remote_get(rmem) == remote) {
		/* The next operation goes the slow path, where it is measured. */
		remote->measured |= remote->direct.ops | remote->guarded;
		remote->direct.ops = 0;
	}
}

static int operate_one(const char *call, enum request_kind kind, slmpm_rmem rmem, uint64_t offset,
		       void *local, size_t len, const struct slmpm_how *how, slmpm_req *req)
{
	const struct slmpm_span span = {offset, len};
	const struct slmpm_iov piece = {local, len};

	return rma_operate_lists(call, kind, rmem, &span, 1, &piece, 1, how, req);
}

static COLD int put_measured(struct remote *remote, int kind, slmpm_rmem rmem, uint64_t offset,
			     void *local, size_t len, const struct slmpm_how *how, slmpm_req *req)
{
	uint64_t took = clock_ticks();
	bool puts = kind == REQUEST_PUT;
	int rc;

	direct_measured(remote);
	rc = puts ? slmpm_put(rmem, offset, local, len, how, req) :
		    slmpm_get(rmem, offset, local, len, how, req);
	took = clock_ticks() - took;
	/* What goes the slow path is measured there. */
	if (rc == 0 && !req && direct_is_plain(how) && remote_get(rmem) == remote)
		monitor_timed(remote->ep, puts ? SLMPM_BY_PUT : SLMPM_BY_GET, len, local, took,
			      took);
	return rc;
}

/* The next one is neither measured nor goes with an inspection. */
static inline bool is_unwatched(const struct rma *rma)
{
	return rma->directs % RMA_INSPECT_EVERY && (rma->directs + 1) % RMA_PASS_EVERY;
}

/* Under the lock of its threads. */
static NOINLINE bool put_locked(struct remote *remote, slmpm_rmem to, uint64_t offset,
				const void *from, size_t len)
{
	struct context *ctx = remote->ctx;
	bool may;

	context_lock_shared(ctx);
	may = handle_id(remote) == to.id && remote->ctx == ctx &&
	      direct_is_locked(remote, FABRIC_WRITE) && direct_is_within(remote, offset, len) &&
	      is_unwatched(remote->ep->rma);
	if (LIKELY(may)) {
		copy_payload(direct_at(remote, offset), from, len);
		remote->direct.stats->put_bytes += len;
		remote->direct.stats->puts++;
		remote->ep->rma->directs++;
		monitor_pass(ctx);
	}
	context_unlock(ctx);
	return may;
}

static NOINLINE int put_slow_path(slmpm_rmem to, uint64_t offset, const void *from, size_t len,
				  const struct slmpm_how *how, slmpm_req *req)
{
	struct remote *remote = remote_get(to);
	void *local = (void *)(uintptr_t)from;

	if (UNLIKELY(remote && remote->measured))
		return put_measured(remote, REQUEST_PUT, to, offset, local, len, how, req);
	if (remote && remote->ctx->multiple && !req && len <= LOCKED_MOST && (from || !len) &&
	    direct_is_plain(how) && put_locked(remote, to, offset, from, len))
		return 0;
	return operate_one("slmpm_put", REQUEST_PUT, to, offset, local, len, how, req);
}

static inline int get_shortly(struct remote *remote, uint64_t offset, void *to, size_t len)
{
	struct slmpm_stats *stats = remote->direct.stats;

	copy_payload(to, direct_at(remote, offset), len);
	/* Pairs with the release before what was read here, as by a fenced put. */
	atomic_thread_fence(memory_order_acquire);
	stats->get_bytes += len;
	if (UNLIKELY(!(++stats->gets % RMA_PASS_EVERY)))
		put_inspect_one(remote, stats->gets);
	return 0;
}

static NOINLINE int get_slow_path(slmpm_rmem from, uint64_t offset, void *to, size_t len,
				  const struct slmpm_how *how, slmpm_req *req)
{
	struct remote *remote = remote_get(from);

	if (UNLIKELY(remote && remote->measured))
		return put_measured(remote, REQUEST_GET, from, offset, to, len, how, req);
	if (!req && direct_is_guarded(remote, FABRIC_READ) && !mirror_lies(remote->ctx, to, len) &&
	    len < remote->ep->ask_min && direct_is_within(remote, offset, len) && (to || !len) &&
	    direct_is_plain(how))
		return get_shortly(remote, offset, to, len);
	return operate_one("slmpm_get", REQUEST_GET, from, offset, to, len, how, req);
}

HOT int slmpm_put(slmpm_rmem to, uint64_t offset, const void *from, size_t len,
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
				return put_slow_path(to, offset, from, len, how, req);
			shared = share_put(remote, offset, from, len, how);
		}
		if (UNLIKELY(shared < 0))
			return shared;
		if (LIKELY(!shared))
			copy_payload(direct_at(remote, offset), from, len);
		stats->put_bytes += len;
		if (UNLIKELY(!(++stats->puts % RMA_PASS_EVERY)))
			put_inspect_one(remote, stats->puts);
		return 0;
	}
	return put_slow_path(to, offset, from, len, how, req);
}

HOT int slmpm_get(slmpm_rmem from, uint64_t offset, void *to, size_t len,
		  const struct slmpm_how *how, slmpm_req *req)
{
	struct remote *remote = remote_get(from);

	if (LIKELY(!req && direct_is_short(remote, FABRIC_READ) &&
		   direct_is_within(remote, offset, len) && (to || !len) && direct_is_plain(how)))
		return get_shortly(remote, offset, to, len);
	return get_slow_path(from, offset, to, len, how, req);
}
