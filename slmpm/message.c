/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages. The short way of both directions is at the top: a message of one packet goes straight
 * to the link and comes straight out of the ring into the caller's buffer. Whatever does not fit
 * that becomes a request, which waits its turn in a transmit queue or among the posted receives.
 */
#include "slmpm/message.h"

#include <errno.h>
#include <string.h>

#include "slmpm/bootstrap.h"
#include "slmpm/bundle.h"
#include "slmpm/error.h"
#include "slmpm/inbound.h"
#include "slmpm/link.h"
#include "slmpm/progress.h"
#include "slmpm/wait.h"

#define SPIN_POLLS 200 /* looks at one ring before a receive becomes a request */

/* ---- the short way -------------------------------------------------------------------------- */

/* A short message of a burst: staged, and posted with those around it. 1: taken. */
static inline int send_bundled(struct endpoint *ep, uint64_t route, const void *buf, size_t len)
{
	uint64_t charge = len + WIRE_ENVELOPE;

	if (UNLIKELY(!ep->direct || ep->charged - ep->credited + charge > ep->credit))
		return 0;
	if (UNLIKELY(!bundle_fits(&ep->bundle, route, len)) && !bundle_flush(ep))
		return 0;
	bundle_add(&ep->bundle, route, buf, len);
	ep->sent++;
	ep->charged += charge;
	ep->stats->sent_messages++;
	ep->stats->sent_bytes += len;
	return 1;
}

/* The last message of a burst joins it and sends it off. 1: sent. */
static int send_last_of_burst(struct endpoint *ep, uint64_t route, const void *buf, size_t len)
{
	struct bundle *b = &ep->bundle;

	if (len && len <= BUNDLE_MESSAGE_MAX && bundle_fits(b, route, len)) {
		if (!send_bundled(ep, route, buf, len))
			return 0;
		if (bundle_flush(ep))
			return 1;
		b->count--; /* it was promised to nobody yet */
		b->bytes -= (uint32_t)len;
		ep->sent--;
		ep->charged -= len + WIRE_ENVELOPE;
		ep->stats->sent_messages--;
		ep->stats->sent_bytes -= len;
		return 0;
	}
	return bundle_flush(ep) ? -1 : 0;
}

/* 1: sent. 0: not this way. */
static inline int send_direct(struct endpoint *ep, uint32_t stream, const void *buf, size_t len,
			      uint32_t imm, uint16_t flags)
{
	uint64_t charge = len + WIRE_ENVELOPE;
	struct packet p = {
		.opcode = WIRE_SEND_ONLY,
		.flags = flags,
		.length = (uint32_t)len,
		.data = buf,
		.seq = ep->sent + 1,
		.route = wire_route(stream, imm),
		.extent = len,
	};

	if (UNLIKELY(!ep->direct || len > ep->packet_max ||
		     ep->charged - ep->credited + charge > ep->credit))
		return 0;
	if (UNLIKELY(ep->bundle.count)) {
		int rc = send_last_of_burst(ep, p.route, buf, len);

		if (rc >= 0)
			return rc;
		p.seq = ep->sent + 1;
	}
	if (UNLIKELY(link_post(ep, &p) != 1))
		return 0;
	ep->sent++;
	ep->charged += charge;
	ep->stats->sent_messages++;
	ep->stats->sent_packets++;
	ep->stats->sent_bytes += len;
	return 1;
}

/* Payload out of the ring; the bytes may change meanwhile, their number was checked. */
static inline void copy_out(void *to, const void *from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	if (n > 32) {
		memcpy(t, f, n);
	} else if (n >= 16) {
		memcpy(t, f, 16);
		memcpy(t + n - 16, f + n - 16, 16);
	} else if (n >= 8) {
		memcpy(t, f, 8);
		memcpy(t + n - 8, f + n - 8, 8);
	} else {
		for (size_t i = 0; i < n; i++)
			t[i] = f[i];
	}
}

/* Is A a plain message of one packet that a receive on STREAM may take as it is? */
static inline bool is_plain(const struct endpoint *ep, const struct fabric_arrival *a,
			    uint32_t stream)
{
	return a->kind == WIRE_SEND_ONLY && a->head[2] == a->length &&
	       a->length <= ep->packet_max_in && a->head[0] == ep->received + 1 &&
	       (uint32_t)a->head[1] != SLMPM_ANY_STREAM &&
	       (stream == SLMPM_ANY_STREAM || stream == (uint32_t)a->head[1]);
}

static inline void take_plain(struct endpoint *ep, const struct fabric_arrival *a)
{
	uint64_t charge = inbound_cost(a->length);

	ep->received++;
	ep->arrived_charge += charge;
	ep->stats->received_packets++;
	ep->stats->received_messages++;
	ep->stats->received_bytes += a->length;
	if (UNLIKELY(ep->matched_charge + charge - ep->returned_charge >= ep->credit / 4))
		inbound_charge(ep, charge);
	else
		ep->matched_charge += charge;
}

/* Is the next message of an opened bundle for STREAM? */
static inline bool is_bundled(const struct endpoint *ep, uint32_t stream)
{
	return stream == SLMPM_ANY_STREAM || stream == (uint32_t)ep->unpack.route;
}

static inline bool is_message(uint8_t kind)
{
	return kind <= WIRE_SEND_ONLY || kind == WIRE_LOAN;
}

/* 1: *A is the message, not yet released. 2: the opened bundle has it. 0: not this way; what else came has been handled. */
static inline int recv_direct(struct endpoint *ep, uint32_t stream, int polls,
			      struct fabric_arrival **a)
{
	struct context *ctx = ep->ctx;

	while (LIKELY(ep->direct && !ctx->posted_count && list_empty(&ep->unexpected))) {
		*a = progress_take(ep);
		if (LIKELY(*a != NULL)) {
			if (LIKELY(is_plain(ep, *a, stream)))
				return 1;
			if ((*a)->kind == WIRE_BUNDLE) {
				if (!bundle_open(ep, *a))
					return 0;
				if (is_bundled(ep, stream))
					return 2;
				(void)bundle_unpack_rest(ep);
			} else if (is_message((*a)->kind)) {
				/* Its receive is posted first, so that it is copied but once. */
				ep->link.next--;
				return 0;
			} else if (!inbound_packet(ep, *a)) {
				progress_release(ep, *a);
			}
		} else if (ep->bundle.count) {
			(void)link_push(ep); /* who waits has ended the burst */
		}
		if (--polls <= 0)
			break;
	}
	return 0;
}

static inline void fill_bundled(struct slmpm_done *done, const struct endpoint *ep)
{
	*done = (struct slmpm_done){
		.len = ep->unpack.length,
		.stream = (uint32_t)ep->unpack.route,
		.imm = (uint32_t)(ep->unpack.route >> 32),
		.peer = {handle_id(ep)},
	};
}

/* The next message of the opened bundle. */
static inline int64_t take_bundled(struct endpoint *ep, void *buf, struct slmpm_done *done)
{
	struct unpack *u = &ep->unpack;
	uint32_t len = u->length;
	uint64_t charge = inbound_cost(len);

	copy_out(buf, u->at, len);
	if (done)
		fill_bundled(done, ep);
	u->at += len;
	ep->received++;
	ep->arrived_charge += charge;
	ep->stats->received_messages++;
	ep->stats->received_bytes += len;
	if (!--u->left)
		progress_release(ep, &u->arrival);
	if (UNLIKELY(ep->matched_charge + charge - ep->returned_charge >= ep->credit / 4))
		inbound_charge(ep, charge);
	else
		ep->matched_charge += charge;
	return len;
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
}

static inline int polls_for(const struct context *ctx, int timeout_ms)
{
	return !timeout_ms || ctx->crowded || ctx->wait == SLMPM_WAIT_BLOCK || ctx->multiple ?
		       1 :
		       SPIN_POLLS;
}

/* ---- requests ------------------------------------------------------------------------------- */

static int truncated(const struct slmpm_done *done, uint64_t cap)
{
	return error_set(SLMPM_ETRUNC, "a message of %llu bytes on stream %u for a buffer of %llu",
			 (unsigned long long)done->len, done->stream, (unsigned long long)cap);
}

/* Who only tries (WAITED 0) does so often: for him nobody looks into /proc. */
static int timed_out(struct endpoint *ep, const char *what, int waited)
{
	const char *suspicion = ep && waited ? endpoint_suspicion(ep) : NULL;

	return error_set(SLMPM_ETIMEOUT, "%s %s%s%s", what, ep ? ep->name : "any peer",
			 suspicion ? ", " : "", suspicion ? suspicion : "");
}

/* A finished request's status with its detail. */
static int explain(struct request *r)
{
	/* By its handle: another thread may have closed it meanwhile. */
	struct endpoint *ep = handle_get(&endpoint_table, r->result.peer.id);

	switch (-r->result.status) {
	case SLMPM_OK: return 0;
	case SLMPM_ETRUNC: return truncated(&r->result, r->length);
	case SLMPM_ECHECKSUM:
		return error_set(SLMPM_ECHECKSUM, "a message of %llu bytes from %s",
				 (unsigned long long)r->result.len, ep ? ep->name : "a peer");
	case SLMPM_ENOMEM: return error_set(SLMPM_ENOMEM, "for a message");
	case SLMPM_ECANCELED: return error_set(SLMPM_ECANCELED, "the request was taken back");
	default:
		if (ep && ep->state != SLMPM_PEER_UP && ep->state != SLMPM_PEER_CONNECTING)
			return endpoint_error(ep);
		return error_set(-r->result.status, "%s", ep ? ep->name : "no peer is left");
	}
}

static void post_receive(struct request *r)
{
	struct inbound *m = inbound_find(r);

	if (m) {
		inbound_match(m, r);
		return;
	}
	list_append(&r->ctx->posted, &r->node);
	r->ctx->posted_count++;
}

/* 0, or why nothing can come any more. */
static int source_ended(struct context *ctx, struct endpoint *ep)
{
	if (ep)
		return ep->state == SLMPM_PEER_UP || ep->state == SLMPM_PEER_CONNECTING ?
			       0 :
			       endpoint_error(ep);
	for (uint32_t i = 0; i < ctx->count; i++)
		if (ctx->endpoints[i]->state == SLMPM_PEER_UP ||
		    ctx->endpoints[i]->state == SLMPM_PEER_CONNECTING)
			return 0;
	if (!list_empty(&ctx->listeners))
		return 0;
	return error_set(SLMPM_ECLOSED, "no peer is left in this context");
}

/* Hands a request to its queue. 0, or a negative error and the request is not there. */
static int submit(struct request *r)
{
	int rc;

	if (r->kind != REQUEST_SEND) {
		struct inbound *m = inbound_find(r);

		r->seq = ++r->ctx->postings;
		if (m) {
			inbound_match(m, r);
			return 0;
		}
		rc = source_ended(r->ctx, r->ep);
		if (rc == 0)
			post_receive(r);
		return rc;
	}
	if (r->ep->closing ||
	    (r->ep->state != SLMPM_PEER_UP && r->ep->state != SLMPM_PEER_CONNECTING))
		return r->ep->closing && r->ep->state == SLMPM_PEER_UP ?
			       error_set(SLMPM_ECLOSED, "%s is being closed", r->ep->name) :
			       endpoint_error(r->ep);
	link_enqueue(r->ep, r);
	(void)link_push(r->ep);
	return 0;
}

/* Takes an unfinished request out of wherever it is; false when it has gone too far. */
static bool take_back(struct request *r)
{
	if (r->kind != REQUEST_SEND) {
		if (r->message)
			return inbound_unmatch(r) == 0;
		list_remove(&r->node);
		r->ctx->posted_count--;
		return true;
	}
	if (r->seq) {
		link_control(r->ep, WIRE_WITHDRAW, r->seq, 0, NULL, 0);
		/* Only what is announced counts as sent when it is received. */
		r->ep->stats->sent_messages--;
		r->ep->stats->sent_bytes -= r->length;
	}
	if (r->announced && !r->cleared)
		list_remove(&r->node);
	else
		link_dequeue(r->ep, r);
	return true;
}

static bool is_done(void *arg)
{
	return ((struct request *)arg)->done;
}

int message_await(struct request *r, int timeout_ms)
{
	int rc = submit(r);

	if (rc < 0)
		return rc;
	if (!r->done && !timeout_ms) {
		/* One try means one look at what is there. */
		if (r->ep)
			(void)progress_endpoint(r->ep);
		if (!r->done)
			(void)progress_context(r->ctx);
	}
	rc = r->done ? 0 : wait_until(r->ctx, is_done, r, timeout_ms);
	if (r->done)
		return explain(r);
	while (!r->done && !take_back(r)) /* half of it is beyond recall: see it through */
		rc = wait_until(r->ctx, is_done, r, -1);
	if (r->done)
		return explain(r);
	return timed_out(r->ep, r->kind == REQUEST_SEND ? "not sent to" : "nothing from",
			 timeout_ms);
}

/* ---- sending -------------------------------------------------------------------------------- */

static COLD int bad_send(const char *call, uint32_t stream, const void *buf, size_t len)
{
	if (stream > SLMPM_STREAM_MAX)
		return error_set(SLMPM_EINVAL, "%s: stream 0x%x is for receiving only", call,
				 stream);
	if (len > SLMPM_MESSAGE_MAX)
		return error_set(SLMPM_ELIMIT, "%s: %zu bytes, at most %llu in a message", call,
				 len, (unsigned long long)SLMPM_MESSAGE_MAX);
	(void)buf;
	return error_set(SLMPM_EINVAL, "%s: the buffer is NULL", call);
}

/* Nothing can be sent around a loan that lies in the ring; beside an area all can. */
static inline bool in_the_way(const struct endpoint *ep)
{
	return ep->loan.data && !ep->loan.area;
}

static COLD int loan_open(struct endpoint *ep)
{
	return error_set(SLMPM_EBUSY, "a loan to %s is open: commit or abort it first", ep->name);
}

static COLD int send_slowly(struct endpoint *ep, uint32_t stream, const void *buf, size_t len,
			    int timeout_ms)
{
	struct slmpm_iov iov = {(void *)(uintptr_t)buf, len};
	struct request r = {.piece_count = 0};
	int rc;

	if (in_the_way(ep))
		return loan_open(ep);
	rc = request_init(&r, REQUEST_SEND, ep->ctx, ep, stream, &iov, 1);
	if (rc == 0)
		rc = message_await(&r, timeout_ms);
	return rc;
}

int slmpm_send(slmpm_peer peer, uint32_t stream, const void *buf, size_t len, int timeout_ms)
{
	struct endpoint *ep = endpoint_get(peer);
	int rc = 0;

	if (UNLIKELY(!ep))
		return endpoint_bad_handle(peer);
	if (UNLIKELY(stream > SLMPM_STREAM_MAX || (!buf && len) || len > SLMPM_MESSAGE_MAX))
		return bad_send("slmpm_send", stream, buf, len);
	if (UNLIKELY(!endpoint_lock(ep, peer)))
		return endpoint_bad_handle(peer);
	if (UNLIKELY(!send_direct(ep, stream, buf, len, 0, 0)))
		rc = send_slowly(ep, stream, buf, len, timeout_ms);
	context_unlock(ep->ctx);
	return rc;
}

static struct request *request_new(void)
{
	struct request *r = handle_new(&request_table);

	if (!r)
		error_set(SLMPM_ENOMEM, "for a request");
	return r;
}

static COLD int sendv_slowly(struct endpoint *ep, uint32_t stream, const struct slmpm_iov *iov,
			     int n, const struct slmpm_how *how, slmpm_req *req)
{
	struct request stack = {.piece_count = 0}, *r = req ? request_new() : &stack;
	int rc;

	if (!r)
		return -SLMPM_ENOMEM;
	rc = request_init(r, REQUEST_SEND, ep->ctx, ep, stream, iov, n);
	r->result.imm = how ? how->imm : 0;
	r->flags = how ? (uint8_t)(how->flags & SLMPM_MORE) : 0;
	if (rc == 0 && !req)
		rc = in_the_way(ep) ? loan_open(ep) : message_await(r, how ? how->timeout_ms : -1);
	else if (rc == 0)
		rc = submit(r);
	if (rc == 0 && req)
		req->id = handle_id(r);
	else
		request_drop(r);
	return rc;
}

static inline bool bad_how(const struct slmpm_how *how)
{
	return how && (how->size < sizeof(*how) || (how->flags & ~SLMPM_MORE));
}

static COLD int explain_how(const char *call, const struct slmpm_how *how)
{
	if (how->size < sizeof(*how))
		return error_set(SLMPM_EINVAL, "%s: set .size of how", call);
	return error_set(SLMPM_EINVAL, "%s: flags 0x%x", call, how->flags);
}

int slmpm_sendv(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *iov, int n,
		const struct slmpm_how *how, slmpm_req *req)
{
	struct endpoint *ep = endpoint_get(peer);
	int rc = 0;

	if (UNLIKELY(!ep))
		return endpoint_bad_handle(peer);
	if (UNLIKELY(stream > SLMPM_STREAM_MAX))
		return bad_send("slmpm_sendv", stream, iov, 0);
	if (UNLIKELY(bad_how(how)))
		return explain_how("slmpm_sendv", how);
	if (UNLIKELY(!endpoint_lock(ep, peer)))
		return endpoint_bad_handle(peer);
	if (how && (how->flags & SLMPM_MORE) && n == 1 && iov && !req && iov->base && iov->len &&
	    iov->len <= BUNDLE_MESSAGE_MAX) {
		if (UNLIKELY(!send_bundled(ep, wire_route(stream, how->imm), iov->base, iov->len)))
			rc = sendv_slowly(ep, stream, iov, n, how, req);
		context_unlock(ep->ctx);
		return rc;
	}
	if (UNLIKELY(n != 1 || !iov || req || (!iov->base && iov->len) ||
		     !send_direct(ep, stream, iov->base, iov->len, how ? how->imm : 0,
				  how && how->flags & SLMPM_MORE ? FABRIC_MORE : 0)))
		rc = sendv_slowly(ep, stream, iov, n, how, req);
	context_unlock(ep->ctx);
	return rc;
}

/* ---- receiving ------------------------------------------------------------------------------ */

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
	*ep = endpoint_get(peer);
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
			*done = r.result;
		if (done && !r.done)
			done->status = rc;
	}
	request_drop(&r);
	return rc < 0 ? rc : (int64_t)r.result.len;
}

static COLD int64_t recv_slowly(slmpm_peer peer, uint32_t stream, void *buf, size_t cap,
				struct slmpm_done *done, int timeout_ms)
{
	struct slmpm_iov iov = {buf, cap};
	struct endpoint *ep;
	int rc = 0;
	struct context *ctx = message_source(peer, &ep, &rc);
	int64_t len;

	if (!ctx)
		return rc;
	len = recv_request(ctx, ep, stream, &iov, 1, done, timeout_ms);
	context_unlock(ctx);
	return len;
}

int64_t slmpm_recv(slmpm_peer peer, uint32_t stream, void *buf, size_t cap, struct slmpm_done *done,
		   int timeout_ms)
{
	struct endpoint *ep = endpoint_get(peer);
	struct fabric_arrival *a;
	int64_t len;
	int how;

	if (UNLIKELY(!buf && cap))
		return error_set(SLMPM_EINVAL, "slmpm_recv: the buffer is NULL");
	if (UNLIKELY(!ep))
		return recv_slowly(peer, stream, buf, cap, done, timeout_ms);
	if (UNLIKELY(!endpoint_lock(ep, peer)))
		return endpoint_bad_handle(peer);
	if (ep->unpack.left && is_bundled(ep, stream) && ep->unpack.length <= cap && ep->direct &&
	    !ep->ctx->posted_count && list_empty(&ep->unexpected)) {
		len = take_bundled(ep, buf, done);
		context_unlock(ep->ctx);
		return len;
	}
	how = ep->unpack.left ? 0 : recv_direct(ep, stream, polls_for(ep->ctx, timeout_ms), &a);
	if (how == 2 && ep->unpack.length <= cap) {
		len = take_bundled(ep, buf, done);
		context_unlock(ep->ctx);
		return len;
	}
	if (LIKELY(how == 1)) {
		bool fits = a->length <= cap;

		copy_out(buf, a->data, fits ? a->length : cap);
		take_plain(ep, a);
		fill_done(done, ep, a, fits ? 0 : -SLMPM_ETRUNC);
		len = a->length;
		progress_release(ep, a);
		if (UNLIKELY(!fits)) {
			struct slmpm_done whole = {.len = a->length,
						   .stream = (uint32_t)a->head[1]};
			len = truncated(&whole, cap);
		}
		context_unlock(ep->ctx);
		return len;
	}
	context_unlock(ep->ctx);
	return recv_slowly(peer, stream, buf, cap, done, timeout_ms);
}

static int post_recv(struct context *ctx, struct endpoint *ep, uint32_t stream,
		     const struct slmpm_iov *iov, int n, slmpm_req *req)
{
	struct request *r = request_new();
	int rc;

	if (!r)
		return -SLMPM_ENOMEM;
	rc = request_init(r, REQUEST_RECV, ctx, ep, stream, iov, n);
	if (rc == 0)
		rc = submit(r);
	if (rc == 0)
		req->id = handle_id(r);
	else
		request_drop(r);
	return rc;
}

int64_t slmpm_recvv(slmpm_peer peer, uint32_t stream, const struct slmpm_iov *iov, int n,
		    const struct slmpm_how *how, slmpm_req *req)
{
	struct endpoint *ep;
	int rc = 0;
	struct context *ctx = message_source(peer, &ep, &rc);
	int64_t len;

	if (!ctx)
		return rc;
	if (bad_how(how))
		len = explain_how("slmpm_recvv", how);
	else if (req)
		len = post_recv(ctx, ep, stream, iov, n, req);
	else
		len = recv_request(ctx, ep, stream, iov, n, NULL, how ? how->timeout_ms : -1);
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

	p->found = inbound_find(&p->request);
	if (!p->found)
		p->ended = source_ended(p->request.ctx, p->request.ep);
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
	if (!timeout_ms && !has_message(&p))
		(void)progress_context(ctx);
	(void)wait_until(ctx, has_message, &p, timeout_ms);
	if (p.found && done)
		*done = (struct slmpm_done){
			.len = p.found->area ? p.found->got : p.found->total,
			.stream = p.found->stream,
			.imm = p.found->imm,
			.peer = {handle_id(p.found->ep)},
			.flags = p.found->area && !p.found->final ? SLMPM_PART : 0,
		};
	context_unlock(ctx);
	return p.found ? 1 : p.ended;
}

/* ---- waiting for requests ------------------------------------------------------------------- */

static struct request *request_get(const slmpm_req *req)
{
	return handle_get(&request_table, req->id);
}

/* Reports a finished request and frees it. */
static void conclude(struct request *r, slmpm_req *req, struct slmpm_done *done)
{
	(void)explain(r);
	if (done)
		*done = r->result;
	request_drop(r);
	req->id = 0;
}

int slmpm_test(slmpm_req *req, struct slmpm_done *done)
{
	struct request *r;
	struct context *ctx;
	int rc;

	if (!req)
		return error_set(SLMPM_EINVAL, "slmpm_test: no request");
	r = request_get(req);
	if (!r)
		return handle_error(&request_table, req->id);
	rc = 0;
	ctx = r->ctx;
	context_lock(ctx);
	if (request_get(req) != r) /* another thread was first */
		rc = handle_error(&request_table, req->id);
	else if (!r->done)
		(void)progress_context(ctx);
	if (rc == 0 && r->done) {
		conclude(r, req, done);
		rc = 1;
	}
	context_unlock(ctx);
	return rc;
}

struct some {
	slmpm_req *req;
	int n, index;
};

static bool any_done(void *arg)
{
	struct some *s = arg;

	for (int i = 0; i < s->n; i++) {
		struct request *r = s->req[i].id ? request_get(&s->req[i]) : NULL;

		if (r && r->done) {
			s->index = i;
			return true;
		}
		if (!r && s->req[i].id) /* another thread was first */
			return true;
	}
	return false;
}

int slmpm_wait(slmpm_req *req, int n, struct slmpm_done *done, int timeout_ms)
{
	struct some s = {req, n, -1};
	struct context *ctx = NULL;
	struct request *r;
	int rc;

	if (!req || n <= 0)
		return error_set(SLMPM_EINVAL, "slmpm_wait: no requests");
	for (int i = 0; i < n; i++) {
		if (!req[i].id)
			continue;
		r = request_get(&req[i]);
		if (!r)
			return handle_error(&request_table, req[i].id);
		if (ctx && r->ctx != ctx)
			return error_set(SLMPM_EINVAL, "slmpm_wait: requests of two contexts");
		ctx = r->ctx;
	}
	if (!ctx)
		return error_set(SLMPM_EINVAL, "slmpm_wait: every request is zero");
	context_lock(ctx);
	if (!timeout_ms && !any_done(&s))
		(void)progress_context(ctx);
	rc = wait_until(ctx, any_done, &s, timeout_ms);
	if (s.index >= 0) {
		rc = s.index;
		conclude(request_get(&req[s.index]), &req[s.index], done);
	} else if (rc == 0) {
		rc = error_set(SLMPM_EHANDLE, "slmpm_wait: another thread has one of the requests");
	} else {
		r = request_get(&req[0]);
		rc = timed_out(n == 1 && r ? r->ep : NULL, "still waiting for", timeout_ms);
	}
	context_unlock(ctx);
	return rc;
}

int slmpm_cancel(slmpm_req req)
{
	struct request *r = request_get(&req);
	struct context *ctx;
	int rc = 0;

	if (!r)
		return handle_error(&request_table, req.id);
	ctx = r->ctx;
	context_lock(ctx);
	if (request_get(&req) != r)
		rc = handle_error(&request_table, req.id);
	else if (r->done || !take_back(r))
		rc = error_set(SLMPM_EBUSY, "the request has gone too far");
	else
		request_finish(r, -SLMPM_ECANCELED);
	context_unlock(ctx);
	return rc;
}

/* ---- closing -------------------------------------------------------------------------------- */

/* While one thread waits in a close, another may free the peer. */
struct closing {
	struct endpoint *ep;
	uint64_t id;
};

static bool is_gone(const struct closing *c)
{
	return handle_id(c->ep) != c->id;
}

static bool all_sent(void *arg)
{
	const struct closing *c = arg;
	const struct endpoint *ep = c->ep;

	return is_gone(c) || ep->state != SLMPM_PEER_UP ||
	       (!ep->bundle.count && list_empty(&ep->link.queue) && list_empty(&ep->owed) &&
		list_empty(&ep->announced));
}

static bool handshake_over(void *arg)
{
	const struct closing *c = arg;

	return is_gone(c) || c->ep->state != SLMPM_PEER_CONNECTING;
}

int message_connected(struct endpoint *ep, int timeout_ms)
{
	struct closing c = {ep, handle_id(ep)};

	return wait_until(ep->ctx, handshake_over, &c, timeout_ms);
}

/* The end of stream follows what is still to be sent. */
static int send_end(struct closing *c, int timeout_ms)
{
	uint64_t deadline = wait_deadline(timeout_ms);
	struct context *ctx = c->ep->ctx;
	int rc = wait_until(ctx, all_sent, c, timeout_ms);

	if (is_gone(c))
		return 0;
	link_control(c->ep, WIRE_CLOSE, 0, 0, NULL, 0);
	if (rc == 0)
		rc = wait_until(ctx, all_sent, c, wait_ms(wait_now(), deadline, -1));
	if (is_gone(c))
		return 0;
	if (rc < 0)
		rc = timed_out(c->ep, "not everything was sent to", 1);
	link_flush(c->ep);
	return rc;
}

int message_close(struct endpoint *ep, int timeout_ms)
{
	uint64_t deadline = wait_deadline(timeout_ms);
	struct closing c = {ep, handle_id(ep)};
	int rc = 0;

	/* What was sent before the handshake waits for it. */
	if (ep->state == SLMPM_PEER_CONNECTING && !list_empty(&ep->link.queue))
		rc = wait_until(ep->ctx, handshake_over, &c, timeout_ms);
	if (is_gone(&c))
		return 0;
	ep->closing = true;
	ep->direct = false;
	if (ep->loan.data && !ep->loan.area)
		link_unreserve(ep);
	ep->loan.data = NULL;
	if (ep->state == SLMPM_PEER_UP)
		rc = send_end(&c, wait_ms(wait_now(), deadline, -1));
	if (is_gone(&c))
		return 0;
	endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, "it has been closed");
	bootstrap_stop(ep, NULL);
	return rc;
}

int slmpm_close(slmpm_peer peer, int timeout_ms)
{
	struct endpoint *ep = endpoint_get(peer);
	struct context *ctx;
	int rc;

	if (!ep)
		return endpoint_bad_handle(peer);
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	rc = message_close(ep, timeout_ms);
	if (endpoint_get(peer) == ep && !ep->process)
		endpoint_free(ep);
	context_unlock(ctx);
	return rc;
}
