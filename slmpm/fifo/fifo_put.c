/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts into a FIFO, the side that puts: an active message, and perhaps an answer to wait for. */
#include "slmpm/fifo/fifo.h"

#include <string.h>

#include "slmpm/am/am.h"
#include "slmpm/base/error.h"
#include "slmpm/message/message.h"
#include "slmpm/rma/rma.h"
#include "slmpm/rma/rma_operate.h"
#include "slmpm/mode/mode_hint.h"
#include "slmpm/completion/completion.h"

static int fifo_put_check(const struct operation *o)
{
	const struct endpoint *ep = o->remote->ep;
	uint64_t most = SLMPM_MESSAGE_MAX - sizeof(struct fifo_put);

	if (!ep->active)
		return error_set(SLMPM_ENOTSUP, "%s does not know active messages", ep->life->name);
	if (o->full.flags & (SLMPM_FENCE | SLMPM_BARRIER | SLMPM_NOTIFY | SLMPM_VIA_MASK))
		return error_set(SLMPM_EINVAL, "%s: flags 0x%x", o->call, o->full.flags);
	if (o->span_count != 1)
		return error_set(SLMPM_EINVAL, "%s: %d spans for one entry of a FIFO", o->call,
				 o->span_count);
	if (o->length > most)
		return error_set(SLMPM_ELIMIT, "%s: %llu bytes, at most %llu into a FIFO", o->call,
				 (unsigned long long)o->length, (unsigned long long)most);
	return 0;
}

static int fifo_put_prepare(struct request *r, const struct operation *o)
{
	const struct remote *remote = o->remote;
	struct endpoint *ep = remote->ep;
	struct fifo_put head = {
		.target = rma_target(remote, o->spans->offset, o->spans->len),
		.imm = LITTLE_32(o->full.imm),
	};
	int rc;

	if (o->full.flags & SLMPM_REMOTE)
		r->fifo.tag = wire_next(&ep->rooms->am->tags);
	head.tag = LITTLE_64(r->fifo.tag);
	rc = am_fill(r, ep, FIFO_PUT, &head, sizeof(head), o->pieces, o->piece_count, false);
	r->fifo.put = true;
	r->flags = (uint8_t)(o->full.flags & SLMPM_MORE);
	r->hint = mode_hint(o->full.flags & SLMPM_ON_LINK_MASK ? o->full.flags :
								 o->full.flags | remote->asked);
	r->result.op = SLMPM_OP_PUT;
	return rc;
}

int fifo_put(const struct operation *o)
{
	struct endpoint *ep = o->remote->ep;
	struct request stack = {.piece_count = 0}, *r = &stack;
	slmpm_peer peer = {handle_id(ep)};
	int rc = fifo_put_check(o);

	if (rc < 0)
		return rc;
	if (!completion_blocks(&o->full, o->req))
		r = request_new();
	if (!r)
		return -SLMPM_ENOMEM;
	rc = message_begin(r, fifo_put_prepare(r, o), &o->full, o->req);
	if (rc == 0 && endpoint_of(peer) == ep) { /* else another thread has closed it meanwhile */
		ep->stats->puts++;
		ep->stats->put_bytes += o->length;
		ep->stats->fifo_puts++;
		ep->stats->fifo_bytes += o->length;
	}
	return rc;
}
