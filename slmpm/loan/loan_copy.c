/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loans where nothing can be mapped: a part goes as a request of the library's own, in its turn
 * among the messages. Its bytes come first, then the same word as with a mapped area.
 */
#include "slmpm/loan/area.h"

#include <stdlib.h>

#include "slmpm/base/error.h"
#include "slmpm/link/link.h"
#include "slmpm/mode/mode_hint.h"

struct lent { /* one part */
	struct area *area;
	uint64_t at; /* where its bytes begin in the area */
	struct wire_loan loan;
	bool first;
};

static void part_ended(struct request *r)
{
	r->lent->area->queued--;
	free(r->lent);
	r->lent = NULL;
	request_drop(r);
}

static struct request *part_new(struct endpoint *ep, uint64_t len)
{
	const struct loans *l = ep->rooms->loans;
	struct slmpm_iov piece = {area_at(l->area, l->ready), len - l->ready};
	struct request *r = request_new(ep->ctx);

	if (!r)
		return NULL;
	(void)request_init(r, REQUEST_SEND, ep->ctx, ep, l->stream, &piece, 1);
	r->lent = calloc(1, sizeof(*r->lent));
	if (r->lent)
		return r;
	error_set(SLMPM_ENOMEM, "for a part of a loan");
	request_drop(r);
	return NULL;
}

int loan_copy(struct endpoint *ep, uint64_t len, const struct slmpm_how *how, bool final)
{
	struct loans *l = ep->rooms->loans;
	struct request *r = part_new(ep, len);

	if (!r)
		return -SLMPM_ENOMEM;
	*r->lent = (struct lent){
		.area = l->area,
		.at = l->ready,
		.loan.ready = LITTLE_64(len),
		.loan.capacity = LITTLE_64(l->length),
		.loan.area = LITTLE_32(l->area->id),
		.loan.final = LITTLE_32(final),
		.first = !l->begun,
	};
	r->result.imm = how ? how->imm : 0;
	r->hint = l->hint;
	r->by = mode_packet_flags(r->hint);
	r->wire = WIRE_FLAG_UNCHARGED; /* the area is what it costs, and was paid when lent */
	r->lends = !l->begun;
	r->ended = part_ended;
	l->area->queued++;
	link_enqueue(ep, r);
	return 0;
}

static bool post_bytes(struct endpoint *ep, struct request *r)
{
	uint64_t left = r->length - r->offset;
	struct packet p = {
		.opcode = WIRE_LOAN_BYTES,
		.length = left < ep->packet_max ? (uint32_t)left : ep->packet_max,
		.seq = r->lent->area->id,
		.extent = r->lent->at + r->offset,
	};
	uint32_t n = p.length;

	if (link_post_request(ep, &p, r) != 1)
		return false;
	r->offset += n;
	return true;
}

int loan_copy_push(struct endpoint *ep, struct request *r, bool *stop)
{
	int n = 0;

	while (r->offset < r->length && post_bytes(ep, r))
		n++;
	*stop = r->offset < r->length ||
		loan_post_word(ep, r->lent->area, &r->lent->loan, r->by,
			       wire_route(r->stream, r->result.imm), r->lent->first) != 1;
	if (*stop)
		return n;
	link_dequeue(ep, r);
	request_finish(r, 0);
	return n + 1;
}
