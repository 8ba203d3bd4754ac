/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations by request, the side whose memory it is. A request is a private copy of the
 * packet's words; key, rights and range are checked for each packet, so that what is revoked is out
 * of reach at once (R9). Writes and atomic operations are done as they arrive, in their order.
 * Their answers, never more than one for each request that the peer may have under way, go out as
 * there is room, a turn each.
 */
#include <string.h>

#include "slmpm/engine/engine.h"
#include "slmpm/link/link.h"
#include "slmpm/message/inbound.h"
#include "slmpm/region/memory.h"
#include "slmpm/rma/rma.h"

#define READ_TURN 8 /* packets of one response before the next answer's turn */

uint64_t rma_received(const struct endpoint *ep)
{
	return ep->rma->received;
}

/* ---- requests taken apart ---------------------------------------------------------------- */

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

/* A new answer to request SEQ; NULL: the peer has asked for more than it may, and has ended. */
static struct rma_job *rma_defer(struct endpoint *ep, uint8_t opcode, uint64_t seq, int status)
{
	struct rma *m = ep->rma;

	for (struct rma_job *j = m->jobs; j < m->jobs + RMA_WINDOW; j++) {
		if (j->opcode)
			continue;
		*j = (struct rma_job){.opcode = opcode, .seq = seq, .status = status};
		m->job_count++;
		endpoint_block(ep, BLOCK_ANSWERS, true);
		return j;
	}
	endpoint_poison(ep, "number of requests under way");
	return NULL;
}

/* ---- Writes ------------------------------------------------------------------------------ */

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

static void rma_serve_write_done(struct endpoint *ep, const struct rma_write *w,
				 struct region *region, enum slmpm_protocol by)
{
	struct rma *m = ep->rma;
	int status = w->status;

	if (!status) {
		ep->stats->served++;
		ep->stats->engine_in += w->target.length && context_is_server(ep->ctx);
		status = earlier_failure(m, w->seq);
	}
	if (w->flags & WIRE_FLAG_NOTIFY)
		rma_notified(ep, status ? NULL : region, &w->target, w->imm, by);
	if (w->flags & WIRE_FLAG_ANSWER)
		(void)rma_defer(ep, WIRE_ACKNOWLEDGE, w->seq, status);
	else if (status)
		note_failure(m, w->seq, status);
}

/* N bytes of the Write from DATA on; the region, unless it is refused. */
static struct region *rma_serve_store(struct endpoint *ep, struct rma_write *w, const void *data,
				      uint32_t n)
{
	struct region *region = rma_store(ep, &w->target, w->got, data, n, &w->status);

	if (region)
		ep->stats->engine_in_bytes += context_is_server(ep->ctx) ? n : 0;
	w->got += n;
	return region;
}

/* The one under way as SEQ, or none of OPEN: a free one. */
static struct rma_write *write_of(struct rma *m, bool open, uint64_t seq)
{
	for (struct rma_write *w = m->writes; w < m->writes + RMA_WINDOW; w++)
		if (w->open == open && (!open || w->seq == seq))
			return w;
	return NULL;
}

/* Not by rma_find: what is refused is counted when it is there. */
void *rma_place_write(struct endpoint *ep, const struct fabric_arrival *a)
{
	const struct rma_write *w = write_of(ep->rma, true, a->head[0]);
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
	if (endpoint_broke(ep, "length of a Write", !rma_is_part(ep, only, n, w.target.length)) ||
	    (h->flags & WIRE_FLAG_NOTIFY && !rma_charge(ep)))
		return;
	w.status = h->damaged ? -SLMPM_ECHECKSUM : 0;
	region = rma_serve_store(ep, &w, (const unsigned char *)h->data + sizeof(w.target), n);
	if (only) {
		rma_serve_write_done(ep, &w, region, SLMPM_BY_REQUEST);
		return;
	}
	if (endpoint_broke(ep, "second Write of one number", write_of(ep->rma, true, h->seq)))
		return;
	open = write_of(ep->rma, false, 0);
	if (open)
		*open = w;
	else
		endpoint_poison(ep, "number of Writes under way");
}

static void write_more(struct endpoint *ep, const struct head *h)
{
	struct rma_write *w = write_of(ep->rma, true, h->seq), done;
	bool last = h->opcode == WIRE_WRITE_LAST;
	struct region *region;

	if (endpoint_broke(ep, "continuation of no Write", !w || h->flags & ~WIRE_FLAG_CHECK) ||
	    endpoint_broke(ep, "length or offset of a Write",
			   (h->extent & WIRE_LENGTH_MASK) != w->got ||
				   !rma_is_part(ep, last, h->length, w->target.length - w->got)))
		return;
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
		write_more(ep, h);
		return;
	}
	if (!take_number(ep, h, true, WIRE_FLAG_ANSWER | WIRE_FLAG_NOTIFY))
		return;
	if (only && !h->length && h->extent == wire_extent(0, h->flags) &&
	    h->flags & WIRE_FLAG_ANSWER && !(h->flags & WIRE_FLAG_NOTIFY)) { /* a flush */
		(void)rma_defer(ep, WIRE_ACKNOWLEDGE, h->seq, ep->rma->unanswered);
		ep->rma->unanswered = ep->rma->failed = 0;
	} else {
		write_first(ep, h, only);
	}
}

void rma_serve_withdrawn(struct endpoint *ep, const struct head *h)
{
	struct rma_write *w = write_of(ep->rma, true, h->seq);

	if (ep->closing || endpoint_broke(ep, "withdrawal of no Write", !w))
		return;
	if (w->flags & WIRE_FLAG_NOTIFY)
		link_discharge(ep, WIRE_ENVELOPE);
	w->open = false;
}

void rma_serve_notify(struct endpoint *ep, const struct head *h)
{
	struct rma_write w = {.seq = h->seq, .imm = h->imm, .flags = h->flags | WIRE_FLAG_NOTIFY};

	if (ep->closing || !take_number(ep, h, false, WIRE_FLAG_ANSWER) ||
	    !rma_serve_take_target(ep, h, &w.target) ||
	    endpoint_broke(ep, "length of a notification", h->length != sizeof(w.target)) ||
	    !rma_charge(ep))
		return;
	w.status = h->damaged ? -SLMPM_ECHECKSUM : 0;
	rma_serve_write_done(ep, &w, rma_serve_store(ep, &w, NULL, 0), SLMPM_BY_PUT);
}

void rma_serve_read(struct endpoint *ep, const struct head *h)
{
	struct wire_target t;
	struct rma_job *j;
	int status = h->damaged ? -SLMPM_ECHECKSUM : 0;

	if (ep->closing || !take_number(ep, h, false, 0) || !rma_serve_take_target(ep, h, &t) ||
	    endpoint_broke(ep, "length of a read request", h->length != sizeof(t)))
		return;
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
	struct counter *counter = NULL;
	void *at = NULL;

	if (ep->closing || !take_number(ep, h, false, 0) || !take_atomic(ep, h, &t, &a))
		return;
	if (!status)
		at = rma_word(ep, &t, &counter, &status);
	/* The place for the answer first: what is done must be told. */
	j = rma_defer(ep, status ? WIRE_ACKNOWLEDGE : WIRE_ATOMIC_ACKNOWLEDGE, h->seq, status);
	if (!j || status)
		return;
	j->old = rma_change(ep, at, counter, op, &a);
}

/* ---- answers ----------------------------------------------------------------------------- */

static int post_acknowledge(struct endpoint *ep, const struct rma_job *j)
{
	uint64_t old = LITTLE_64(j->old);
	bool atomic = j->opcode == WIRE_ATOMIC_ACKNOWLEDGE;
	struct packet p = {
		.opcode = j->opcode,
		.seq = j->seq,
		.extent = wire_error(j->status),
		.data = atomic ? &old : NULL,
		.length = atomic ? sizeof(old) : 0,
	};

	return link_post_request(ep, &p, NULL);
}

/* The next packet of a read's response, whose bytes are looked up again for each (R9). */
static int post_response(struct endpoint *ep, struct rma_job *j)
{
	uint64_t left = j->target.length - j->sent;
	bool last = left <= ep->packet_max;
	uint32_t n = last ? (uint32_t)left : ep->packet_max;
	struct packet p = {
		.seq = j->seq,
		.length = n,
		.extent = j->sent ? j->sent : j->target.length,
	};
	const struct region *region = rma_find(ep, &j->target, SLMPM_READ, &j->status);
	int rc;

	p.opcode = last ? (j->sent ? WIRE_READ_LAST : WIRE_READ_ONLY) :
			  (j->sent ? WIRE_READ_MIDDLE : WIRE_READ_FIRST);
	if (region) {
		p.data = rma_staged(ep, region_at(region, j->target.offset + j->sent), n);
		j->status = p.data ? 0 : -SLMPM_ENOMEM;
	}
	if (j->status) {
		j->opcode = WIRE_ACKNOWLEDGE;
		return post_acknowledge(ep, j);
	}
	rc = link_post_request(ep, &p, NULL);
	if (rc == 1) {
		ep->link.run = 0;
		j->sent += n;
	}
	return rc;
}

/* One answer's turn: packets posted. */
static int post_answer(struct endpoint *ep, struct rma_job *j, bool *stop)
{
	int n = 0;

	do {
		int rc = j->opcode == WIRE_READ_ONLY ? post_response(ep, j) :
						       post_acknowledge(ep, j);

		if (rc != 1) {
			*stop = true;
			return n;
		}
		n++;
		if (j->opcode != WIRE_READ_ONLY || j->sent == j->target.length) {
			j->opcode = 0;
			endpoint_block(ep, BLOCK_ANSWERS, --ep->rma->job_count);
			return n;
		}
	} while (n < READ_TURN);
	return n;
}

bool rma_has_deferred(const struct endpoint *ep)
{
	for (int i = 0; i < RMA_WINDOW; i++)
		if (ep->rma->jobs[i].opcode && ep->rma->jobs[i].opcode != WIRE_READ_ONLY)
			return true;
	return false;
}

int rma_serve(struct endpoint *ep)
{
	struct rma *m = ep->rma;
	bool stop = false;
	int n = 0;

	if (!m->job_count)
		return 0;
	for (int i = 0; i < RMA_WINDOW && n < LINK_TURN && m->job_count && !stop; i++) {
		struct rma_job *j = &m->jobs[m->next_job];

		if (j->opcode)
			n += post_answer(ep, j, &stop);
		if (!stop)
			m->next_job = (m->next_job + 1) % RMA_WINDOW;
	}
	return n;
}
