/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A contribution written to the own ring, a piece at a time: behind the first one the operation is
 * posted, behind each further one `written` goes on. Where the ring has been used once, a piece
 * waits until those that need what lies there have read it.
 */
#include "slmpm/board/flat_parts.h"

#define DEMOTED 512 /* bytes: longer ones cost their writer more than the readers gain */

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The member whose block is the Ith: by rank, or the next ones first. */
static uint32_t reader_of(const struct flat *f, uint32_t i)
{
	uint32_t rank = f->b->rank, size = f->b->size;

	if (f->out.rotated)
		return rank + 1 + i < size ? rank + 1 + i : rank + 1 + i - size;
	return i < rank ? i : i + 1;
}

static uint64_t block_bytes(const struct flat *f, uint32_t i)
{
	return flat_count(f->out.counts, f->coll->count, reader_of(f, i)) << f->shift;
}

static const unsigned char *block_from(const struct flat *f, uint32_t i)
{
	const struct flat_out *o = &f->out;

	return o->from +
	       (flat_place(o->counts, o->places, f->coll->count, reader_of(f, i)) << f->shift);
}

/* ---- room ------------------------------------------------------------------------------------ */

/* How much of the contribution rank R has read; all before the contribution is 0. */
static uint64_t read_by(const struct flat *f, uint32_t r)
{
	/* Acquire pairs with the release in flat_report: it has read before this member writes there. */
	uint64_t taken = atomic_load_explicit(&f->b->of[r]->taken[f->b->seats[f->b->rank]],
					      memory_order_acquire);

	return (int64_t)(taken - f->out.at) > 0 ? taken - f->out.at : 0;
}

/* Blocks: each is read by one member, which reads the table as well. */
static void free_blocks(struct flat *f)
{
	struct flat_out *o = &f->out;

	while (o->freeing + 1 < f->b->size) {
		uint32_t r = reader_of(f, o->freeing);
		uint64_t end = o->freeing_at + block_bytes(f, o->freeing), read = read_by(f, r);

		/* Of a block without a byte its reader says nothing. */
		if (read < end && end > o->freeing_at) {
			f->b->freed = o->at + (read > o->freeing_at ? read : o->freeing_at);
			f->room_of = r;
			return;
		}
		o->freeing++;
		o->freeing_at = end;
	}
	f->b->freed = o->at + o->freeing_at;
}

static bool table_is_read(struct flat *f)
{
	struct flat_out *o = &f->out;

	for (uint32_t i = 0; !o->table_read && i + 1 < f->b->size; i++)
		if (read_by(f, reader_of(f, i)) < o->table) {
			f->room_of = reader_of(f, i);
			return false;
		}
	o->table_read = true;
	return true;
}

static void free_one(struct flat *f)
{
	uint64_t least = f->out.length;

	for (uint32_t r = f->out.first; r < f->out.last; r++) {
		uint64_t read = r == f->b->rank ? least : read_by(f, r);

		if (read < least) {
			least = read;
			f->room_of = r;
		}
	}
	f->b->freed = f->out.at + least;
}

/* Room up to END of the contribution; else f->room_of is whom that waits for. */
static bool flat_has_room(struct flat *f, uint64_t end)
{
	struct boards *b = f->b;
	uint64_t needed = f->out.at + end - BOARD_RING; /* what is to be free before */

	f->room_of = BOARD_NONE;
	if (LIKELY((int64_t)(needed - b->freed) <= 0))
		return true;
	if ((int64_t)(needed - f->out.at) <= 0) {
		uint64_t n = b->reached;

		while (n < f->number && (int64_t)(needed - b->starts[n % BOARD_SLOTS]) > 0)
			n++;
		if (!boards_reach(b, n, &f->room_of))
			return false;
		b->freed = n < f->number ? b->starts[n % BOARD_SLOTS] : f->out.at;
		return true;
	}
	if (!boards_reach(b, f->number, &f->room_of))
		return false;
	if (!f->out.blocks)
		free_one(f);
	else if (f->out.table && !table_is_read(f))
		return false;
	else
		free_blocks(f);
	return (int64_t)(needed - b->freed) <= 0;
}

/* Where N bytes go behind AT: as many operations of that length as there are posts keep to the same
 * lines, which are near. */
uint64_t flat_behind(uint64_t at, uint64_t n)
{
	uint64_t near = BOARD_SLOTS * n, in = at % BOARD_RING;

	return in <= near && in + n > near ? at + BOARD_RING - in : at;
}

/* The next one, if it is alike, is written to lines that are this processor's by then: they come
 * back from the readers while those are waited for. */
static void claim_next(const struct flat *f)
{
	uint64_t n = flat_pad(f->out.length), at = flat_behind(f->b->written, n);

	for (uint64_t i = 0; i < n; i += BOARD_LINE)
		claim_ahead(f->b->own->ring + (at + i) % BOARD_RING);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void put(struct flat *f, const void *from, uint64_t n)
{
	struct flat_out *o = &f->out;

	while (n) {
		uint64_t at = (o->at + o->done) % BOARD_RING;
		uint64_t run = least_of(n, BOARD_RING - at);

		copy_payload(f->b->own->ring + at, from, run);
		from = (const unsigned char *)from + run;
		o->done += run;
		n -= run;
	}
}

static void put_table(struct flat *f)
{
	uint64_t begin = 0, row[TABLE_ROW];

	for (uint32_t i = 0; i + 1 < f->b->size; i++) {
		uint64_t at = f->out.at + reader_of(f, i) * sizeof(row);

		row[0] = begin;
		row[1] = block_bytes(f, i) >> f->shift;
		begin += row[1];
		memcpy(f->b->own->ring + at % BOARD_RING, row, sizeof(row));
	}
	f->out.done = f->out.table;
	f->out.block_at = f->out.freeing_at = f->out.table;
}

static void put_blocks(struct flat *f, uint64_t end)
{
	struct flat_out *o = &f->out;

	if (o->done < o->table)
		put_table(f);
	while (o->done < end) {
		uint64_t bytes = block_bytes(f, o->block), in = o->done - o->block_at;

		put(f, block_from(f, o->block) + in, least_of(bytes - in, end - o->done));
		if (o->done - o->block_at == bytes) {
			o->block++;
			o->block_at = o->done;
		}
	}
}

static void put_up_to(struct flat *f, uint64_t end)
{
	if (f->out.blocks)
		put_blocks(f, end);
	else
		put(f, f->out.from + f->out.done, end - f->out.done);
}

/* ---- saying so ------------------------------------------------------------------------------- */

/* Blocks so few and short that all of them lie in the post. */
static void put_in_line(const struct flat *f, unsigned char *to)
{
	if (!f->out.blocks) {
		copy_short(to, f->out.from, f->out.length);
		return;
	}
	for (uint32_t i = 0; i + 1 < f->b->size; i++) {
		uint64_t bytes = block_bytes(f, i);

		copy_short(to, block_from(f, i), bytes);
		to += bytes;
	}
}

/* What has been put, up to the ring's end. */
static void demote_put(const struct flat *f)
{
	uint64_t in = f->out.at % BOARD_RING;

	demote(f->b->own->ring + in, least_of(f->out.done, BOARD_RING - in));
}

/* With the first piece, where there is room for it. */
static void post_long(struct flat *f)
{
	struct post *slot = boards_slot(f->b);
	struct flat_out *o = &f->out;
	uint64_t end = least_of(BOARD_PIECE, o->length);

	boards_say(slot, f->what, f->count);
	if (f->what & POST_IN_LINE) {
		put_in_line(f, slot->bytes);
		o->done = o->length;
	} else {
		f->b->written = o->at = flat_behind(o->at, flat_pad(o->length));
		if (flat_has_room(f, end))
			put_up_to(f, end);
		if (o->length <= DEMOTED && !f->b->crowded)
			demote_put(f);
		board_store(&slot->at, o->at);
		board_store(&slot->length, o->length);
		board_store(&slot->present, o->done);
	}
	boards_post(f->b);
	if (!f->b->crowded)
		demote(slot, sizeof(*slot));
	f->posted = true;
	if (f->what & POST_IN_LINE)
		return;
	f->b->written = flat_pad(o->at + o->length);
	if (o->length <= BOARD_PIECE)
		claim_next(f);
}

/* What has just been written this member keeps, too: it is in the cache. */
static void keep_written(struct flat *f)
{
	if (f->coll->kind == SLMPM_COLL_ALLGATHER)
		flat_keep_up_to(f, f->out.done);
}

int flat_write(struct flat *f)
{
	struct flat_out *o = &f->out;
	uint64_t end = least_of(o->done + BOARD_PIECE, o->length);

	f->room_of = BOARD_NONE;
	if (!f->posted) {
		int rc = flat_may_post(f, &f->room_of);

		if (rc > 0)
			post_long(f);
		return rc;
	}
	if (o->done == o->length || !flat_has_room(f, end))
		return 0;
	put_up_to(f, end);
	/* Pairs with the acquire in there_of: the bytes are seen with it. */
	atomic_store_explicit(&f->b->own->written, o->at + end, memory_order_release);
	boards_wake(f->b);
	keep_written(f);
	return 1;
}
