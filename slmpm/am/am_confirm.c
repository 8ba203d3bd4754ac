/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages whose sender learns their end (SLMPM_REMOTE): that the handler has run, or that
 * there is none. They travel behind a head of the library's own, which has the tag of the answer;
 * that is a FIFO's, and leaves behind what the handler has replied.
 */
#include <string.h>

#include "slmpm/am/am_ack.h"
#include "slmpm/base/error.h"
#include "slmpm/am/am_take.h"

/* ---- who sends ------------------------------------------------------------------------------ */

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
	if (!(r->wire & WIRE_FLAG_ACTIVE))
		return;
	r->result.op = r->fifo.put ? SLMPM_OP_PUT : SLMPM_OP_AM;
	r->result.len -= r->stream >> 16; /* without the head */
	r->result.stream = r->fifo.put ? 0 : r->stream & 0xffff;
	if (r->result.stream == AM_CONFIRMED)
		confirmed_finished(r);
}

/* ---- who has the handler -------------------------------------------------------------------- */

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

void am_confirm(struct endpoint *ep, uint32_t stream, const void *data, uint64_t total,
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
