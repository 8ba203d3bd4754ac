/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that are posted, probes; and holds: messages read in place, also while they grow. */
#include "slmpm/loan/area.h"
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/am/am.h"
#include "slmpm/message/held.h"
#include "slmpm/message/match.h"
#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/link/wait.h"
#include "slmpm/completion/completion.h"

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

/* ---- holds ---------------------------------------------------------------------------------- */

int message_hold(struct context *ctx, struct endpoint *ep, uint32_t stream,
		 const struct slmpm_how *how)
{
	struct request *r = request_new(ctx);

	if (!r)
		return -SLMPM_ENOMEM;
	return message_begin(r, request_init(r, REQUEST_HOLD, ctx, ep, stream, NULL, 0), how, NULL);
}

struct held *message_held(struct endpoint *ep, const struct request *r)
{
	struct held *held = r->held;

	if (held || !r->message)
		return held;
	held = held_new(ep);
	if (!held)
		return NULL;
	held->message = r->message;
	held->data = r->message->area ? r->message->area->map.base : r->message->data;
	return held;
}

/* The finished request's message, recorded for its release. */
static int64_t take_held(struct request *r, const void **buf)
{
	struct endpoint *ep = handle_get(&endpoint_table, r->result.peer.id);
	struct held *held;

	if (!ep) { /* another thread has closed it before this one came to */
		if (r->message) {
			r->message->area = NULL; /* that went with it */
			inbound_free(r->message);
		}
		return error_set(SLMPM_ECLOSED, "the peer of a message to be held was closed");
	}
	held = message_held(ep, r);
	if (!held) {
		inbound_free(r->message);
		return error_set(SLMPM_ENOMEM, "for a held message");
	}
	*buf = held->data;
	return (int64_t)r->result.len;
}

static int64_t hold_request(struct context *ctx, struct endpoint *ep, uint32_t stream,
			    const void **buf, struct slmpm_done *done, int timeout_ms)
{
	struct request r = {.piece_count = 0};
	int64_t len;
	int rc;

	(void)request_init(&r, REQUEST_HOLD, ctx, ep, stream, NULL, 0);
	rc = message_await(&r, timeout_ms);
	if (rc == -SLMPM_ECHECKSUM && (r.held || r.message) && take_held(&r, buf) >= 0) {
		ep = handle_get(&endpoint_table, r.result.peer.id);
		held_release(ep, held_find(ep, *buf));
	}
	if (ep)
		ep->messages->held_elsewhere = rc == 0 && !r.held;
	len = rc < 0 ? rc : take_held(&r, buf);
	if (done)
		completion_copy(done, &r.result);
	return len;
}

int64_t slmpm_hold(slmpm_peer peer, uint32_t stream, const void **buf, struct slmpm_done *done,
		   int timeout_ms)
{
	const struct fabric_arrival *a = NULL;
	struct endpoint *ep;
	int rc = 0;
	struct context *ctx;
	int64_t len;

	if (!buf)
		return error_set(SLMPM_EINVAL, "slmpm_hold: no place for the pointer");
	ctx = message_source(peer, &ep, &rc);
	if (!ctx)
		return rc;
	if (ep && !ep->messages->held_elsewhere)
		a = message_hold_direct(ep, stream, done, timeout_ms);
	if (a) {
		*buf = a->data;
		len = (int64_t)a->length;
	} else {
		len = hold_request(ctx, ep, stream, buf, done, timeout_ms);
	}
	context_unlock(ctx);
	return len;
}

struct growth {
	struct endpoint *ep;
	slmpm_peer peer;
	const void *buf;
	uint64_t have;
	struct inbound *message; /* NULL: another thread has released it or closed the peer */
};

static bool has_grown(void *arg)
{
	struct growth *g = arg;
	struct held *held = endpoint_of(g->peer) == g->ep ? held_find(g->ep, g->buf) : NULL;

	g->message = held ? held->message : NULL;
	return !g->message || g->message->final || g->message->got > g->have ||
	       g->ep->state != SLMPM_PEER_UP;
}

/* Of a message in an area. */
static int64_t await_growth(struct growth *g, struct slmpm_done *done, int timeout_ms)
{
	int rc = wait_until(g->ep->ctx, has_grown, g, timeout_ms);
	int64_t len;

	if (!g->message)
		return error_set(SLMPM_ESTATE, "slmpm_more: the message has been released");
	len = (int64_t)g->message->got;
	if (done) {
		done->flags = g->message->final ? 0 : SLMPM_PART;
		done->len = g->message->got;
	}
	if (g->message->final || (uint64_t)len > g->have)
		return len;
	if (rc == -SLMPM_ESTATE)
		return rc;
	return rc < 0 ? late_from(g->ep->ctx, g->ep, timeout_ms, "no more of it from") :
			endpoint_error(g->ep);
}

int64_t slmpm_more(slmpm_peer peer, const void *buf, uint64_t have, struct slmpm_done *done,
		   int timeout_ms)
{
	struct endpoint *ep = endpoint_of(peer);
	struct context *ctx;
	struct held *held;
	int64_t len;

	if (!ep || !endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	held = held_find(ep, buf);
	if (!held) {
		len = error_set(SLMPM_ESTATE, "slmpm_more: no such message of %s is held",
				ep->life->name);
	} else if (!held->message || !held->message->area) {
		len = held->message ? (int64_t)held->message->total : (int64_t)held->arrival.length;
		if (done) {
			done->flags = 0;
			done->len = (uint64_t)len;
		}
	} else {
		struct growth g = {.ep = ep, .peer = peer, .buf = buf, .have = have};

		len = await_growth(&g, done, timeout_ms);
	}
	context_unlock(ctx);
	return len;
}

int slmpm_release(slmpm_peer peer, const void *buf)
{
	struct endpoint *ep = endpoint_of(peer);
	struct held *held;
	int rc = 0;

	if (!ep || !endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	held = held_find(ep, buf);
	if (!held)
		rc = error_set(SLMPM_ESTATE, "slmpm_release: no such message of %s is held",
			       ep->life->name);
	else
		held_release(ep, held);
	context_unlock(ep->ctx);
	return rc;
}
