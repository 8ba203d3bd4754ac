/* SPDX-License-Identifier: BSD-3-Clause */
/* The way down to a fabric: packets posted, built in place and with checksums, totals published. */
#include "slmpm/link/link.h"

#include <errno.h>
#include <string.h>

#include "shm/copy.h"
#include "slmpm/base/checksum.h"
#include "slmpm/base/log.h"
#include "slmpm/link/progress.h"
#include "slmpm/part.h"
#include "slmpm/stats.h"
#include "slmpm/bond/bond.h"
#include "slmpm/link/landing.h"

#define UNPROTECTS      16 /* in vain */
#define UNPROTECT_PIECE (UINT64_C(1) << 18)

static int link_failed(struct endpoint *ep, int rc)
{
	if (rc == -EPIPE) /* poll says so, too, once all that came before has been taken */
		endpoint_block(ep, BLOCK_BROKEN, true);
	else if (rc != -EAGAIN && rc != -ENOLINK)
		endpoint_break(ep, ep->link.port->violation);
	return rc;
}

COLD int link_posted(struct endpoint *ep, int rc)
{
	if (rc)
		return rc;
	endpoint_block(ep, BLOCK_LAGS, true);
	return 1;
}

COLD bool link_lags_still(struct endpoint *ep)
{
	if (ep->link.port->lags && !ep->link.port->fails)
		return true;
	endpoint_block(ep, BLOCK_LAGS, false);
	return false;
}

void link_mark(const struct endpoint *ep, struct link_mark *m)
{
	const struct fabric_link *port = ep->link.port;

	if (ep->rooms->secondary)
		bond_mark(port, m->left);
	else
		m->left[0] = port->left + port->lags;
}

bool link_passed(struct endpoint *ep, const struct link_mark *m)
{
	if (!link_lags(ep))
		return true;
	return ep->rooms->secondary ? bond_passed(ep->link.port, m->left) :
				      ep->link.port->left >= m->left[0];
}

bool link_is_read_next(const struct endpoint *ep)
{
	return !ep->rooms->secondary || bond_is_read_next(ep->link.port);
}

bool link_reads_stored(const struct endpoint *ep)
{
	return !ep->rooms->secondary || bond_reads_stored(ep->link.port);
}

bool link_presses_on(struct endpoint *ep)
{
	if (!endpoint_is_blocked(ep, BLOCK_LAGS))
		return false;
	(void)link_flush(ep);
	endpoint_block(ep, BLOCK_LAGS, false);
	return !ep->blocked;
}

void link_pressed_on(struct endpoint *ep)
{
	if (ep->state == SLMPM_PEER_UP && ep->link.port->lags)
		(void)link_posted(ep, 0);
}

void *link_reserve(struct endpoint *ep, uint32_t length)
{
	void *at = ep->link.fabric->reserve(ep->link.port, length);

	if (!at && ep->link.port->violation)
		(void)link_failed(ep, -EPROTO);
	return at;
}

static int post_counted(struct endpoint *ep, const struct packet *p)
{
	int rc = link_post(ep, p);

	if (rc != 1)
		return link_failed(ep, rc);
	ep->stats->sent_packets++;
	return 1;
}

int link_post_built(struct endpoint *ep, const struct packet *p)
{
	struct packet built = *p;

	built.flags |= FABRIC_BUILT;
	return post_counted(ep, &built);
}

/* Payload that is not one run of memory, or wants its checksum behind it, is built in place. */
static int post_built(struct endpoint *ep, struct packet *p, const void *lead, uint32_t lead_length,
		      const struct request *r)
{
	const struct request *gathered = p->data ? NULL : r;
	uint32_t tail = ep->link.check ? CHECKSUM_SIZE : 0;
	unsigned char *at = link_reserve(ep, lead_length + p->length + tail);

	if (!at)
		return ep->link.broken ? -EPROTO : -EAGAIN;
	if (ep->link.check) {
		/* Summed from the source: the ring is not ours to read. */
		uint32_t sum;

		p->extent |= wire_extent(0, WIRE_FLAG_CHECK);
		sum = checksum_head(p->seq, p->route, p->extent);
		sum = checksum(sum, lead, lead_length);
		sum = gathered ? request_checksum(sum, r, r->offset, p->length) :
				 checksum(sum, p->data, p->length);
		checksum_put(at + lead_length + p->length, sum);
	}
	if (lead_length)
		memcpy(at, lead, lead_length);
	at += lead_length;
	if (gathered)
		request_gather(r, r->offset, at, p->length);
	else if (p->length)
		copy_bytes(at, p->data, p->length);
	p->length += lead_length + tail;
	p->data = lead_length ? lead : p->data;
	return link_post_built(ep, p);
}

/* By which of several links R goes, whatever was asked. */
static int note_link(const struct endpoint *ep, struct request *r, int rc)
{
	if (UNLIKELY(ep->rooms->secondary) && r && rc == 1 && bond_is(ep->link.port))
		r->mode.link = (uint8_t)bond_path(ep->link.port);
	return rc;
}

int link_post_request(struct endpoint *ep, struct packet *p, struct request *r)
{
	if (r) {
		p->flags |= request_packet_flags(r);
		p->data = p->data ? p->data : request_run(r, r->offset, p->length);
	}
	if (ep->link.check || (!p->data && p->length))
		return note_link(ep, r, post_built(ep, p, NULL, 0, r));
	return note_link(ep, r, post_counted(ep, p));
}

int link_post_led(struct endpoint *ep, struct packet *p, const void *lead, uint32_t lead_length,
		  struct request *r)
{
	if (r)
		p->flags |= request_packet_flags(r);
	return note_link(ep, r, post_built(ep, p, lead, lead_length, r));
}

int link_begin(struct endpoint *ep, const struct fabric_wr *wr)
{
	return ep->link.fabric->post(ep->link.port, wr);
}

static int reach_unprotected(struct endpoint *ep, const struct fabric_wr *wr)
{
	int rc = link_begin(ep, wr);

	for (int i = 0; i < UNPROTECTS && rc == -EFAULT && parts.unprotect(wr->into, wr->size); i++)
		rc = link_begin(ep, wr);
	return rc;
}

/* Pages may be protected against the kernel, and be so again meanwhile, but not piece for piece. */
static COLD int reach_by_pieces(struct endpoint *ep, const struct fabric_wr *whole)
{
	struct fabric_wr wr = *whole;
	int rc = whole->op == FABRIC_READ ? 1 : -EFAULT;

	for (uint64_t at = 0; at < whole->size && rc == 1; at += wr.size) {
		wr.into = (unsigned char *)whole->into + at;
		wr.offset = whole->offset + at;
		wr.size = whole->size - at < UNPROTECT_PIECE ? whole->size - at : UNPROTECT_PIECE;
		rc = reach_unprotected(ep, &wr);
	}
	return rc;
}

int link_reach(struct endpoint *ep, enum fabric_op op, struct fabric_memory *memory,
	       uint64_t offset, void *local, uint64_t n)
{
	struct fabric_wr wr = {
		.op = (uint8_t)op,
		.into = local,
		.memory = memory,
		.offset = offset,
		.size = n,
	};
	int rc = link_begin(ep, &wr);

	return UNLIKELY(rc == -EFAULT) ? reach_by_pieces(ep, &wr) : rc;
}

/* A flush or a status of PORT itself: tables before its fabric's only pass these on. */
static int ask_port(struct fabric_link *port, enum fabric_op op, uint16_t flags)
{
	const struct fabric_wr wr = {.op = (uint8_t)op, .flags = flags};

	return port->domain->fabric->post(port, &wr);
}

void link_cancel(struct endpoint *ep)
{
	if (ep->link.port)
		(void)ask_port(ep->link.port, FABRIC_FLUSH, FABRIC_CANCEL);
}

/* Pairs with the load before a direct operation (remote_access): a peer that knows of the call
 * which set the word knows the word. The fence: so does one that sees that by the clock alone. */
void link_set_access(struct endpoint *ep, uint32_t n, unsigned value)
{
	struct fabric_atomic a = {.op = FABRIC_SWAP, .bits = 8, .operand = value};

	if (ep->state == SLMPM_PEER_UP)
		(void)link_reach(ep, FABRIC_ATOMIC, ep->link.port->peer_access, n, &a, 1);
	atomic_thread_fence(memory_order_seq_cst);
}

bool link_hold_back(struct endpoint *ep, int more)
{
	struct link *l = &ep->link;
	struct fabric_wr wr = {.op = FABRIC_HOLD_BACK, .length = l->held + (uint32_t)more};

	if (ep->state == SLMPM_PEER_UP && l->fabric->post(l->port, &wr) != 1)
		return false;
	l->held = wr.length;
	return true;
}

/* The same of EP's link, while that is up. */
static int ask_link(struct endpoint *ep, enum fabric_op op, uint16_t flags)
{
	return ep->state == SLMPM_PEER_UP ? ask_port(ep->link.port, op, flags) : 1;
}

void link_count(struct endpoint *ep)
{
	(void)ask_link(ep, FABRIC_STATUS, 0);
}

int link_status(struct fabric_link *port, uint16_t flags)
{
	return ask_port(port, FABRIC_STATUS, flags);
}

static bool flushed(struct endpoint *ep, uint16_t flags)
{
	int rc = ask_link(ep, FABRIC_FLUSH, flags);

	return rc >= 0 || link_failed(ep, rc) != -EAGAIN;
}

bool link_flush(struct endpoint *ep)
{
	return flushed(ep, 0);
}

bool link_has_arrived(struct endpoint *ep)
{
	return flushed(ep, FABRIC_LAST);
}

static struct log_limit callers;

void link_unauthenticated(struct endpoint *ep, struct fabric_link *port)
{
	for (; port->unauthenticated; port->unauthenticated--) {
		stats_violation("token of a stranger");
		log_limited(&callers, SLMPM_LOG_WARN,
			    "%s: refused: who called for a link does not know its token",
			    ep->life->name);
	}
}

void link_closed(struct endpoint *ep, const struct head *h)
{
	ep->link.ended = true;
	ep->rooms->figures->received = h->seq;
	/* Its sender waits until its machine knows that this is here. Poll finds the rest. */
	if (secondary_speaks(ep))
		(void)ask_link(ep, FABRIC_FLUSH, FABRIC_LAST);
}

void link_up(struct endpoint *ep)
{
	ep->link.landing->asked = endpoint_start_in(ep);
	(void)link_flush(ep);
	ep->link.due_max = FABRIC_DUE((uint32_t)link_ring_in(ep));
	(void)link_push(ep);
}

void link_ending(struct endpoint *ep)
{
	if (ep->link.port->violation) /* a lost link is closed once nothing of it is kept */
		return;
	progress_settle(ep);
	link_count(ep);
}

/* A peer that lives hears of an end by the control connection; where that may have gone before its
 * links have, of a pair that was not closed in order, by these, too. */
void link_end(struct endpoint *ep)
{
	if (ep->rooms->secondary && ep->state != SLMPM_PEER_CLOSED)
		(void)ask_port(ep->link.port, FABRIC_FLUSH, FABRIC_END);
}
