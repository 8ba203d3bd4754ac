/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operation needs of the others: their posts, checked, and their bytes as they come, copied
 * or combined. Of a ring that is used more than once its member is to know what has been read.
 */
#include "slmpm/board/flat_parts.h"

/* ---- posts ----------------------------------------------------------------------------------- */

uint64_t flat_needed_of(const struct flat *f, uint32_t r)
{
	const struct slmpm_coll *c = f->coll;

	switch (c->kind) {
	case SLMPM_COLL_GATHER:
	case SLMPM_COLL_ALLGATHER: return flat_count(c->counts, c->count, r) << f->shift;
	case SLMPM_COLL_ALLTOALL: return flat_count(c->to_counts, c->count, r) << f->shift;
	default: return f->bytes;
	}
}

uint64_t flat_count_of(const struct flat *f, uint32_t r)
{
	uint32_t kind = f->coll->kind;

	if (kind == SLMPM_COLL_GATHER || kind == SLMPM_COLL_ALLGATHER ||
	    kind == SLMPM_COLL_ALLTOALL)
		return flat_needed_of(f, r) >> f->shift;
	return f->count;
}

/* Where this member's block begins in the contribution of rank R that has no table. */
static uint64_t offset_of(const struct flat *f, uint32_t r, uint64_t what)
{
	const struct slmpm_coll *c = f->coll;
	uint32_t rank = f->b->rank, size = f->b->size;
	uint64_t before;

	if (c->kind == SLMPM_COLL_ALLTOALL || c->kind == SLMPM_COLL_SCATTER) {
		uint32_t i = what & POST_ROTATED ? (rank + size - r - 1) % size : rank - (rank > r);

		return i * flat_needed_of(f, r);
	}
	if (c->kind != SLMPM_COLL_REDUCE_SCATTER)
		return 0;
	before = flat_before(c->counts, c->count, rank);
	if (rank > r)
		before -= flat_count(c->counts, c->count, r);
	return before << f->shift;
}

/* This member has read rank R's ring up to S->at + S->got. */
static void flat_report(struct flat *f, uint32_t r, uint64_t at)
{
	/* Pairs with the acquire in read_by. */
	atomic_store_explicit(&f->b->own->taken[f->b->seats[r]], at, memory_order_release);
	boards_wake(f->b);
}

/* Bytes of rank R's ring from AT on, of which PRESENT came with the post. -1: impossible. */
static int64_t there_of(const struct flat *f, uint32_t r, uint64_t at, uint64_t present)
{
	/* Pairs with the release in flat_write. */
	uint64_t written = atomic_load_explicit(&f->b->of[r]->written, memory_order_acquire);
	int64_t more = (int64_t)(written - at);

	return more > (int64_t)present ? more : (int64_t)present;
}

/* The table of rank R's contribution, which begins at AT: 1, 0: it is not there yet; negative. */
static int meet_table(struct flat *f, uint32_t r, uint64_t at, uint64_t present, uint64_t *offset)
{
	uint64_t bytes = f->b->size * TABLE_ROW * sizeof(uint64_t), row[TABLE_ROW];
	uint64_t mine = at + f->b->rank * sizeof(row);

	if (there_of(f, r, at, present) < (int64_t)bytes)
		return 0;
	memcpy(row, f->b->of[r]->ring + mine % BOARD_RING, sizeof(row));
	if (row[1] != flat_needed_of(f, r) >> f->shift)
		return flat_blame(f, r, f->number, f->what, row[1],
				  flat_needed_of(f, r) >> f->shift);
	*offset = bytes + (row[0] << f->shift);
	return 1;
}

static int meet_ring(struct flat *f, uint32_t r, const struct post *p, uint64_t what)
{
	struct source *s = &f->b->sources[r];
	uint64_t at = board_load(&p->at), length = board_load(&p->length);
	uint64_t offers = what & (POST_DIRECT | POST_SHARED), offset = offset_of(f, r, what);
	uint64_t present = offers ? 0 : board_load(&p->present);
	int rc;

	/* It has offered its buffers: until it takes that back nothing of this one is on its ring, where
	 * the next one may be already for those that went the other way by a liar's doing. */
	if (offers && !reach_is_withdrawn(f->b, r, f->number))
		return 0;
	if (PEER_FAULT(at % BOARD_LINE || present > length || present > BOARD_PIECE))
		return flat_refuse(f, r, "place");
	if (what & POST_TABLE) {
		rc = meet_table(f, r, at, present, &offset);
		if (rc <= 0)
			return rc;
	}
	if (PEER_FAULT(offset > length || s->need > length - offset || length > INT64_MAX))
		return flat_refuse(f, r, "length");
	s->at = at + offset;
	s->present = least_of(excess_of(present, offset), s->need);
	s->streams = present < length;
	s->reports = length > BOARD_RING;
	if (s->reports)
		flat_report(f, r, at + (what & POST_TABLE ? f->b->size * 2 * sizeof(uint64_t) : 0));
	return 1;
}

/* Rank R's post, before anything of its contribution: 1, 0: it is not there yet; negative. */
static int meet(struct flat *f, uint32_t r)
{
	const struct post *p = board_post(f->b->of[r], f->number);
	uint64_t number = board_number(f->b->of[r], f->number), what, count, offset;
	struct source *s = &f->b->sources[r];

	if (number != f->number)
		return LIKELY(number < f->number) ? 0 : flat_refuse(f, r, "number");
	what = board_load(&p->what);
	count = board_load(&p->count);
	if ((what ^ f->what) & ~POST_FLAGS)
		return flat_blame(f, r, f->number, what, count, flat_count_of(f, r));
	if (what & POST_TABLE) {
		if (PEER_FAULT(f->coll->kind != SLMPM_COLL_ALLTOALL &&
			       f->coll->kind != SLMPM_COLL_SCATTER))
			return flat_refuse(f, r, "flags");
	} else if (count != flat_count_of(f, r)) {
		return flat_blame(f, r, f->number, what, count, flat_count_of(f, r));
	}
	s->need = flat_needed_of(f, r);
	if (what & POST_IN_LINE) {
		offset = offset_of(f, r, what);
		if (PEER_FAULT(offset > BOARD_INLINE || s->need > BOARD_INLINE - offset ||
			       what & POST_TABLE))
			return flat_refuse(f, r, "length");
		s->line = p->bytes + offset;
		s->present = s->need;
	} else {
		int rc = meet_ring(f, r, p, what);

		if (rc <= 0)
			return rc;
	}
	s->met = true;
	return 1;
}

/* Bytes of what is needed of rank R that are there, END at most; negative: an error. */
static int64_t there_up_to(struct flat *f, uint32_t r, uint64_t end)
{
	struct source *s = &f->b->sources[r];
	int64_t there = (int64_t)s->present;

	if (s->streams && s->present < end) {
		there = there_of(f, r, s->at, s->present);
		if (PEER_FAULT(there - (int64_t)s->got > (int64_t)BOARD_RING && s->got < s->need &&
			       s->reports))
			return flat_refuse(f, r, "progress");
	}
	return (int64_t)least_of((uint64_t)there, end);
}

/* N bytes of what is needed of rank R from AT on, as many as lie in one piece. */
static const unsigned char *lies_at(const struct flat *f, uint32_t r, uint64_t at, uint64_t *n)
{
	const struct source *s = &f->b->sources[r];
	uint64_t in;

	if (r == f->b->rank)
		return f->from + at;
	if (s->line)
		return s->line + at;
	in = (s->at + at) % BOARD_RING;
	*n = least_of(*n, BOARD_RING - in);
	return f->b->of[r]->ring + in;
}

/* ---- copied ---------------------------------------------------------------------------------- */

unsigned char *flat_block_to(const struct flat *f, uint32_t r)
{
	const struct slmpm_coll *c = f->coll;

	switch (c->kind) {
	case SLMPM_COLL_GATHER:
	case SLMPM_COLL_ALLGATHER:
		return f->to + (flat_place(c->counts, c->places, c->count, r) << f->shift);
	case SLMPM_COLL_ALLTOALL:
		return f->to + (flat_place(c->to_counts, c->to_places, c->count, r) << f->shift);
	default: return f->to;
	}
}

/* In place what comes of rank R takes the place of what goes there: how much of that is gone. */
static uint64_t gone_to(const struct flat *f, uint32_t r)
{
	const struct flat_out *o = &f->out;
	uint64_t before = flat_before(o->counts, f->coll->count, r);

	if (r > f->b->rank)
		before -= flat_count(o->counts, f->coll->count, f->b->rank);
	return f->posted ? excess_of(o->done, o->table + (before << f->shift)) : 0;
}

static int copy_from(struct flat *f, uint32_t r)
{
	struct source *s = &f->b->sources[r];
	uint64_t end, n;
	int64_t there;

	if (!s->met) {
		int rc = meet(f, r);

		if (rc <= 0)
			return rc;
		flat_route_note_met(f);
	}
	end = least_of(s->got + BOARD_PIECE, s->need);
	if (f->in_place && f->coll->kind == SLMPM_COLL_ALLTOALL)
		end = least_of(end, gone_to(f, r));
	there = there_up_to(f, r, end);
	if (there <= (int64_t)s->got)
		return there < 0 ? (int)there : 0;
	for (end = (uint64_t)there; s->got < end; s->got += n) {
		const unsigned char *from;

		n = end - s->got;
		from = lies_at(f, r, s->got, &n);
		copy_payload(flat_block_to(f, r) + s->got, from, n);
	}
	if (s->reports)
		flat_report(f, r, s->at + s->got);
	return 1;
}

static bool is_read(const struct flat *f, uint32_t r)
{
	const struct source *s = &f->b->sources[r];

	return r == f->b->rank || (s->met && s->got == s->need);
}

int flat_copy(struct flat *f)
{
	bool all = f->coll->kind == SLMPM_COLL_ALLTOALL || f->bytes > BOARD_PIECE;
	int moved = 0;

	f->data_of = BOARD_NONE;
	for (uint32_t r = f->next; r < f->last; r++) {
		if (!is_read(f, r)) {
			int rc = copy_from(f, r);

			if (rc < 0)
				return rc;
			moved |= rc;
		}
		if (is_read(f, r)) {
			f->next += r == f->next;
			continue;
		}
		f->data_of = f->data_of == BOARD_NONE ? r : BOARD_ANY;
		/* Where much is to come the others' rings are not to be full meanwhile. */
		if (!all)
			break;
	}
	return moved;
}

/* ---- combined -------------------------------------------------------------------------------- */

/* Bytes of rank R up to END: 1: they are there; 0; negative. */
static int has_up_to(struct flat *f, uint32_t r, uint64_t end)
{
	struct source *s = &f->b->sources[r];
	int64_t there;

	if (r == f->b->rank)
		return 1;
	if (!s->met) {
		int rc = meet(f, r);

		if (rc <= 0)
			return rc;
	}
	there = there_up_to(f, r, end);
	return there < 0 ? (int)there : there == (int64_t)end;
}

/* N bytes of what is needed of rank R from AT on, also where they lie in two pieces: in SPARE. */
static const unsigned char *lies_whole(const struct flat *f, uint32_t r, uint64_t at, uint64_t n,
				       unsigned char *spare)
{
	uint64_t run = n, rest;
	const unsigned char *from = lies_at(f, r, at, &run);

	if (run == n)
		return from;
	memcpy(spare, from, run);
	rest = n - run;
	memcpy(spare + run, lies_at(f, r, at + run, &rest), n - run);
	return spare;
}

/* As fold_one; no element is cut. */
static NOINLINE void fold_own(struct flat *f, uint32_t r, uint64_t n, unsigned char *to,
			      const unsigned char *before)
{
	const unsigned char *more = lies_whole(f, r, f->chunk, n, f->spare + f->most);

	if (r == f->first + 1)
		before = lies_whole(f, f->first, f->chunk, n, f->spare + 2 * f->most);
	if (r > f->first)
		flat_combine_own(f, to, before, more, n);
	else
		memmove(to, more, n);
}

/* Rank R's next N bytes with those of all before. In place the own ones are not to be lost before
 * their turn. */
static void fold_one(struct flat *f, uint32_t r, uint64_t n)
{
	bool keep = f->in_place && f->b->rank < f->last;
	unsigned char *scratch = UNLIKELY(f->spare) ? f->spare : f->b->scratch;
	unsigned char *to = keep && r < f->b->rank ? scratch : f->put + f->chunk;
	unsigned char *sum = keep && r <= f->b->rank ? scratch : f->put + f->chunk;
	uint64_t at = 0, run;

	if (r == f->first && r + 1 < f->last)
		return;
	if (UNLIKELY(f->spare)) {
		fold_own(f, r, n, to, sum);
		return;
	}
	for (; at < n; at += run) {
		const unsigned char *more, *before = sum + at;

		run = n - at;
		more = lies_at(f, r, f->chunk + at, &run);
		if (r == f->first + 1)
			before = lies_at(f, f->first, f->chunk + at, &run);
		if (r > f->first)
			flat_combine(f, to + at, before, more, run >> f->shift);
		else
			memmove(to + at, more, run);
	}
}

static void report_chunk(struct flat *f, uint64_t end)
{
	for (uint32_t r = f->first; r < f->last; r++) {
		struct source *s = &f->b->sources[r];

		if (r == f->b->rank)
			continue;
		s->got = end;
		if (s->reports)
			flat_report(f, r, s->at + end);
	}
}

int flat_fold(struct flat *f)
{
	uint64_t end = least_of(f->chunk + f->most, f->bytes);
	int moved = 0;

	f->data_of = BOARD_NONE;
	if (f->in_place && f->out.length && (!f->posted || f->out.done < end))
		return 0; /* others need them */
	for (; f->next < f->last; f->next++) {
		int rc = has_up_to(f, f->next, end);

		if (rc <= 0) {
			f->data_of = f->next;
			return rc < 0 ? rc : moved;
		}
		fold_one(f, f->next, end - f->chunk);
		moved = 1;
	}
	report_chunk(f, end);
	f->chunk = end;
	if (end < f->bytes)
		f->next = f->first;
	return 1;
}
