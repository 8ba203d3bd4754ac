/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations whose contributions lie in the posts and have one length: a barrier, and broadcasts
 * and reductions of a few bytes. A member posts, and reads one line of each that it needs.
 */
#include "slmpm/board/flat_parts.h"

static INLINE struct post *next_slot(const struct flat *f)
{
	return &f->b->own->posts[(f->number + 1) % BOARD_SLOTS];
}

/* Between its post and the first look at another's, where lines are demoted: as flat_between_looks.
 * Who waits for a root waits longest: that one may have waited for this member's post before. */
static INLINE void rest_by_count(const struct flat *f, bool all)
{
	const unsigned before = all ? (f->bytes ? 7 : 3) : 22;

	for (unsigned i = 0; i < before; i++)
		clock_between_polls();
}

/* Where they are not, no count fits all: a line takes 40 ns between two processors, and 240 between
 * two others. All that are in step look at once. A root posts when it has this member's last post,
 * the time of a line from now: until then this member gets the line of its next post, which takes
 * as long where the root has read what lies there. */
static INLINE void rest_by_line(const struct flat *f, bool all)
{
	if (!all) /* nothing changes in it */
		claim_line(&next_slot(f)->number);
	clock_between_polls(); /* no look before that */
}

/* A root waits for none. */
static INLINE void rest_short(const struct flat *f)
{
	const bool all = f->last - f->first == f->b->size;

	if (f->next == f->last || f->b->size == 1 || f->b->crowded) /* else some post much later */
		return;
	if (f->b->demotes)
		rest_by_count(f, all);
	else
		rest_by_line(f, all);
}

static void post_short(struct flat *f)
{
	struct post *slot = boards_slot(f->b);

	boards_say(slot, f->what, f->count);
	if (f->out.length)
		copy_short(slot->bytes, f->out.from, f->out.length);
	boards_post(f->b);
	f->posted = true;
	if (f->b->crowded)
		return; /* who shares the processor has it near */
	if (f->b->demotes) {
		demote(slot, sizeof(*slot));
		/* With a root that changes others have the one after the next; in step they would take
		 * it back. */
		if (f->last - f->first != f->b->size)
			claim_ahead(&f->b->own->posts[(f->number + 2) % BOARD_SLOTS]);
	} else {
		claim_ahead(next_slot(f)); /* it comes while the others' posts do */
	}
	f->between = f->bytes ? 3 : 9;
}

static INLINE void add_double(void *to, const void *a, const void *b)
{
	double x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	x += y;
	memcpy(to, &x, sizeof(x));
}

/* The contribution AT of rank R. The first one is kept, where there is another to come. */
static INLINE void take_short(struct flat *f, uint32_t r, const unsigned char *at)
{
	unsigned char *to = r + 1 == f->last ? f->to : f->combined;

	if (r == f->first)
		copy_short(to, at, f->bytes);
	else if (f->adds) /* what is asked for most: a call by address takes longer than the sum */
		add_double(to, f->combined, at);
	else
		flat_combine(f, to, f->combined, at, f->bytes >> f->shift);
}

static INLINE int meet_short(struct flat *f, uint32_t r)
{
	const struct post *p = board_post(f->b->of[r], f->number);
	uint64_t number = board_number(f->b->of[r], f->number), what, count;

	if (number != f->number) {
		f->waits_for = r;
		f->awaited = f->b->demotes || f->b->crowded ? NULL : &p->number;
		return LIKELY(number < f->number) ? 0 : flat_refuse(f, r, "number");
	}
	what = board_load(&p->what);
	count = board_load(&p->count);
	if (UNLIKELY(((what ^ f->what) & ~POST_FLAGS) || count != f->count))
		return flat_blame(f, r, f->number, what, count, f->count);
	if (UNLIKELY(!(what & POST_IN_LINE)))
		return flat_refuse(f, r, "flags");
	if (f->bytes)
		take_short(f, r, p->bytes);
	return 1;
}

void flat_post_early(struct flat *f)
{
	if (f->turn == flat_short_turn && f->b->reached + BOARD_SLOTS > f->number)
		post_short(f);
}

/* Those that share this processor come first: a look at what another one is about to write takes
 * the line away from it, in vain while these have not posted. */
static INLINE bool lacks_here(struct flat *f)
{
	for (; f->here < f->last; f->here++) {
		if (f->here == f->b->rank || !boards_share(f->b, f->here) ||
		    boards_has(f->b, f->here, f->number))
			continue;
		f->waits_for = f->here;
		return true;
	}
	return false;
}

int flat_short_turn(struct flat *f)
{
	if (UNLIKELY(!f->posted)) {
		int rc = flat_may_post(f, &f->waits_for);

		if (UNLIKELY(rc <= 0))
			return rc;
		post_short(f);
		rest_short(f);
	}
	if (UNLIKELY(f->b->crowded) && lacks_here(f))
		return 0;
	for (; f->next < f->last; f->next++) {
		if (f->next != f->b->rank) {
			int rc = meet_short(f, f->next);

			if (rc <= 0)
				return rc;
		} else if (f->bytes && f->from) {
			take_short(f, f->next, f->from);
		}
	}
	return flat_done(f);
}
