/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving. The fast paths are at the top: the next message of an opened bundle, and one that lies
 * in the ring, come straight into the caller's buffer. Whatever else becomes a request.
 */
#include <string.h>

#include "slmpm/am/am.h"
#include "slmpm/link/bundle.h"
#include "slmpm/base/error.h"
#include "slmpm/message/held.h"
#include "slmpm/link/link.h"
#include "slmpm/message/match.h"
#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/part.h"
#include "slmpm/link/progress.h"
#include "slmpm/request.h"
#include "slmpm/link/wait.h"
#include "slmpm/completion/completion.h"

/* ---- the fast paths ------------------------------------------------------------------------- */

/* Can the opened bundle serve this call? */
static inline bool bundle_serves(const struct endpoint *ep, uint32_t stream, size_t cap)
{
	const struct unpack *u = &ep->unpack;

	return u->left && u->length <= cap && bundle_is_for(u, stream) && message_is_first(ep);
}

/* Is A a plain message of one packet that a receive on STREAM may take as it is? */
static inline bool is_plain_message(const struct endpoint *ep, const struct fabric_arrival *a,
				    uint32_t stream)
{
	return a->kind == WIRE_SEND_ONLY && a->head[2] == a->length &&
	       !PEER_FAULT(a->length > ep->only_max_in || a->head[0] != ep->received + 1 ||
			   (uint32_t)a->head[1] == SLMPM_ANY_STREAM) &&
	       (stream == SLMPM_ANY_STREAM || stream == (uint32_t)a->head[1]);
}

static inline void take_plain(struct endpoint *ep, const struct fabric_arrival *a)
{
	ep->received++;
	ep->stats->received_messages++;
	ep->stats->received_bytes += a->length;
	link_matched(ep, wire_charge(a->length));
}

static inline bool is_message(uint8_t kind)
{
	return kind <= WIRE_SEND_ONLY || kind == WIRE_LOAN || kind == WIRE_FETCH;
}

/* 1: *A is the message, not yet released. 2: the opened bundle has it. 0: not this way; what else
 * came has been handled. */
static inline int recv_direct(struct endpoint *ep, uint32_t stream, int polls,
			      struct fabric_arrival **a)
{
	while (LIKELY(!ep->blocked && message_is_first(ep))) {
		*a = progress_take(ep);
		if (LIKELY(*a != NULL)) {
			if (LIKELY(is_plain_message(ep, *a, stream)))
				return 1;
			if ((*a)->kind == WIRE_BUNDLE) {
				if (!bundle_open(ep, *a))
					return 0;
				if (bundle_is_for(&ep->unpack, stream))
					return 2;
				(void)bundle_unpack(ep, true);
				if (UNLIKELY(ep->unpack.left))
					return 0;
			} else if (am_take(ep, *a)) {
				/* Its handler has run. */
			} else if (is_message((*a)->kind)) {
				/* Its receive is posted first, so that it is copied but once. */
				ep->link.next--;
				return 0;
			} else if (!packet_take(ep, *a)) {
				progress_release(ep, *a);
			}
		} else if (ep->bundle.count) {
			(void)link_push(ep); /* who waits has ended the burst */
		}
		if (polls == (int)ep->ctx->scans)
			ep->ctx->spin.quick++; /* it waits */
		if (--polls <= 0)
			break;
		clock_between_polls();
	}
	return 0;
}

int message_inspect(struct endpoint *ep, uint32_t stream, int polls, struct fabric_arrival **a)
{
	return recv_direct(ep, stream, polls, a);
}

static inline void fill_done(struct slmpm_done *done, const struct endpoint *ep,
			     const struct fabric_arrival *a, int status)
{
	if (!done)
		return;
	done->len = a->length;
	done->status = status;
	done->stream = (uint32_t)a->head[1];
	done->imm = (uint32_t)(a->head[1] >> 32);
	done->flags = 0;
	done->peer.id = handle_id(ep);
	done->cookie = 0;
	done->op = SLMPM_OP_RECV;
	done->protocol = SLMPM_BY_SMT;
	done->reason = SLMPM_REASON_NONE; /* its sender's matter */
}

/* ---- the calls ------------------------------------------------------------------------------ */

struct context *message_source(slmpm_peer peer, struct endpoint **ep, int *rc)
{
	slmpm_ctx handle = {peer.id & ~UINT64_C(0x80000000)};
	struct context *ctx;

	*ep = NULL;
	if (peer.id & UINT64_C(0x80000000)) {
		ctx = context_get(handle, rc);
		if (ctx)
			context_lock(ctx);
		return ctx;
	}
	*ep = endpoint_of(peer);
	if (!*ep || !endpoint_lock(*ep, peer)) {
		*rc = endpoint_bad_handle(peer);
		return NULL;
	}
	return (*ep)->ctx;
}

static int64_t recv_request(struct context *ctx, struct endpoint *ep, uint32_t stream,
			    const struct slmpm_iov *iov, int n, struct slmpm_done *done,
			    int timeout_ms)
{
	struct request r = {.piece_count = 0};
	int rc = request_init(&r, REQUEST_RECV, ctx, ep, stream, iov, n);

	if (rc == 0) {
		rc = message_await(&r, timeout_ms);
		if (done)
			completion_copy(done, &r.result);
		if (done && !r.done)
			done->status = rc;
	}
	request_drop(&r);
	return rc < 0 ? rc : (int64_t)r.result.len;
}

#define STEPS_FROM 2048 /* bytes of a packet ... */
#define STEPS_TO   8192 /* ... beyond which half a first-level cache does not hold the copy ... */
#define STEPS_RUN  16   /* ... behind so many others, that are copied in steps */

static NOINLINE void copy_long(const struct endpoint *ep, void *to, const void *from, size_t n)
{
	if (n >= STEPS_FROM && n <= STEPS_TO && ep->link.run >= STEPS_RUN)
		copy_in_steps(to, from, n);
	else
		memcpy(to, from, n);
}

static inline int64_t take_arrival(struct endpoint *ep, const struct fabric_arrival *a, void *buf,
				   size_t cap, struct slmpm_done *done)
{
	struct slmpm_done whole = {.len = a->length, .stream = (uint32_t)a->head[1]};
	bool fits = a->length <= cap;
	size_t n = fits ? a->length : cap;

	if (UNLIKELY(n > COPY_SHORT))
		copy_long(ep, buf, a->data, n);
	else
		copy_short(buf, a->data, n);
	take_plain(ep, a);
	fill_done(done, ep, a, fits ? 0 : -SLMPM_ETRUNC);
	progress_release(ep, a);
	return LIKELY(fits) ? (int64_t)whole.len : message_truncated(&whole, cap);
}

int64_t message_deliver(struct endpoint *ep, const struct fabric_arrival *a, void *buf, size_t cap,
			struct slmpm_done *done)
{
	return take_arrival(ep, a, buf, cap, done);
}

static int64_t receive_from(struct endpoint *ep, uint32_t stream, void *buf, size_t cap,
			    struct slmpm_done *done, int timeout_ms)
{
	const struct slmpm_iov iov = {buf, cap};
	struct fabric_arrival *a;
	int how = 0;

	if (LIKELY(!ep->unpack.left))
		how = recv_direct(ep, stream, message_polls(ep->ctx, timeout_ms), &a);
	if (LIKELY(how == 1))
		return take_arrival(ep, a, buf, cap, done);
	if (bundle_serves(ep, stream, cap))
		return bundle_take(ep, buf, done);
	return recv_request(ep->ctx, ep, stream, &iov, 1, done, timeout_ms);
}

int64_t message_recv(struct context *ctx, struct endpoint *ep, uint32_t stream, void *buf,
		     size_t cap, struct slmpm_done *done, int timeout_ms)
{
	const struct slmpm_iov iov = {buf, cap};

	if (ep)
		return receive_from(ep, stream, buf, cap, done, timeout_ms);
	return recv_request(ctx, NULL, stream, &iov, 1, done, timeout_ms);
}

const struct fabric_arrival *message_hold_direct(struct endpoint *ep, uint32_t stream,
						 struct slmpm_done *done, int timeout_ms)
{
	struct fabric_arrival *a;

	if (ep->unpack.left || recv_direct(ep, stream, message_polls(ep->ctx, timeout_ms), &a) != 1)
		return NULL;
	if (!held_arrival(ep, a)) {
		ep->link.next--;
		return NULL;
	}
	take_plain(ep, a);
	fill_done(done, ep, a, 0);
	return a;
}

/* From any peer, in a context with threads or mirrors, or with what may be wrong. */
static COLD int64_t recv_slow(slmpm_peer peer, uint32_t stream, void *buf, size_t cap,
			      struct slmpm_done *done, int timeout_ms)
{
	struct endpoint *ep;
	struct context *ctx;
	int64_t len;
	int rc = 0;

	if (!buf && cap)
		return error_set(SLMPM_EINVAL, "slmpm_recv: the buffer is NULL");
	ctx = message_source(peer, &ep, &rc);
	if (!ctx)
		return rc;
	len = message_recv(ctx, ep, stream, buf, cap, done, timeout_ms);
	if (len > 0 || len == -SLMPM_ETRUNC)
		part_landed(ctx, buf, len > 0 ? (uint64_t)len : cap);
	context_unlock(ctx);
	return len;
}

static NOINLINE int64_t take_long(struct endpoint *ep, void *buf, struct slmpm_done *done)
{
	return bundle_take(ep, buf, done);
}

int64_t slmpm_recv(slmpm_peer peer, uint32_t stream, void *buf, size_t cap, struct slmpm_done *done,
		   int timeout_ms)
{
	struct endpoint *ep = endpoint_get(peer);

	if (UNLIKELY(!ep || (!buf && cap) || ep->ctx->careful))
		return recv_slow(peer, stream, buf, cap, done, timeout_ms);
	if (bundle_serves(ep, stream, cap)) { /* without a call, unless at its end */
		uint32_t len = ep->unpack.length;

		if (UNLIKELY(len > COPY_SHORT))
			return take_long(ep, buf, done);
		copy_short(buf, ep->unpack.at, len);
		return bundle_taken(ep, len, done);
	}
	return receive_from(ep, stream, buf, cap, done, timeout_ms);
}

int message_post(struct request *r)
{
	struct inbound *m;
	int rc;

	am_run_due(r->ctx);
	m = match_find(r);
	r->seq = ++r->ctx->postings;
	if (m) {
		match_give(m, r);
		return 0;
	}
	rc = context_source_ended(r->ctx, r->ep);
	if (rc == 0)
		match_post(r);
	return rc;
}

int message_recvv(struct context *ctx, struct endpoint *ep, uint32_t stream,
		  const struct slmpm_iov *iov, int n, const struct slmpm_how *how, slmpm_req *req)
{
	struct request *r = request_new();
	int rc;

	if (!r)
		return -SLMPM_ENOMEM;
	rc = request_init(r, REQUEST_RECV, ctx, ep, stream, iov, n);
	return message_begin(r, rc, how, req);
}

int64_t slmpm_recvv(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *iov, int n,
		    const struct slmpm_how *how, slmpm_req *req)
{
	struct slmpm_how full;
	struct endpoint *ep;
	int rc = 0;
	struct context *ctx = message_source(peer, &ep, &rc);
	int64_t len;

	if (!ctx)
		return rc;
	len = how_take("slmpm_recvv", &full, how, SLMPM_MORE);
	if (len == 0 && completion_blocks(&full, req))
		len = recv_request(ctx, ep, stream, iov, n, NULL, full.timeout_ms);
	else if (len == 0)
		len = message_recvv(ctx, ep, stream, iov, n, &full, req);
	context_unlock(ctx);
	return len;
}

struct probe {
	struct request request;
	struct inbound *found;
	int ended;
};

static bool has_message(void *arg)
{
	struct probe *p = arg;

	am_run_due(p->request.ctx);
	p->found = match_find(&p->request);
	if (!p->found)
		p->ended = context_source_ended(p->request.ctx, p->request.ep);
	return p->found || p->ended < 0;
}

int slmpm_probe(slmpm_peer peer, uint32_t stream, struct slmpm_done *done, int timeout_ms)
{
	struct probe p = {.found = NULL};
	struct endpoint *ep;
	int rc = 0;
	struct context *ctx = message_source(peer, &ep, &rc);

	if (!ctx)
		return rc;
	(void)request_init(&p.request, REQUEST_RECV, ctx, ep, stream, NULL, 0);
	(void)wait_until(ctx, has_message, &p, timeout_ms);
	if (p.found && done) {
		done->status = 0;
		inbound_describe(p.found, done);
	}
	context_unlock(ctx);
	return p.found ? 1 : p.ended;
}
