/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective operations begun: what a member writes and needs in each kind; and advanced. */
#include "slmpm/board/flat_parts.h"

#include <stdlib.h>

/* ---- what is posted -------------------------------------------------------------------------- */

/* Counts that must be the same at all members, as a few bits: 0: there are none. */
static uint64_t hash_of(const struct slmpm_coll *c, uint32_t size)
{
	uint64_t h = size;

	if (!c->counts)
		return 0;
	for (uint32_t r = 0; r < size; r++)
		h = (h ^ c->counts[r]) * UINT64_C(0x9e3779b97f4a7c15);
	return (h >> 48) | 1;
}

static uint64_t what_of(const struct slmpm_coll *c, uint32_t size)
{
	uint64_t what = c->kind;

	if (UNLIKELY(c->combine)) {
		what |= post_own(c->combine->width);
	} else {
		if (c->kind != SLMPM_COLL_BARRIER)
			what |= (uint64_t)c->type << POST_TYPE;
		if (flat_combines(c->kind))
			what |= (uint64_t)c->op << POST_OP;
	}
	if (flat_has_root(c->kind))
		what |= flat_post_root(c);
	if (c->kind == SLMPM_COLL_REDUCE_SCATTER)
		what |= hash_of(c, size) << POST_SAME;
	return what;
}

int flat_catch_up(struct flat *f, uint32_t *who)
{
	/* Many at a time: a line that is looked at each time is slow to be written. */
	uint64_t number = f->number - BOARD_SLOTS / 2;
	uint64_t own = board_load(&board_post(f->b->own, number)->what);

	if (!boards_reach(f->b, number, who))
		return 0;
	for (uint32_t r = 0; r < f->b->size; r++) {
		uint64_t what = board_load(&board_post(f->b->of[r], number)->what);

		/* One that is ahead of this member by more, or just about to be, compares itself. */
		if (UNLIKELY((what ^ own) & ~POST_FLAGS) && post_is_of(what, number))
			return flat_blame(f, r, number, what, f->count, f->count);
	}
	return 1;
}

/* ---- short ones ------------------------------------------------------------------------------ */

static bool is_short(const struct flat *f, const struct slmpm_coll *c)
{
	switch (c->kind) {
	case SLMPM_COLL_BARRIER: return true;
	case SLMPM_COLL_BROADCAST:
	case SLMPM_COLL_REDUCE:
	case SLMPM_COLL_ALLREDUCE:
	case SLMPM_COLL_SCAN:
	case SLMPM_COLL_EXSCAN: return c->count <= BOARD_INLINE >> f->shift;
	default: return false;
	}
}

static void sources(struct flat *f, uint32_t first, uint32_t last)
{
	f->first = f->next = f->here = first;
	f->last = last;
}

static void writes(struct flat *f, const void *from, uint64_t length, uint32_t first, uint32_t last)
{
	f->out.from = from;
	f->out.length = length;
	f->out.first = first;
	f->out.last = last;
}

static INLINE void plan_broadcast(struct flat *f, uint32_t root)
{
	bool at_root = f->b->rank == root;

	f->out.length = at_root ? f->bytes : 0;
	sources(f, root, at_root ? root : root + 1);
}

/* Kinds in which all contributions have one length. */
static void plan_even(struct flat *f, const struct slmpm_coll *c)
{
	uint32_t rank = f->b->rank, size = f->b->size, root = (uint32_t)c->root;
	bool at_root = rank == root;

	f->from = f->in_place ? c->to : c->from;
	f->to = c->to;
	sources(f, 0, 0);
	writes(f, f->from, 0, 0, size);
	switch (c->kind) {
	case SLMPM_COLL_BARRIER: sources(f, 0, size); break;
	case SLMPM_COLL_BROADCAST: plan_broadcast(f, root); break;
	case SLMPM_COLL_REDUCE:
		if (at_root) {
			sources(f, 0, size);
		} else {
			writes(f, f->from, f->bytes, root, root + 1);
		}
		break;
	case SLMPM_COLL_ALLREDUCE:
		sources(f, 0, size);
		f->out.length = f->bytes;
		break;
	case SLMPM_COLL_SCAN:
	case SLMPM_COLL_EXSCAN:
		sources(f, 0, c->kind == SLMPM_COLL_SCAN ? rank + 1 : rank);
		writes(f, f->from, rank + 1 < size ? f->bytes : 0, rank + 1, size);
	}
}

/* ---- long ones ------------------------------------------------------------------------------- */

static void plan_blocks(struct flat *f, const void *base, const uint64_t *counts,
			const uint64_t *places)
{
	const struct slmpm_coll *c = f->coll;
	uint32_t rank = f->b->rank, size = f->b->size;
	uint64_t elements = flat_before(counts, c->count, size);

	writes(f, base, (elements - flat_count(counts, c->count, rank)) << f->shift, 0, size);
	f->out.blocks = true;
	f->out.counts = counts;
	f->out.places = places;
	if (counts && c->kind != SLMPM_COLL_REDUCE_SCATTER && size > 1) {
		f->out.table = size * TABLE_ROW * sizeof(uint64_t);
		f->out.length += f->out.table;
		f->what |= POST_TABLE;
	}
	f->out.block_at = f->out.freeing_at = f->out.table;
}

static int plan_reduce_scatter(struct flat *f, const struct slmpm_coll *c)
{
	uint32_t rank = f->b->rank, size = f->b->size;
	const unsigned char *base = f->in_place ? c->to : c->from;

	plan_blocks(f, base, c->counts, c->places);
	sources(f, 0, size);
	f->count = c->counts ? flat_before(c->counts, c->count, size) : c->count;
	f->bytes = flat_count(c->counts, c->count, rank) << f->shift;
	f->from = base + (flat_place(c->counts, c->places, c->count, rank) << f->shift);
	if (f->in_place && f->bytes) { /* the front of `to` has other blocks until they are gone */
		f->put = malloc(f->bytes);
		if (!f->put)
			return -SLMPM_ENOMEM;
	}
	f->in_place = false;
	return 0;
}

static void plan_uneven(struct flat *f, const struct slmpm_coll *c)
{
	uint32_t rank = f->b->rank, size = f->b->size, root = (uint32_t)c->root;
	const unsigned char *base = f->in_place ? c->to : c->from;
	uint64_t own = flat_count(c->counts, c->count, rank) << f->shift;
	uint64_t place = 0;

	sources(f, 0, 0);
	f->own_done = f->in_place || rank != root;
	switch (c->kind) {
	case SLMPM_COLL_SCATTER:
		f->bytes = own;
		if (rank == root) {
			plan_blocks(f, base, c->counts, c->places);
			place = flat_place(c->counts, c->places, c->count, rank) << f->shift;
			f->from = base + place;
			break;
		}
		f->count = own >> f->shift;
		sources(f, root, root + 1);
		break;
	case SLMPM_COLL_GATHER:
	case SLMPM_COLL_ALLGATHER:
		f->bytes = own;
		f->count = own >> f->shift;
		if (c->kind == SLMPM_COLL_ALLGATHER || rank == root) {
			place = flat_place(c->counts, c->places, c->count, rank) << f->shift;
			f->own_done = f->in_place;
			sources(f, 0, size);
		}
		f->from = f->in_place ? f->to + place : c->from;
		if (c->kind == SLMPM_COLL_ALLGATHER)
			writes(f, f->from, own, 0, size);
		if (c->kind == SLMPM_COLL_GATHER && rank != root) {
			writes(f, f->from, own, root, root + 1);
		}
		break;
	default: /* ALLTOALL */
		sources(f, 0, size);
		f->own_done = f->in_place;
		if (f->in_place)
			plan_blocks(f, base, c->to_counts, c->to_places);
		else
			plan_blocks(f, base, c->counts, c->places);
		f->bytes = own;
		f->from = base + (flat_place(c->counts, c->places, c->count, rank) << f->shift);
		if (!f->in_place && f->out.length > BOARD_RING) {
			f->out.rotated = true;
			f->what |= POST_ROTATED;
		}
	}
}

/* Where in f->to this member's own block belongs. */
static uint64_t own_block_at(const struct flat *f)
{
	const struct slmpm_coll *c = f->coll;
	uint32_t rank = f->b->rank;
	uint64_t place = 0;

	if (c->kind == SLMPM_COLL_GATHER || c->kind == SLMPM_COLL_ALLGATHER)
		place = flat_place(c->counts, c->places, c->count, rank);
	else if (c->kind == SLMPM_COLL_ALLTOALL)
		place = flat_place(c->to_counts, c->to_places, c->count, rank);
	return place << f->shift;
}

void flat_keep_up_to(struct flat *f, uint64_t end)
{
	if (f->own_done)
		return;
	if (end > f->kept) {
		copy_bytes(f->to + own_block_at(f) + f->kept, f->from + f->kept, end - f->kept);
		f->kept = end;
	}
	f->own_done = f->kept == f->bytes;
}

void flat_keep_own(struct flat *f)
{
	flat_keep_up_to(f, f->bytes);
}

int flat_finish(struct flat *f)
{
	flat_keep_own(f);
	if (f->put != f->to) {
		copy_bytes(f->to, f->put, f->bytes);
		free(f->put);
		f->put = f->to;
	}
	free(f->spare);
	f->spare = NULL;
	if (f->measured)
		flat_route_taken(f);
	boards_scan(f->b);
	return flat_done(f);
}

int flat_long_turn(struct flat *f)
{
	bool combines = flat_combines(f->coll->kind);

	for (;;) {
		int wrote = flat_write(f), rc = wrote < 0 ? wrote : 0;

		if (rc == 0 && f->next < f->last)
			rc = combines ? flat_fold(f) : flat_copy(f);
		if (rc < 0)
			return rc;
		if (f->posted && f->out.done == f->out.length && f->next == f->last)
			return flat_finish(f);
		if (wrote || rc) {
			f->moved = true;
			continue;
		}
		if (f->own_done)
			break;
		/* A piece at a time: the others are not to wait for all of it. */
		flat_keep_up_to(f, least_of(f->kept + BOARD_PIECE, f->bytes));
	}
	if (f->next == f->last || f->data_of == BOARD_NONE)
		f->waits_for = f->room_of;
	else if (f->room_of == BOARD_NONE || f->room_of == f->data_of)
		f->waits_for = f->data_of;
	else
		f->waits_for = BOARD_ANY;
	return 0;
}

/* What is posted with it lies on the ring: which may have no memory there yet. */
static int back_ring(const struct flat *f)
{
	uint64_t end;

	if (LIKELY(f->b->backed == BOARD_RING) || f->what & POST_IN_LINE)
		return 0;
	end = flat_behind(f->out.at, flat_pad(f->out.length)) % BOARD_RING + f->out.length;
	end = end < BOARD_RING ? end : BOARD_RING;
	return end <= f->b->backed ? 0 : boards_back(f->b, end);
}

static void free_own(struct flat *f)
{
	if (f->put != f->to)
		free(f->put);
	free(f->spare);
	f->put = f->to; /* it may be dropped once more */
	f->spare = NULL;
}

/* Apart, as are those below: what short ones need stays small, and near. */
static NOINLINE int begin_long(struct flat *f, const struct slmpm_coll *c)
{
	int rc = 0;

	f->turn = flat_long_turn;
	f->out = (struct flat_out){.at = f->b->written};
	f->to = f->put = c->to;
	f->chunk = 0;
	f->own_done = true;
	f->kept = 0;
	f->room_of = f->data_of = BOARD_NONE;
	f->most = FLAT_CHUNK;
	f->spare = NULL;
	if (UNLIKELY(c->combine)) {
		f->most = flat_own_most(c);
		f->spare = aligned_alloc(BOARD_LINE, flat_pad(3 * f->most));
		if (!f->spare)
			return -SLMPM_ENOMEM;
	}
	if (c->kind == SLMPM_COLL_REDUCE_SCATTER) {
		rc = plan_reduce_scatter(f, c);
	} else if (flat_combines(c->kind) || c->kind == SLMPM_COLL_BROADCAST) {
		plan_even(f, c);
	} else {
		plan_uneven(f, c);
	}
	if (f->out.length <= BOARD_INLINE && !f->out.table)
		f->what |= POST_IN_LINE;
	if (f->next < f->last)
		memset(&f->b->sources[f->next], 0, (f->last - f->next) * sizeof(struct source));
	f->from_in = f->to_in = f->stage = 0;
	f->measured = NULL;
	f->copied = false;
	if (flat_is_direct(f) && flat_route_is_direct(f))
		f->what |= POST_DIRECT;
	if (UNLIKELY(f->b->shared) && flat_is_shared(f))
		f->what |= POST_SHARED;
	if (f->what & (POST_DIRECT | POST_SHARED)) {
		f->turn = flat_direct_turn;
		f->what &= ~(f->out.length ? POST_IN_LINE : 0);
	}
	if (rc == 0)
		rc = back_ring(f);
	if (UNLIKELY(rc < 0))
		free_own(f);
	return rc;
}

/* What each one has of its own. */
static INLINE void number_it(struct flat *f, const struct slmpm_coll *c, uint64_t number)
{
	f->coll = c;
	f->number = number;
	f->posted = f->again = false;
	f->between = 6;
	f->awaited = NULL;
	f->culprit = BOARD_NONE;
}

void flat_plan_again(struct flat *f, const struct slmpm_coll *c, uint64_t number, uint64_t what)
{
	if (c->kind == SLMPM_COLL_BROADCAST)
		plan_broadcast(f, (uint32_t)c->root);
	number_it(f, c, number);
	f->what = what;
	f->next = f->here = f->first;
}

void flat_repeat(struct flat *f, struct boards *b, const struct slmpm_coll *c)
{
	flat_plan_again(f, c, b->posted + 1, flat_what_again(f, b, c));
}

/* The next one may be the same, a broadcast also by another root. */
static void keep_short(struct flat *f, const struct slmpm_coll *c, uint64_t what)
{
	const uintptr_t from = (uintptr_t)c->from, to = (uintptr_t)c->to;

	if (c->combine || c->counts || c->places || c->to_counts || c->to_places || f->b->call)
		return;
	if (c->kind == SLMPM_COLL_BROADCAST) {
		/* Either may be used: neither is NULL or SLMPM_IN_PLACE. */
		if (from + 1 <= 1 || to + 1 <= 1)
			return;
		what ^= flat_post_root(c);
	} else if (flat_has_root(c->kind)) {
		return;
	}
	f->repeats = true;
	f->of_two = f->b->size == 2 &&
		    (c->kind == SLMPM_COLL_BARRIER || c->kind == SLMPM_COLL_BROADCAST ||
		     c->kind == SLMPM_COLL_ALLREDUCE);
	f->generation = f->b->generation;
	f->same = (struct flat_same){.kind = c->kind,
				     .type = c->type,
				     .op = c->op,
				     .count = c->count,
				     .from = c->from,
				     .to = c->to,
				     .what = what};
}

int flat_begin(struct flat *f, struct boards *b, const struct slmpm_coll *c)
{
	const uint64_t call = boards_call_of(b, b->posted + 1);
	const uint64_t history = b->history, what = what_of(c, b->size) | call << POST_OP;
	int rc;

	f->b = b;
	f->repeats = false;
	f->in_place = c->from == SLMPM_IN_PLACE;
	number_it(f, c, b->posted + 1);
	f->what = flat_with_history(b, what) | post_lap(f->number);
	f->count = 0;
	f->shift = 0;
	f->bytes = 0;
	if (c->kind != SLMPM_COLL_BARRIER) {
		f->shift = calc_shift(c->type);
		f->count = c->count;
		f->bytes = c->count << f->shift;
	}
	if (flat_combines(c->kind)) {
		f->kernel = UNLIKELY(c->combine) ?
				    NULL :
				    calc_kernel_of(c->op, c->type, calc_has_vectors());
		f->form = c->count < 4 && !c->counts ? CALC_STRIDED : CALC_PAIR;
		f->adds = c->count == 1 && c->op == SLMPM_CALC_SUM && c->type == SLMPM_DOUBLE;
	}
	if (!is_short(f, c)) {
		rc = begin_long(f, c);
		if (UNLIKELY(rc < 0)) /* it has not begun */
			b->history = history;
		return rc;
	}
	f->turn = flat_short_turn;
	f->own_done = true;
	f->what |= POST_IN_LINE;
	f->put = c->to;
	plan_even(f, c);
	keep_short(f, c, what);
	return 0;
}

void flat_step_of(struct flat *f, const struct slmpm_coll *whole, uint32_t history)
{
	const uint64_t what = what_of(whole, f->b->size) ^ (uint64_t)history >> 16 << POST_SAME;

	f->what ^= what_of(f->coll, f->b->size) ^ what;
	f->b->history = (f->b->history ^ what) * UINT64_C(0x9e3779b97f4a7c15);
}

uint32_t flat_drop(struct flat *f)
{
	uint32_t writer = BOARD_NONE;

	if (f->turn == flat_short_turn)
		return BOARD_NONE;
	if (f->turn != flat_long_turn)
		writer = flat_drop_direct(f);
	free_own(f);
	return writer;
}

/* ---- advanced -------------------------------------------------------------------------------- */

/* Rank R has ended: what it posted before counts. */
static COLD int meet_end(struct flat *f, uint32_t r)
{
	int rc = f->turn(f);

	if (rc || (f->waits_for != r && f->waits_for != BOARD_ANY))
		return rc;
	return flat_end_of(f, r);
}

/* Room is waited for that rank R, which does another operation, never makes. */
static int inspect_post(struct flat *f, uint32_t r)
{
	const struct post *p = board_post(f->b->of[r], f->number);
	uint64_t what;

	if (f->turn != flat_long_turn || board_number(f->b->of[r], f->number) != f->number)
		return 0;
	what = board_load(&p->what);
	if (LIKELY(!((what ^ f->what) & ~POST_FLAGS)))
		return 0;
	return flat_blame(f, r, f->number, what, f->count, f->count);
}

static int inspect_member(struct flat *f, uint32_t r)
{
	uint32_t culprit;

	return UNLIKELY(boards_ended(f->b, r, &culprit)) ? meet_end(f, r) : inspect_post(f, r);
}

uint32_t flat_woken_by(const struct flat *f)
{
	uint32_t n = f->last - f->next, first;

	if (f->turn != flat_short_turn || f->waits_for < f->next || f->waits_for >= f->last)
		return f->waits_for;
	first = (uint32_t)(f->number * 7 + f->b->rank * 5) % n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t r = f->next + (first + i) % n;

		if (r != f->b->rank && !boards_has(f->b, r, f->number))
			return r;
	}
	return f->waits_for;
}

bool flat_waits_here(const struct flat *f)
{
	uint32_t r = f->waits_for;

	if (f->turn != flat_short_turn) /* of those behind rank R nothing is known */
		return true;
	if (r < f->next || r >= f->last) /* it waits for room */
		return r >= f->b->size || boards_share(f->b, r);
	for (; r < f->last; r++)
		if (r != f->b->rank && boards_share(f->b, r) && !boards_has(f->b, r, f->number))
			return true;
	return false;
}

bool flat_waits_for(const struct flat *f, uint32_t r)
{
	const struct source *s = &f->b->sources[r];

	if (r == f->b->rank)
		return false;
	if (!boards_has(f->b, r, f->number) && r >= f->next && r < f->last)
		return true;
	if (f->turn != flat_long_turn)
		return r == f->waits_for;
	return r == f->room_of || r == f->data_of ||
	       (f->data_of == BOARD_ANY && r >= f->next && r < f->last &&
		!(s->met && s->got == s->need));
}

static NOINLINE int inspect_ends(struct flat *f)
{
	if (LIKELY(f->waits_for < f->b->size))
		return inspect_member(f, f->waits_for);
	for (uint32_t r = 0; r < f->b->size; r++) {
		int rc = flat_waits_for(f, r) ? inspect_member(f, r) : 0;

		if (rc)
			return rc;
	}
	return 0;
}

/* Rank R has broken the group, and not in a later operation. */
static bool has_given_up(const struct flat *f, uint32_t r)
{
	uint32_t culprit = r;
	int rc = r == f->b->rank ? 0 : boards_ended(f->b, r, &culprit);

	if (!rc || (rc == -SLMPM_ECLOSED && culprit == r))
		return false;
	if (boards_has(f->b, r, f->number + 1))
		return false;
	return !f->b->local || board_load(&board_post(f->b->of[r], f->number)->what) & POST_BROKEN;
}

/* Done, but perhaps too late: others may have given it up. */
static COLD int flat_in_vain(struct flat *f)
{
	uint32_t r = 0;

	f->b->others_broke = false;
	while (r < f->b->size && !has_given_up(f, r))
		r++;
	return r < f->b->size ? boards_broken(f->b, &f->culprit) : 1;
}

int flat_step(struct flat *f)
{
	int rc = f->turn(f);

	if (UNLIKELY(rc > 0 && f->b->others_broke))
		return flat_in_vain(f);
	return LIKELY(rc) ? rc : inspect_ends(f);
}
