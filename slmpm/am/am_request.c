/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages that are requests: checked, filled and begun; and answers. */
#include "slmpm/am/am.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/am/am_ack.h"
#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/message/message.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/completion/completion.h"

int am_check(const char *call, uint16_t id, const void *head, size_t head_len, const void *data,
	     size_t len)
{
	if (id > SLMPM_AM_ID_MAX)
		return error_set(SLMPM_EINVAL, "%s: handler 0x%x, the highest is 0x%x", call, id,
				 SLMPM_AM_ID_MAX);
	if ((!head && head_len) || (!data && len))
		return error_set(SLMPM_EINVAL, "%s: %s is NULL", call,
				 !data && len ? "data" : "head");
	if (head_len > SLMPM_AM_HEAD_MAX)
		return error_set(SLMPM_ELIMIT, "%s: a head of %zu bytes, at most %d", call,
				 head_len, SLMPM_AM_HEAD_MAX);
	if (len > SLMPM_MESSAGE_MAX - head_len)
		return error_set(SLMPM_ELIMIT, "%s: %zu bytes, at most %llu with the head", call,
				 len, (unsigned long long)SLMPM_MESSAGE_MAX);
	return 0;
}

#define PIECES 4 /* without asking for memory */

int am_fill(struct request *r, struct endpoint *ep, uint16_t id, const void *head, size_t head_len,
	    const struct slmpm_iov *iov, int n, bool copy)
{
	struct slmpm_iov few[PIECES + 1], *all = few;
	size_t bytes = head_len + (copy && n ? iov[0].len : 0);
	int rc;

	if (n < 0 || (n && !iov))
		return error_set(SLMPM_EINVAL, "%d pieces at %p", n, (const void *)iov);
	if (n > PIECES)
		all = malloc(((size_t)n + 1) * sizeof(*all));
	r->owned = bytes ? malloc(bytes) : NULL;
	if (!all || (bytes && !r->owned)) {
		rc = error_set(SLMPM_ENOMEM, "for an active message");
	} else {
		if (head_len)
			memcpy(r->owned, head, head_len);
		all[0] = (struct slmpm_iov){r->owned, head_len};
		if (n)
			memcpy(all + 1, iov, (size_t)n * sizeof(*iov));
		if (copy && n && iov[0].len) {
			all[1].base = (unsigned char *)r->owned + head_len;
			memcpy(all[1].base, iov[0].base, iov[0].len);
		}
		rc = request_init(r, REQUEST_SEND, ep->ctx, ep, am_stream(id, head_len), all,
				  n + 1);
		r->wire = WIRE_FLAG_ACTIVE;
		r->result.op = SLMPM_OP_AM;
	}
	if (all != few)
		free(all);
	return rc;
}

int am_check_peer(const struct endpoint *ep)
{
	return ep->active ?
		       0 :
		       error_set(SLMPM_ENOTSUP, "%s does not know active messages", ep->life->name);
}

void am_refuse(struct endpoint *ep)
{
	ep->active = false;
	LIST_EACH_ENTRY(struct request, r, &ep->link.queue, node) {
		if (!(r->wire & WIRE_FLAG_ACTIVE))
			continue;
		link_dequeue(ep, r);
		request_finish(r, -SLMPM_ENOTSUP);
	}
}

int am_sendv(struct endpoint *ep, uint16_t id, const void *head, size_t head_len,
	     const struct slmpm_iov *iov, int n, const struct slmpm_how *how, slmpm_req *req)
{
	struct request stack = {.piece_count = 0}, *r = &stack;
	int rc = am_check_peer(ep);

	if (rc < 0)
		return rc;
	if (!completion_blocks(how, req))
		r = request_new(ep->ctx);
	if (!r)
		return -SLMPM_ENOMEM;
	rc = am_fill_as(r, ep, id, head, head_len, iov, n, how ? how->flags : 0);
	r->flags = how ? (uint8_t)(how->flags & SLMPM_MORE) : 0;
	r->hint = how ? mode_hint(how->flags) : 0;
	return message_begin(r, rc, how, req);
}

/* ---- answers -------------------------------------------------------------------------------- */

/* They cost no credit: what made them does, and its charge goes back only when they have left. */

/* One of emulation's, bounded by what may be under way. Those of a FIFO are by credit. */
static bool is_bounded(uint32_t stream)
{
	return (uint16_t)stream > SLMPM_AM_ID_MAX && (uint16_t)stream < FIFO_PUT;
}

static void am_answered(struct request *r)
{
	struct endpoint *ep = r->ep;

	ep->answers -= r->length + sizeof(*r);
	ep->rooms->am->own -= is_bounded(r->stream);
	request_drop(r);
	if (ep->answers || !ep->rooms->am->charge)
		return;
	if (ep->state == SLMPM_PEER_UP)
		link_discharge(ep, ep->rooms->am->charge);
	ep->rooms->am->charge = 0;
}

static bool am_may_wait(const struct endpoint *ep, uint16_t id, size_t len)
{
	uint64_t most = (uint64_t)config_get()->am_answers;

	if (is_bounded(id))
		return ep->rooms->am->own < AM_EMULATED_DEFERRED;
	return am_ack_wanted(id) || (ep->answers <= most && len <= most - ep->answers);
}

/* Waits for room in the transmit queue, as a copy. */
static COLD int answer_later(struct endpoint *ep, uint16_t id, const void *head, size_t head_len,
			     const void *data, size_t len)
{
	const struct slmpm_iov piece = {(void *)(uintptr_t)data, len};
	struct request *r;
	int rc;

	if (!am_may_wait(ep, id, len))
		return -SLMPM_ELIMIT;
	r = request_new(ep->ctx);
	if (!r)
		return -SLMPM_ENOMEM;
	rc = am_fill(r, ep, id, head, head_len, &piece, 1, true);
	if (rc == 0) {
		r->wire |= WIRE_FLAG_UNCHARGED;
		r->ended = am_answered;
		ep->answers += r->length + sizeof(*r);
		ep->rooms->am->own += is_bounded(id);
		link_enqueue(ep, r);
		(void)link_push(ep);
	} else {
		request_drop(r);
	}
	return rc;
}

int am_answer(struct endpoint *ep, uint16_t id, const void *head, size_t head_len, const void *data,
	      size_t len)
{
	/* Behind those that wait, but not behind messages that wait for credit. */
	if (ep->state == SLMPM_PEER_UP && !ep->answers && len <= ep->packet_max - head_len &&
	    am_post(ep, 0, wire_route(am_stream(id, head_len), 0),
		    WIRE_FLAG_ACTIVE | WIRE_FLAG_UNCHARGED, head, (uint32_t)head_len, data,
		    (uint32_t)len) == 1)
		return 0;
	return answer_later(ep, id, head, head_len, data, len);
}

static int reply(struct endpoint *ep, const struct slmpm_am *am, uint16_t id, const void *head,
		 size_t head_len, const void *data, size_t len)
{
	int rc;

	if (!ep->ctx->handling || endpoint_of(am->peer) != ep)
		return error_set(SLMPM_ESTATE, "slmpm_am_reply: outside of the handler");
	if (ep->state != SLMPM_PEER_UP)
		return endpoint_error(ep);
	if (ep->closing)
		return error_set(SLMPM_ECLOSED, "%s is being closed", ep->life->name);
	rc = am_answer(ep, id, head, head_len, data, len);
	if (rc == -SLMPM_ELIMIT)
		return error_set(SLMPM_ELIMIT, "%s does not take its answers: %llu bytes wait",
				 ep->life->name, (unsigned long long)ep->answers);
	if (rc < 0)
		return error_set(SLMPM_ENOMEM, "for an answer");
	return 0;
}

int slmpm_am_reply(const struct slmpm_am *am, uint16_t id, const void *head, size_t head_len,
		   const void *data, size_t len)
{
	struct endpoint *ep = am ? endpoint_of(am->peer) : NULL;
	struct context *ctx;
	int rc = am_check("slmpm_am_reply", id, head, head_len, data, len);

	if (!am)
		return error_set(SLMPM_EINVAL, "slmpm_am_reply: no message");
	if (!ep)
		return endpoint_bad_handle(am->peer);
	if (rc < 0)
		return rc;
	ctx = ep->ctx;
	context_lock(ctx);
	rc = reply(ep, am, id, head, head_len, data, len);
	context_unlock(ctx);
	return rc;
}
