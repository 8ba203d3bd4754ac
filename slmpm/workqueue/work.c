/* SPDX-License-Identifier: BSD-3-Clause */
/* A work request: whether it can be taken, by which call's way it goes, what goes with it. */
#include "slmpm/workqueue/intake.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/am/am.h"
#include "slmpm/base/error.h"
#include "slmpm/message/held.h"
#include "slmpm/region/memory.h"
#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/workqueue/member.h"

static int check_pieces(const struct slmpm_wr *wr)
{
	if (wr->iov_count < 0)
		return error_set(SLMPM_EINVAL, "slmpm_post: .iov_count is %d, less than 0",
				 wr->iov_count);
	if (wr->iov_count && !wr->iov)
		return error_set(SLMPM_EINVAL, "slmpm_post: .iov is NULL, .iov_count %d",
				 wr->iov_count);
	for (int i = 0; i < wr->iov_count; i++)
		if (wr->iov[i].len && !wr->iov[i].base)
			return error_set(SLMPM_EINVAL,
					 "slmpm_post: piece %d is NULL, and of %zu bytes", i,
					 wr->iov[i].len);
	return 0;
}

static int check_any(const struct workqueue *wq, slmpm_peer peer)
{
	int rc = 0;
	const struct context *ctx = context_get((slmpm_ctx){peer.id & ~UINT64_C(0x80000000)}, &rc);

	if (!ctx)
		return rc;
	return ctx == wq->ctx ? 0 :
				error_set(SLMPM_EINVAL, "slmpm_post: slmpm_any of another context");
}

/* What EP has sent before its end. */
static bool may_be_read(const struct slmpm_wr *wr, const struct endpoint *ep)
{
	return wr->op == SLMPM_OP_RECV && (ep->before || ep->unpack.left || held_any(ep));
}

static int check_peer(const struct workqueue *wq, const struct slmpm_wr *wr)
{
	const struct remote *remote = NULL;
	struct endpoint *ep;

	if (wr->op == SLMPM_OP_PUT || wr->op == SLMPM_OP_GET || wr->op == SLMPM_OP_ATOMIC) {
		remote = remote_get(wr->rmem);
		if (!remote)
			return handle_error(&remote_table, wr->rmem.id);
	} else if (work_is_any(wr->peer)) {
		return wr->op == SLMPM_OP_RECV ?
			       check_any(wq, wr->peer) :
			       error_set(SLMPM_EINVAL,
					 "slmpm_post: .peer of %s is slmpm_any: it names one peer",
					 member_title(wr->op));
	}
	ep = remote && !wr->peer.id ? remote->ep : endpoint_of(wr->peer);
	if (!ep)
		return named_check(wq, wr);
	if (ep->ctx != wq->ctx)
		return error_set(SLMPM_EINVAL, "slmpm_post: the peer belongs to another context");
	if (remote && remote->ep != ep)
		return error_set(SLMPM_EINVAL, "slmpm_post: .rmem is a region of %s, .peer is %s",
				 remote->ep->life->name, ep->life->name);
	return endpoint_has_ended(ep) && !may_be_read(wr, ep) ? endpoint_error(ep) : 0;
}

int work_check_source(const struct workqueue *wq, slmpm_peer from)
{
	const struct slmpm_wr source = {.op = SLMPM_OP_RECV, .peer = from};

	return named_is(from) ? endpoint_bad_handle(from) : check_peer(wq, &source);
}

static int check_pipe(const struct workqueue *wq, const struct slmpm_wr *wr)
{
	int rc;

	if (!wr->value)
		return error_set(SLMPM_EINVAL, "slmpm_post: a PIPE of 0 messages: set .value");
	if (wr->iov_count < 1)
		return error_set(SLMPM_EINVAL,
				 "slmpm_post: .iov_count, a PIPE's buffers, is %d, less than 1",
				 wr->iov_count);
	if (wr->wq.id)
		return 0;
	rc = work_check_source(wq, wr->from);
	return rc < 0 ? rc : intake_check_stream(wq, wr->from, wr->from_stream, "a PIPE");
}

static int check_timeout(const struct slmpm_wr *wr)
{
	return wr->timeout_ms >= -1 ?
		       0 :
		       error_set(SLMPM_EINVAL, "slmpm_post: .timeout_ms of %s is %d, less than -1",
				 member_title(wr->op), wr->timeout_ms);
}

/* What WAIT, ENABLE or COUNT name; HAS: of how many it is to be one. */
static COLD int bad_names(const struct slmpm_wr *wr, int has)
{
	static const char *const counts[] = {"none", "one", "two", "three"};
	const char *of = wr->op == SLMPM_OP_COUNT  ? "counter (.ctr or .rctr)" :
			 wr->op == SLMPM_OP_ENABLE ? "work queue (.wq)" :
						     "counter (.ctr), completion queue (.cq) or "
						     "work queue (.wq)";

	return error_set(SLMPM_EINVAL, "slmpm_post: %s names one %s, not %s", member_title(wr->op),
			 of, counts[has]);
}

static int check_index(const struct slmpm_wr *wr)
{
	if (!wr->wq.id)
		return wr->index ? error_set(SLMPM_EINVAL,
					     "slmpm_post: .index is %u, but the WAIT is on no work "
					     "queue (.wq)",
					     wr->index) :
				   0;
	return wr->index >= SLMPM_WQ_POSTED && wr->index <= SLMPM_WQ_DONE ?
		       0 :
		       error_set(SLMPM_EINVAL,
				 "slmpm_post: index %u of a work queue: .index is SLMPM_WQ_POSTED "
				 "(1) to SLMPM_WQ_DONE (4)",
				 wr->index);
}

static int check_named(const struct workqueue *wq, const struct slmpm_wr *wr)
{
	int has = !!wr->ctr.id + !!wr->cq.id + !!wr->wq.id + !!wr->rctr.id;
	int rc = check_timeout(wr);

	if (rc < 0)
		return rc;
	if (has != 1 || (wr->op == SLMPM_OP_ENABLE && !wr->wq.id))
		return bad_names(wr, wr->op == SLMPM_OP_ENABLE && !wr->wq.id ? 0 : has);
	if (wr->op == SLMPM_OP_WAIT && (rc = check_index(wr)) < 0)
		return rc;
	return wr->rctr.id ? remote_count_check(wq->ctx, wr, NULL) : 0;
}

static int check_handler(const struct slmpm_wr *wr)
{
	if (wr->stream > SLMPM_AM_ID_MAX)
		return error_set(SLMPM_EINVAL, "slmpm_post: handler %u, at most %u (.stream)",
				 wr->stream, SLMPM_AM_ID_MAX);
	if (wr->head_len > SLMPM_AM_HEAD_MAX)
		return error_set(SLMPM_EINVAL, "slmpm_post: a head of %u bytes, at most %u",
				 wr->head_len, SLMPM_AM_HEAD_MAX);
	return wr->head_len && !wr->head ?
		       error_set(SLMPM_EINVAL, "slmpm_post: .head is NULL, .head_len %u",
				 wr->head_len) :
		       0;
}

static int check_operation(const struct workqueue *wq, const struct slmpm_wr *wr)
{
	int rc = check_timeout(wr);

	if (rc < 0)
		return rc;
	if ((wr->op == SLMPM_OP_SEND || wr->op == SLMPM_OP_PIPE) && wr->stream > SLMPM_STREAM_MAX)
		return error_set(SLMPM_EINVAL,
				 "slmpm_post: stream 0x%x (SLMPM_ANY_STREAM) is for receiving only",
				 wr->stream);
	if (wr->op == SLMPM_OP_AM && (rc = check_handler(wr)) < 0)
		return rc;
	rc = check_peer(wq, wr);
	if (rc == 0 && wr->rctr.id)
		rc = remote_count_check(wq->ctx, wr, work_peer(wr));
	if (rc == 0 && wr->op == SLMPM_OP_PIPE)
		rc = check_pipe(wq, wr);
	return rc < 0 ? rc : check_pieces(wr);
}

int work_check(const struct workqueue *wq, const struct slmpm_wr *wr)
{
	int rc = member_check(wr);

	if (rc < 0)
		return rc;
	if (wr->channel >= wq->channel_count)
		return error_set(SLMPM_EINVAL, "slmpm_post: channel %u of %u, which begin with 0",
				 wr->channel, wq->channel_count);
	if (wr->op == SLMPM_OP_CALC)
		return 0;
	return work_names(wr->op) ? check_named(wq, wr) : check_operation(wq, wr);
}

struct endpoint *work_peer(const struct slmpm_wr *wr)
{
	const struct remote *remote;
	struct endpoint *ep;

	switch (wr->op) {
	case SLMPM_OP_COUNT:
		remote = wr->rctr.id ? remote_get(wr->rctr) : NULL;
		return remote ? remote->ep : NULL;
	case SLMPM_OP_PUT:
	case SLMPM_OP_GET:
	case SLMPM_OP_ATOMIC: remote = remote_get(wr->rmem); return remote ? remote->ep : NULL;
	case SLMPM_OP_SEND:
	case SLMPM_OP_RECV:
	case SLMPM_OP_AM:
	case SLMPM_OP_PIPE:
		ep = endpoint_of(wr->peer); /* NULL of any peer, too */
		return LIKELY(ep != NULL) ? ep : named_endpoint(wr->peer);
	default: return NULL;
	}
}

int work_stale(const struct slmpm_wr *wr)
{
	if (named_is(wr->peer))
		return named_bad_handle(wr->peer);
	if (wr->peer.id && !endpoint_of(wr->peer)) /* it was there when this was posted */
		return error_set(SLMPM_ECLOSED, "the peer was closed before the entry began");
	return handle_error(&remote_table, wr->rmem.id ? wr->rmem.id : wr->rctr.id);
}

/* By a region: the call sees to fences. */
static int begin_one_sided(const struct slmpm_wr *wr, const struct slmpm_how *how)
{
	struct slmpm_span span = {wr->offset, work_bytes_of(wr)};

	switch (wr->op) {
	case SLMPM_OP_PUT: return slmpm_putv(wr->rmem, &span, 1, wr->iov, wr->iov_count, how, NULL);
	case SLMPM_OP_GET: return slmpm_getv(wr->rmem, &span, 1, wr->iov, wr->iov_count, how, NULL);
	default:
		return slmpm_atomic(wr->rmem, wr->offset, (int)wr->atomic, (int)wr->bits,
				    wr->operand, wr->compare, wr->old, how, NULL);
	}
}

static inline int begin_any(struct context *ctx, struct endpoint *ep, struct work *w,
			    uint64_t cookie, enum sent sent)
{
	const struct slmpm_wr *wr = &w->wr;
	struct slmpm_how how = {
		.size = sizeof(how),
		.flags = (wr->flags & ~SLMPM_SILENT) | spread_hint(w->part),
		.imm = wr->imm,
		.cq = {QUEUE_THAT_BEGINS},
		.cookie = cookie,
	};

	if (UNLIKELY(!ep) && !work_is_any(wr->peer))
		return work_stale(wr);
	if (wr->op >= SLMPM_OP_PUT && wr->op <= SLMPM_OP_ATOMIC)
		return begin_one_sided(wr, &how);
	/* The queue has seen to the order. */
	how.flags &= SLMPM_MORE | SLMPM_REMOTE | MODE_LINK_MASK;
	switch (wr->op) {
	case SLMPM_OP_SEND:
		if (sent != SENT_IN_PART)
			return message_sendv(ep, wr->stream, wr->iov, wr->iov_count, &how, NULL);
		message_leaves(ep, wr->stream, wr->iov, &how);
		return 0;
	case SLMPM_OP_RECV:
		return message_recvv(ctx, ep, wr->stream, wr->iov, wr->iov_count, &how, NULL);
	default:
		return am_sendv(ep, (uint16_t)wr->stream, wr->head, wr->head_len, wr->iov,
				wr->iov_count, &how, NULL);
	}
}

/* As far as is known here it can be counted, too. */
static NOINLINE int begin_counted(struct context *ctx, struct endpoint *ep, struct work *w,
				  uint64_t cookie)
{
	int rc = ep ? remote_count_allowed(&w->wr) : work_stale(&w->wr);

	return rc < 0 ? rc : begin_any(ctx, ep, w, cookie, NOT_SENT);
}

int work_begin(struct context *ctx, struct endpoint *ep, struct work *w, uint64_t cookie,
	       enum sent sent)
{
	return UNLIKELY(w->wr.rctr.id) ? begin_counted(ctx, ep, w, cookie) :
					 begin_any(ctx, ep, w, cookie, sent);
}

bool work_is_usual(const struct workqueue *wq, const struct slmpm_wr *wr)
{
	return wr->op == SLMPM_OP_SEND && message_is_single(wr->iov, wr->iov_count) &&
	       !wr->rctr.id && !wr->timeout_ms && !(wr->flags & SLMPM_MORE) &&
	       !mode_hint(wr->flags) && !(wq->flags & (SLMPM_WQ_MANAGED | SLMPM_WQ_SPREAD));
}

bool work_keep(struct work *w)
{
	size_t pieces = (size_t)w->wr.iov_count * sizeof(*w->wr.iov);
	unsigned char *owned;

	if (w->wr.op == SLMPM_OP_PIPE)
		return piping_keep(w);
	if (w->wr.op == SLMPM_OP_CALC)
		return calculation_keep(w);
	if (!pieces && !w->wr.head_len)
		return true;
	owned = malloc(pieces + w->wr.head_len);
	if (!owned)
		return false;
	if (pieces)
		memcpy(owned, w->wr.iov, pieces);
	if (w->wr.head_len)
		memcpy(owned + pieces, w->wr.head, w->wr.head_len);
	w->wr.iov = pieces ? (void *)owned : NULL;
	w->wr.head = owned + pieces;
	w->owned = owned;
	return true;
}
