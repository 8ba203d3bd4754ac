/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a message on its way in. */
#include "slmpm/message/inbound.h"

#include <stdlib.h>
#include <string.h>

#include "shm/copy.h"
#include "slmpm/loan/area.h"
#include "slmpm/message/fetch.h"
#include "slmpm/message/match.h"
#include "slmpm/link/wait.h"
#include "slmpm/link/landing.h"

#define FULL_NS 100000 /* that a message waits in the ring at most for its receive */

void inbound_begin(struct endpoint *ep)
{
	list_init(&ep->messages->unexpected);
	list_init(&ep->messages->posted);
	list_init(&ep->messages->assembling);
}

struct inbound *inbound_unfinished(struct endpoint *ep, uint64_t seq)
{
	LIST_EACH_ENTRY(struct inbound, m, &ep->messages->assembling, parts)
		if (m->seq == seq)
			return m;
	return NULL;
}

bool inbound_complete(const struct inbound *m)
{
	return m->area ? m->final : m->got == m->total;
}

void inbound_defer(struct endpoint *ep, uint64_t seq, uint64_t offset)
{
	uint64_t now = clock_now(), most = (uint64_t)config_get()->dead_ms * 1000000;

	ep->link.enomem = ep->ctx->enomem = true;
	/* A thread that sleeps has no deadline for it yet, and no descriptor shows it. */
	context_changed(ep->ctx);
	if (!ep->messages->enomem.since || ep->messages->enomem.seq != seq ||
	    ep->messages->enomem.offset != offset) {
		ep->messages->enomem.since = now;
		ep->messages->enomem.seq = seq;
		ep->messages->enomem.offset = offset;
	} else if (now - ep->messages->enomem.since >= most) {
		endpoint_no_memory(ep);
	}
}

void inbound_full(struct endpoint *ep, uint32_t stream)
{
	ep->messages->full.until = clock_now() + FULL_NS;
	ep->messages->full.stream = stream;
	ep->link.full = true;
}

void inbound_not_full(struct endpoint *ep, uint32_t stream)
{
	if (ep->messages->full.stream == stream)
		ep->link.full = false;
}

COLD bool inbound_waits(struct endpoint *ep, const struct head *h)
{
	struct link *l = &ep->link;
	uint32_t stream = ep->messages->full.stream;
	bool mine = stream == h->stream || stream == SLMPM_ANY_STREAM;

	/* Who is about to sleep, or looks for another packet, would not see what has come. */
	if (!mine || !ep->ctx->passing || ep->ctx->armed || h->data == l->landing->place)
		return false;
	/* What those that are to go there wait for may lie behind it; damage is counted once. */
	if (!list_empty(&l->queue) || !list_empty(&l->announced) || h->damaged)
		return false;
	if (clock_now() >= ep->messages->full.until) {
		l->full = false;
		return false;
	}
	l->enomem = true;
	return true;
}

struct inbound *inbound_try(struct endpoint *ep, const struct head *h, uint64_t total,
			    uint64_t room)
{
	struct inbound *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	list_init(&m->node);
	list_init(&m->parts);
	m->ep = ep;
	m->seq = h->seq;
	m->total = total;
	m->stream = h->stream;
	m->imm = h->imm;
	if (inbound_room(m, room))
		return m;
	inbound_free(m);
	return NULL;
}

struct inbound *inbound_new(struct endpoint *ep, const struct head *h, uint64_t total)
{
	struct inbound *m = inbound_try(ep, h, total, 0);

	if (!m)
		endpoint_no_memory(ep);
	return m;
}

struct inbound *inbound_whole(struct endpoint *ep, const struct head *h)
{
	struct inbound *m = inbound_try(ep, h, h->length, h->length ? h->length : 1);

	if (!m)
		return NULL;
	if (h->length)
		copy_bytes(m->data, h->data, h->length);
	m->got = h->length;
	m->damaged = h->damaged;
	m->charge = wire_charge(h->length);
	return m;
}

void inbound_free(struct inbound *m)
{
	match_forget(m);
	list_remove(&m->parts);
	if (m->ep->messages->unasked_in == m)
		m->ep->messages->unasked_in = NULL;
	landing_moved(m->ep);
	if (m->area)
		area_done(m->ep, m->area);
	if (m->fetch)
		fetch_drop(m);
	free(m->data);
	free(m);
}

bool inbound_room(struct inbound *m, uint64_t n)
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

void inbound_drop_data(struct inbound *m)
{
	free(m->data);
	m->data = NULL;
	m->room = 0;
}

void inbound_copy_area(struct inbound *m, uint64_t from)
{
	request_scatter(m->receive, from, area_at(m->area, from), m->got - from);
}

void inbound_describe(const struct inbound *m, struct slmpm_done *done)
{
	inbound_describe_whole(done, m->ep, m->area ? m->got : m->total, m->stream, m->imm);
	if (m->area && !m->final)
		done->flags = SLMPM_PART;
	if (m->fetch || m->fetched)
		done->protocol = SLMPM_BY_RGET;
}

void inbound_finish(struct inbound *m)
{
	struct request *r = m->receive;

	inbound_describe(m, &r->result);
	request_finish(r, inbound_verdict(m->damaged, r));
	if (r->kind == REQUEST_RECV) {
		r->message = NULL;
		inbound_free(m);
		return;
	}
	m->receive = NULL; /* slmpm_hold takes it from the request at once */
	m->held = true;
}

void inbound_end(struct endpoint *ep)
{
	ep->messages->unasked_out = NULL;
	LIST_EACH_ENTRY(struct inbound, m, &ep->messages->assembling, parts) {
		if (m->receive) {
			inbound_describe(m, &m->receive->result);
			m->receive->message = NULL;
			request_finish(m->receive, -ep->life->error);
		}
		if (m->held && !m->released)
			list_remove(&m->parts); /* slmpm_release frees it */
		else
			inbound_free(m);
	}
}

void inbound_forget(struct endpoint *ep)
{
	LIST_EACH(at, &ep->messages->unexpected)
		inbound_free(LIST_ENTRY(at, struct inbound, node));
}
