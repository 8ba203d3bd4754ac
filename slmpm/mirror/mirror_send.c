/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes on their way out: what has changed goes from the front of the memory to its end in one
 * publication, as far as there is room; what changes meanwhile in front of that waits for the next.
 */
#include <errno.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/mirror/track.h"

#define LIST_LONG 1024 /* a change from this length on has a packet of its own */

bool mirror_echoed(struct attachment *a, uint32_t stored)
{
	if (PEER_FAULT(stored - a->intervals.stored > a->numbered - a->intervals.stored))
		return false;
	intervals_stored(&a->intervals, stored, a->numbered);
	if (!dirty_is_empty(&a->dirty) && !a->mirror->group && attachment_sends(a))
		attachment_pend(a, true);
	return true;
}

/* ---- packets -------------------------------------------------------------------------------- */

static int post(struct attachment *a, uint8_t opcode, uint64_t offset, const void *data, uint32_t n)
{
	struct packet p = {
		.opcode = opcode,
		.seq = a->sending,
		.route = wire_route(a->peer_slot, a->taken),
		.extent = offset,
		.data = data,
		.length = n,
	};
	int rc = link_post_request(a->ep, &p, NULL);

	if (rc == 1)
		attachment_posted(a);
	return rc;
}

static bool mirror_send_is_last(const struct attachment *a, uint64_t behind)
{
	uint64_t lo, hi;

	return !dirty_next(&a->dirty, behind, &lo, &hi);
}

/* One change, or its beginning: words stay whole. */
static int post_run(struct attachment *a, uint64_t lo, uint64_t hi)
{
	uint32_t room = attachment_room(a);
	bool last;
	int rc;

	if (hi - lo > room)
		hi = (lo + room) & ~UINT64_C(7);
	last = mirror_send_is_last(a, hi);
	rc = post(a, last ? WIRE_MIRROR_LAST : WIRE_MIRROR_PART, lo, a->mirror->source + lo,
		  (uint32_t)(hi - lo));
	if (rc != 1)
		return rc;
	attachment_fly(a, lo, hi);
	dirty_remove(&a->dirty, lo, hi);
	a->sent_bytes += hi - lo;
	a->cursor = last ? 0 : hi;
	return 1;
}

struct gathered { /* short changes for one packet */
	unsigned char bytes[MIRROR_LIST];
	struct slmpm_span runs[MIRROR_LIST / 16];
	uint32_t length, count;
	uint64_t end;
};

static void mirror_send_gather(const struct attachment *a, uint64_t from, struct gathered *g)
{
	uint32_t room = attachment_room(a) < MIRROR_LIST ? attachment_room(a) : MIRROR_LIST;
	uint64_t lo, hi = from, head;

	g->length = g->count = 0;
	while (dirty_next(&a->dirty, hi, &lo, &hi)) {
		uint32_t n = (uint32_t)(hi - lo), padded = (n + 7) & ~7U;

		if (hi - lo >= LIST_LONG || sizeof(head) + padded > room - g->length)
			break;
		head = LITTLE_64(WIRE_MIRROR_RUN(lo, n));
		memcpy(g->bytes + g->length, &head, sizeof(head));
		memset(g->bytes + g->length + padded, 0, sizeof(head));
		mirror_load(g->bytes + g->length + sizeof(head), a->mirror->source + lo, n);
		g->length += (uint32_t)sizeof(head) + padded;
		g->runs[g->count++] = (struct slmpm_span){lo, n};
		g->end = hi;
	}
}

static int post_list(struct attachment *a, const struct gathered *g)
{
	bool last = mirror_send_is_last(a, g->end);
	int rc = post(a, last ? WIRE_MIRROR_LIST_LAST : WIRE_MIRROR_LIST, 0, g->bytes, g->length);

	if (rc != 1)
		return rc;
	for (uint32_t i = 0; i < g->count; i++) {
		uint64_t lo = g->runs[i].offset, hi = lo + g->runs[i].len;

		attachment_fly(a, lo, hi);
		dirty_remove(&a->dirty, lo, hi);
		a->sent_bytes += hi - lo;
	}
	a->cursor = last ? 0 : g->end;
	return 1;
}

/* ---- publications --------------------------------------------------------------------------- */

/* The next packet: 1, 0 nothing is left, or what post says. */
static int post_next(struct attachment *a)
{
	struct mirror *m = a->mirror;
	uint64_t lo, hi, next, end;
	struct gathered g;
	int rc;

	if (dirty_is_empty(&a->dirty))
		return 0;
	if (!attachment_may_fly(a))
		return -EAGAIN;
	if (!a->sending) {
		m->sequence += m->loose || m->sequence == a->sent;
		m->loose = false;
		a->sending = m->sequence;
		a->cursor = 0;
	}
	(void)dirty_next(&a->dirty, a->cursor, &lo, &hi);
	g.count = 0;
	if (hi - lo < LIST_LONG && dirty_next(&a->dirty, hi, &next, &end) && end - next < LIST_LONG)
		mirror_send_gather(a, lo, &g);
	rc = g.count > 1 ? post_list(a, &g) : post_run(a, lo, hi);
	if (rc == 1 && !a->cursor) {
		a->sent = a->sending;
		a->sending = 0;
	}
	return rc;
}

/* Acknowledges the follower's changes, where no change does so. */
static int post_echo(struct attachment *a)
{
	struct packet p = {
		.opcode = WIRE_MIRROR_STORED,
		.route = wire_route(a->peer_slot, a->taken),
	};
	int rc = link_post_request(a->ep, &p, NULL);

	if (rc == 1)
		a->unechoed = 0;
	return rc;
}

static int mirror_send_push(struct attachment *a, bool *stop)
{
	int n = 0, rc = 1;

	if (a->mirror->tracker && !a->mirror->group && !a->sending && track_is_due(a->mirror))
		(void)track_scan(a->mirror);
	while (rc == 1 && n < LINK_TURN) {
		rc = a->mirror->group ? 0 : post_next(a);
		if (rc == 0 && attachment_has_deferred(a))
			rc = post_echo(a);
		n += rc == 1;
	}
	*stop |= rc < 0 && attachment_may_fly(a);
	if (rc == 0 || (rc < 0 && !attachment_may_fly(a)))
		attachment_pend(a, a->mirror->tracker != NULL && !a->mirror->group);
	return n;
}

void mirror_scan_last(struct endpoint *ep)
{
	const struct mirrors *all = ep->rooms->mirrors;

	for (uint32_t i = 0; mirror_waits(ep) && i < all->top; i++) {
		const struct attachment *a = all->slots[i];
		struct mirror *m = a ? a->mirror : NULL; /* one that is ending has none */

		if (m && m->tracker && !m->group)
			(void)track_scan(m);
	}
}

bool mirror_has_deferred(const struct endpoint *ep)
{
	const struct mirrors *all = ep->rooms->mirrors;

	for (uint32_t i = 0; mirror_waits(ep) && i < all->top; i++) {
		const struct attachment *a = all->slots[i];

		if (a && a->pending &&
		    (!dirty_is_empty(&a->dirty) || a->sending || attachment_has_deferred(a)))
			return true;
	}
	return false;
}

int mirror_push(struct endpoint *ep)
{
	struct mirrors *all = ep->rooms->mirrors;
	bool stop = false;
	int n = 0;

	if (!mirror_waits(ep))
		return 0;
	for (uint32_t i = 0; i < all->top && all->pending && !stop; i++) {
		struct attachment *a = all->slots[all->turn];

		if (a && a->pending)
			n += mirror_send_push(a, &stop);
		if (!stop)
			all->turn = (all->turn + 1) % all->top;
	}
	return n;
}
