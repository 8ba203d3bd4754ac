/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on memory that the members have mapped of one another (shared.h). Each has posted
 * where its buffers lie, as in flat_direct.c; what one contributes the others read where it is, by
 * loads. An allreduce whose results lie there too each member does one piece of, for all, and reads
 * the other pieces from the results of those that have done them.
 *
 * Each says how far it is: with pieces, which may take the place of contributions, that it has
 * found all that it needs, and that its piece is combined; at last that it reads nothing of the
 * others any more. Where one has not found what it needs, all take the ring.
 */
#include "slmpm/board/flat_parts.h"

enum { POSTED, FOUND, COMBINED, THROUGH }; /* f->stage */

#define SHARED_MIN   (4u * 1024) /* bytes of a block: of less the stages cost more than a copy */
#define SHARED_PIECE (BOARD_RING / 2)

/* ---- what lies where ------------------------------------------------------------------------- */

/* Bytes of rank R's contribution. */
static uint64_t given_by(const struct flat *f, uint32_t r)
{
	const struct slmpm_coll *c = f->coll;

	switch (c->kind) {
	case SLMPM_COLL_SCATTER:
	case SLMPM_COLL_ALLTOALL: return f->bytes * f->b->size;
	case SLMPM_COLL_GATHER:
	case SLMPM_COLL_ALLGATHER: return flat_needed_of(f, r);
	case SLMPM_COLL_REDUCE_SCATTER:
		return flat_before(c->counts, c->count, f->b->size) << f->shift;
	default: return f->bytes;
	}
}

/* Where in it what this member needs begins. */
static uint64_t begins_in(const struct flat *f)
{
	const struct slmpm_coll *c = f->coll;

	switch (c->kind) {
	case SLMPM_COLL_SCATTER:
	case SLMPM_COLL_ALLTOALL: return f->bytes * f->b->rank;
	case SLMPM_COLL_REDUCE_SCATTER:
		return flat_before(c->counts, c->count, f->b->rank) << f->shift;
	default: return 0;
	}
}

/* What others read of it stays as it is, where they expect it. */
static bool stays(const struct flat *f)
{
	const struct slmpm_coll *c = f->coll;

	switch (c->kind) {
	case SLMPM_COLL_SCAN:
	case SLMPM_COLL_EXSCAN: return !f->in_place;
	case SLMPM_COLL_SCATTER: return !c->counts;
	case SLMPM_COLL_ALLTOALL: return !f->in_place && !c->counts && !c->to_counts;
	case SLMPM_COLL_REDUCE_SCATTER: return !c->places;
	default: return true;
	}
}

bool flat_is_shared(struct flat *f)
{
	if (f->b->size == 1 || !stays(f) || (!f->coll->counts && f->bytes < SHARED_MIN))
		return false;
	f->from_in = f->to_in = 0;
	if (f->out.length)
		f->from_in = shared_id_of(f->b, f->out.from, given_by(f, f->b->rank));
	if (f->coll->kind == SLMPM_COLL_ALLREDUCE)
		f->to_in = shared_id_of(f->b, f->to, f->bytes);
	return f->from_in || !f->out.length;
}

/* ---- found ----------------------------------------------------------------------------------- */

/* Rank R's: 1; 0: it has not been mapped here; negative. */
static int find_one(struct flat *f, uint32_t r)
{
	struct source *s = &f->b->sources[r];
	const unsigned char *at = NULL;
	int rc = 1;

	s->need = s->present = flat_needed_of(f, r);
	if (s->need)
		rc = shared_find(f->b, r, s->from_in, s->from, given_by(f, r), &at);
	if (rc > 0 && f->in_pieces)
		rc = shared_find(f->b, r, s->to_in, s->to, f->bytes, &s->result);
	if (rc <= 0)
		return rc < 0 ? flat_refuse(f, r, "address") : 0;
	s->line = s->need ? at + begins_in(f) : NULL;
	s->met = true;
	return 1;
}

static int find_shared(struct flat *f)
{
	int found = 1;

	for (uint32_t r = f->first; r < f->last; r++) {
		int rc = r == f->b->rank ? 1 : find_one(f, r);

		if (rc < 0)
			return rc;
		found &= rc;
	}
	return found;
}

/* ---- read ------------------------------------------------------------------------------------ */

static int fold_all(struct flat *f)
{
	int rc = 1;

	while (rc >= 0 && f->next < f->last)
		rc = flat_fold(f);
	return rc < 0 ? rc : 1;
}

static void copy_block(const struct flat *f, uint32_t r)
{
	const struct source *s = &f->b->sources[r];
	unsigned char *to = flat_block_to(f, r);
	uint64_t n;

	for (uint64_t done = 0; done < s->need; done += n) {
		uint64_t at = done;

		n = least_of(s->need - done, SHARED_PIECE);
		if (f->b->shared_down)
			at = s->need - done - n;
		memcpy(to + at, s->line + at, n);
	}
}

/* Each time from the other end: of buffers that are used again, what was read last is in the
 * cache. */
static void copy_shared(struct flat *f)
{
	f->b->shared_down = !f->b->shared_down;
	for (uint32_t r = f->first; r < f->last; r++)
		if (r != f->b->rank)
			copy_block(f, r);
	f->next = f->last;
}

static int read_shared(struct flat *f)
{
	if (flat_combines(f->coll->kind))
		return fold_all(f);
	copy_shared(f);
	return 1;
}

/* Where rank R's piece of the result begins. */
static uint64_t piece_at(const struct flat *f, uint32_t r)
{
	return r == f->b->size ? f->bytes : f->bytes / BOARD_LINE * r / f->b->size * BOARD_LINE;
}

static int combine_piece(struct flat *f)
{
	uint64_t begin = piece_at(f, f->b->rank);
	struct flat piece = *f;

	piece.bytes = piece_at(f, f->b->rank + 1) - begin;
	piece.from += begin;
	piece.put += begin;
	piece.out.length = 0; /* none waits for it */
	for (uint32_t r = 0; r < f->b->size; r++)
		if (r != f->b->rank)
			f->b->sources[r].line += begin;
	f->next = f->last;
	return fold_all(&piece);
}

/* Those of the next ones first: not all of one member at a time. */
static void read_pieces(struct flat *f)
{
	for (uint32_t i = 1; i < f->b->size; i++) {
		uint32_t r = (f->b->rank + i) % f->b->size;
		uint64_t begin = piece_at(f, r);

		copy_payload(f->to + begin, f->b->sources[r].result + begin,
			     piece_at(f, r + 1) - begin);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void say_stage(struct flat *f, uint32_t stage)
{
	f->stage = stage;
	f->peer = 0;
	/* Pairs with the acquire in are_there: what it has written is seen with it, and is not written
	 * again before the others have read it. */
	atomic_store_explicit(&f->b->own->stage, f->number << 2 | stage, memory_order_release);
	boards_wake(f->b);
}

/* As far as this member: 1; 0: f->waits_for is not. */
static int are_there(struct flat *f)
{
	for (; f->peer < f->b->size; f->peer++) {
		f->waits_for = f->peer;
		if (atomic_load_explicit(&f->b->of[f->peer]->stage, memory_order_acquire) <
		    (f->number << 2 | f->stage))
			return 0;
	}
	return 1;
}

/* Results take the place of contributions. */
static bool replaces(const struct flat *f)
{
	return f->replaces && f->coll->kind == SLMPM_COLL_ALLREDUCE;
}

/* Two that each read a short one whole are done sooner than by two steps. */
static void choose_pieces(struct flat *f)
{
	if (f->coll->combine || (f->b->size == 2 && f->bytes <= BOARD_RING && !replaces(f)))
		f->in_pieces = false;
}

static int begin_shared(struct flat *f)
{
	int rc;

	choose_pieces(f);
	rc = replaces(f) && !f->in_pieces ? 0 : find_shared(f);
	if (rc < 0)
		return rc;
	if (!rc)
		board_store(&f->b->own->failed, f->number);
	if (f->in_pieces || !rc)
		say_stage(f, f->in_pieces ? FOUND : THROUGH);
	return 1;
}

/* By the ring: as if none had been found. */
static int share_no_more(struct flat *f)
{
	memset(&f->b->sources[f->first], 0, (f->last - f->first) * sizeof(struct source));
	f->next = f->first;
	f->chunk = 0;
	return flat_by_ring(f);
}

/* All are as far as this member: on to the next stage. */
static int advance_shared(struct flat *f)
{
	int rc = 1;

	if (f->stage == COMBINED)
		read_pieces(f);
	else
		rc = f->in_pieces ? combine_piece(f) : read_shared(f);
	if (rc < 0)
		return rc;
	flat_keep_own(f);
	say_stage(f, f->in_pieces && f->stage == FOUND ? COMBINED : THROUGH);
	return 1;
}

int flat_shared_turn(struct flat *f)
{
	int rc = f->stage == POSTED ? begin_shared(f) : 1;

	while (rc > 0) {
		if (f->stage != POSTED && !are_there(f))
			return 0;
		if (f->stage == (f->in_pieces ? FOUND : THROUGH) && flat_has_failed(f))
			return share_no_more(f);
		if (f->stage == THROUGH) {
			rc = flat_end_direct(f);
			f->b->in_shared += rc > 0;
			return rc;
		}
		rc = advance_shared(f);
	}
	return rc;
}
