/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages on their way out. One that fits a packet goes straight to the link; whatever else
 * becomes a request in the transmit queue, like any message (am_request.c).
 */
#include "slmpm/am/am.h"

#include <errno.h>

#include "shm/copy.h"
#include "slmpm/link/bundle.h"
#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/message/message.h"
#include "slmpm/monitor/monitor.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/completion/completion.h"

/* ---- one packet ----------------------------------------------------------------------------- */

/* Head and data side by side: built where they go. */
static int post_both(struct endpoint *ep, struct packet *p, const void *head, uint32_t head_len,
		     const void *data, uint32_t len)
{
	unsigned char *at = link_reserve(ep, head_len + len);
	int rc;

	if (!at)
		return ep->link.broken ? -EPROTO : -EAGAIN;
	copy_payload(at, head, head_len);
	copy_payload(at + head_len, data, len);
	p->length = head_len + len;
	rc = link_post_built(ep, p);
	if (rc == 1)
		link_begun(ep, head_len + len);
	return rc;
}

static int am_post_parts(struct endpoint *ep, struct packet *p, const void *head, uint32_t head_len,
			 const void *data, uint32_t len)
{
	int rc;

	if (head_len && len && !ep->link.check)
		return post_both(ep, p, head, head_len, data, len);
	p->data = len ? data : head;
	p->length = len ? len : head_len;
	rc = head_len && len ? link_post_led(ep, p, head, head_len, NULL) :
			       link_post_request(ep, p, NULL);
	if (rc == 1)
		link_begun(ep, head_len + len);
	return rc;
}

int am_post(struct endpoint *ep, uint16_t by, uint64_t route, uint32_t flags, const void *head,
	    uint32_t head_len, const void *data, uint32_t len)
{
	struct packet p = {
		.opcode = WIRE_SEND_ONLY,
		.flags = by,
		.route = route,
		.extent = wire_extent((uint64_t)head_len + len, flags),
	};

	if (ep->state != SLMPM_PEER_UP || !list_empty(&ep->link.deferred) ||
	    ep->lent == LENT_PACKET || (ep->bundle.count && !bundle_flush(ep)))
		return -EAGAIN;
	p.seq = ep->sent + 1;
	return am_post_parts(ep, &p, head, head_len, data, len);
}

/* May one of TOTAL bytes go straight to the link? What is staged has gone ahead of it. */
static inline bool goes_directly(struct endpoint *ep, uint64_t total)
{
	if (UNLIKELY(ep->blocked || total > ep->packet_max))
		return false;
	if (UNLIKELY(ep->bundle.count) &&
	    (!bundle_flush(ep) || endpoint_is_blocked(ep, BLOCK_LAGS)))
		return false;
	return LIKELY(ep->charged - ep->credited + wire_charge(total) <= ep->credit);
}

/* Of a head, or of data alone: a packet whose address nobody takes stays in registers. */
static inline enum sent send_part(struct endpoint *ep, uint32_t stream, const void *part,
				  size_t len, uint16_t more)
{
	struct packet p = {
		.opcode = WIRE_SEND_ONLY,
		.flags = more,
		.length = (uint32_t)len,
		.data = part,
		.route = wire_route(stream, 0),
		.extent = wire_extent(len, WIRE_FLAG_ACTIVE),
	};

	if (!goes_directly(ep, len))
		return NOT_SENT;
	p.seq = ep->sent + 1;
	if (UNLIKELY(link_post(ep, &p) != 1))
		return NOT_SENT;
	link_begun(ep, len);
	ep->stats->sent_packets++;
	ep->charged += wire_charge(len);
	return leaving_sent(ep);
}

/* Of both. */
static NOINLINE enum sent send_both(struct endpoint *ep, uint32_t stream, const void *head,
				    size_t head_len, const void *data, size_t len, uint16_t more)
{
	uint64_t total = head_len + len;
	struct packet p = {
		.opcode = WIRE_SEND_ONLY,
		.flags = more,
		.route = wire_route(stream, 0),
		.extent = wire_extent(total, WIRE_FLAG_ACTIVE),
	};

	if (UNLIKELY(len > ep->packet_max) || !goes_directly(ep, total))
		return NOT_SENT;
	p.seq = ep->sent + 1;
	if (UNLIKELY(post_both(ep, &p, head, (uint32_t)head_len, data, (uint32_t)len) != 1))
		return NOT_SENT;
	ep->charged += wire_charge(total);
	return leaving_sent(ep);
}

static inline enum sent am_send_direct(struct endpoint *ep, uint32_t stream, const void *head,
				       size_t head_len, const void *data, size_t len, uint16_t more)
{
	if (UNLIKELY(head_len && len))
		return send_both(ep, stream, head, head_len, data, len, more);
	return send_part(ep, stream, head_len ? head : data, head_len + len, more);
}

/* ---- the call ------------------------------------------------------------------------------- */

/* Told to a counter or a queue, and done at once: 1. 0: not this way. */
static int am_send_notified(struct endpoint *ep, uint16_t id, const void *head, size_t head_len,
			    const struct slmpm_iov *data, const struct slmpm_how *how)
{
	struct slmpm_done done = {
		.len = data->len,
		.stream = id,
		.peer = {handle_id(ep)},
		.op = SLMPM_OP_AM,
		.reason = SLMPM_REASON_SHORT,
	};
	struct notified notified;
	int rc = completion_open(&notified, ep->ctx, how, NULL);

	if (rc < 0)
		return rc;
	return leaving_end(ep, &notified, &done,
			   am_send_direct(ep, am_stream(id, head_len), head, head_len, data->base,
					  data->len, how->flags & SLMPM_MORE ? FABRIC_MORE : 0));
}

static int send_locked(struct endpoint *ep, uint16_t id, const void *head, size_t head_len,
		       const struct slmpm_iov *data, const struct slmpm_how *how, slmpm_req *req)
{
	bool blocks = completion_blocks(how, req);
	bool at_once = !(how->flags & (MODE_LINK_MASK | SLMPM_REMOTE));
	enum sent sent = NOT_SENT;
	int rc = am_check_peer(ep);

	if (rc < 0)
		return rc;
	if (blocks && at_once)
		sent = am_send_direct(ep, am_stream(id, head_len), head, head_len, data->base,
				      data->len, how->flags & SLMPM_MORE ? FABRIC_MORE : 0);
	if (sent == SENT_IN_PART && !(how->flags & SLMPM_MORE))
		leaving_await(ep, how->timeout_ms);
	if (sent != NOT_SENT)
		return 0;
	if (!blocks && !req && at_once)
		rc = am_send_notified(ep, id, head, head_len, data, how);
	if (rc == 0)
		rc = am_sendv(ep, id, head, head_len, data, 1, how, req);
	return rc < 0 ? rc : 0;
}

/* In a context with threads, with HOW or a request, to one found by address, or with what may be
 * wrong. */
static NOINLINE int am_send_slow(slmpm_peer peer, uint16_t id, const void *head, size_t head_len,
				 const void *data, size_t len, const struct slmpm_how *how,
				 slmpm_req *req)
{
	struct endpoint *ep = endpoint_of(peer);
	const struct slmpm_iov piece = {(void *)(uintptr_t)data, len};
	struct slmpm_how full = {.size = sizeof(full), .timeout_ms = -1};
	struct context *ctx;
	int rc = am_check("slmpm_am", id, head, head_len, data, len);

	if (!ep)
		return endpoint_bad_handle(peer);
	if (rc == 0 && how)
		rc = how_take("slmpm_am", &full, how, SLMPM_MORE | SLMPM_REMOTE | MODE_ROUTE_MASK);
	if (rc < 0)
		return rc;
	full.flags = endpoint_hints(peer, full.flags);
	if (!endpoint_lock(ep, peer))
		return endpoint_bad_handle(peer);
	ctx = ep->ctx; /* the peer may be gone when a wait is over */
	rc = send_locked(ep, id, head, head_len, &piece, &full, req);
	monitor_pass(ctx);
	context_unlock(ctx);
	return rc;
}

static inline int sent_shortly(const struct endpoint *ep)
{
	if (UNLIKELY(!(ep->stats->sent_messages % MONITOR_PASSES)))
		monitor_opportunistic(ep->ctx);
	return 0;
}

/* The fast path has said so. */
static COLD int let_leave(slmpm_peer peer)
{
	leaving_await(endpoint_get(peer), -1);
	return 0;
}

HOT int slmpm_am(slmpm_peer peer, uint16_t id, const void *head, size_t head_len, const void *data,
		 size_t len, const struct slmpm_how *how, slmpm_req *req)
{
	struct endpoint *ep = endpoint_get(peer);
	enum sent sent = NOT_SENT;

	if (UNLIKELY(how || req || !ep || !ep->active || ep->ctx->multiple ||
		     id > SLMPM_AM_ID_MAX || (!data && len)))
		return am_send_slow(peer, id, head, head_len, data, len, how, req);
	if (!head_len)
		sent = send_part(ep, id, data, len, 0);
	else if (head && head_len <= SLMPM_AM_HEAD_MAX)
		sent = am_send_direct(ep, am_stream(id, head_len), head, head_len, data, len, 0);
	if (LIKELY(sent == SENT))
		return sent_shortly(ep);
	if (sent == SENT_IN_PART)
		return let_leave(peer);
	return am_send_slow(peer, id, head, head_len, data, len, NULL, NULL);
}
