/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long blocks that members copy straight from and to each other's buffers (reach.h), once, all of
 * them at the same time. Each posts where its buffers lie; once it has read that of all others it
 * copies its part, says that it is through, and waits until the others are.
 *
 * Who does not offer that in its post, for reasons of its own, gets it by the ring, and so do all:
 * each sees it. Where a copy fails its member says so before it is through, and all do it again by
 * the ring. So all go the same way without a word of what each can.
 */
#include <errno.h>

#include "slmpm/board/flat_parts.h"

#define DIRECT_PIECE (BOARD_RING / 2) /* between two looks at whether it is still wanted */

/* ---- what goes where ------------------------------------------------------------------------- */

/* The block that member FROM has for TO: there is one; where it lies; where it goes. */
static bool moves(const struct flat *f, uint32_t from, uint32_t to)
{
	uint32_t kind = f->coll->kind, root = (uint32_t)f->coll->root;

	if (kind == SLMPM_COLL_BROADCAST || kind == SLMPM_COLL_SCATTER)
		return from == root && to != root;
	return from != to && (kind != SLMPM_COLL_GATHER || to == root);
}

static uint64_t lies_in(const struct flat *f, uint32_t to)
{
	uint32_t kind = f->coll->kind;

	return kind == SLMPM_COLL_ALLTOALL || kind == SLMPM_COLL_SCATTER ? to * f->bytes : 0;
}

static uint64_t goes_to(const struct flat *f, uint32_t from)
{
	uint32_t kind = f->coll->kind;

	return kind == SLMPM_COLL_BROADCAST || kind == SLMPM_COLL_SCATTER ? 0 : from * f->bytes;
}

/* Bytes of a block that its receiver reads, from the front; its sender writes the rest. Where one
 * member alone sends or receives, so many that all copy as much. */
static uint64_t read_part(const struct flat *f)
{
	uint64_t one = f->bytes / f->b->size & ~(uint64_t)(BOARD_LINE - 1);

	switch (f->coll->kind) {
	case SLMPM_COLL_BROADCAST:
	case SLMPM_COLL_SCATTER: return f->bytes - one;
	case SLMPM_COLL_GATHER: return one;
	default: return 0;
	}
}

/* One alone reads what both can copy: more than stays in a cache beside what it goes to. */
static bool goes_in_halves(const struct flat *f)
{
	return read_part(f) && f->bytes > BOARD_RING;
}

/* Through the rings a block is copied twice, a vector for all once more than by each that gets it,
 * but by a copy that costs half as much as one that the kernel does. */
bool flat_is_direct(const struct flat *f)
{
	const struct slmpm_coll *c = f->coll;

	switch (c->kind) {
	case SLMPM_COLL_BROADCAST:
	case SLMPM_COLL_SCATTER:
	case SLMPM_COLL_GATHER:
	case SLMPM_COLL_ALLGATHER:
		if (f->b->size == 2)
			break;
		return false;
	case SLMPM_COLL_ALLTOALL:
		if (f->b->size > 1 && !f->in_place)
			break;
		return false; /* what comes takes the place of what goes */
	default: return false;
	}
	return f->bytes >= FLAT_DIRECT_MIN && !c->counts && !c->to_counts && reach_works(f->b);
}

/* ---- posts ----------------------------------------------------------------------------------- */

static void post_direct(struct flat *f)
{
	struct post *slot = boards_slot(f->b);
	struct flat_out *o = &f->out;

	boards_say(slot, f->what, f->count);
	board_store(&slot->at, o->at);
	board_store(&slot->length, o->length);
	board_store(&slot->present, (uint64_t)f->to_in << 32 | f->from_in);
	board_store(&slot->from, (uint64_t)(uintptr_t)f->out.from);
	board_store(&slot->to, (uint64_t)(uintptr_t)f->to);
	boards_post(f->b);
	f->b->written = flat_pad(o->at + o->length);
	f->posted = true;
	f->peer = 0;
	f->offered = f->what & POST_DIRECT;
	f->shared = f->what & POST_SHARED;
	f->in_pieces = f->to_in;
	f->replaces = f->in_place;
}

/* Rank R's post: 1, 0: it is not there yet; negative. */
static int meet_direct(struct flat *f, uint32_t r)
{
	const struct post *p = board_post(f->b->of[r], f->number);
	uint64_t number = board_number(f->b->of[r], f->number), what, count, where;
	uint64_t most = UINT64_MAX - f->bytes * f->b->size;
	struct source *s = &f->b->sources[r];

	if (number != f->number)
		return LIKELY(number < f->number) ? 0 : flat_refuse(f, r, "number");
	what = board_load(&p->what);
	count = board_load(&p->count);
	if ((what ^ f->what) & ~POST_FLAGS)
		return flat_blame(f, r, f->number, what, count, f->count);
	f->offered &= (what & POST_DIRECT) != 0;
	f->shared &= (what & POST_SHARED) != 0;
	if (!f->offered && !f->shared)
		return 1;
	if (count != flat_count_of(f, r) && (f->offered || (r >= f->first && r < f->last)))
		return flat_blame(f, r, f->number, what, count, flat_count_of(f, r));
	s->from = board_load(&p->from);
	s->to = board_load(&p->to);
	where = board_load(&p->present);
	s->from_in = (uint32_t)where;
	s->to_in = (uint32_t)(where >> 32);
	f->in_pieces &= s->to_in != 0;
	f->replaces |= s->from == s->to;
	return PEER_FAULT(s->from > most || s->to > most) ? flat_refuse(f, r, "address") : 1;
}

static int meet_all(struct flat *f)
{
	for (; f->peer < f->b->size; f->peer++) {
		int rc = f->peer == f->b->rank ? 1 : meet_direct(f, f->peer);

		f->waits_for = f->peer;
		if (rc <= 0)
			return rc;
	}
	return 1;
}

/* None writes into this member's memory any more. */
static int withdrawn_turn(struct flat *f)
{
	uint32_t r = reach_writer(f->b, f->number);

	f->waits_for = r;
	if (r != BOARD_NONE)
		return 0;
	f->turn = flat_long_turn;
	return flat_long_turn(f);
}

int flat_by_ring(struct flat *f)
{
	reach_withdraw(f->b, f->number);
	f->turn = withdrawn_turn;
	return withdrawn_turn(f);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Bytes from AT on, N at most, of what this member has for rank R. 1; 0: R has gone, or wants no
 * more; negative: it cannot be done. */
static int write_piece(struct flat *f, uint32_t r, uint64_t at, uint64_t n)
{
	const unsigned char *from = f->out.from + lies_in(f, r) + at;
	uint64_t to = f->b->sources[r].to + goes_to(f, f->b->rank) + at;

	if (reach_is_withdrawn(f->b, r, f->number))
		return 0;
	/* Cast: what is written from is only read. */
	return reach_copy(f->b, r, (void *)(uintptr_t)from, to, n, true);
}

/* Bytes from AT on, N at most, of what this member has for each of the others. */
static int write_pieces(struct flat *f, uint64_t at, uint64_t n)
{
	for (uint32_t r = 0; r < f->b->size; r++) {
		int rc = moves(f, f->b->rank, r) ? write_piece(f, r, at, n) : 1;

		f->waits_for = r;
		if (rc <= 0)
			return rc;
	}
	return 1;
}

/* What this member keeps goes with it, a piece at a time. Each operation ends where the next one
 * begins: of buffers that are used again, so much is in the cache. */
static int write_blocks(struct flat *f)
{
	bool keeps = !f->own_done && read_part(f) == 0, down = f->number & 1;
	unsigned char *kept = keeps ? f->to + goes_to(f, f->b->rank) : NULL;
	uint64_t first = read_part(f), all = f->bytes - first, n;

	for (uint64_t done = 0; done < all; done += n) {
		uint64_t at;
		int rc;

		n = least_of(all - done, DIRECT_PIECE);
		at = down ? f->bytes - done - n : first + done;
		rc = write_pieces(f, at, n);
		if (rc <= 0)
			return rc;
		if (keeps)
			memcpy(kept + at, f->from + at, n);
	}
	f->own_done |= keeps;
	return 1;
}

static int read_blocks(struct flat *f)
{
	uint64_t n = read_part(f);

	for (uint32_t r = 0; n && r < f->b->size; r++) {
		uint64_t from = f->b->sources[r].from + lies_in(f, f->b->rank);
		int rc = 1;

		if (moves(f, r, f->b->rank))
			rc = reach_copy(f->b, r, f->to + goes_to(f, r), from, n, false);
		f->waits_for = r;
		if (rc <= 0)
			return rc;
	}
	return 1;
}

/* Each of the others is the process that has posted: before it is written to, and behind what has
 * been read. */
static int find_all(struct flat *f)
{
	for (uint32_t r = 0; r < f->b->size; r++) {
		bool other = moves(f, f->b->rank, r) || moves(f, r, f->b->rank);
		int rc = other ? reach_finds(f->b, r) : 1;

		f->waits_for = r;
		if (rc <= 0)
			return rc;
	}
	return 1;
}

/* This member's part. 1; 0: a member has gone, or gives it up; negative: it cannot be done. */
static int copy_part(struct flat *f)
{
	int rc = find_all(f);

	if (rc <= 0)
		return rc;
	reach_claim(f->b, f->number);
	rc = write_blocks(f);
	reach_release(f->b);
	if (rc > 0 && read_part(f))
		rc = read_blocks(f);
	return rc > 0 && read_part(f) ? find_all(f) : rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void flat_through(struct flat *f, bool failed)
{
	struct board *own = f->b->own;

	if (failed)
		board_store(&own->failed, f->number);
	/* Pairs with the acquire in are_through: the bytes are seen with it. */
	atomic_store_explicit(&own->through, f->number, memory_order_release);
	boards_wake(f->b);
	f->copied = true;
	f->peer = 0;
}

/* 1: all are; 0: f->waits_for is not, or lets go of it. */
static int are_through(struct flat *f)
{
	for (; f->peer < f->b->size; f->peer++) {
		f->waits_for = f->peer;
		if (atomic_load_explicit(&f->b->of[f->peer]->through, memory_order_acquire) <
		    f->number)
			return 0;
	}
	return 1;
}

/* What has been read since it was through with its own part may have been anything. */
static int none_withdrew(struct flat *f)
{
	atomic_thread_fence(memory_order_acquire);
	/* Who withdraws a later one was through with this one, as all were. */
	for (uint32_t r = 0; r < f->b->size; r++)
		if (board_load(&f->b->of[r]->withdrawn) == f->number) {
			f->waits_for = r;
			return 0;
		}
	return 1;
}

bool flat_has_failed(const struct flat *f)
{
	for (uint32_t r = 0; r < f->b->size; r++)
		if (board_load(&f->b->of[r]->failed) == f->number)
			return true;
	return false;
}

/* Nothing has gone to the ring, and all that lies there has been read. */
int flat_end_direct(struct flat *f)
{
	if (!none_withdrew(f))
		return 0;
	f->b->written = f->b->freed = f->out.at;
	f->b->reached = f->number;
	return flat_finish(f);
}

int flat_direct_turn(struct flat *f)
{
	int rc;

	if (!f->posted) {
		rc = flat_may_post(f, &f->waits_for);
		if (rc <= 0)
			return rc;
		post_direct(f);
	}
	if (!f->copied) {
		rc = meet_all(f);
		if (rc <= 0)
			return rc;
		flat_route_note_met(f);
		if (f->shared)
			f->measured = NULL; /* it never takes the ring */
		if (f->shared && !(f->offered && goes_in_halves(f))) {
			f->turn = flat_shared_turn;
			return flat_shared_turn(f);
		}
		if (!f->offered)
			return flat_by_ring(f);
		rc = copy_part(f);
		if (rc == 0)
			return 0;
		if (rc == -EPERM)
			reach_refused(f->b);
		flat_through(f, rc < 0);
		flat_keep_own(f);
	}
	if (!are_through(f))
		return 0;
	return flat_has_failed(f) ? flat_by_ring(f) : flat_end_direct(f);
}

uint32_t flat_drop_direct(struct flat *f)
{
	return f->posted ? reach_take_back(f->b, f->number) : BOARD_NONE;
}
