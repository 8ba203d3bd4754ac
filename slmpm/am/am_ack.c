/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages whose end is acknowledged (am_ack.h): arrivals, requests that await that. */
#include "slmpm/am/am_ack.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/am/am_take.h"
#include "slmpm/base/error.h"
#include "slmpm/message/message.h"

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

static void am_ack_answer(struct endpoint *ep, uint64_t tag, int status)
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

/* ---- and who has the handler ---------------------------------------------------------------- */

uint16_t am_confirm_id(const void *data)
{
	struct am_confirmed own;

	memcpy(&own, data, sizeof(own));
	return LITTLE_16(own.id);
}

static bool take_confirmed_head(struct endpoint *ep, uint32_t stream, const void *data,
				uint64_t total, struct am_confirmed *own)
{
	if (PEER_FAULT(stream >> 16 != sizeof(*own))) {
		endpoint_poison(ep, "head of an active message");
		return false; /* said aloud: compilers then see that *own is never read */
	}
	memcpy(own, data, sizeof(*own));
	own->tag = LITTLE_64(own->tag);
	own->id = LITTLE_16(own->id);
	own->head_len = LITTLE_16(own->head_len);
	if (PEER_FAULT(!own->tag || own->id > SLMPM_AM_ID_MAX || own->zero ||
		       own->head_len > SLMPM_AM_HEAD_MAX || own->head_len > total - sizeof(*own)))
		return endpoint_poison(ep, "head of an active message");
	return true;
}

static void am_confirm(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
		       uint64_t charge)
{
	const struct am_handler *h;
	struct am_confirmed own;

	if (!take_confirmed_head(ep, stream, data, total, &own))
		return;
	h = am_find(ep->ctx, own.id);
	am_run(ep, h, am_stream(own.id, own.head_len), (const unsigned char *)data + sizeof(own),
	       total - sizeof(own));
	am_ack_settle(ep, own.tag, charge, h ? 0 : -SLMPM_ENOENT);
}

void am_confirm_dropped(struct inbound *m)
{
	uint64_t most = (uint64_t)config_get()->am_max + sizeof(struct am_confirmed);
	struct am_confirmed own;

	if (take_confirmed_head(m->ep, m->stream, m->data, m->total, &own))
		am_ack_answer(m->ep, own.tag, m->total > most ? -SLMPM_ELIMIT : -SLMPM_ENOENT);
}

/* ---- answers -------------------------------------------------------------------------------- */

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

/* ---- one that is confirmed (SLMPM_REMOTE): who sends it ----------------------------------- */

static int fill_confirmed(struct request *r, struct endpoint *ep, uint16_t id, const void *head,
			  size_t head_len, const struct slmpm_iov *iov, int n)
{
	struct {
		struct am_confirmed own;
		unsigned char head[SLMPM_AM_HEAD_MAX];
	} full;
	int rc;

	r->fifo.tag = wire_next(&ep->rooms->am->tags);
	full.own = (struct am_confirmed){
		.tag = LITTLE_64(r->fifo.tag),
		.id = LITTLE_16(id),
		.head_len = LITTLE_16((uint16_t)head_len),
	};
	if (head_len)
		memcpy(full.head, head, head_len);
	rc = am_fill(r, ep, AM_CONFIRMED, &full, sizeof(full.own) + head_len, iov, n, false);
	r->stream = am_stream(AM_CONFIRMED, sizeof(full.own)); /* the rest is not this one's head */
	return rc;
}

int am_fill_as(struct request *r, struct endpoint *ep, uint16_t id, const void *head,
	       size_t head_len, const struct slmpm_iov *iov, int n, uint32_t flags)
{
	if (flags & SLMPM_REMOTE)
		return fill_confirmed(r, ep, id, head, head_len, iov, n);
	return am_fill(r, ep, id, head, head_len, iov, n, false);
}

static void confirmed_finished(struct request *r)
{
	struct am_confirmed own;

	memcpy(&own, r->owned, sizeof(own));
	r->result.stream = LITTLE_16(own.id);
	r->result.len -= LITTLE_16(own.head_len);
	if (r->result.status == -SLMPM_ENOENT || r->result.status == -SLMPM_ELIMIT)
		r->ep->stats->am_refused++;
}

void am_finished(struct request *r)
{
	r->result.op = r->fifo.put ? SLMPM_OP_PUT : SLMPM_OP_AM;
	r->result.len -= r->stream >> 16; /* without the head */
	r->result.stream = r->fifo.put ? 0 : r->stream & 0xffff;
	if (r->result.stream == AM_CONFIRMED)
		confirmed_finished(r);
}
