/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by request, the side whose memory it is. A request is a private copy of the
 * packet's words; key, rights and range are looked at for each packet, so that what is revoked is
 * out of reach at once (R9). Writes and atomic operations are done as they arrive, in their order;
 * rma_deferred.c has the answers.
 */
#include <string.h>

#include "slmpm/engine/engine.h"
#include "slmpm/message/inbound.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"

uint64_t rma_received(const struct endpoint *ep)
{
	return ep->rma->received;
}

/* ---- requests taken apart ------------------------------------------------------------------- */

/* Numbers go up by one; the Writes of one put share theirs. */
static bool take_number(struct endpoint *ep, const struct head *h, bool again, uint32_t flags)
{
	struct rma *m = ep->rma;

	if (PEER_FAULT(h->flags & ~(flags | WIRE_FLAG_CHECK)))
		return endpoint_poison(ep, "flag of a request");
	if (h->seq == m->received + 1) {
		m->received++;
		return true;
	}
	if (PEER_FAULT(!again || !wire_is_given(h->seq, endpoint_start_in(ep), m->received)))
		return endpoint_poison(ep, "number of a request");
	return true;
}

/* What is damaged is not looked at; its operation fails. */
static bool rma_serve_take_target(struct endpoint *ep, const struct head *h, struct wire_target *t)
{
	uint64_t length = h->extent & WIRE_LENGTH_MASK;

	if (PEER_FAULT(h->length < sizeof(*t)))
		return endpoint_poison(ep, "length of a request");
	memcpy(t, h->data, sizeof(*t));
	rma_target_in(t);
	if (h->damaged)
		t->length = length;
	if (PEER_FAULT(t->length != length || length > SLMPM_MESSAGE_MAX ||
		       (t->zero && !h->damaged)))
		return endpoint_poison(ep, "range of a request");
	return true;
}

static void acknowledge(struct endpoint *ep, uint64_t seq, int status)
{
	(void)rma_defer(ep, WIRE_ACKNOWLEDGE, seq, status);
}

/* ---- Writes --------------------------------------------------------------------------------- */

static void note_failure(struct rma *m, uint64_t seq, int status)
{
	if (!m->unanswered) {
		m->unanswered = status;
		m->unanswered_seq = seq;
	}
	m->failed = status;
	m->failed_seq = seq;
}

/* What the answer to the last Write of a put says of those before. */
static int earlier_failure(struct rma *m, uint64_t seq)
{
	if (!m->failed || m->failed_seq != seq)
		return 0;
	if (m->unanswered_seq == seq)
		m->unanswered = 0;
	return m->failed;
}

/* Does the engine's thread store here, and not a call? */
static bool engine_stores(const struct endpoint *ep)
{
	return UNLIKELY(ep->ctx->port != NULL) && engine_serves(ep->ctx);
}

static void rma_serve_write_done(struct endpoint *ep, const struct rma_write *w,
				 struct region *region, enum slmpm_protocol by)
{
	struct rma *m = ep->rma;
	int status = w->status;

	if (!status) {
		ep->stats->served++;
		ep->stats->engine_in += w->target.length && engine_stores(ep);
		status = earlier_failure(m, w->seq);
	}
	if (w->flags & WIRE_FLAG_NOTIFY)
		rma_notified(ep, status ? NULL : region, &w->target, w->imm, by);
	if (w->flags & WIRE_FLAG_ANSWER)
		acknowledge(ep, w->seq, status);
	else if (status)
		note_failure(m, w->seq, status);
}

/* N bytes of the Write from DATA on; the region, unless it is refused. */
static struct region *rma_serve_store(struct endpoint *ep, struct rma_write *w, const void *data,
				      uint32_t n)
{
	struct region *region = rma_store(ep, &w->target, w->got, data, n, &w->status);

	if (region)
		ep->stats->engine_in_bytes += engine_stores(ep) ? n : 0;
	w->got += n;
	return region;
}

static void rma_serve_flush(struct endpoint *ep, const struct head *h)
{
	struct rma *m = ep->rma;

	acknowledge(ep, h->seq, m->unanswered);
	m->unanswered = m->failed = 0;
}

static struct rma_write *open_write(struct rma *m, uint64_t seq)
{
	for (struct rma_write *w = m->writes; w < m->writes + RMA_WINDOW; w++)
		if (w->open && w->seq == seq)
			return w;
	return NULL;
}

static struct rma_write *free_write(struct rma *m)
{
	for (struct rma_write *w = m->writes; w < m->writes + RMA_WINDOW; w++)
		if (!w->open)
			return w;
	return NULL;
}

/* Not by rma_find: what is refused is counted when it is there. */
void *rma_place_write(struct endpoint *ep, const struct fabric_arrival *a)
{
	const struct rma_write *w = open_write(ep->rma, a->head[0]);
	const struct grant *g = w && !w->status ? grant_find(ep, w->target.grant) : NULL;

	if (!g || ep->closing || (a->head[2] & WIRE_LENGTH_MASK) != w->got ||
	    a->length > w->target.length - w->got)
		return NULL;
	return region_at(g->region, w->target.offset + w->got);
}

static void write_first(struct endpoint *ep, const struct head *h, bool only)
{
	struct rma_write w = {.open = true, .seq = h->seq, .imm = h->imm, .flags = h->flags};
	struct rma_write *open;
	struct region *region;
	uint32_t n;

	if (!rma_serve_take_target(ep, h, &w.target))
		return;
	n = h->length - (uint32_t)sizeof(w.target);
	if (PEER_FAULT(only ? n != w.target.length || n > ep->packet_max_in :
			      n >= w.target.length || n != ep->packet_max_in)) {
		endpoint_poison(ep, "length of a Write");
		return;
	}
	if (h->flags & WIRE_FLAG_NOTIFY && !rma_charge(ep))
		return;
	w.status = h->damaged ? -SLMPM_ECHECKSUM : 0;
	region = rma_serve_store(ep, &w, (const unsigned char *)h->data + sizeof(w.target), n);
	if (only) {
		rma_serve_write_done(ep, &w, region, SLMPM_BY_REQUEST);
		return;
	}
	if (PEER_FAULT(open_write(ep->rma, h->seq))) {
		endpoint_poison(ep, "second Write of one number");
		return;
	}
	open = free_write(ep->rma);
	if (open)
		*open = w;
	else
		endpoint_poison(ep, "number of Writes under way");
}

static void write_more(struct endpoint *ep, const struct head *h, bool last)
{
	struct rma_write *w = open_write(ep->rma, h->seq), done;
	struct region *region;
	uint64_t left;

	if (PEER_FAULT(!w || h->flags & ~WIRE_FLAG_CHECK)) {
		endpoint_poison(ep, "continuation of no Write");
		return;
	}
	left = w->target.length - w->got;
	if (PEER_FAULT((h->extent & WIRE_LENGTH_MASK) != w->got ||
		       (last ? h->length != left || h->length > ep->packet_max_in :
			       h->length != ep->packet_max_in || h->length >= left))) {
		endpoint_poison(ep, "length or offset of a Write");
		return;
	}
	if (h->damaged && !w->status)
		w->status = -SLMPM_ECHECKSUM;
	region = rma_serve_store(ep, w, h->data, h->length);
	if (!last)
		return;
	done = *w;
	w->open = false;
	rma_serve_write_done(ep, &done, region, SLMPM_BY_REQUEST);
}

void rma_serve_write(struct endpoint *ep, const struct head *h)
{
	bool only = h->opcode == WIRE_WRITE_ONLY;

	if (ep->closing)
		return; /* its operations end with the connection */
	if (h->opcode == WIRE_WRITE_MIDDLE || h->opcode == WIRE_WRITE_LAST) {
		write_more(ep, h, h->opcode == WIRE_WRITE_LAST);
		return;
	}
	if (!take_number(ep, h, true, WIRE_FLAG_ANSWER | WIRE_FLAG_NOTIFY))
		return;
	if (only && !h->length && h->extent == wire_extent(0, h->flags) &&
	    h->flags & WIRE_FLAG_ANSWER && !(h->flags & WIRE_FLAG_NOTIFY))
		rma_serve_flush(ep, h);
	else
		write_first(ep, h, only);
}

void rma_serve_withdrawn(struct endpoint *ep, const struct head *h)
{
	struct rma_write *w = open_write(ep->rma, h->seq);

	if (ep->closing)
		return;
	if (PEER_FAULT(!w)) {
		endpoint_poison(ep, "withdrawal of no Write");
		return;
	}
	if (w->flags & WIRE_FLAG_NOTIFY)
		link_discharge(ep, WIRE_ENVELOPE);
	w->open = false;
}

/* ---- the others ----------------------------------------------------------------------------- */

void rma_serve_notify(struct endpoint *ep, const struct head *h)
{
	struct rma_write w = {.seq = h->seq, .imm = h->imm, .flags = h->flags | WIRE_FLAG_NOTIFY};

	if (ep->closing || !take_number(ep, h, false, WIRE_FLAG_ANSWER) ||
	    !rma_serve_take_target(ep, h, &w.target))
		return;
	if (PEER_FAULT(h->length != sizeof(w.target))) {
		endpoint_poison(ep, "length of a notification");
		return;
	}
	if (!rma_charge(ep))
		return;
	w.status = h->damaged ? -SLMPM_ECHECKSUM : 0;
	rma_serve_write_done(ep, &w, rma_serve_store(ep, &w, NULL, 0), SLMPM_BY_PUT);
}

void rma_serve_read(struct endpoint *ep, const struct head *h)
{
	struct wire_target t;
	struct rma_job *j;
	int status = h->damaged ? -SLMPM_ECHECKSUM : 0;

	if (ep->closing || !take_number(ep, h, false, 0) || !rma_serve_take_target(ep, h, &t))
		return;
	if (PEER_FAULT(h->length != sizeof(t))) {
		endpoint_poison(ep, "length of a read request");
		return;
	}
	if (!status && rma_find(ep, &t, SLMPM_READ, &status))
		ep->stats->served++;
	j = rma_defer(ep, status ? WIRE_ACKNOWLEDGE : WIRE_READ_ONLY, h->seq, status);
	if (j)
		j->target = t;
}

static bool take_atomic(struct endpoint *ep, const struct head *h, struct wire_target *t,
			struct wire_atomic *a)
{
	bool sound;

	if (!rma_serve_take_target(ep, h, t))
		return false;
	if (PEER_FAULT(h->length != sizeof(*t) + sizeof(*a)))
		return endpoint_poison(ep, "length of an atomic operation");
	sound = rma_operands_in(a, (const unsigned char *)h->data + sizeof(*t), t->length);
	if (PEER_FAULT(!sound && !h->damaged))
		return endpoint_poison(ep, "width of an atomic operation");
	return true;
}

void rma_serve_atomic(struct endpoint *ep, const struct head *h)
{
	int op = h->opcode == WIRE_FETCH_ADD    ? SLMPM_FETCH_ADD :
		 h->opcode == WIRE_COMPARE_SWAP ? SLMPM_COMPARE_SWAP :
						  SLMPM_SWAP;
	int status = h->damaged ? -SLMPM_ECHECKSUM : 0;
	struct wire_atomic a;
	struct wire_target t;
	struct rma_job *j;
	void *at = NULL;

	if (ep->closing || !take_number(ep, h, false, 0) || !take_atomic(ep, h, &t, &a))
		return;
	if (!status)
		at = rma_word(ep, &t, &status);
	/* The place for the answer first: what is done must be told. */
	j = rma_defer(ep, status ? WIRE_ACKNOWLEDGE : WIRE_ATOMIC_ACKNOWLEDGE, h->seq, status);
	if (!j || status)
		return;
	j->old = rma_change(ep, at, op, &a);
}
