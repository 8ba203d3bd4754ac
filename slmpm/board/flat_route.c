/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which route long blocks take that could go straight between buffers (flat_direct.c). What the
 * kernel takes for a page differs by processor, and what a copy takes by what lies in which cache:
 * so it is measured in the group (choice.h), for each kind and each power of two of a block.
 *
 * One member measures: the first that gets something, since a ring lets its writer go before it is
 * read. What is to be taken next stands on its board, in the line where all see that it may be
 * reached (reach.h), so they all begin with the same route, without a word more. One that begins
 * before that changes offers what the others do not, or the reverse: it is done by the ring then.
 */
#include <stdlib.h>

#include "slmpm/base/config.h"
#include "slmpm/board/flat_parts.h"
#include "slmpm/choice/choice.h"

#define KINDS   5
#define CLASSES 12 /* of lengths, from FLAT_DIRECT_MIN on */
_Static_assert(KINDS *CLASSES <= 64, "each has a bit of by_ring");

struct flat_costs { /* of one member, which measures; the other route is the ring */
	struct choice of[KINDS * CLASSES];
};

static unsigned long_kind(const struct slmpm_coll *c)
{
	switch (c->kind) {
	case SLMPM_COLL_BROADCAST: return 0;
	case SLMPM_COLL_SCATTER: return 1;
	case SLMPM_COLL_GATHER: return 2;
	case SLMPM_COLL_ALLGATHER: return 3;
	default: return 4; /* ALLTOALL */
	}
}

static unsigned long_index(const struct flat *f)
{
	unsigned class = 63 - (unsigned)__builtin_clzll(f->bytes / FLAT_DIRECT_MIN | 1);

	return long_kind(f->coll) * CLASSES + (class < CLASSES ? class : CLASSES - 1);
}

static uint32_t long_measurer(const struct slmpm_coll *c)
{
	switch (c->kind) {
	case SLMPM_COLL_BROADCAST:
	case SLMPM_COLL_SCATTER: return 1 - (uint32_t)c->root; /* they go straight between two */
	case SLMPM_COLL_GATHER: return (uint32_t)c->root;
	default: return 0;
	}
}

/* NULL: there is no memory. */
static struct choice *long_choice(const struct flat *f)
{
	struct boards *b = f->b;

	if (!b->costs)
		b->costs = calloc(1, sizeof(*b->costs));
	return b->costs ? &b->costs->of[long_index(f)] : NULL;
}

bool flat_route_is_direct(struct flat *f)
{
	const int64_t straight = config_get()->fetch;
	uint32_t who = long_measurer(f->coll);

	if (straight != WHEN_AUTO)
		return straight == WHEN_ALWAYS;
	if (who == f->b->rank) {
		f->measured = long_choice(f);
		f->began = clock_ticks();
		f->met = 0;
	}
	return !(board_load(&f->b->of[who]->by_ring) >> long_index(f) & 1);
}

/* Until then it may have waited for one that came late: that counts up to as much as the rest. */
static uint64_t long_took(const struct flat *f)
{
	uint64_t now = clock_ticks(), met = f->met ? f->met : now;
	uint64_t waited = met - f->began, rest = now - met;

	return rest + least_of(waited, rest);
}

void flat_route_taken(struct flat *f)
{
	bool by_ring = !f->copied;
	struct choice *c = f->measured;
	uint64_t bit = UINT64_C(1) << long_index(f), word = board_load(&f->b->own->by_ring);
	enum choice_note note = choice_taken(c, by_ring);

	choice_learn(c, by_ring, note, long_took(f), f->bytes);
	f->measured = NULL;
	if (choice_takes_other(c) != ((word & bit) != 0))
		board_store(&f->b->own->by_ring, word ^ bit);
}
