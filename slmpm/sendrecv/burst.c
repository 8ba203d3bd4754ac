/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive bursts: look-ups, checks and accounts once a packet; what is not short and ready comes alone. */
#include "slmpm/am/am.h"
#include "slmpm/link/bundle.h"
#include "slmpm/base/error.h"
#include "slmpm/message/match.h"
#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/part.h"
#include "slmpm/link/progress.h"
#include "slmpm/completion/completion.h"

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

/* What EP's ring has, in order, up to a message that does not fit: that is the next call's first. */
static void take_from_ring(struct endpoint *ep, struct taking *t, int polls)
{
	while (t->got < t->n) {
		struct fabric_arrival *a;
		struct slmpm_iov *m = &t->m[t->got];
		int how = 2, k;

		if (!ep->unpack.left)
			how = message_inspect(ep, t->stream, t->got ? 1 : polls, &a);
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
		m->len = (size_t)message_deliver(ep, a, m->base, m->len, done_at(t));
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
	len = message_recv(ctx, ep, t->stream, t->m->base, t->m->len, t->done, timeout_ms);
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
