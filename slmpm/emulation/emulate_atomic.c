/* SPDX-License-Identifier: BSD-3-Clause */
/* Emulated atomic operations and notifications: requests without bytes, each with one answer. */
#include <errno.h>

#include "slmpm/completion/completion.h"
#include "slmpm/emulation/emulate.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"

/* ---- the side that asks --------------------------------------------------------------------- */

int emulate_send_atomic(struct endpoint *ep, struct emulated *op)
{
	const struct rma_work *w = &op->r->rma;
	struct {
		struct emulate_request request;
		struct wire_atomic atomic;
	} head = {
		.request = emulate_head(op, w->spans->len, w->atomic),
		.atomic = rma_operands(op->r),
	};
	int rc = emulate_ask(op, EMULATE_ATOMIC, &head, NULL, 0);

	if (rc != 1)
		return rc;
	ep->stats->am_atomics++;
	op->span++;
	return 1;
}

/* Behind the answers to all of the put: only what is there is told. */
int emulate_send_notify(struct endpoint *ep, struct emulated *op)
{
	const struct rma_work *w = &op->r->rma;
	struct emulate_request q =
		emulate_head(op, w->spans[w->span_count - 1].len, op->r->result.imm);
	int rc;

	if (op->in_flight || ep->charged - ep->credited + WIRE_ENVELOPE > ep->credit)
		return -EBUSY;
	q.target.zero = LITTLE_32(w->stored);
	rc = emulate_ask(op, EMULATE_NOTIFY, &q, NULL, 0);
	if (rc != 1)
		return rc;
	ep->charged += WIRE_ENVELOPE;
	op->notify = false;
	return 1;
}

/* ---- the side whose memory it is ------------------------------------------------------------ */

void emulate_serve_notify(struct endpoint *ep, const struct emulate_request *q)
{
	struct region *region;
	int status = 0;

	ep->unmatched_charge += WIRE_ENVELOPE;
	if (PEER_FAULT(ep->unmatched_charge > ep->credit)) {
		endpoint_poison(ep, "credit overrun");
		return;
	}
	ep->stats->am_served++;
	region = rma_find(ep, &q->target, SLMPM_WRITE, &status);
	if (region)
		completion_notify(region->counter, region->queue, ep, q->target.offset,
				  q->target.length, q->imm,
				  q->target.zero ? SLMPM_BY_PUT : SLMPM_BY_REQUEST);
	else
		link_discharge(ep, WIRE_ENVELOPE);
	emulate_reply(ep, q->tag, status, 0);
}

void emulate_serve_atomic(struct endpoint *ep, const struct emulate_request *q,
			  const void *operands)
{
	struct wire_atomic a;
	bool sound = rma_operands_in(&a, operands, q->target.length);
	uint64_t old = 0;
	int status = 0;
	void *at;

	if (PEER_FAULT(!sound || q->imm < SLMPM_FETCH_ADD || q->imm > SLMPM_SWAP)) {
		endpoint_poison(ep, "width of an atomic operation");
		return;
	}
	ep->stats->am_served++;
	at = rma_word(ep, &q->target, &status);
	if (at)
		old = rma_change(ep, at, (int)q->imm, &a);
	emulate_reply(ep, q->tag, status, old);
}
