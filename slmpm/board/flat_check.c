/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether what is asked for is a collective operation. */
#include <inttypes.h>

#include "slmpm/base/error.h"
#include "slmpm/board/flat_parts.h"
#include "slmpm/plan/plan.h"

/* Bytes of all that a member has in one buffer. */
#define BYTES_MAX (UINT64_C(1) << 62)

static COLD int bad(const struct slmpm_coll *c, const char *what)
{
	return error_set(SLMPM_EINVAL, "%s: %s", plan_kind_name(c->kind), what);
}

static bool lies_in_blocks(uint32_t kind)
{
	return kind == SLMPM_COLL_SCATTER || kind == SLMPM_COLL_GATHER ||
	       kind == SLMPM_COLL_ALLGATHER || kind == SLMPM_COLL_ALLTOALL ||
	       kind == SLMPM_COLL_REDUCE_SCATTER;
}

/* The end of the last block, in bytes; UINT64_MAX: beyond all memory. */
static uint64_t extent(const uint64_t *counts, const uint64_t *places, uint64_t count,
		       uint32_t size, uint32_t shift)
{
	uint64_t end = 0, sum = 0;

	/* Of as many as there ever are no division is needed to see it. */
	if (!counts && count <= BYTES_MAX / SLMPM_GROUP_MAX >> shift)
		return count * size << shift;
	if (!counts)
		return count > (BYTES_MAX >> shift) / size ? UINT64_MAX : count * size << shift;
	for (uint32_t r = 0; r < size; r++) {
		uint64_t at = places ? places[r] : sum;

		if (counts[r] > BYTES_MAX >> shift || at > BYTES_MAX >> shift)
			return UINT64_MAX;
		sum += counts[r];
		if (at + counts[r] > end)
			end = at + counts[r];
		if (sum > BYTES_MAX >> shift || end > BYTES_MAX >> shift)
			return UINT64_MAX;
	}
	return end << shift;
}

static int check_blocks(const struct slmpm_coll *c, uint32_t size, uint32_t rank, uint32_t shift)
{
	bool pairs = c->kind == SLMPM_COLL_ALLTOALL;

	if (!lies_in_blocks(c->kind) && (c->counts || c->places))
		return bad(c, "it has no counts and places");
	if (!pairs && (c->to_counts || c->to_places))
		return bad(c, "it has no to_counts and to_places");
	if ((c->places && !c->counts) || (c->to_places && !c->to_counts))
		return bad(c, "places without counts");
	if (pairs && c->from == SLMPM_IN_PLACE && (c->counts || c->places))
		return bad(c, "in place there are to_counts and to_places alone");
	if (pairs && c->from != SLMPM_IN_PLACE && !c->counts != !c->to_counts)
		return bad(c, "counts and to_counts go together");
	if (c->counts && c->to_counts && c->counts[rank] != c->to_counts[rank])
		return bad(c, "counts and to_counts differ for the member itself");
	if (extent(c->counts, c->places, c->count, size, shift) == UINT64_MAX ||
	    extent(c->to_counts, c->to_places, c->count, size, shift) == UINT64_MAX)
		return bad(c, "so many elements are in no memory");
	return 0;
}

struct side { /* what a member has on one side */
	uint64_t bytes;
	bool used;
};

/* What it reads from, where that is not `to`, and what it writes to. */
static void find_sides(const struct slmpm_coll *c, uint32_t size, uint32_t rank, uint32_t shift,
		       struct side *from, struct side *to)
{
	bool root = flat_has_root(c->kind) && rank == (uint32_t)c->root;
	bool in_place = c->from == SLMPM_IN_PLACE;
	uint64_t own = flat_count(c->counts, c->count, rank) << shift;
	uint64_t all = extent(c->counts, c->places, c->count, size, shift);

	*from = (struct side){all, true};
	*to = (struct side){all, true};
	switch (c->kind) {
	case SLMPM_COLL_BROADCAST:
		*from = (struct side){own, root};
		*to = (struct side){own, !root || in_place};
		break;
	case SLMPM_COLL_SCATTER:
		from->used = root;
		to->bytes = own;
		break;
	case SLMPM_COLL_GATHER:
		from->bytes = own;
		to->used = root;
		break;
	case SLMPM_COLL_ALLGATHER: from->bytes = own; break;
	case SLMPM_COLL_ALLTOALL:
		if (c->to_counts)
			to->bytes = extent(c->to_counts, c->to_places, c->count, size, shift);
		break;
	case SLMPM_COLL_REDUCE_SCATTER: to->bytes = own; break;
	default: /* REDUCE, ALLREDUCE, SCAN, EXSCAN */
		from->bytes = to->bytes = own;
		to->used = c->kind == SLMPM_COLL_REDUCE ? root :
			   c->kind == SLMPM_COLL_EXSCAN ? rank || in_place :
							  true;
	}
}

/* Blocks with places may lie in one another's gaps. */
static bool sides_overlap(const struct slmpm_coll *c, uint64_t from_bytes, uint64_t to_bytes)
{
	uintptr_t from = (uintptr_t)c->from, to = (uintptr_t)c->to;

	if (from == to)
		return from_bytes && to_bytes;
	return !c->places && !c->to_places &&
	       (from < to ? to - from < from_bytes && to_bytes :
			    from - to < to_bytes && from_bytes);
}

/* What a member reads from and writes to: it is there, where it has a byte. */
static int check_memory(const struct slmpm_coll *c, uint32_t size, uint32_t rank, uint32_t shift)
{
	bool in_place = c->from == SLMPM_IN_PLACE;
	struct side from, to;

	find_sides(c, size, rank, shift, &from, &to);
	if (in_place && !(from.used && to.used))
		return bad(c, "in place is at the root alone");
	if (from.used && !in_place && !c->from && from.bytes)
		return bad(c, ".from is NULL");
	if (to.used && !c->to && (to.bytes || (in_place && from.bytes)))
		return bad(c, ".to is NULL");
	if (from.used && to.used && !in_place && sides_overlap(c, from.bytes, to.bytes))
		return bad(c, ".from and .to overlap: SLMPM_IN_PLACE says that they are the same");
	return 0;
}

/* All but its memory. */
static int check_shape(const struct slmpm_coll *c, uint32_t size, uint32_t rank, uint32_t *shift)
{
	*shift = 0;
	if (!plan_kind_name(c->kind))
		return error_set(SLMPM_EINVAL, "no kind %u of collective operation", c->kind);
	if (c->flags)
		return bad(c, "unknown flags");
	if (UNLIKELY(c->combine)) {
		if (!flat_combines(c->kind))
			return bad(c, "it combines nothing: .combine");
	} else if (c->kind == SLMPM_COLL_BARRIER) {
		return 0;
	} else {
		if (!calc_is_type(c->type))
			return error_set(SLMPM_EINVAL, "%s: no type %u", plan_kind_name(c->kind),
					 c->type);
		if (flat_combines(c->kind) && !calc_kernel_of(c->op, c->type, false))
			return error_set(SLMPM_EINVAL, "%s: no operation %u of type %u",
					 plan_kind_name(c->kind), c->op, c->type);
		*shift = calc_shift(c->type);
	}
	if (flat_has_root(c->kind) && (c->root < 0 || (uint32_t)c->root >= size))
		return error_set(SLMPM_EINVAL, "%s: no root %d in a group of %u",
				 plan_kind_name(c->kind), c->root, size);
	if (c->to == SLMPM_IN_PLACE)
		return bad(c, ".to is SLMPM_IN_PLACE, which .from alone may be");
	return check_blocks(c, size, rank, *shift);
}

/* One that is right at a glance, as most are: it has no blocks, and memory of its own on both
 * sides. False: that takes more to see. */
static bool is_plain(const struct slmpm_coll *c, uint32_t size)
{
	uintptr_t from = (uintptr_t)c->from, to = (uintptr_t)c->to;
	uint64_t bytes;

	if (c->flags | (uintptr_t)c->counts | (uintptr_t)c->places | (uintptr_t)c->to_counts |
	    (uintptr_t)c->to_places | (uintptr_t)c->combine)
		return false;
	if (c->kind != SLMPM_COLL_BROADCAST && c->kind != SLMPM_COLL_ALLREDUCE)
		return c->kind == SLMPM_COLL_BARRIER;
	if (!calc_is_type(c->type) || (uint32_t)c->root >= size || c->count > UINT32_MAX)
		return false;
	if (c->kind == SLMPM_COLL_ALLREDUCE && !calc_kernel_of(c->op, c->type, false))
		return false;
	bytes = c->count << calc_shift(c->type);
	/* Neither is NULL or SLMPM_IN_PLACE; a broadcast uses one of them. */
	return from + 1 > 1 && to + 1 > 1 &&
	       (c->kind == SLMPM_COLL_BROADCAST || (to - from >= bytes && from - to >= bytes));
}

/* Apart, as a glance needs no registers of the caller's. */
static NOINLINE int check_all(const struct slmpm_coll *c, uint32_t size, uint32_t rank)
{
	uint32_t shift;
	int rc = check_shape(c, size, rank, &shift);

	return rc < 0 || (c->kind == SLMPM_COLL_BARRIER && !c->combine) ?
		       rc :
		       check_memory(c, size, rank, shift);
}

int flat_check(const struct slmpm_coll *c, uint32_t size, uint32_t rank)
{
	return LIKELY(is_plain(c, size)) ? 0 : check_all(c, size, rank);
}

int flat_needs(const struct slmpm_coll *c, uint32_t size, uint32_t rank, uint64_t *from_bytes,
	       uint64_t *to_bytes)
{
	bool in_place = c->from == SLMPM_IN_PLACE;
	struct side from, to;
	uint32_t shift;
	int rc = check_shape(c, size, rank, &shift);

	*from_bytes = *to_bytes = 0;
	if (rc < 0 || c->kind == SLMPM_COLL_BARRIER)
		return rc;
	find_sides(c, size, rank, shift, &from, &to);
	if (from.used && !in_place)
		*from_bytes = from.bytes;
	if (to.used)
		*to_bytes = in_place && from.used && from.bytes > to.bytes ? from.bytes : to.bytes;
	return 0;
}
