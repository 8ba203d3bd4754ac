/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by active messages, what arrives: requests and answers, by the number of a
 * handler or by tag. Every field is checked here, before anybody uses one.
 */
#include <string.h>

#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/emulation/emulate.h"
#include "slmpm/message/match.h"
#include "slmpm/rma/rma.h"

/* ---- answers -------------------------------------------------------------------------------- */

static bool emulate_arrival_take_answer(struct endpoint *ep, const struct slmpm_am *am,
					struct emulate_answer *a)
{
	if (PEER_FAULT(am->head_len != sizeof(*a) || (am->data_len && am->id != EMULATE_DATA)))
		return endpoint_poison(ep, "length of an answer");
	memcpy(a, am->head, sizeof(*a));
	a->old = LITTLE_64(a->old);
	a->tag = LITTLE_32(a->tag);
	return true;
}

static void emulate_arrival_answer(struct endpoint *ep, const struct slmpm_am *am)
{
	struct emulate_answer a = {.tag = 0};
	struct slot *s;

	if (!emulate_arrival_take_answer(ep, am, &a))
		return;
	if (am->id == EMULATE_GIVE_UP) {
		emulate_serve_give_up(ep, a.tag);
		return;
	}
	s = emulate_slot_of(ep->rooms->emulation, a.tag);
	if (PEER_FAULT(!s || (am->id == EMULATE_DATA && s->id != EMULATE_READ) ||
		       (am->id == EMULATE_DONE &&
			(s->id == EMULATE_READ || s->id == EMULATE_TAGGED_READ ||
			 s == s->op->sends)) ||
		       (am->id == EMULATE_FAILED && (!a.old || a.old > WIRE_ERROR_LAST)))) {
		endpoint_poison(ep, "answer to no request");
		return;
	}
	if (am->id == EMULATE_DATA)
		emulate_take_data(ep, s, am->data, am->data_len);
	else
		emulate_answered(ep, s, am->id == EMULATE_FAILED ? wire_status((uint32_t)a.old) : 0,
				 a.old);
}

/* ---- requests ------------------------------------------------------------------------------- */

static bool take_request(struct endpoint *ep, const struct slmpm_am *am, struct emulate_request *q)
{
	if (PEER_FAULT(am->head_len != emulate_head_length(am->id) ||
		       (am->data_len && am->id != EMULATE_WRITE)))
		return endpoint_poison(ep, "length of a request");
	memcpy(q, am->head, sizeof(*q));
	rma_target_in(&q->target);
	q->tag = LITTLE_32(q->tag);
	q->imm = LITTLE_32(q->imm);
	if (PEER_FAULT(q->target.length > SLMPM_MESSAGE_MAX ||
		       q->target.zero > (am->id == EMULATE_NOTIFY)))
		return endpoint_poison(ep, "range of a request");
	return true;
}

/* ---- by number, by tag ---------------------------------------------------------------------- */

void emulate_handle(struct endpoint *ep, const struct slmpm_am *am)
{
	struct emulate_request q;

	if (ep->closing) /* what is under way ends with the connection */
		return;
	if (PEER_FAULT(am->id >= EMULATE_END)) {
		endpoint_poison(ep, "number of a handler");
		return;
	}
	if (am->id >= EMULATE_GIVE_UP) {
		emulate_arrival_answer(ep, am);
		return;
	}
	if (take_request(ep, am, &q))
		emulate_serve(ep, am, &q);
}

void emulate_tagged(struct endpoint *ep, const struct head *h)
{
	struct slot *s;

	if (!inbound_envelope(ep, h, 0) || ep->closing)
		return;
	match_account(ep, h->length);
	if (h->damaged) {
		emulate_damaged(ep, EMULATE_DATA);
		return;
	}
	if (h->imm == EMULATE_OUT) {
		emulate_take_tagged(ep, h->stream, h->data, h->length);
		return;
	}
	s = emulate_slot_of(ep->rooms->emulation, h->stream);
	if (PEER_FAULT(h->imm != EMULATE_BACK || !s || s->id != EMULATE_TAGGED_READ))
		endpoint_poison(ep, "tag of a message");
	else
		emulate_take_data(ep, s, h->data, h->length);
}

void emulate_damaged(struct endpoint *ep, uint16_t id)
{
	if (id <= SLMPM_AM_ID_MAX)
		ep->stats->am_unhandled++;
	else /* nobody knows whose answer or request it was */
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ECHECKSUM, "a request came damaged");
}
