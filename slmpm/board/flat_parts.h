/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of flat.h have of one another. */
#ifndef SLMPM_BOARD_FLAT_PARTS_H
#define SLMPM_BOARD_FLAT_PARTS_H

#include <string.h>

#include "shm/copy.h"
#include "slmpm/board/flat.h"
#include "slmpm/board/layout.h"
#include "slmpm/board/reach.h"
#include "slmpm/board/shared.h"

#define FLAT_CHUNK      (BOARD_PIECE / 2) /* bytes that are combined at a time */
#define FLAT_DIRECT_MIN (2 * BOARD_PIECE) /* bytes of a block: less gains nothing straight */
#define TABLE_ROW       2                 /* words: where a member's block begins, its elements */

_Static_assert(FLAT_SHORT == BOARD_INLINE, "what lies in a post");

static inline bool flat_combines(uint32_t kind)
{
	return kind == SLMPM_COLL_REDUCE || kind == SLMPM_COLL_ALLREDUCE ||
	       kind == SLMPM_COLL_REDUCE_SCATTER || kind == SLMPM_COLL_SCAN ||
	       kind == SLMPM_COLL_EXSCAN;
}

static inline bool flat_has_root(uint32_t kind)
{
	return kind == SLMPM_COLL_BROADCAST || kind == SLMPM_COLL_REDUCE ||
	       kind == SLMPM_COLL_SCATTER || kind == SLMPM_COLL_GATHER;
}

static INLINE uint64_t flat_post_root(const struct slmpm_coll *c)
{
	return (uint64_t)(uint32_t)c->root << POST_ROOT;
}

/* What is begun now, and some bits of all before it: so members that have done different things see
 * it by the next post that one has of the other, though neither read the other's then. */
static inline uint64_t flat_with_history(struct boards *b, uint64_t what)
{
	what ^= b->history & POST_HISTORY;
	b->history = (b->history ^ what) * UINT64_C(0x9e3779b97f4a7c15);
	return what;
}

/* What C posts, which flat_repeats. */
static INLINE uint64_t flat_what_again(const struct flat *f, struct boards *b,
				       const struct slmpm_coll *c)
{
	uint64_t what = f->same.what;

	if (c->kind == SLMPM_COLL_BROADCAST)
		what |= flat_post_root(c);
	return flat_with_history(b, what) | post_lap(b->posted + 1) | POST_IN_LINE;
}

static inline uint64_t flat_count(const uint64_t *counts, uint64_t count, uint32_t r)
{
	return counts ? counts[r] : count;
}

/* Elements of the blocks before rank R's. */
static inline uint64_t flat_before(const uint64_t *counts, uint64_t count, uint32_t r)
{
	uint64_t sum = 0;

	if (!counts)
		return count * r;
	for (uint32_t i = 0; i < r; i++)
		sum += counts[i];
	return sum;
}

/* The first element of rank R's block in a buffer of all. */
static inline uint64_t flat_place(const uint64_t *counts, const uint64_t *places, uint64_t count,
				  uint32_t r)
{
	return counts && places ? places[r] : flat_before(counts, count, r);
}

static inline uint64_t flat_pad(uint64_t bytes)
{
	return (bytes + BOARD_LINE - 1) & ~(uint64_t)(BOARD_LINE - 1);
}

/* flat_own.c: N bytes by a function of the program's own. */
void flat_combine_own(const struct flat *f, void *to, const void *a, const void *b, size_t n);
/* Bytes that it combines at a time, at most. */
uint64_t flat_own_most(const struct slmpm_coll *c);

/* N elements: to = a OP b. */
static inline void flat_combine(const struct flat *f, void *to, const void *a, const void *b,
				size_t n)
{
	struct calc_fold fold;

	if (UNLIKELY(!f->kernel)) {
		flat_combine_own(f, to, a, b, n);
		return;
	}
	fold.form = f->form;
	fold.n = n;
	fold.to = to;
	fold.from[0] = a;
	fold.from[1] = b;
	fold.to_stride = fold.stride[0] = fold.stride[1] = (int64_t)1 << f->shift;
	f->kernel(&fold);
}

/* flat.c: all others have posted enough that this member's post may take the slot of an older one,
 * and the same operations as this one: 1; 0: *WHO has not posted that much; negative. */
int flat_catch_up(struct flat *f, uint32_t *who);

static inline int flat_may_post(struct flat *f, uint32_t *who)
{
	return LIKELY(f->b->reached + BOARD_SLOTS > f->number) ? 1 : flat_catch_up(f, who);
}

/* It is done; where it has read all others' posts these are as far as this member: of two a
 * broadcast's root may be all others. */
static inline int flat_done(const struct flat *f)
{
	const bool among = f->first <= f->b->rank && f->b->rank < f->last;

	if (f->last - f->first + !among == f->b->size)
		f->b->reached = f->number;
	return 1;
}

/* flat.c: */
/* C, which flat_repeats, is numbered and posted so. */
void flat_plan_again(struct flat *f, const struct slmpm_coll *c, uint64_t number, uint64_t what);
int flat_long_turn(struct flat *f);
/* This member's own block is where it belongs, if it is to be kept. */
void flat_keep_own(struct flat *f);
/* Or the front of it, up to END bytes. */
void flat_keep_up_to(struct flat *f, uint64_t end);
int flat_finish(struct flat *f);
/* flat_direct.c: whether F can be done without the ring, if all others can; some more of it; it is
 * given up. */
bool flat_is_direct(const struct flat *f);
int flat_direct_turn(struct flat *f);
uint32_t flat_drop_direct(struct flat *f);
/* It goes on by the ring, from the start. */
int flat_by_ring(struct flat *f);
/* A member has said that it cannot. */
bool flat_has_failed(const struct flat *f);
/* All are through: 1; 0: f->waits_for has withdrawn it. */
int flat_end_direct(struct flat *f);
/* flat_route.c: whether F, which can be, is to be done without the ring; it is done, by one or the
 * other, where this member measures that (f->measured). */
bool flat_route_is_direct(struct flat *f);
void flat_route_taken(struct flat *f);
/* Likewise: the last one that has been waited for has posted. */
static inline void flat_route_note_met(struct flat *f)
{
	if (f->measured)
		f->met = clock_ticks();
}

/* flat_shared.c: whether this member's buffers are where the others can read what they need of
 * them; some more of it, once all have said so. */
bool flat_is_shared(struct flat *f);
int flat_shared_turn(struct flat *f);
/* flat_short.c: contributions of one length that lie in the posts. */
int flat_short_turn(struct flat *f);
/* flat_write.c: where N bytes go that come behind AT. */
uint64_t flat_behind(uint64_t at, uint64_t n);
/* flat_write.c: some more of the contribution. 1: that was something; 0; negative. */
int flat_write(struct flat *f);
/* flat_read.c: some more of the others'. 1: that was something; 0: nothing to be read now, f->next
 * says whether it is all; negative. */
int flat_copy(struct flat *f);
int flat_fold(struct flat *f);
/* Bytes that are needed of rank R; elements that its post is to name. */
uint64_t flat_needed_of(const struct flat *f, uint32_t r);
uint64_t flat_count_of(const struct flat *f, uint32_t r);
/* Where what is copied of rank R goes. */
unsigned char *flat_block_to(const struct flat *f, uint32_t r);
/* flat_blame.c: for texts. */
const char *flat_type_name(uint32_t type);
const char *flat_op_name(uint32_t op);
/* WHAT rank R has posted as operation NUMBER is not what this member has:
 * -SLMPM_EINVAL. It names HAD elements, and should name COUNT. */
int flat_blame(struct flat *f, uint32_t r, uint64_t number, uint64_t what, uint64_t had,
	       uint64_t count);
/* Its words are impossible: -SLMPM_EPROTO. */
int flat_refuse(struct flat *f, uint32_t r, const char *what);
/* It has left, or says that the group is broken. */
int flat_end_of(struct flat *f, uint32_t r);

#endif
