/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of messages that lie in an area: they carry no bytes, only how many are ready. */
#include "slmpm/sendrecv/sendrecv.h"

#include <errno.h>
#include <string.h>

#include "slmpm/loan/area.h"
#include "slmpm/link/landing.h"
#include "slmpm/message/match.h"
#include "slmpm/link/wait.h"
#include "slmpm/stats.h"

static bool take_loan(struct endpoint *ep, const struct head *h, struct wire_loan *loan)
{
	if (h->length != sizeof(*loan))
		return endpoint_poison(ep, "length of a loan");
	memcpy(loan, h->data, sizeof(*loan));
	loan->ready = LITTLE_64(loan->ready);
	loan->capacity = LITTLE_64(loan->capacity);
	loan->area = LITTLE_32(loan->area);
	loan->final = LITTLE_32(loan->final);
	if (PEER_FAULT(loan->ready > loan->capacity || loan->final > 1))
		return endpoint_poison(ep, "loan");
	return true;
}

/* Where packets bring the bytes, they come before it is said that they can be read. */
static bool is_here(const struct endpoint *ep, const struct area *area, uint64_t ready)
{
	return link_maps(ep) || ready <= area->filled;
}

void arrival_loan_area(struct endpoint *ep, const struct head *h)
{
	int rc = h->length ? -EPROTO : area_offered(ep, h->seq, h->extent & WIRE_LENGTH_MASK, -1);

	if (rc == -ENOMEM)
		endpoint_no_memory(ep);
	else if (PEER_FAULT(rc < 0))
		endpoint_poison(ep, "area of a loan");
}

void arrival_loan_bytes(struct endpoint *ep, const struct head *h)
{
	uint64_t offset = h->extent & WIRE_LENGTH_MASK;
	struct area *area = area_next(ep, h->seq, offset, h->length);

	if (PEER_FAULT(!area || !h->length)) {
		endpoint_poison(ep, "bytes of a loan");
		return;
	}
	landing_copy(area_at(area, offset), h->data, h->length);
	area->filled += h->length;
	area->damaged |= h->damaged;
}

void arrival_loan(struct endpoint *ep, const struct head *h)
{
	struct wire_loan loan;
	struct area *area;
	struct inbound *m;

	if (!take_loan(ep, h, &loan) || !inbound_envelope(ep, h, WIRE_ENVELOPE))
		return;
	area = area_lent(ep, loan.area, loan.capacity);
	if (!area && ep->link.broken) /* as it was offered: it ends for that */
		return;
	if (PEER_FAULT(!area || !is_here(ep, area, loan.ready))) {
		endpoint_poison(ep, "area of a loan");
		return;
	}
	m = inbound_new(ep, h, loan.capacity);
	if (!m)
		return;
	ep->rooms->figures->pieces_read += link_maps(ep); /* else it has come here by packets */
	m->area = area;
	m->charge = WIRE_ENVELOPE;
	m->got = loan.ready;
	m->final = loan.final;
	m->damaged = area->damaged;
	if (m->final)
		m->total = m->got;
	else
		list_append(&ep->messages->assembling, &m->parts);
	match_arrived(m);
}

void arrival_loan_more(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = inbound_unfinished(ep, h->seq);
	struct wire_loan loan;
	uint64_t had;

	if (!take_loan(ep, h, &loan))
		return;
	if (PEER_FAULT(!m || !m->area || loan.ready < m->got || loan.capacity != m->total ||
		       !is_here(ep, m->area, loan.ready))) {
		endpoint_poison(ep, "continuation of a loan");
		return;
	}
	had = m->got;
	m->got = loan.ready;
	m->final = loan.final;
	m->damaged |= m->area->damaged;
	if (m->final) {
		m->total = m->got;
		list_remove(&m->parts);
	}
	if (m->receive && m->receive->kind == REQUEST_RECV) {
		inbound_copy_area(m, had);
		if (m->final) {
			inbound_finish(m); /* and it is gone */
			return;
		}
	}
	if (m->released && m->final)
		inbound_free(m);
	else
		context_changed(ep->ctx);
}
