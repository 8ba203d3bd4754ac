/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending. The fast paths are at the top: a message of a burst joins its bundle, one that fits a
 * packet goes straight to the link. Any other becomes a request in a transmit queue. */
#include "slmpm/link/bundle.h"
#include "slmpm/base/clock.h"
#include "slmpm/base/error.h"
#include "slmpm/message/inbound.h"
#include "slmpm/link/link.h"
#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/request.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/completion/completion.h"

/* ---- the fast paths ------------------------------------------------------------------------- */

/* A short message of a burst: staged, and posted with those around it. False: not this way. */
static bool send_bundled(struct endpoint *ep, uint64_t route, const void *buf, size_t len)
{
	struct bundle *b = &ep->bundle;

	if (UNLIKELY(ep->blocked))
		return false;
	if (b->count && !bundle_fits(b, route, len) && !bundle_flush(ep))
		return false;
	if (!b->count && !bundle_begin(ep, route, len))
		return false;
	bundle_add(b, buf, len);
	return true;
}

/* The last message of a burst: 1 it joined its bundle and both went off, 0 no room, -1 it must
 * follow on its own. */
static int send_last_of_burst(struct endpoint *ep, uint64_t route, const void *buf, size_t len)
{
	struct bundle *b = &ep->bundle;

	if (!len || !bundle_fits(b, route, len))
		return bundle_flush(ep) ? -1 : 0;
	bundle_add(b, buf, len);
	if (bundle_flush(ep))
		return 1;
	bundle_drop(b); /* it was promised to nobody yet */
	return 0;
}

static inline enum sent send_direct(struct endpoint *ep, uint32_t stream, const void *buf,
				    size_t len, uint32_t imm, uint16_t flags)
{
	uint64_t charge = wire_charge(len);
	struct packet p = {
		.opcode = WIRE_SEND_ONLY,
		.flags = flags,
		.length = (uint32_t)len,
		.data = buf,
		.seq = ep->sent + 1,
		.route = wire_route(stream, imm),
		.extent = len,
	};
	int rc;

	if (UNLIKELY(ep->blocked || len > ep->only_max))
		return NOT_SENT;
	if (UNLIKELY(ep->bundle.count)) {
		rc = send_last_of_burst(ep, p.route, buf, len);
		if (rc >= 0)
			return rc ? leaving_sent(ep) : NOT_SENT;
		if (endpoint_is_blocked(ep, BLOCK_LAGS)) /* by now */
			return NOT_SENT;
		p.seq = ep->sent + 1;
	}
	if (UNLIKELY(ep->charged - ep->credited + charge > ep->credit))
		return NOT_SENT;
	if (UNLIKELY(link_post(ep, &p) != 1))
		return NOT_SENT;
	link_begun(ep, len);
	ep->stats->sent_packets++;
	ep->charged += charge;
	return leaving_sent(ep);
}

/* ---- the calls ------------------------------------------------------------------------------ */

static COLD int bad_send(const char *call, uint32_t stream)
{
	if (stream > SLMPM_STREAM_MAX)
		return error_set(SLMPM_EINVAL, "%s: stream 0x%x is for receiving only", call,
				 stream);
	return error_set(SLMPM_EINVAL, "%s: the buffer is NULL", call);
}

/* By a request, whatever of it there is. */
static COLD int sendv_by_request(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov,
				 int n, const struct slmpm_how *how, slmpm_req *req)
{
	struct request stack = {.piece_count = 0};
	struct request *r = completion_blocks(how, req) ? &stack : request_new(ep->ctx);
	int rc;

	if (!r)
		return -SLMPM_ENOMEM;
	rc = request_init(r, REQUEST_SEND, ep->ctx, ep, stream, iov, n);
	r->result.imm = how ? how->imm : 0;
	r->flags = how ? (uint8_t)(how->flags & SLMPM_MORE) : 0;
	r->hint = how ? mode_hint(how->flags) : 0;
	return message_begin(r, rc, how, req);
}

static COLD int send_by_request(struct endpoint *ep, uint32_t stream, const void *buf, size_t len,
				int timeout_ms)
{
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = timeout_ms};
	const struct slmpm_iov piece = {(void *)(uintptr_t)buf, len};
	struct context *ctx = ep->ctx;
	int rc = sendv_by_request(ep, stream, &piece, 1, &how, NULL);

	monitor_pass(ctx);
	return rc;
}

/* Not a short one that goes at once. */
static NOINLINE int send_otherwise(struct endpoint *ep, uint32_t stream, const void *buf,
				   size_t len, int timeout_ms)
{
	switch (message_send_whole(ep, stream, buf, len, 0)) {
	case SENT: monitor_pass(ep->ctx); return 0;
	case SENT_IN_PART: leaving_await(ep, timeout_ms); return 0;
	case NOT_SENT: break;
	}
	return send_by_request(ep, stream, buf, len, timeout_ms);
}

/* In a context with threads. */
static NOINLINE int send_shared(struct endpoint *ep, slmpm_peer peer, uint32_t stream,
				const void *buf, size_t len, int timeout_ms)
{
	struct context *ctx = ep->ctx; /* the peer may be gone, or another, when the wait is over */
	int rc = 0;

	if (UNLIKELY(!endpoint_lock_shared(ep, peer)))
		return endpoint_bad_handle(peer);
	switch (send_direct(ep, stream, buf, len, 0, 0)) {
	case SENT: monitor_pass(ctx); break;
	case SENT_IN_PART: leaving_await(ep, timeout_ms); break;
	case NOT_SENT: rc = send_otherwise(ep, stream, buf, len, timeout_ms);
	}
	context_unlock(ctx);
	return rc;
}

/* To one found by address, or with what may be wrong. */
static COLD int send_slow(slmpm_peer peer, uint32_t stream, const void *buf, size_t len,
			  int timeout_ms)
{
	struct endpoint *ep = endpoint_of(peer);
	const struct slmpm_how how = {.size = sizeof(how), .timeout_ms = timeout_ms};
	const struct slmpm_iov piece = {(void *)(uintptr_t)buf, len};

	if (!ep)
		return endpoint_bad_handle(peer);
	if (stream > SLMPM_STREAM_MAX || (!buf && len))
		return bad_send("slmpm_send", stream);
	return slmpm_sendv(peer, stream, &piece, 1, &how, NULL);
}

HOT int slmpm_send(slmpm_peer peer, uint32_t stream, const void *buf, size_t len, int timeout_ms)
{
	struct endpoint *ep = endpoint_get(peer);
	enum sent sent;

	if (UNLIKELY(!ep || stream > SLMPM_STREAM_MAX || (!buf && len)))
		return send_slow(peer, stream, buf, len, timeout_ms);
	if (UNLIKELY(ep->ctx->multiple))
		return send_shared(ep, peer, stream, buf, len, timeout_ms);
	sent = send_direct(ep, stream, buf, len, 0, 0);
	if (LIKELY(sent == SENT)) {
		if (UNLIKELY(!(ep->stats->sent_messages % MONITOR_PASSES)))
			monitor_opportunistic(ep->ctx);
		return 0;
	}
	if (sent == NOT_SENT)
		return send_otherwise(ep, stream, buf, len, timeout_ms);
	leaving_await(ep, timeout_ms);
	return 0;
}

static inline enum sent send_short(struct endpoint *ep, uint32_t stream,
				   const struct slmpm_iov *iov, uint32_t imm, bool more)
{
	if (more && iov->len <= BUNDLE_MESSAGE_MAX &&
	    send_bundled(ep, wire_route(stream, imm), iov->base, iov->len))
		return SENT;
	return send_direct(ep, stream, iov->base, iov->len, imm, more ? FABRIC_MORE : 0);
}

void message_describe_sent(struct slmpm_done *done, const struct endpoint *ep, uint32_t stream,
			   const struct slmpm_iov *iov, uint32_t imm)
{
	completion_copy(done, &(struct slmpm_done){
				      .len = iov->len,
				      .stream = stream,
				      .imm = imm,
				      .peer = {handle_id(ep)},
				      .op = SLMPM_OP_SEND,
				      .reason = SLMPM_REASON_SHORT,
			      });
}

/* Told to a counter or a queue, and done at once. 1, or 0: not this way. */
static int send_notified(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov,
			 const struct slmpm_how *how)
{
	struct slmpm_done done;
	struct notified notified;
	int rc = completion_open(&notified, ep->ctx, how, NULL);

	if (rc < 0)
		return rc;
	message_describe_sent(&done, ep, stream, iov, how->imm);
	return leaving_end(ep, &notified, &done,
			   send_short(ep, stream, iov, how->imm, how->flags & SLMPM_MORE));
}

enum sent message_send_at_once(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov,
			       int n, uint32_t flags, uint32_t imm)
{
	if (!message_is_single(iov, n) || mode_hint(flags))
		return NOT_SENT;
	return send_short(ep, stream, iov, imm, flags & SLMPM_MORE);
}

enum sent message_send_single(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov,
			      uint32_t imm)
{
	return send_direct(ep, stream, iov->base, iov->len, imm, 0);
}

void message_leaves(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov,
		    const struct slmpm_how *how)
{
	struct slmpm_done done;
	struct notified notified;

	if (completion_open(&notified, ep->ctx, how, NULL) < 0)
		return;
	message_describe_sent(&done, ep, stream, iov, how->imm);
	(void)leaving_end(ep, &notified, &done, SENT_IN_PART);
}

int message_sendv(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov, int n,
		  const struct slmpm_how *how, slmpm_req *req)
{
	int rc = 0;

	if (stream > SLMPM_STREAM_MAX)
		return bad_send("slmpm_sendv", stream);
	if (!req && message_is_single(iov, n) && completion_wanted(how) && !mode_hint(how->flags))
		rc = send_notified(ep, stream, iov, how);
	if (rc == 0)
		rc = sendv_by_request(ep, stream, iov, n, how, req);
	return rc < 0 ? rc : 0;
}

/* With flags or an end that are rare, to one found by address, or written for another version. */
static int sendv_slow(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *iov, int n,
		      const struct slmpm_how *how, slmpm_req *req)
{
	struct endpoint *ep = endpoint_of(peer);
	struct slmpm_how full;
	struct context *ctx;
	int rc;

	if (!ep)
		return endpoint_bad_handle(peer);
	rc = how_take("slmpm_sendv", &full, how, SLMPM_MORE | MODE_LINK_MASK);
	if (rc < 0)
		return rc;
	full.flags = endpoint_hints(peer, full.flags);
	if (how_is_plain(&full, SLMPM_MORE))
		return slmpm_sendv(peer, stream, iov, n, &full, req);
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	rc = message_sendv(ep, stream, iov, n, &full, req);
	monitor_pass(ctx);
	context_unlock(ctx);
	return rc;
}

static NOINLINE int sendv(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *iov, int n,
			  const struct slmpm_how *how, slmpm_req *req)
{
	struct endpoint *ep = endpoint_get(peer);
	uint32_t imm = how ? how->imm : 0;
	enum sent sent = NOT_SENT;
	struct context *ctx;
	bool more;
	int rc = 0;

	if (UNLIKELY(!ep))
		return sendv_slow(peer, stream, iov, n, how, req);
	if (UNLIKELY(stream > SLMPM_STREAM_MAX))
		return bad_send("slmpm_sendv", stream);
	if (UNLIKELY(!how_is_plain(how, SLMPM_MORE)))
		return sendv_slow(peer, stream, iov, n, how, req);
	if (UNLIKELY(!endpoint_lock(ep, peer)))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	more = how && how->flags & SLMPM_MORE;
	if (!req && message_is_single(iov, n))
		sent = send_short(ep, stream, iov, imm, more);
	if (sent == NOT_SENT)
		rc = sendv_by_request(ep, stream, iov, n, how, req);
	else if (UNLIKELY(sent == SENT_IN_PART) && !more)
		leaving_await(ep, how ? how->timeout_ms : -1);
	monitor_pass(ctx);
	context_unlock(ctx);
	return rc;
}

static NOINLINE int add_long(struct bundle *b, const void *buf, size_t len)
{
	bundle_add(b, buf, len);
	return 0;
}

int slmpm_sendv(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *iov, int n,
		const struct slmpm_how *how, slmpm_req *req)
{
	struct endpoint *ep = endpoint_get(peer);

	/*
	 * In the middle of a burst this is all there is to do. Whatever calls another function is
	 * kept out of here, so that no register has to be saved.
	 */
	if (ep && message_is_single(iov, n) && how && !req && how->size == sizeof(*how) &&
	    !((how->flags ^ SLMPM_MORE) | how->ctr.id | how->cq.id) && !(ep->blocked) &&
	    !ep->ctx->multiple &&
	    bundle_fits(&ep->bundle, wire_route(stream, how->imm), iov->len)) {
		if (UNLIKELY(iov->len > COPY_SHORT))
			return add_long(&ep->bundle, iov->base, iov->len);
		copy_short(ep->bundle.at, iov->base, iov->len);
		bundle_count(&ep->bundle, iov->len);
		return 0;
	}
	return sendv(peer, stream, iov, n, how, req);
}

/* ---- bursts: what is short and ready goes packet by packet, the rest as by single calls ----- */

static NOINLINE bool send_one(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *m,
			      bool more)
{
	return send_direct(ep, stream, m->base, m->len, 0, more ? FABRIC_MORE : 0);
}

/* As many as go at once. */
static int send_at_once(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *m, int n)
{
	int sent = 0;

	while (sent < n && !(ep->blocked)) {
		int k = 0;

		if (ep->bundle.count && !bundle_flush(ep)) /* of a burst that has no end yet */
			break;
		if (n - sent > 1)
			k = bundle_gather(ep, wire_route(stream, 0), m + sent, n - sent);
		if (k == 0 && message_has_buffer(&m[sent]))
			k = send_one(ep, stream, &m[sent], n - sent > 1);
		if (k == 0)
			break;
		sent += k;
	}
	return sent;
}

/* All, or what can be until the deadline or the first error. */
static int send_all(struct endpoint *ep, slmpm_peer peer, uint32_t stream,
		    const struct slmpm_iov *m, int n, int timeout_ms)
{
	int sent = send_at_once(ep, stream, m, n), rc;
	uint64_t deadline = sent < n ? clock_deadline(timeout_ms) : 0;

	while (sent < n) {
		if (!message_has_buffer(&m[sent]))
			rc = error_set(SLMPM_EINVAL, "slmpm_send_burst: a buffer is NULL");
		else
			rc = send_by_request(ep, stream, m[sent].base, m[sent].len,
					     sent ? clock_ms(clock_now(), deadline, -1) :
						    timeout_ms);
		if (rc < 0) {
			if (sent && endpoint_of(peer) == ep)
				(void)link_flush(ep); /* they said that more would follow */
			return sent ? sent : rc;
		}
		sent++;
		if (endpoint_of(peer) != ep) /* another thread has closed it meanwhile */
			break;
		sent += send_at_once(ep, stream, m + sent, n - sent);
	}
	if (UNLIKELY(sent == n && endpoint_is_blocked(ep, BLOCK_LAGS)) && endpoint_of(peer) == ep)
		leaving_await(ep, deadline ? clock_ms(clock_now(), deadline, -1) : timeout_ms);
	return sent;
}

/* To one found by address: each asks for its link. */
static COLD int send_by_address(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *m, int n,
				int timeout_ms)
{
	uint64_t deadline = clock_deadline(timeout_ms);
	int rc = 0;

	if (!endpoint_of(peer))
		return endpoint_bad_handle(peer);
	if (n < 0 || (!m && n))
		return error_set(SLMPM_EINVAL, "slmpm_send_burst: no messages");
	for (int i = 0; i < n; i++) {
		rc = slmpm_send(peer, stream, m[i].base, m[i].len,
				i ? clock_ms(clock_now(), deadline, -1) : timeout_ms);
		if (rc < 0)
			return i ? i : rc;
	}
	return n;
}

int slmpm_send_burst(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *messages, int n,
		     int timeout_ms)
{
	struct endpoint *ep = endpoint_get(peer);
	struct context *ctx;
	int sent;

	if (UNLIKELY(!ep))
		return send_by_address(peer, stream, messages, n, timeout_ms);
	if (UNLIKELY(stream > SLMPM_STREAM_MAX))
		return error_set(SLMPM_EINVAL,
				 "slmpm_send_burst: the stream is for receiving only");
	if (UNLIKELY(n < 0 || (!messages && n)))
		return error_set(SLMPM_EINVAL, "slmpm_send_burst: no messages");
	if (UNLIKELY(!endpoint_lock(ep, peer)))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	sent = send_all(ep, peer, stream, messages, n, timeout_ms);
	monitor_pass(ctx);
	context_unlock(ctx);
	return sent;
}
