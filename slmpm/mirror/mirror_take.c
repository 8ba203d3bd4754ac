/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets about mirrors: asked for, left, changed. Every figure is checked before it is used. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "slmpm/link/link.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/mirror/track.h"
#include "slmpm/link/progress.h"

/* ---- what a follower has changed itself, and the leader had not stored ----------------------- */

/* The first byte from AT on that is to be skipped, before END, or END; *BEHIND: the first that is
 * not any more. */
static uint64_t first_kept(const struct attachment *a, uint64_t at, uint64_t end, uint64_t *behind)
{
	uint64_t lo, hi, found = end;

	*behind = end;
	if (dirty_next(&a->dirty, at, &lo, &hi) && lo < found) {
		found = lo;
		*behind = hi;
	}
	if (intervals_next(&a->intervals, at, found, &lo, &hi) && lo < found) {
		found = lo;
		*behind = hi;
	}
	return found;
}

/* ---- storing -------------------------------------------------------------------------------- */

static void store_run(struct attachment *a, uint64_t lo, uint64_t hi, const unsigned char *from)
{
	struct mirror *m = a->mirror;

	mirror_store(m->base + lo, from, hi - lo);
	if (m->tracker)
		track_stored(m, lo, hi, from);
	mirror_note(m, lo, hi, a);
}

static void mirror_take_store(struct attachment *a, uint64_t lo, uint64_t hi,
			      const unsigned char *from)
{
	uint64_t base = lo, kept, behind;

	if (a->mirror->tracker)
		twin_compare(a->mirror, lo, hi);
	a->received_bytes += hi - lo;
	a->unechoed++;
	if (LIKELY(a->how & SLMPM_MIRROR_LEAD ||
		   (dirty_is_empty(&a->dirty) && !a->intervals.count))) {
		store_run(a, lo, hi, from);
		return;
	}
	for (; lo < hi; lo = behind) {
		kept = first_kept(a, lo, hi, &behind);
		if (kept > lo)
			store_run(a, lo, kept, from + (lo - base));
	}
}

/* ---- publications --------------------------------------------------------------------------- */

/* From now on who reads without the lock reads again. */
static void open_up(struct attachment *a, uint64_t sequence)
{
	struct mirror *m = a->mirror;

	a->coming = sequence;
	if (m->coming++)
		return;
	atomic_store_explicit(&m->turn, m->turn + 1, memory_order_relaxed);
	/* Pairs with the fence in slmpm_mirror_leave: who sees a byte of this sees the turn. */
	atomic_thread_fence(memory_order_release);
}

void mirror_close(struct attachment *a)
{
	struct mirror *m = a->mirror;

	if (!a->coming)
		return;
	a->coming = 0;
	if (--m->coming)
		return;
	/* Pairs with the load in slmpm_mirror_enter. */
	atomic_store_explicit(&m->turn, m->turn + 1, memory_order_release);
}

/* ---- packets of changes --------------------------------------------------------------------- */

/* The runs of a list. */
static bool each_run(struct attachment *a, const struct head *h)
{
	const unsigned char *at = h->data, *end = at + h->length;
	uint64_t head, lo, n;

	while (at < end) {
		if (end - at < (ptrdiff_t)sizeof(head))
			return false;
		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		head = LITTLE_64(head);
		lo = head & WIRE_LENGTH_MASK;
		n = head >> 48;
		if (PEER_FAULT(!n || n > (uint64_t)(end - at) ||
			       !mirror_covers(a->mirror, lo, lo + n)))
			return false;
		mirror_take_store(a, lo, lo + n, at);
		at += (n + 7) & ~UINT64_C(7);
	}
	return at == end && h->length;
}

static bool one_run(struct attachment *a, const struct head *h)
{
	uint64_t lo = h->extent & WIRE_LENGTH_MASK;

	if (PEER_FAULT(!h->length || lo > a->mirror->size ||
		       !mirror_covers(a->mirror, lo, lo + h->length)))
		return false;
	mirror_take_store(a, lo, lo + h->length, h->data);
	return true;
}

static const char *mirror_take_check(const struct attachment *a, const struct head *h)
{
	if (a->state != ATTACHMENT_JOINED)
		return "change of a mirror that is not joined";
	if (!(a->how & SLMPM_MIRROR_FOLLOW) && !a->both)
		return "change by a follower";
	if (a->coming ? h->seq != a->coming : h->seq <= a->sequence)
		return "publication's number";
	return NULL;
}

/* A packet of changes: the rule that it breaks; or NULL. */
static const char *mirror_take(struct attachment *a, const struct head *h)
{
	const char *rule = mirror_take_check(a, h);
	bool list = h->opcode == WIRE_MIRROR_LIST || h->opcode == WIRE_MIRROR_LIST_LAST;

	if (PEER_FAULT(rule != NULL))
		return rule;
	if (PEER_FAULT(!mirror_echoed(a, h->imm)))
		return "count of changes";
	if (!a->coming)
		open_up(a, h->seq);
	a->taken++;
	a->received_packets++;
	a->came = mirror_now();
	if (PEER_FAULT(!(list ? each_run(a, h) : one_run(a, h))))
		return "place of a change";
	if (attachment_has_deferred(a))
		attachment_pend(a, true);
	if (h->opcode != WIRE_MIRROR_LAST && h->opcode != WIRE_MIRROR_LIST_LAST)
		return NULL;
	a->sequence = h->seq;
	mirror_close(a);
	read_serve(a->mirror);
	a->ep->ctx->finished = true; /* who waits for it may go on */
	context_changed(a->ep->ctx);
	return NULL;
}

/* ---- any packet ------------------------------------------------------------------------------ */

static bool read_ask(const struct head *h, struct wanted *w)
{
	struct wire_mirror packet;
	uint32_t role;

	if (PEER_FAULT(h->length != sizeof(packet)))
		return false;
	memcpy(&packet, h->data, sizeof(packet));
	w->size = LITTLE_64(packet.size);
	w->tag = LITTLE_32(packet.tag);
	w->how = LITTLE_32(packet.how);
	w->slot = LITTLE_32(packet.slot);
	w->span_sum = LITTLE_32(packet.span_sum);
	role = w->how & MIRROR_ROLES;
	return !PEER_FAULT(!w->size || w->slot >= MIRRORS_MAX ||
			   w->how & ~(MIRROR_ROLES | SLMPM_MIRROR_BOTH) ||
			   (role != SLMPM_MIRROR_LEAD && role != SLMPM_MIRROR_FOLLOW));
}

static const char *asked(struct endpoint *ep, const struct head *h)
{
	struct mirrors *all = ep->rooms->mirrors;
	struct wanted asks, *kept;
	struct attachment *a;

	if (!read_ask(h, &asks))
		return "packet about a mirror";
	a = attachment_with_tag(all, asks.tag);
	if (a && a->state == ATTACHMENT_ENDING)
		return NULL; /* for the one that was asked for here before; its end has been sent */
	if (PEER_FAULT((a && a->state != ATTACHMENT_ASKED) || wanted_with(all, asks.tag) ||
		       all->wanted_count >= MIRRORS_MAX))
		return "mirror that is asked for";
	if (a) {
		attachment_join(a, &asks);
		return NULL;
	}
	kept = malloc(sizeof(*kept));
	if (!kept) {
		endpoint_lacks_memory(ep, "no memory for its mirrors");
		return NULL;
	}
	*kept = asks;
	list_append(&all->wanted, &kept->node);
	all->wanted_count++;
	context_changed(ep->ctx);
	return NULL;
}

static const char *left(struct endpoint *ep, uint32_t tag)
{
	struct attachment *a = attachment_with_tag(ep->rooms->mirrors, tag);
	struct wanted *w = wanted_with(ep->rooms->mirrors, tag);

	if (w)
		wanted_free(ep->rooms->mirrors, w);
	if (a && a->state == ATTACHMENT_JOINED)
		attachment_stale(a, -SLMPM_ECLOSED);
	if (PEER_FAULT(link_deferred(ep, WIRE_MIRROR_END) > 2 * MIRRORS_MAX))
		return "number of mirrors left";
	mirror_send_end(ep, tag, true);
	return NULL;
}

static const char *mirror_take_end(struct endpoint *ep, const struct head *h)
{
	struct attachment *a = attachment_with_tag(ep->rooms->mirrors, h->stream);

	if (PEER_FAULT(h->seq > 1 || h->length ||
		       (h->seq && (!a || a->state != ATTACHMENT_ENDING))))
		return "end of a mirror";
	if (!h->seq)
		return left(ep, h->stream);
	ep->rooms->mirrors->slots[a->slot] = NULL;
	free(a);
	context_changed(ep->ctx);
	return NULL;
}

static const char *mirror_take_change(struct endpoint *ep, const struct head *h)
{
	struct attachment *a =
		h->stream < MIRRORS_MAX ? ep->rooms->mirrors->slots[h->stream] : NULL;

	if (PEER_FAULT(!a))
		return "change of no mirror";
	if (a->state == ATTACHMENT_ENDING)
		return NULL;
	if (h->damaged)
		attachment_lose(a);
	else if (h->opcode != WIRE_MIRROR_STORED)
		return mirror_take(a, h);
	else if (PEER_FAULT(h->length || a->state != ATTACHMENT_JOINED ||
			    a->how & SLMPM_MIRROR_LEAD || !mirror_echoed(a, h->imm)))
		return "count of changes";
	return NULL;
}

static const char *mirror_take_any(struct endpoint *ep, const struct head *h)
{
	if (PEER_FAULT(!ep->life->mirrored || h->flags & ~WIRE_FLAG_CHECK))
		return "packet about a mirror";
	if (!mirrors_of(ep)) {
		endpoint_lacks_memory(ep, "no memory for its mirrors");
		return NULL;
	}
	/* A lost change is the mirror's end, anything else lost would part what the sides know. */
	if (h->damaged && (h->opcode < WIRE_MIRROR_PART || h->opcode > WIRE_MIRROR_LIST_LAST)) {
		endpoint_end(ep, SLMPM_PEER_DEAD, SLMPM_ECHECKSUM,
			     "a packet about a mirror came damaged");
		return NULL;
	}
	switch (h->opcode) {
	case WIRE_MIRROR_ASK: return asked(ep, h);
	case WIRE_MIRROR_END: return mirror_take_end(ep, h);
	default: return mirror_take_change(ep, h);
	}
}

void mirror_arrived(struct endpoint *ep, const struct head *h)
{
	const char *rule = mirror_take_any(ep, h);

	if (rule)
		(void)endpoint_poison(ep, rule);
}

/* A change of any kind. Not inlined: the fast path has nothing to save. */
static NOINLINE bool mirror_take_directly(struct endpoint *ep, const struct fabric_arrival *a)
{
	const struct head h = {
		.seq = a->head[0],
		.stream = (uint32_t)a->head[1],
		.imm = (uint32_t)(a->head[1] >> 32),
		.extent = a->head[2],
		.length = a->length,
		.data = a->data,
		.opcode = a->kind,
	};
	const char *rule;

	if (a->head[2] & ~WIRE_LENGTH_MASK || !ep->rooms->mirrors)
		return false;
	rule = mirror_take_change(ep, &h);
	if (rule)
		(void)endpoint_poison(ep, rule);
	progress_release(ep, a);
	return true;
}

/* ---- the fast path -------------------------------------------------------------------------- */

/* Where it may not go, or more than this is to be done about it, the slow path finds out. */
static inline bool mirror_take_is_plain(const struct attachment *a,
					const struct fabric_arrival *arrival)
{
	uint64_t lo = arrival->head[2], n = arrival->length;

	return a && a->only && arrival->kind == WIRE_MIRROR_LAST && !a->coming &&
	       arrival->head[0] > a->sequence && !(arrival->head[1] >> 32) && n &&
	       n <= a->mirror->size && lo <= a->mirror->size - n;
}

/* It is here. The last call of each, so that the fast path has
 * nothing to save. */
static NOINLINE bool passed(struct endpoint *ep, const struct fabric_arrival *arrival)
{
	progress_release(ep, arrival);
	return true;
}

static NOINLINE bool passed_slow_path(struct endpoint *ep, const struct fabric_arrival *arrival,
				      struct attachment *a)
{
	if (!a->came)
		a->came = mirror_now();
	read_serve(a->mirror);
	context_changed(ep->ctx);
	return passed(ep, arrival);
}

static inline bool mirror_take_one(struct endpoint *ep, const struct fabric_arrival *arrival,
				   struct attachment *a, uint64_t came, bool word)
{
	uint64_t lo = arrival->head[2], n = arrival->length;
	struct mirror *m = a->mirror;
	uint64_t turn = atomic_load_explicit(&m->turn, memory_order_relaxed);
	struct context *ctx = ep->ctx;

	/* As in open_up and mirror_close. */
	atomic_store_explicit(&m->turn, turn + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	if (word)
		mirror_store_word(m->base + lo, arrival->data);
	else
		mirror_store(m->base + lo, arrival->data, n);
	atomic_store_explicit(&m->turn, turn + 2, memory_order_release);
	a->sequence = arrival->head[0];
	a->taken++;
	a->received_packets++;
	a->received_bytes += n;
	a->came = came;
	ctx->finished = true; /* who waits for it may go on */
	if (UNLIKELY(!came || ctx->waiting || ctx->sleeping || !list_empty(&m->snapshots)))
		return passed_slow_path(ep, arrival, a);
	return passed(ep, arrival);
}

static NOINLINE bool take_run(struct endpoint *ep, const struct fabric_arrival *arrival,
			      struct attachment *a, uint64_t came)
{
	return mirror_take_one(ep, arrival, a, came, false);
}

/* A publication of one change. */
bool mirror_take_shortly(struct endpoint *ep, const struct fabric_arrival *arrival, uint64_t came)
{
	uint32_t slot = (uint32_t)arrival->head[1];
	struct attachment *a =
		ep->rooms->mirrors && slot < MIRRORS_MAX ? ep->rooms->mirrors->slots[slot] : NULL;

	if (UNLIKELY(!mirror_take_is_plain(a, arrival)))
		return mirror_take_directly(ep, arrival);
	if (UNLIKELY(!mirror_is_word(arrival->head[2], arrival->length)))
		return take_run(ep, arrival, a, came);
	return mirror_take_one(ep, arrival, a, came, true);
}
