/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving. The fast paths are at the top: the next message of an opened bundle, and one that lies
 * in the ring, come straight into the caller's buffer. Whatever else becomes a request.
 */
#include <string.h>

#include "shm/copy.h"
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

/* May what arrives go to the caller, or do others come first? */
static inline bool message_is_first(const struct endpoint *ep)
{
	return !ep->ctx->posted_count && !ep->before;
}

/* Others are posted, but none that wants a message on STREAM, and nothing has come before. */
static NOINLINE bool message_passes(const struct endpoint *ep, uint32_t stream)
{
	return stream != SLMPM_ANY_STREAM && list_empty(&ep->kept) &&
	       list_empty(&ep->messages->unexpected) && !match_next(ep, stream);
}

/* How often a receive scans the ring before it becomes a request: with the lock only where no other
 * thread is after it, or polls. */
static inline int message_polls(const struct context *ctx, int timeout_ms)
{
	if (!timeout_ms || ctx->oversubscribed || ctx->wait == SLMPM_WAIT_BLOCK ||
	    (ctx->multiple && (ctx->polling || context_is_wanted(ctx))))
		return 1;
	return (int)ctx->scans;
}

/* Can the opened bundle serve this call? */
static inline bool bundle_serves(const struct endpoint *ep, uint32_t stream, size_t cap)
{
	const struct unpack *u = &ep->unpack;

	return u->left && u->length <= cap && bundle_is_for(u, stream) && message_is_first(ep);
}

static inline bool is_message(uint8_t kind)
{
	return kind <= WIRE_SEND_ONLY || kind == WIRE_LOAN || kind == WIRE_FETCH;
}

/* What EP's ring has for a receive on STREAM, in at most so many polls. 1: *A is the message, not
 * yet released. 2: the opened bundle has it. 0: not this way; what else came has been handled. */
static inline HOT int recv_direct(struct endpoint *ep, uint32_t stream, int polls,
				  struct fabric_arrival **a)
{
	bool may = message_is_first(ep) || message_passes(ep, stream);

	while (LIKELY(!ep->blocked && may)) {
		*a = progress_take(ep);
		if (LIKELY(*a != NULL)) {
			if (LIKELY(message_is_plain(ep, *a, stream)))
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
			may = message_is_first(ep) || message_passes(ep, stream);
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

static NOINLINE void copy_packet(const struct endpoint *ep, void *to, const void *from, size_t n)
{
	if (n >= STEPS_FROM && n <= STEPS_TO && ep->link.run >= STEPS_RUN)
		copy_in_steps(to, from, n);
	else
		copy_bytes(to, from, n);
}

static inline int64_t take_arrival(struct endpoint *ep, const struct fabric_arrival *a, void *buf,
				   size_t cap, struct slmpm_done *done)
{
	struct slmpm_done whole = {.len = a->length, .stream = (uint32_t)a->head[1]};
	bool fits = a->length <= cap;
	size_t n = fits ? a->length : cap;

	if (UNLIKELY(n > COPY_SHORT))
		copy_packet(ep, buf, a->data, n);
	else
		copy_short(buf, a->data, n);
	message_take_plain(ep, a);
	if (done)
		bundle_fill_done(done, ep, a->length, a->head[1], fits ? 0 : -SLMPM_ETRUNC);
	progress_release(ep, a);
	return LIKELY(fits) ? (int64_t)whole.len : message_truncated(&whole, cap);
}

static HOT int64_t receive_from(struct endpoint *ep, uint32_t stream, void *buf, size_t cap,
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

static int64_t recv_next(struct context *ctx, struct endpoint *ep, uint32_t stream, void *buf,
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
	message_take_plain(ep, a);
	if (done)
		bundle_fill_done(done, ep, a->length, a->head[1], 0);
	return a;
}

/* In a context with threads or mirrors. */
static NOINLINE int64_t recv_careful(struct endpoint *ep, slmpm_peer peer, uint32_t stream,
				     void *buf, size_t cap, struct slmpm_done *done, int timeout_ms)
{
	struct context *ctx = ep->ctx;
	int64_t len;

	if (UNLIKELY(!endpoint_lock(ep, peer)))
		return endpoint_bad_handle(peer);
	if (timeout_ms && ctx->port)
		parts.step_aside(ctx, true);
	len = receive_from(ep, stream, buf, cap, done, timeout_ms);
	if (len > 0 || len == -SLMPM_ETRUNC)
		part_landed(ctx, buf, len > 0 ? (uint64_t)len : cap);
	context_unlock(ctx);
	return len;
}

/* From any peer, or with what may be wrong. */
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
	if (timeout_ms && ctx->port)
		parts.step_aside(ctx, true);
	len = recv_next(ctx, ep, stream, buf, cap, done, timeout_ms);
	if (len > 0 || len == -SLMPM_ETRUNC)
		part_landed(ctx, buf, len > 0 ? (uint64_t)len : cap);
	context_unlock(ctx);
	return len;
}

static NOINLINE int64_t take_long(struct endpoint *ep, void *buf, struct slmpm_done *done)
{
	return bundle_take(ep, buf, done);
}

HOT int64_t slmpm_recv(slmpm_peer peer, uint32_t stream, void *buf, size_t cap,
		       struct slmpm_done *done, int timeout_ms)
{
	struct endpoint *ep = endpoint_get(peer);

	if (UNLIKELY(!ep || (!buf && cap)))
		return recv_slow(peer, stream, buf, cap, done, timeout_ms);
	if (UNLIKELY(ep->ctx->careful))
		return recv_careful(ep, peer, stream, buf, cap, done, timeout_ms);
	if (bundle_serves(ep, stream, cap)) { /* without a call, unless at its end */
		uint32_t len = ep->unpack.length;

		if (UNLIKELY(len > COPY_SHORT))
			return take_long(ep, buf, done);
		copy_short(buf, ep->unpack.at, len);
		return bundle_taken(ep, len, done);
	}
	return receive_from(ep, stream, buf, cap, done, timeout_ms);
}

int message_recvv(struct context *ctx, struct endpoint *ep, uint32_t stream,
		  const struct slmpm_iov *iov, int n, const struct slmpm_how *how, slmpm_req *req)
{
	struct request *r = request_new(ctx);
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

/* ---- bursts: checked and accounted for by the packet; what is not short comes alone --------- */

struct taking { /* what a receive burst has and wants */
	uint32_t stream;
	struct slmpm_iov *m;
	struct slmpm_done *done; /* or NULL */
	int n, got;
};

static inline struct slmpm_done *done_at(const struct taking *t)
{
	return t->done ? t->done + t->got : NULL;
}

/* What EP's ring has, in order, up to a message that does not fit: the next call's first. */
static void take_from_ring(struct endpoint *ep, struct taking *t, int polls)
{
	while (t->got < t->n) {
		struct fabric_arrival *a;
		struct slmpm_iov *m = &t->m[t->got];
		int how = 2, k;

		if (!ep->unpack.left)
			how = recv_direct(ep, t->stream, t->got ? 1 : polls, &a);
		if (how == 2) {
			if (!message_is_first(ep) || !bundle_is_for(&ep->unpack, t->stream))
				return;
			k = bundle_scatter(ep, m, t->n - t->got, done_at(t));
			if (k == 0)
				return;
			t->got += k;
			continue;
		}
		if (how == 0)
			return;
		if (a->length > m->len || !message_has_buffer(m)) {
			ep->link.next--;
			return;
		}
		m->len = (size_t)take_arrival(ep, a, m->base, m->len, done_at(t));
		t->got++;
	}
}

/* A message that has come before, whole and sound, and fits. */
static bool take_kept(struct context *ctx, struct endpoint *ep, struct taking *t)
{
	struct slmpm_iov *m = &t->m[t->got];
	struct request r = {.piece_count = 0};
	struct inbound *in = NULL;

	am_run_due(ctx);
	if (request_init(&r, REQUEST_RECV, ctx, ep, t->stream, m, 1) == 0)
		in = match_find(&r);
	if (in &&
	    (!inbound_complete(in) || in->damaged || (in->area ? in->got : in->total) > m->len))
		in = NULL;
	if (in) {
		match_give(in, &r);
		if (t->done)
			completion_copy(done_at(t), &r.result);
		m->len = r.result.len;
		t->got++;
	}
	request_drop(&r);
	return in != NULL;
}

/* What is there without waiting. */
static void take_at_once(struct context *ctx, struct endpoint *ep, struct taking *t, int polls)
{
	uint32_t first = ctx->turn;

	while (t->got < t->n && ctx->unexpected && t->got && take_kept(ctx, ep, t))
		;
	if (ep)
		take_from_ring(ep, t, polls);
	for (uint32_t i = 0; !ep && i < ctx->live && t->got < t->n; i++) {
		uint32_t at = (first + i) % ctx->live;
		int before = t->got;

		take_from_ring(ctx->endpoints[at], t, 1);
		if (t->got > before)
			ctx->turn = at + 1;
	}
}

static int receive_some(struct context *ctx, struct endpoint *ep, slmpm_peer peer, struct taking *t,
			int timeout_ms)
{
	int64_t len;

	/* One from any peer is received alone: that looks at all there is to do, for every peer. */
	if (LIKELY(ep != NULL))
		take_at_once(ctx, ep, t, message_polls(ctx, timeout_ms));
	if (LIKELY(t->got))
		return t->got;
	if (!message_has_buffer(t->m))
		return error_set(SLMPM_EINVAL, "slmpm_recv_burst: a buffer is NULL");
	len = recv_next(ctx, ep, t->stream, t->m->base, t->m->len, t->done, timeout_ms);
	if (len < 0)
		return (int)len;
	t->m->len = (size_t)len;
	t->got = 1;
	if (!ep || endpoint_of(peer) == ep)
		take_at_once(ctx, ep, t, 1);
	return t->got;
}

/* In a context with threads or mirrors. */
static COLD void end_carefully(struct context *ctx, const struct slmpm_iov *m, int n)
{
	for (int i = 0; i < n; i++)
		part_landed(ctx, m[i].base, m[i].len);
	context_unlock(ctx);
}

int slmpm_recv_burst(slmpm_peer peer, uint32_t stream, struct slmpm_iov *messages, int n,
		     struct slmpm_done *done, int timeout_ms)
{
	struct taking t = {.stream = stream, .m = messages, .done = done, .n = n};
	struct endpoint *ep = endpoint_get(peer);
	struct context *ctx;
	int rc = 0;

	if (UNLIKELY(n < 0 || (!messages && n)))
		return error_set(SLMPM_EINVAL, "slmpm_recv_burst: no messages");
	if (LIKELY(ep && endpoint_lock(ep, peer)))
		ctx = ep->ctx;
	else
		ctx = message_source(peer, &ep, &rc);
	if (UNLIKELY(!ctx))
		return rc;
	rc = n ? receive_some(ctx, ep, peer, &t, timeout_ms) : 0;
	if (UNLIKELY(ctx->careful))
		end_carefully(ctx, messages, rc);
	return rc;
}
