/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages whose end is acknowledged: what of them arrives, who waits for the answer (am_ack.h). */
#include "slmpm/am/am_ack.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/am/am.h"
#include "slmpm/message/message.h"
#include "slmpm/part.h"

bool am_ack_may_begin(const struct head *h)
{
	uint16_t id = (uint16_t)h->stream;
	size_t head = id == FIFO_PUT ? FIFO_HEAD : sizeof(struct am_confirmed);

	return (id == FIFO_PUT || id == AM_CONFIRMED) && !(h->flags & WIRE_FLAG_UNCHARGED) &&
	       h->stream >> 16 == head;
}

bool am_ack_clears(struct endpoint *ep, const struct inbound *m)
{
	if (!am_is_early(ep) && ((uint16_t)m->stream != FIFO_PUT || !ep->rooms->am->longs))
		return true;
	ep->rooms->am->holds_up = true;
	ep->rooms->am->uncleared = m->seq;
	return false;
}

void am_ack_clear_next(struct endpoint *ep)
{
	struct inbound *m = ep->rooms->am->message;
	uint64_t seq = ep->rooms->am->uncleared;
	bool any = ep->rooms->am->holds_up;

	ep->rooms->am->holds_up = false;
	if (!any || ep->state != SLMPM_PEER_UP || !m || m->seq != seq)
		return;
	m->cleared = true;
	link_control(ep, WIRE_CLEAR, seq, 0, NULL, 0);
}

void am_ack_answer(struct endpoint *ep, uint64_t tag, int status)
{
	const struct am_ack a = {
		.tag = LITTLE_64(tag),
		.error = LITTLE_32(wire_error(status)),
	};

	if (tag && am_answer(ep, AM_ACK, &a, sizeof(a), NULL, 0) < 0)
		endpoint_no_memory(ep);
}

void am_ack_settle(struct endpoint *ep, uint64_t tag, uint64_t charge, int status)
{
	if (ep->state != SLMPM_PEER_UP)
		return;
	am_ack_answer(ep, tag, status);
	if (ep->state == SLMPM_PEER_UP)
		am_settle(ep, charge);
}

/* Who waits for the answer to TAG, out of wherever it is; NULL: nobody. */
static struct request *take_awaiting(struct endpoint *ep, uint64_t tag)
{
	LIST_EACH_ENTRY(struct request, r, &ep->rooms->am->awaiting, node) {
		if (r->fifo.tag != tag)
			continue;
		list_remove(&r->node);
		return r;
	}
	/* All of it has left, which the link has not been asked about since. */
	LIST_EACH_ENTRY(struct request, r, &ep->link.queue, node) {
		if (r->fifo.tag != tag || !message_is_out(r))
			continue;
		link_dequeue(ep, r);
		r->fifo.out = true;
		return r;
	}
	return NULL;
}

/* There are no more answers than requests that are out; of those given up the tag is forgotten. */
static void done(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total)
{
	struct am_ack a;
	struct request *r;

	if (PEER_FAULT(stream >> 16 != sizeof(a) || total != sizeof(a))) {
		endpoint_poison(ep, "length of an answer");
		return;
	}
	memcpy(&a, data, sizeof(a));
	a.tag = LITTLE_64(a.tag);
	a.error = LITTLE_32(a.error);
	if (PEER_FAULT(!wire_is_given(a.tag, endpoint_start(ep), ep->rooms->am->tags) ||
		       a.error > WIRE_ERROR_LAST)) {
		endpoint_poison(ep, "answer to no request");
		return;
	}
	r = take_awaiting(ep, a.tag);
	if (r)
		request_finish(r, wire_status(a.error));
	else if (PEER_FAULT(!ep->rooms->am->abandoned))
		endpoint_poison(ep, "answer to no request");
	else
		ep->rooms->am->abandoned--;
}

bool am_ack_withdraw(struct request *r)
{
	if (!r->fifo.out)
		return message_withdraw(r);
	list_remove(&r->node);
	r->ep->rooms->am->abandoned++;
	return true;
}

bool am_ack_awaits(struct request *r, int status)
{
	if (!r->fifo.tag || status < 0 || r->fifo.out)
		return false;
	r->fifo.out = true;
	list_append(&r->ep->rooms->am->awaiting, &r->node);
	return true;
}

void am_ack_arrived(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
		    unsigned char *memory, uint64_t charge)
{
	/* What costs no credit could be without end; what tells of an end has none to give back. */
	if (PEER_FAULT(((uint16_t)stream == AM_ACK) == (charge > 0)))
		endpoint_poison(ep, "credit of a FIFO entry");
	else if ((uint16_t)stream == AM_ACK)
		done(ep, stream, data, total);
	else if ((uint16_t)stream == AM_CONFIRMED)
		am_confirm(ep, stream, data, total, charge);
	else {
		parts.fifo_arrived(ep, stream, data, total, memory, charge);
		return;
	}
	free(memory);
}

void am_ack_end(struct endpoint *ep)
{
	ep->rooms->am->message = NULL;
	LIST_EACH(at, &ep->rooms->am->awaiting) {
		list_remove(at);
		request_finish(LIST_ENTRY(at, struct request, node), -ep->life->error);
	}
}
