/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From packets to messages. Each packet's header is a private copy, and every figure in it is
 * checked against what this side knows before it is used; what cannot be is a violation.
 */
#include "slmpm/inbound.h"

#include <stdlib.h>
#include <string.h>

#include "slmpm/area.h"
#include "slmpm/bundle.h"
#include "slmpm/checksum.h"
#include "slmpm/error.h"
#include "slmpm/link.h"
#include "slmpm/wait.h"

struct head { /* a packet's header, taken apart */
	uint64_t seq, extent;
	uint32_t stream, imm, flags;
	uint32_t length; /* payload without checksum */
	const void *data;
	bool damaged;
};

static bool violate(struct endpoint *ep, const char *rule)
{
	endpoint_poison(ep, rule);
	return false;
}

/* ---- the life of a message ------------------------------------------------------------------ */

bool inbound_complete(const struct inbound *m)
{
	return m->area ? m->final : m->got == m->total;
}

static struct inbound *inbound_new(struct endpoint *ep, const struct head *h, uint64_t total)
{
	struct inbound *m = calloc(1, sizeof(*m));

	if (!m) {
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ENOMEM, "no memory for a message");
		return NULL;
	}
	list_init(&m->node);
	list_init(&m->parts);
	m->ep = ep;
	m->seq = h->seq;
	m->total = total;
	m->stream = h->stream;
	m->imm = h->imm;
	return m;
}

void inbound_free(struct inbound *m)
{
	if (!list_empty(&m->node))
		m->ep->ctx->unexpected--;
	list_remove(&m->node);
	list_remove(&m->parts);
	if (m->area)
		area_done(m->ep, m->area);
	free(m->data);
	free(m);
}

/* Room for N bytes in all; keeps what is there. */
static bool make_room(struct inbound *m, uint64_t n)
{
	unsigned char *data;

	if (m->room >= n)
		return true;
	data = realloc(m->data, n);
	if (!data)
		return false;
	m->data = data;
	m->room = n;
	return true;
}

static void drop_data(struct inbound *m)
{
	free(m->data);
	m->data = NULL;
	m->room = 0;
}

static void describe(const struct inbound *m, struct slmpm_done *done)
{
	done->len = m->area ? m->got : m->total;
	done->stream = m->stream;
	done->imm = m->imm;
	done->peer.id = handle_id(m->ep);
	done->flags = m->area && !m->final ? SLMPM_PART : 0;
}

static int verdict(const struct inbound *m, const struct request *r)
{
	if (m->damaged)
		return -SLMPM_ECHECKSUM;
	return r->kind == REQUEST_RECV && r->result.len > r->length ? -SLMPM_ETRUNC : 0;
}

/* The message is complete and its receive has it. */
static void finish(struct inbound *m)
{
	struct request *r = m->receive;

	describe(m, &r->result);
	request_finish(r, verdict(m, r));
	if (r->kind == REQUEST_RECV) {
		r->message = NULL;
		inbound_free(m);
		return;
	}
	m->receive = NULL; /* slmpm_hold takes it from the request at once */
	m->held = true;
}

static void account(struct endpoint *ep, uint64_t bytes)
{
	ep->stats->received_messages++;
	ep->stats->received_bytes += bytes;
}

/* ---- matching ------------------------------------------------------------------------------- */

static bool wants(const struct request *r, const struct endpoint *ep, uint32_t stream)
{
	return (!r->ep || r->ep == ep) && (r->stream == SLMPM_ANY_STREAM || r->stream == stream);
}

static struct request *take_posted(struct endpoint *ep, uint32_t stream)
{
	LIST_EACH(at, &ep->ctx->posted) {
		struct request *r = LIST_ENTRY(at, struct request, node);

		if (wants(r, ep, stream)) {
			list_remove(at);
			ep->ctx->posted_count--;
			return r;
		}
	}
	return NULL;
}

static struct inbound *find_in(const struct request *r, struct endpoint *ep)
{
	LIST_EACH(at, &ep->unexpected) {
		struct inbound *m = LIST_ENTRY(at, struct inbound, node);

		if (wants(r, ep, m->stream))
			return m;
	}
	return NULL;
}

struct inbound *inbound_find(const struct request *r)
{
	struct context *ctx = r->ctx;

	if (!ctx->unexpected)
		return NULL;
	if (r->ep)
		return find_in(r, r->ep);
	/* Any peer: each in turn, so that none starves. */
	for (uint32_t i = 0; i < ctx->count; i++) {
		uint32_t at = (ctx->turn + i) % ctx->count;
		struct inbound *m = find_in(r, ctx->endpoints[at]);

		if (m) {
			ctx->turn = at + 1;
			return m;
		}
	}
	return NULL;
}

void inbound_charge(struct endpoint *ep, uint64_t charge)
{
	ep->unmatched_charge -= charge;
	inbound_direct(ep, charge);
}

static void start_rest(struct inbound *m)
{
	if (!m->announced || m->cleared)
		return;
	m->cleared = true;
	link_control(m->ep, WIRE_CLEAR, m->seq, 0, NULL, 0);
}

/* A receive takes over what an area shows so far; the rest follows in area_more. */
static void copy_from_area(struct inbound *m, struct request *r, uint64_t from)
{
	request_scatter(r, from, area_at(m->area, from), m->got - from);
}

void inbound_match(struct inbound *m, struct request *r)
{
	struct endpoint *ep = m->ep;

	if (!list_empty(&m->node)) {
		list_remove(&m->node);
		ep->ctx->unexpected--;
	}
	m->receive = r;
	r->message = m;
	account(ep, m->total);
	if (m->charge)
		inbound_charge(ep, m->charge);
	m->charge = 0;
	if (r->kind == REQUEST_RECV) {
		if (m->area)
			copy_from_area(m, r, 0);
		else if (m->got)
			request_scatter(r, 0, m->data, m->got);
		if (m->total <= r->length)
			drop_data(m); /* else it may be wanted again whole */
	} else if (!m->area && !make_room(m, m->total ? m->total : 1)) {
		request_finish(r, -SLMPM_ENOMEM);
		m->receive = NULL;
		r->message = NULL;
		inbound_free(m);
		return;
	}
	if (inbound_complete(m) || (m->area && r->kind == REQUEST_HOLD)) {
		finish(m);
		return;
	}
	start_rest(m);
}

/* Among the unexpected, in front of what came after it. */
static void put_back(struct inbound *m)
{
	struct list *at = m->ep->unexpected.next;

	while (at != &m->ep->unexpected && LIST_ENTRY(at, struct inbound, node)->seq < m->seq)
		at = at->next;
	list_insert(at, &m->node);
	m->ep->ctx->unexpected++;
}

/* Its buffer is full and its end is known: it waits no longer for what nobody will see. */
static void cut_short(struct inbound *m, struct request *r)
{
	describe(m, &r->result);
	r->message = NULL;
	m->receive = NULL;
	m->cut = true;
	request_finish(r, verdict(m, r));
}

int inbound_unmatch(struct request *r)
{
	struct inbound *m = r->message;
	struct request *next;

	if (!m)
		return 0;
	if (r->kind == REQUEST_RECV && !m->area && m->room < m->got) {
		/* What lies past the buffer's end is gone already. */
		if (r->length < m->got) {
			cut_short(m, r);
			return -SLMPM_EBUSY;
		}
		if (!make_room(m, m->total))
			return -SLMPM_EBUSY;
		request_gather(r, 0, m->data, m->got);
	}
	r->message = NULL;
	m->receive = NULL;
	m->ep->stats->received_messages--;
	m->ep->stats->received_bytes -= m->total;
	next = take_posted(m->ep, m->stream);
	if (next)
		inbound_match(m, next);
	else
		put_back(m);
	return 0;
}

void inbound_end(struct endpoint *ep, int error)
{
	LIST_EACH(at, &ep->assembling) {
		struct inbound *m = LIST_ENTRY(at, struct inbound, parts);

		if (m->receive) {
			describe(m, &m->receive->result);
			m->receive->message = NULL;
			request_finish(m->receive, -error);
		}
		if (m->held && !m->released)
			list_remove(&m->parts); /* slmpm_release frees it */
		else
			inbound_free(m);
	}
}

/* ---- messages read in place ----------------------------------------------------------------- */

struct held *held_new(struct endpoint *ep)
{
	for (int i = 0; i < HELD_INLINE; i++)
		if (!ep->held[i].data)
			return &ep->held[i];
	for (struct held_more *more = ep->held_more; more; more = more->next)
		if (!more->held.data)
			return &more->held;
	{
		struct held_more *more = calloc(1, sizeof(*more));

		if (!more)
			return NULL;
		more->next = ep->held_more;
		ep->held_more = more;
		return &more->held;
	}
}

struct held *held_find(struct endpoint *ep, const void *data)
{
	if (!data)
		return NULL;
	for (int i = 0; i < HELD_INLINE; i++)
		if (ep->held[i].data == data)
			return &ep->held[i];
	for (struct held_more *more = ep->held_more; more; more = more->next)
		if (more->held.data == data)
			return &more->held;
	return NULL;
}

void held_release(struct endpoint *ep, struct held *h)
{
	if (h->message) {
		bool growing = h->message->area && !list_empty(&h->message->parts);

		h->message->released = true;
		if (!growing) /* else its last part frees it */
			inbound_free(h->message);
	} else {
		ep->held_segments -= h->arrival.span;
		if (ep->state == SLMPM_PEER_UP)
			ep->link.fabric->release(ep->link.port, &h->arrival);
	}
	h->message = NULL;
	h->data = NULL;
}

/* Hands a whole message out where it lies, while not too much of the ring is held so. */
static bool hold_in_place(struct endpoint *ep, struct request *r, const struct head *h,
			  const struct fabric_arrival *a)
{
	struct held *held;

	if (ep->held_segments + a->span > ep->link.port->counts.in_segments / 4)
		return false;
	held = held_new(ep);
	if (!held)
		return false;
	held->data = h->data;
	held->arrival = *a;
	held->message = NULL;
	ep->held_segments += a->span;
	r->result.len = h->length;
	r->result.stream = h->stream;
	r->result.imm = h->imm;
	r->result.peer.id = handle_id(ep);
	r->held = held;
	request_finish(r, h->damaged ? -SLMPM_ECHECKSUM : 0);
	return true;
}

/* ---- packets -------------------------------------------------------------------------------- */

/* The next envelope on this link; the credit bounds what may come unasked (R10). */
static bool open_envelope(struct endpoint *ep, const struct head *h, uint64_t charge)
{
	if (PEER_FAULT(h->seq != ep->received + 1))
		return violate(ep, "sequence number");
	if (PEER_FAULT(h->stream == SLMPM_ANY_STREAM))
		return violate(ep, "stream");
	ep->received++;
	ep->unmatched_charge += charge;
	if (PEER_FAULT(ep->unmatched_charge > ep->credit))
		return violate(ep, "credit overrun");
	return true;
}

static void keep_unexpected(struct endpoint *ep, struct inbound *m)
{
	list_append(&ep->unexpected, &m->node);
	ep->ctx->unexpected++;
	ep->stats->unexpected++;
	wait_changed(ep->ctx);
}

static bool send_only(struct endpoint *ep, const struct head *h, const struct fabric_arrival *a)
{
	uint64_t charge = inbound_cost(h->length);
	struct request *r;
	struct inbound *m;

	if (PEER_FAULT((h->extent & WIRE_LENGTH_MASK) != h->length ||
		       h->length > ep->packet_max_in || (h->flags & WIRE_FLAG_ANNOUNCED)))
		return violate(ep, "length of Only");
	if (!open_envelope(ep, h, charge))
		return false;
	r = take_posted(ep, h->stream);
	if (r && a && r->kind == REQUEST_HOLD && hold_in_place(ep, r, h, a)) {
		account(ep, h->length);
		inbound_charge(ep, charge);
		return true;
	}
	if (r && r->kind == REQUEST_RECV) {
		struct inbound whole = {
			.ep = ep,
			.total = h->length,
			.stream = h->stream,
			.imm = h->imm,
			.damaged = h->damaged,
		};

		request_scatter(r, 0, h->data, h->length);
		describe(&whole, &r->result);
		account(ep, h->length);
		inbound_charge(ep, charge);
		request_finish(r, verdict(&whole, r));
		return false;
	}
	m = inbound_new(ep, h, h->length);
	if (!m || !make_room(m, h->length ? h->length : 1)) {
		if (m)
			endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ENOMEM, "no memory for a message");
		free(m);
		return false;
	}
	if (h->length)
		memcpy(m->data, h->data, h->length);
	m->got = h->length;
	m->damaged = h->damaged;
	m->charge = charge;
	if (r)
		inbound_match(m, r);
	else
		keep_unexpected(ep, m);
	return false;
}

void inbound_bundled(struct endpoint *ep, uint64_t route, const void *data, uint32_t length)
{
	struct head h = {
		.seq = ep->received + 1,
		.extent = length,
		.stream = (uint32_t)route,
		.imm = (uint32_t)(route >> 32),
		.length = length,
		.data = data,
	};

	ep->ctx->news = true;
	(void)send_only(ep, &h, NULL);
}

static void send_first(struct endpoint *ep, const struct head *h)
{
	uint64_t total = h->extent & WIRE_LENGTH_MASK;
	bool announced = h->flags & WIRE_FLAG_ANNOUNCED;
	uint64_t charge = inbound_cost(announced ? h->length : total);
	struct request *r;
	struct inbound *m;

	if (PEER_FAULT(h->length != ep->packet_max_in || total <= h->length ||
		       total > SLMPM_MESSAGE_MAX || announced != (total > ep->eager_max_in))) {
		violate(ep, "length of First");
		return;
	}
	if (!open_envelope(ep, h, charge))
		return;
	m = inbound_new(ep, h, total);
	if (!m)
		return;
	m->announced = announced;
	m->charge = charge;
	m->damaged = h->damaged;
	list_append(&ep->assembling, &m->parts);
	r = take_posted(ep, h->stream);
	if (r)
		inbound_match(m, r);
	if (r && r->done)
		return; /* a hold for which memory was short; the message is gone with it */
	if (r && r->kind == REQUEST_RECV)
		request_scatter(r, 0, h->data, h->length);
	m->got = h->length;
	if (r && r->kind == REQUEST_RECV && total <= r->length)
		return;
	if (!make_room(m, announced && (!r || r->kind == REQUEST_RECV) ? h->length : total)) {
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ENOMEM, "no memory for a message");
		return;
	}
	memcpy(m->data, h->data, h->length);
	if (!r)
		keep_unexpected(ep, m);
}

static struct inbound *find_part(struct endpoint *ep, uint64_t seq)
{
	LIST_EACH(at, &ep->assembling) {
		struct inbound *m = LIST_ENTRY(at, struct inbound, parts);

		if (m->seq == seq)
			return m;
	}
	return NULL;
}

static void send_more(struct endpoint *ep, const struct head *h, bool last)
{
	struct inbound *m = find_part(ep, h->seq);
	uint64_t offset = h->extent & WIRE_LENGTH_MASK;

	if (PEER_FAULT(!m || m->area || (m->announced && !m->cleared) || m->stream != h->stream)) {
		violate(ep, "continuation of no message");
		return;
	}
	if (PEER_FAULT(offset != m->got || !h->length || h->length > m->total - offset ||
		       (last ? h->length != m->total - offset || h->length > ep->packet_max_in :
			       h->length != ep->packet_max_in || h->length == m->total - offset))) {
		violate(ep, "length or offset of a continuation");
		return;
	}
	if (m->receive && m->receive->kind == REQUEST_RECV) {
		request_scatter(m->receive, offset, h->data, h->length);
		if (offset + h->length <= m->room)
			memcpy(m->data + offset, h->data, h->length);
		else if (m->data)
			drop_data(m);
	} else if (!m->cut) {
		if (!make_room(m, m->total)) {
			endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ENOMEM, "no memory for a message");
			return;
		}
		memcpy(m->data + offset, h->data, h->length);
	}
	m->got += h->length;
	m->damaged |= h->damaged;
	if (!last)
		return;
	list_remove(&m->parts);
	if (m->receive)
		finish(m);
	else if (m->cut)
		inbound_free(m);
}

/* The message it had is gone: another that came meanwhile, or its old place among the posted. */
static void post_again(struct request *r)
{
	struct inbound *next = inbound_find(r);
	struct list *at = r->ctx->posted.next;

	r->message = NULL;
	if (next) {
		inbound_match(next, r);
		return;
	}
	while (at != &r->ctx->posted && LIST_ENTRY(at, struct request, node)->seq < r->seq)
		at = at->next;
	list_insert(at, &r->node);
	r->ctx->posted_count++;
}

/* The sender gave up: as if the message had never come, but for its envelope. */
static void withdraw(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = find_part(ep, h->seq);
	struct request *r;
	uint64_t total;

	if (!m || m->area) {
		violate(ep, "withdrawal of no message");
		return;
	}
	r = m->receive;
	total = m->total;
	if (m->charge)
		inbound_charge(ep, m->charge);
	inbound_free(m);
	if (!r)
		return;
	ep->stats->received_messages--;
	ep->stats->received_bytes -= total;
	post_again(r);
}

static void credit(struct endpoint *ep, const struct head *h)
{
	uint64_t step = (h->extent - ep->credited) & WIRE_LENGTH_MASK;

	if (PEER_FAULT(step > ep->charged - ep->credited)) {
		violate(ep, "credit");
		return;
	}
	ep->credited += step;
	(void)link_push(ep);
	wait_changed(ep->ctx);
}

/* ---- messages in areas ---------------------------------------------------------------------- */

static bool take_loan(struct endpoint *ep, const struct head *h, struct wire_loan *loan)
{
	if (h->length != sizeof(*loan))
		return violate(ep, "length of a loan");
	memcpy(loan, h->data, sizeof(*loan));
	loan->ready = LITTLE_64(loan->ready);
	loan->capacity = LITTLE_64(loan->capacity);
	loan->area = LITTLE_32(loan->area);
	loan->final = LITTLE_32(loan->final);
	if (PEER_FAULT(loan->ready > loan->capacity || loan->final > 1))
		return violate(ep, "loan");
	return true;
}

static void loan_begin(struct endpoint *ep, const struct head *h)
{
	struct wire_loan loan;
	struct area *area;
	struct request *r;
	struct inbound *m;

	if (!take_loan(ep, h, &loan) || !open_envelope(ep, h, WIRE_ENVELOPE))
		return;
	area = area_lent(ep, loan.area, loan.capacity);
	if (!area) {
		violate(ep, "area of a loan");
		return;
	}
	m = inbound_new(ep, h, loan.capacity);
	if (!m)
		return;
	m->area = area;
	m->charge = WIRE_ENVELOPE;
	m->got = loan.ready;
	m->final = loan.final;
	if (m->final)
		m->total = m->got;
	else
		list_append(&ep->assembling, &m->parts);
	r = take_posted(ep, h->stream);
	if (r)
		inbound_match(m, r);
	else
		keep_unexpected(ep, m);
}

static void loan_more(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = find_part(ep, h->seq);
	struct wire_loan loan;
	uint64_t had;

	if (!take_loan(ep, h, &loan))
		return;
	if (!m || !m->area || loan.ready < m->got || loan.capacity != m->total) {
		violate(ep, "continuation of a loan");
		return;
	}
	had = m->got;
	m->got = loan.ready;
	m->final = loan.final;
	if (m->final) {
		m->total = m->got;
		list_remove(&m->parts);
	}
	if (m->receive && m->receive->kind == REQUEST_RECV) {
		copy_from_area(m, m->receive, had);
		if (m->final) {
			finish(m); /* and it is gone */
			return;
		}
	}
	if (m->released && m->final)
		inbound_free(m);
	else
		wait_changed(ep->ctx);
}

/* ---- dispatch ------------------------------------------------------------------------------- */

static bool take_head(struct endpoint *ep, const struct fabric_arrival *a, struct head *h)
{
	h->seq = a->head[0];
	h->stream = (uint32_t)a->head[1];
	h->imm = (uint32_t)(a->head[1] >> 32);
	h->extent = a->head[2];
	h->flags = (uint32_t)(a->head[2] >> 48);
	h->length = a->length;
	h->data = a->data;
	h->damaged = false;
	if (PEER_FAULT(h->flags & ~WIRE_FLAGS))
		return violate(ep, "unknown flag");
	if (h->flags & WIRE_FLAG_CHECK) {
		uint32_t sum;

		if (h->length < CHECKSUM_SIZE)
			return violate(ep, "length of a checksum");
		h->length -= CHECKSUM_SIZE;
		sum = checksum_head(a->head[0], a->head[1], a->head[2]);
		sum = checksum(sum, h->data, h->length);
		h->damaged = sum != checksum_take((const unsigned char *)h->data + h->length);
		if (h->damaged)
			ep->stats->checksum_errors++;
	}
	return true;
}

bool inbound_packet(struct endpoint *ep, const struct fabric_arrival *a)
{
	struct head h;

	ep->ctx->news = true;
	if (a->kind == WIRE_BUNDLE) {
		/* Released by its last message. */
		if (bundle_open(ep, a))
			(void)bundle_unpack_rest(ep);
		return true;
	}
	if (!take_head(ep, a, &h))
		return false;
	switch (a->kind) {
	case WIRE_SEND_ONLY: return send_only(ep, &h, a);
	case WIRE_SEND_FIRST: send_first(ep, &h); return false;
	case WIRE_SEND_MIDDLE:
	case WIRE_SEND_LAST: send_more(ep, &h, a->kind == WIRE_SEND_LAST); return false;
	case WIRE_CLEAR: link_cleared(ep, h.seq); return false;
	case WIRE_CREDIT: credit(ep, &h); return false;
	case WIRE_WITHDRAW: withdraw(ep, &h); return false;
	case WIRE_LOAN: loan_begin(ep, &h); return false;
	case WIRE_LOAN_MORE: loan_more(ep, &h); return false;
	case WIRE_LOAN_DONE:
		if (!area_returned(ep, h.extent & WIRE_LENGTH_MASK))
			violate(ep, "return of an area");
		wait_changed(ep->ctx);
		return false;
	case WIRE_CLOSE: ep->end_of_stream = true; return false;
	default: return violate(ep, "opcode");
	}
}
