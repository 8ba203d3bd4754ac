/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive queues. Their entries are receives like others, begun when they are enabled. Of a managed
 * one the peer is told how many messages its entries allow (message/binding.h): a total of those
 * sent since it knows, so what it had sent by then takes the first entries.
 */
#include "slmpm/workqueue/workqueue.h"

#include "slmpm/base/error.h"
#include "slmpm/link/binding.h"
#include "slmpm/message/inbound.h"

#define TELLS        (SLMPM_WQ_RECEIVE | SLMPM_WQ_MANAGED)
#define ENABLED_MOST (UINT64_C(1) << 62)

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

bool receive_is_managed(slmpm_peer peer, uint32_t stream)
{
	const struct endpoint *ep = work_is_any(peer) ? NULL : endpoint_of(peer);

	return ep && find_queue(ep, stream);
}

/* What is told is compared with a sign: no peer sends as many as that. */
static uint64_t enabled_for(const struct workqueue *wq)
{
	return wq->enabled < ENABLED_MOST ? wq->enabled : ENABLED_MOST;
}

void receive_tell(struct workqueue *wq)
{
	struct endpoint *ep = receive_peer(wq);
	uint64_t allowed = enabled_for(wq) - wq->receive.empty - wq->receive.early;

	if (!ep || allowed == wq->receive.told)
		return;
	wq->receive.told = allowed;
	binding_allow(ep, wq->receive.stream, allowed);
}

void receive_up(struct endpoint *ep)
{
	LIST_EACH_ENTRY(struct workqueue, wq, &ep->ctx->work_queues, node)
		if (receive_peer(wq) == ep) {
			wq->receive.told = enabled_for(wq);
			wq->receive.which = binding_begin(ep, wq->receive.stream, wq->receive.told);
		}
}

/* What had been sent has come, or has begun to: an entry has it, or it waits for one. */
static uint64_t count_early(const struct workqueue *wq, const struct endpoint *ep)
{
	uint64_t n = wq->done + wq->failed - wq->receive.empty;

	LIST_EACH_ENTRY(struct work, w, &wq->receives, node)
		n += w->request && w->request->message;
	LIST_EACH_ENTRY(struct inbound, m, &ep->messages->unexpected, node)
		n += m->stream == wq->receive.stream;
	return n;
}

void receive_known(struct endpoint *ep, uint64_t which)
{
	LIST_EACH_ENTRY(struct workqueue, wq, &ep->ctx->work_queues, node) {
		if (receive_peer(wq) != ep || wq->receive.which != which)
			continue;
		wq->receive.early = count_early(wq, ep);
		receive_tell(wq);
	}
}

void receive_ended(struct workqueue *wq, const struct work *w)
{
	int status = w->done.status;

	if (!tells(wq) || status >= 0 || status == -SLMPM_ETRUNC || status == -SLMPM_ECHECKSUM)
		return;
	wq->receive.empty++;
	receive_tell(wq);
}

/* ---- life -------------------------------------------------------------------------------- */

static int receive_check(const struct workqueue *wq, const struct slmpm_wq_options *o)
{
	bool managed = o->flags & SLMPM_WQ_MANAGED;
	struct endpoint *ep = endpoint_of(o->peer);

	if (managed && work_is_any(o->peer))
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: a managed receive queue is of one "
					       "peer");
	if (!ep && !work_is_any(o->peer))
		return endpoint_bad_handle(o->peer);
	if (ep && ep->ctx != wq->ctx)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: the peer is another context's");
	if (ep && endpoint_has_ended(ep))
		return endpoint_error(ep);
	if (managed && o->stream > SLMPM_STREAM_MAX)
		return error_set(SLMPM_EINVAL, "slmpm_wq_create: a managed receive queue is of one "
					       "stream");
	if (ep && find_queue(ep, o->stream))
		return error_set(SLMPM_EBUSY,
				 "slmpm_wq_create: stream %u of %s has a receive "
				 "queue",
				 o->stream, ep->life->name);
	return managed ? binding_room(ep) : 0;
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
		wq->receive.which = binding_begin(ep, o->stream, 0);
	return 0;
}

void receive_release(struct workqueue *wq)
{
	struct endpoint *ep = receive_owner(wq);

	if (ep)
		binding_release(ep, wq->receive.stream);
}
