/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive queues. Their entries are receives like others, begun when they are enabled. Of a managed
 * one the peer is told how many messages its entries allow (message/binding.h): a total of those
 * sent since it knows, so what it had sent by then takes the first entries.
 */
#include "slmpm/workqueue/intake.h"

#include "slmpm/base/error.h"
#include "slmpm/link/binding.h"
#include "slmpm/message/inbound.h"

#define TELLS (SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED)

static bool tells(const struct workqueue *wq)
{
	return (wq->flags & TELLS) == TELLS;
}

/* The peer that is to be told; NULL: none. */
static struct endpoint *receive_owner(const struct workqueue *wq)
{
	return tells(wq) ? endpoint_of(wq->receive.peer) : NULL;
}

/* The same, if it can be told now. */
static struct endpoint *receive_peer(const struct workqueue *wq)
{
	struct endpoint *ep = receive_owner(wq);

	return ep && ep->state == SLMPM_PEER_UP ? ep : NULL;
}

static struct workqueue *find_queue(const struct endpoint *ep, uint32_t stream)
{
	LIST_EACH_ENTRY(struct workqueue, wq, &ep->ctx->work_queues, node)
		if (receive_owner(wq) == ep && wq->receive.stream == stream)
			return wq;
	return NULL;
}

/* The managed one of any peer and STREAM, or, if ANY of it is asked for, of some peer. */
static struct workqueue *find_of_any(const struct context *ctx, uint32_t stream, bool any)
{
	LIST_EACH_ENTRY(struct workqueue, wq, &ctx->work_queues, node)
		if (tells(wq) && wq->receive.stream == stream && wq->receive.peer.id &&
		    (any || reservation_is_for(wq)))
			return wq;
	return NULL;
}

static uint32_t count_of_any(const struct context *ctx)
{
	uint32_t n = 0;

	LIST_EACH_ENTRY(struct workqueue, wq, &ctx->work_queues, node)
		n += reservation_is_for(wq);
	return n;
}

const struct workqueue *receive_managed(const struct context *ctx, slmpm_peer peer, uint32_t stream)
{
	slmpm_peer plain = endpoint_plain(peer);

	LIST_EACH_ENTRY(const struct workqueue, wq, &ctx->work_queues, node) {
		slmpm_peer of = wq->receive.peer;

		if (tells(wq) && of.id &&
		    (stream == SLMPM_ANY_STREAM || stream == wq->receive.stream) &&
		    (work_is_any(of) || work_is_any(peer) || of.id == plain.id))
			return wq;
	}
	return NULL;
}

void receive_tell(struct workqueue *wq)
{
	struct endpoint *ep = receive_peer(wq);
	uint64_t allowed = receive_allowed(wq) - wq->receive.early;

	if (reservation_is_for(wq))
		reservation_give(wq);
	if (!ep || allowed == wq->receive.told)
		return;
	wq->receive.told = allowed;
	binding_allow(ep, wq->receive.stream, allowed, BIND_TOTAL);
}

void receive_up(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct workqueue, wq, &ep->ctx->work_queues, node) {
		if (receive_peer(wq) == ep) {
			wq->receive.told = receive_allowed(wq);
			wq->receive.which =
				binding_begin(ep, wq->receive.stream, wq->receive.told, BIND_TOTAL);
		} else if (reservation_is_for(wq) && reservation_begin(wq, ep) < 0) {
			endpoint_no_memory(ep);
			return;
		}
	}
}

uint64_t receive_count_coming(const struct workqueue *wq, const struct endpoint *ep)
{
	uint64_t n = intake_count_coming(wq, ep);

	LIST_EACH_ENTRY(struct work, w, &wq->receives, node)
		n += w->request && w->request->message && w->request->message->ep == ep;
	LIST_EACH_ENTRY(struct inbound, m, &ep->messages->unexpected, node)
		n += m->stream == wq->receive.stream;
	return n;
}

/* What had been sent has come, or has begun to: an entry has it, or it waits for one. */
static uint64_t count_early(const struct workqueue *wq, const struct endpoint *ep)
{
	return wq->done + wq->failed - wq->receive.empty + receive_count_coming(wq, ep);
}

void receive_known(struct endpoint *ep, uint64_t which, uint64_t waiting)
{
	if (reservation_known(ep, which, waiting))
		return;
	/* Of one peer's no message waits for its entry; of any peer's it may be one that has gone. */
	if (PEER_FAULT(waiting && !ep->rooms->bindings->released)) {
		endpoint_poison(ep, "word of a receive queue");
		return;
	}
	LIST_EACH_ENTRY(struct workqueue, wq, &ep->ctx->work_queues, node) {
		if (receive_peer(wq) != ep || wq->receive.which != which)
			continue;
		wq->receive.early = count_early(wq, ep);
		receive_tell(wq);
	}
}

void receive_ended(struct workqueue *wq, uint64_t number, int status, slmpm_peer peer)
{
	if (!tells(wq))
		return;
	if (status >= 0 || status == -SLMPM_ETRUNC || status == -SLMPM_ECHECKSUM) {
		if (reservation_is_for(wq))
			reservation_taken(wq, peer);
		return;
	}
	wq->receive.empty++;
	if (number > wq->enabled)
		wq->receive.ahead++;
	else
		receive_tell(wq);
}

/* Those ahead count as the first that are enabled: of a CALC's or PIPE's there may be others before
 * it, which the peer may use only once it is enabled, too. */
void receive_enabled(struct workqueue *wq, uint64_t more)
{
	wq->receive.ahead -= more < wq->receive.ahead ? more : wq->receive.ahead;
	receive_tell(wq);
}

/* ---- life -------------------------------------------------------------------------------- */

/* WQ is not bound yet. */
static int check_of_any(const struct workqueue *wq, const struct slmpm_wq_options *o)
{
	bool managed = o->flags & SLMPM_WQ_MANAGED;
	const struct context *ctx = wq->ctx;
	uint32_t n = managed ? count_of_any(ctx) : 0;
	int rc = 0;

	if (find_of_any(ctx, o->stream, managed))
		return error_set(SLMPM_EBUSY,
				 "slmpm_wq_create: stream %u has a managed receive queue",
				 o->stream);
	if (n == BINDINGS_MAX)
		return error_set(
			SLMPM_ELIMIT,
			"slmpm_wq_create: there are %d managed receive queues of any peer, as many "
			"as there may be",
			BINDINGS_MAX);
	for (uint32_t i = 0; managed && rc == 0 && i < ctx->live; i++)
		rc = binding_room(ctx->endpoints[i], n);
	return rc;
}

static int check_of_one(const struct endpoint *ep)
{
	if (!binding_may_begin(ep))
		return error_set(SLMPM_EAGAIN,
				 "slmpm_wq_create: %s has not answered yet that it knows of %d "
				 "receive queues before",
				 ep->life->name, BINDINGS_MAX);
	return binding_room(ep, count_of_any(ep->ctx));
}

static int receive_check(const struct workqueue *wq, const struct slmpm_wq_options *o)
{
	bool managed = o->flags & SLMPM_WQ_MANAGED;
	struct endpoint *ep = endpoint_of(o->peer);

	if (!ep && !work_is_any(o->peer))
		return endpoint_bad_handle(o->peer);
	if (ep && ep->ctx != wq->ctx)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: .peer belongs to another context");
	if (ep && endpoint_has_ended(ep))
		return endpoint_error(ep);
	if (managed && o->stream > SLMPM_STREAM_MAX)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: a managed receive queue is of one "
					       "stream, not SLMPM_ANY_STREAM");
	if (ep && find_queue(ep, o->stream))
		return error_set(SLMPM_EBUSY,
				 "slmpm_wq_create: stream %u of %s has a managed "
				 "receive queue",
				 o->stream, ep->life->name);
	if (!ep || find_of_any(wq->ctx, o->stream, false))
		return check_of_any(wq, o);
	return managed ? check_of_one(ep) : 0;
}

int receive_bind(struct workqueue *wq, const struct slmpm_wq_options *o)
{
	struct endpoint *ep;
	int rc = o->flags & SLMPM_WQ_RECEIVE ? receive_check(wq, o) : 0;

	if (rc < 0 || !(o->flags & SLMPM_WQ_RECEIVE))
		return rc;
	wq->receive.peer = endpoint_plain(o->peer);
	wq->receive.stream = o->stream;
	ep = receive_owner(wq);
	if (ep)
		binding_hold(ep);
	ep = receive_peer(wq);
	if (ep)
		wq->receive.which = binding_begin(ep, o->stream, 0, BIND_TOTAL);
	return reservation_is_for(wq) ? reservation_bind(wq) : 0;
}

void receive_release(struct workqueue *wq)
{
	struct endpoint *ep = receive_owner(wq);

	if (ep)
		binding_release(ep, wq->receive.stream);
	reservation_release(wq);
}
