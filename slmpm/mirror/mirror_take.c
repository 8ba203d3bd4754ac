/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes on their way in: every figure of a packet is checked before a byte of it is stored. */
#include <stdatomic.h>
#include <string.h>

#include "slmpm/sendrecv/sendrecv.h"
#include "slmpm/mirror/mirror.h"
#include "slmpm/mirror/track.h"
#include "slmpm/link/progress.h"
#include "slmpm/link/wait.h"

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

/* ---- packets -------------------------------------------------------------------------------- */

static bool mirror_take_is_last(uint8_t opcode)
{
	return opcode == WIRE_MIRROR_LAST || opcode == WIRE_MIRROR_LIST_LAST;
}

/* The runs of a list; LOOK: checks alone. What is read twice may be another then. */
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

void mirror_take(struct attachment *a, const struct head *h)
{
	struct endpoint *ep = a->ep;
	const char *rule = mirror_take_check(a, h);
	bool list = h->opcode == WIRE_MIRROR_LIST || h->opcode == WIRE_MIRROR_LIST_LAST;

	if (PEER_FAULT(rule != NULL)) {
		(void)endpoint_poison(ep, rule);
		return;
	}
	if (PEER_FAULT(!mirror_echoed(a, h->imm))) {
		(void)endpoint_poison(ep, "count of changes");
		return;
	}
	if (!a->coming)
		open_up(a, h->seq);
	a->taken++;
	a->received_packets++;
	a->came = mirror_now();
	if (PEER_FAULT(!(list ? each_run(a, h) : one_run(a, h)))) {
		(void)endpoint_poison(ep, "place of a change");
		return;
	}
	if (a->unechoed >= MIRROR_ECHO && a->how & SLMPM_MIRROR_LEAD)
		attachment_pend(a, true);
	if (!mirror_take_is_last(h->opcode))
		return;
	a->sequence = h->seq;
	mirror_close(a);
	read_serve(a->mirror);
	ep->ctx->finished = true; /* who waits for it may go on */
	context_changed(ep->ctx);
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

/* It is here: what else that means to somebody. The last call of each, so that the fast path has
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
