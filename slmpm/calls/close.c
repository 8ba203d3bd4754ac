/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing: what was sent goes out, the end of stream behind it, then the endpoint ends. */
#include "slmpm/calls/close.h"

#include <stdatomic.h>

#include "slmpm/connect/bootstrap.h"
#include "slmpm/dial/dial.h"
#include "slmpm/share/share.h"
#include "slmpm/message/fetch.h"
#include "slmpm/base/error.h"
#include "slmpm/completion/late.h"
#include "slmpm/link/binding.h"
#include "slmpm/link/link.h"
#include "slmpm/loan/area.h"
#include "slmpm/region/memory.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/link/wait.h"
#include "slmpm/rma/rma.h"

/* While one thread waits in a close, another may free the peer. */
struct closing {
	struct endpoint *ep;
	uint64_t id;
};

static bool is_gone(const struct closing *c)
{
	return handle_id(c->ep) != c->id;
}

static bool close_all_sent(void *arg)
{
	const struct closing *c = arg;
	const struct endpoint *ep = c->ep;

	return is_gone(c) || ep->state != SLMPM_PEER_UP ||
	       (!ep->bundle.count && list_empty(&ep->link.queue) &&
		list_empty(&ep->link.deferred) && list_empty(&ep->link.announced) &&
		!binding_has_deferred(ep) && !rma_has_deferred(ep) && !mirror_has_deferred(ep));
}

/* What the link has taken is out of this process's hands, too. */
static bool has_left(void *arg)
{
	const struct closing *c = arg;

	return is_gone(c) || link_flush(c->ep);
}

/* Nor does the end of this process take it back. */
static bool has_arrived(void *arg)
{
	const struct closing *c = arg;

	return is_gone(c) || link_has_arrived(c->ep);
}

/* No descriptor tells of the second. */
static int let_arrive(struct closing *c, uint64_t deadline)
{
	struct context *ctx = c->ep->ctx;
	int left, rc = wait_until(ctx, has_left, c, clock_ms(clock_now(), deadline, -1));

	while (rc == 0 && wait_until(ctx, has_arrived, c, clock_ms(clock_now(), deadline, 1)) < 0) {
		left = clock_ms(clock_now(), deadline, -1);
		rc = left ? 0 : -SLMPM_ETIMEOUT;
	}
	return rc;
}

/* Nobody writes into the receives that closing will end. */
static bool nobody_writes(void *arg)
{
	const struct closing *c = arg;

	return is_gone(c) || c->ep->state != SLMPM_PEER_UP ||
	       (fetch_release(c->ep) && ask_release(c->ep));
}

/* The end of stream follows what is still to be sent. */
static int send_end(struct closing *c, int timeout_ms)
{
	uint64_t deadline = clock_deadline(timeout_ms);
	struct context *ctx = c->ep->ctx;
	int rc;

	mirror_scan_last(c->ep);
	rc = wait_until(ctx, close_all_sent, c, timeout_ms);
	if (is_gone(c))
		return 0;
	link_control(c->ep, WIRE_CLOSE, c->ep->stats->received_messages, 0, NULL, 0);
	/* Before the application stores where the peer reads: pairs with split_look's. */
	atomic_thread_fence(memory_order_release);
	c->ep->life->sent_end = true;
	if (rc == 0)
		rc = wait_until(ctx, close_all_sent, c, clock_ms(clock_now(), deadline, -1));
	if (is_gone(c))
		return 0;
	if (let_arrive(c, deadline) < 0)
		rc = -SLMPM_ETIMEOUT;
	if (is_gone(c) || rc == 0)
		return 0;
	return late_from(ctx, c->ep, -1, "not everything was sent to");
}

int close_peer(struct endpoint *ep, int timeout_ms)
{
	uint64_t deadline = clock_deadline(timeout_ms);
	struct closing c = {ep, handle_id(ep)};
	int rc = 0, memory_rc = 0;

	/* What was sent before the handshake waits for it. */
	if (ep->state == SLMPM_PEER_CONNECTING && !list_empty(&ep->link.queue))
		rc = wait_connected(ep, timeout_ms);
	if (is_gone(&c))
		return 0;
	ep->closing = true;
	endpoint_block(ep, BLOCK_STATE, true);
	if (ep->lent == LENT_PACKET)
		(void)link_flush(ep);
	loan_place(ep, LENT_NONE);
	if (ep->state == SLMPM_PEER_UP)
		memory_rc = memory_close(ep, clock_ms(clock_now(), deadline, -1));
	if (is_gone(&c))
		return 0;
	if (wait_until(ep->ctx, nobody_writes, &c, clock_ms(clock_now(), deadline, -1)) < 0)
		memory_rc = error_set(SLMPM_ETIMEOUT, "%s may still write into a receive's memory",
				      ep->life->name);
	if (is_gone(&c))
		return 0;
	if (ep->state == SLMPM_PEER_UP)
		rc = send_end(&c, clock_ms(clock_now(), deadline, -1));
	if (is_gone(&c))
		return 0;
	endpoint_end(ep, SLMPM_PEER_CLOSED, SLMPM_ECLOSED, "it has been closed");
	bootstrap_stop(ep, NULL);
	return rc < 0 ? rc : memory_rc;
}

static int named_busy(void)
{
	return error_set(SLMPM_EBUSY, "slmpm_close: entries of work queues name the peer");
}

/* Its connection first, and one that has been made since: another thread may post for it, or close
 * it, meanwhile. */
static int close_connection(slmpm_peer peer, struct named *n, int timeout_ms)
{
	struct endpoint *ep;
	int rc = 0;

	while ((ep = dial_cancel(n))) {
		uint64_t id = handle_id(ep);
		int one = close_peer(ep, timeout_ms);

		rc = rc < 0 ? rc : one;
		if (handle_id(ep) == id)
			endpoint_free(ep);
		if (named_of(peer) != n)
			return rc;
		if (named_has_entries(n))
			return named_busy();
	}
	dial_forget(n);
	return rc;
}

static int close_named(slmpm_peer peer, int timeout_ms)
{
	int rc = 0;
	struct named *n = context_lock_object(&named_table, peer.id & ~ENDPOINT_NAMED, &rc);
	struct context *ctx;

	if (!n)
		return rc;
	ctx = n->ctx;
	rc = context_forbids(ctx, "slmpm_close");
	if (rc == 0 && named_has_entries(n))
		rc = named_busy();
	else if (rc == 0)
		rc = close_connection(peer, n, timeout_ms);
	context_unlock(ctx);
	return rc;
}

int slmpm_close(slmpm_peer peer, int timeout_ms)
{
	struct endpoint *ep = endpoint_of(peer);
	struct context *ctx;
	int rc;

	if (!ep && named_is(peer))
		return close_named(peer, timeout_ms);
	if (!ep || !endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx;
	rc = context_forbids(ctx, "slmpm_close");
	if (rc == 0) {
		rc = close_peer(ep, timeout_ms);
		if (endpoint_of(peer) == ep && !ep->rooms->process)
			endpoint_free(ep);
	}
	context_unlock(ctx);
	return rc;
}
