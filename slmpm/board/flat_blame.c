/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of a member that does another operation than the others, or none any more. */
#include <inttypes.h>
#include <stdio.h>

#include "slmpm/base/error.h"
#include "slmpm/board/flat_parts.h"
#include "slmpm/plan/plan.h"

const char *flat_type_name(uint32_t type)
{
	static const char *const name[] = {"no type", "int8",   "int16",  "int32", "int64", "uint8",
					   "uint16",  "uint32", "uint64", "float", "double"};

	return type < sizeof(name) / sizeof(name[0]) ? name[type] : "an unknown type";
}

const char *flat_op_name(uint32_t op)
{
	static const char *const name[] = {"no operation", "sum", "product", "min", "max", "and",
					   "or",           "xor", "land",    "lor", "lxor"};

	if (op >= POST_OWN)
		return "a function of its own";
	return op < sizeof(name) / sizeof(name[0]) ? name[op] : "an unknown operation";
}

/* ---- what differs ---------------------------------------------------------------------------- */

struct said { /* of one member, as an operation */
	uint32_t rank;
	uint64_t what, count;
};

/* The kind, and the call of which it is a step. */
static uint32_t said_kind(uint64_t what)
{
	const uint32_t kind = (uint8_t)what;

	return post_is_own(what) || flat_combines(kind) ?
		       kind :
		       kind | (uint32_t)(uint8_t)(what >> POST_OP) << BOARD_KIND_CALL;
}

static int differ(const struct flat *f, uint64_t number, const struct said *a, const char *as,
		  const struct said *b, const char *bs)
{
	return boards_error(f->b, SLMPM_EINVAL, number, said_kind(a->what),
			    BOARD_MEMBER " has %s, " BOARD_MEMBER " %s",
			    BOARD_MEMBER_OF(f->b, b->rank), bs, BOARD_MEMBER_OF(f->b, a->rank), as);
}

static int differ_in(const struct flat *f, uint64_t number, const char *what, const struct said *a,
		     uint64_t as, const struct said *b, uint64_t bs)
{
	char first[48], second[48];

	(void)snprintf(first, sizeof(first), "%s %" PRIu64, what, as);
	(void)snprintf(second, sizeof(second), "%s %" PRIu64, what, bs);
	return differ(f, number, a, first, b, second);
}

static const char *kind_name(uint64_t what)
{
	const char *name = boards_kind_name(said_kind(what));

	return name ? name : "an unknown kind";
}

/* Of the same kind: what is done with the elements, and what these are. True: that differs. */
static bool differ_in_elements(const struct flat *f, uint64_t number, const struct said *a,
			       const struct said *b, int *rc)
{
	uint64_t other = a->what ^ b->what;
	bool own = post_is_own(a->what);

	if (own && post_is_own(b->what)) {
		uint64_t as = post_own_width(a->what), bs = post_own_width(b->what);

		*rc = as != bs ? differ_in(f, number, "width", a, as, b, bs) : 0;
	} else if (!own && !post_is_own(b->what) && (uint8_t)(other >> POST_TYPE)) {
		*rc = differ(f, number, a, flat_type_name((uint8_t)(a->what >> POST_TYPE)), b,
			     flat_type_name((uint8_t)(b->what >> POST_TYPE)));
	} else {
		*rc = (uint8_t)(other >> POST_OP) ?
			      differ(f, number, a, flat_op_name((uint8_t)(a->what >> POST_OP)), b,
				     flat_op_name((uint8_t)(b->what >> POST_OP))) :
			      0;
	}
	return *rc;
}

static int flat_differ(const struct flat *f, uint64_t number, const struct said *a,
		       const struct said *b)
{
	uint64_t other = a->what ^ b->what, ranks = (1u << POST_RANK_BITS) - 1;
	uint64_t width = post_is_own(a->what) ? post_own_width(a->what) : 1;
	int rc;

	if (said_kind(a->what) != said_kind(b->what))
		return differ(f, number, a, kind_name(a->what), b, kind_name(b->what));
	if (differ_in_elements(f, number, a, b, &rc))
		return rc;
	if ((uint16_t)(other >> POST_ROOT))
		return differ_in(f, number, "root", a, a->what >> POST_ROOT & ranks, b,
				 b->what >> POST_ROOT & ranks);
	if (a->count != b->count || !(other >> POST_SAME))
		return differ_in(f, number, "count", a, a->count / width, b, b->count / width);
	if ((uint8_t)a->what != SLMPM_COLL_REDUCE_SCATTER)
		return boards_error(f->b, SLMPM_EINVAL, number, (uint8_t)a->what,
				    "what " BOARD_MEMBER
				    " has done before it is not what " BOARD_MEMBER " has",
				    BOARD_MEMBER_OF(f->b, b->rank), BOARD_MEMBER_OF(f->b, a->rank));
	return differ(f, number, a, "counts", b, "others of the same sum");
}

/* ---- who ------------------------------------------------------------------------------------- */

static bool said_by(const struct flat *f, uint32_t r, uint64_t number, struct said *said)
{
	const struct board *board = f->b->of[r];
	const struct post *p = board_post(board, number);

	said->rank = r;
	if (r == f->b->rank && number == f->number) {
		said->what = f->what;
		said->count = f->count;
		return true;
	}
	if (board_number(board, number) != number)
		return false;
	said->count = board_load(&p->count);
	/* Pairs with the release in boards_say: a count of a later operation shows by its lap. */
	atomic_thread_fence(memory_order_acquire);
	said->what = board_load(&p->what) & ~POST_BROKEN;
	return post_is_of(said->what, number);
}

static bool is_unlike(const struct said *a, const struct said *b)
{
	uint32_t kind = (uint8_t)a->what;
	bool same_count = flat_combines(kind) || kind == SLMPM_COLL_BROADCAST;

	return ((a->what ^ b->what) & ~POST_FLAGS) || (same_count && a->count != b->count);
}

/* The lowest rank that is there, and the next one that has something else: the same two at all
 * members, whichever of them each has compared. */
static bool find_unlike(const struct flat *f, uint64_t number, struct said *a, struct said *b)
{
	uint32_t r = 0;

	while (r < f->b->size && !said_by(f, r, number, a))
		r++;
	while (++r < f->b->size)
		if (said_by(f, r, number, b) && is_unlike(a, b))
			return true;
	return false;
}

/* The first operation in which two differ: later ones do for its sake. */
static bool find_first_unlike(const struct flat *f, uint64_t *number, struct said *a,
			      struct said *b)
{
	uint64_t last = *number;

	*number = last - f->b->base < BOARD_SLOTS ? f->b->base + 1 : last - BOARD_SLOTS + 1;
	while (*number <= last && !find_unlike(f, *number, a, b))
		++*number;
	return *number <= last;
}

COLD int flat_blame(struct flat *f, uint32_t r, uint64_t number, uint64_t what, uint64_t had,
		    uint64_t count)
{
	uint64_t first = number;
	struct said a, b;
	uint32_t culprit;

	/* Pairs with the release in mark_broken. */
	atomic_thread_fence(memory_order_acquire);
	if (what & POST_BROKEN && boards_ended(f->b, r, &culprit))
		return flat_end_of(f, r);
	if (!find_first_unlike(f, &first, &a, &b)) {
		first = number;
		a = (struct said){f->b->rank, f->what, count};
		if (number != f->number) /* as it is looked at late */
			a.what = board_load(&board_post(f->b->own, number)->what);
		b = (struct said){r, what, had};
	}
	f->culprit = b.rank;
	return flat_differ(f, first, &a, &b);
}

COLD int flat_refuse(struct flat *f, uint32_t r, const char *what)
{
	f->culprit = r;
	return boards_error(f->b, SLMPM_EPROTO, f->number, (uint8_t)f->what,
			    "the %s that " BOARD_MEMBER " posts is impossible", what,
			    BOARD_MEMBER_OF(f->b, r));
}

COLD int flat_end_of(struct flat *f, uint32_t r)
{
	int rc = boards_broken(f->b, &f->culprit);

	if (rc < 0)
		return rc;
	f->culprit = r;
	return boards_error(f->b, SLMPM_ECLOSED, f->number, (uint8_t)f->what,
			    BOARD_MEMBER " has left the group", BOARD_MEMBER_OF(f->b, r));
}
