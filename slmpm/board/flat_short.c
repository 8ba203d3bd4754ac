/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations whose contributions lie in the posts and have one length: a barrier, and broadcasts
 * and reductions of a few bytes. A member posts, and reads one line of each that it needs.
 */
#include "slmpm/board/flat_parts.h"

#define MEASURED   256u /* operations, of which two are measured */
#define NEAR_NS    100  /* within which a line comes from near, and the clock is read */
#define RESTS_MOST 12

static INLINE struct post *own_post_of(const struct boards *b, uint64_t number)
{
	return &b->own->posts[number % BOARD_SLOTS];
}

/* Between its post and the first look at another's, where lines are demoted: as flat_between_looks.
 * Who waits for a root waits longest: that one may have waited for this member's post before. */
static INLINE void rest_by_count(uint64_t bytes, bool all)
{
	const unsigned before = all ? (bytes ? 7 : 3) : 22;

	for (unsigned i = 0; i < before; i++)
		clock_between_polls();
}

/* Where they are not, no count fits all: a line takes 40 ns between two processors, and 240 between
 * two others. All that are in step look at once. A root posts when it has this member's last post,
 * the time of a line from now: until then this member gets the line of its next post, which takes
 * as long where the root has read what lies there. Where lines take long all are less in step, and
 * look a little later: a look before the other's post takes the line away from it. */
static INLINE void rest_by_line(const struct boards *b, uint64_t number, bool all)
{
	unsigned rests = 1 + b->rests; /* no look before that */

	if (!all) {
		claim_line(&own_post_of(b, number + 1)->number); /* nothing changes in it */
		rests += b->rests;
	}
	while (rests--)
		clock_between_polls();
}

static INLINE void rest_before_look(const struct boards *b, uint64_t number, uint64_t bytes,
				    bool all)
{
	if (b->demotes)
		rest_by_count(bytes, all);
	else
		rest_by_line(b, number, all);
}

static INLINE bool is_measured(uint64_t number)
{
	return number % MEASURED < 2; /* each is a root in turn */
}

/* How long the line of the other's post takes. Where that is not there, what was here may have been
 * found. By one at a time, as a measurement may be of more than that. */
static NOINLINE void measure_look(struct boards *b, uint64_t number)
{
	const uint64_t begin = clock_now();
	const bool there = boards_has(b, 1 - b->rank, number);
	const uint64_t rests = (clock_now() - begin) / NEAR_NS * 4;

	if (rests > b->rests && b->rests < RESTS_MOST)
		b->rests++;
	else if (there && rests < b->rests)
		b->rests--;
}

/* A root waits for none. */
static INLINE void rest_short(const struct flat *f)
{
	if (f->next == f->last || f->b->size == 1 || f->b->crowded) /* else some post much later */
		return;
	rest_before_look(f->b, f->number, f->bytes, f->last - f->first == f->b->size);
	if (UNLIKELY(is_measured(f->number)) && f->b->size == 2 && !f->b->demotes)
		measure_look(f->b, f->number);
}

/* NUMBER has been posted; ALL wait for all, else for a root. */
static INLINE void claim_next_post(const struct boards *b, uint64_t number, bool all)
{
	if (!b->demotes) {
		claim_ahead(own_post_of(b, number + 1)); /* it comes while the others' posts do */
		return;
	}
	demote(own_post_of(b, number), sizeof(struct post));
	/* With a root that changes others have the one after the next; in step they would take it
	 * back. */
	if (!all)
		claim_ahead(own_post_of(b, number + 2));
}

static INLINE uint8_t looks_of(uint64_t bytes)
{
	return bytes ? 3 : 9;
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
	claim_next_post(f->b, f->number, f->last - f->first == f->b->size);
	f->between = looks_of(f->bytes);
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

/* ---- of two, as the one before --------------------------------------------------------------- */

static NOINLINE int repeat_step(struct flat *f, struct boards *b, const struct slmpm_coll *c)
{
	flat_repeat(f, b, c);
	return flat_step(f);
}

/* It is posted: the rest as any other. */
static NOINLINE int posted_step(struct flat *f, const struct slmpm_coll *c, uint64_t what)
{
	boards_wake(f->b);
	flat_plan_again(f, c, f->b->posted, what);
	f->posted = true;
	f->between = looks_of(f->bytes);
	return flat_step(f);
}

/* The other's post is there, and says WHAT. */
static INLINE bool has_come(const struct flat *f, const struct board *other, uint64_t number,
			    uint64_t what)
{
	const struct post *theirs = board_post(other, number);
	unsigned looks = looks_of(f->bytes) * (1u + f->b->rests);

	while (board_number(other, number) != number) {
		if (!looks--)
			return false;
		clock_between_polls();
	}
	return !((board_load(&theirs->what) ^ what) & (~POST_FLAGS | POST_IN_LINE)) &&
	       board_load(&theirs->count) == f->count;
}

static INLINE void copy_word(void *to, const void *from, uint64_t n)
{
	if (LIKELY(n == sizeof(uint64_t)))
		memcpy(to, from, sizeof(uint64_t));
	else
		copy_short(to, from, n);
}

/* The other's contribution lies AT. */
static NOINLINE void combine_two(struct flat *f, const unsigned char *at)
{
	take_short(f, 0, f->b->rank ? at : f->from);
	take_short(f, 1, f->b->rank ? f->from : at);
}

static INLINE void take_other(struct flat *f, const unsigned char *at, bool all)
{
	if (!f->bytes)
		return;
	if (!all)
		copy_word(f->to, at, f->bytes);
	else if (UNLIKELY(!f->adds))
		combine_two(f, at);
	else if (f->b->rank)
		add_double(f->to, at, f->from);
	else
		add_double(f->to, f->from, at);
}

/* Both post at about the same time, so all that lies between a look that finds the other's post and
 * the next own post is in the way of both: what is needed only where it waits is done there. */
HOT int flat_again(struct flat *f, struct boards *b, const struct slmpm_coll *c)
{
	const bool all = c->kind != SLMPM_COLL_BROADCAST;
	const bool gives = all || (uint32_t)c->root == b->rank;
	const uint64_t number = b->posted + 1;
	const struct board *other;
	struct post *slot;
	uint64_t what;

	/* What others broke is found behind it, and taken once. */
	if (UNLIKELY(!f->of_two | b->others_broke | (b->crowded != 0) |
		     (b->reached + BOARD_SLOTS <= number) | is_measured(number)))
		return repeat_step(f, b, c);
	other = b->of[1 - b->rank];
	slot = own_post_of(b, number);
	what = flat_what_again(f, b, c);
	boards_say(slot, what, f->count);
	if (f->bytes && gives)
		copy_word(slot->bytes, f->out.from, f->bytes);
	boards_post_quietly(b);
	boards_stored(b);
	claim_next_post(b, number, all);
	if (UNLIKELY(board_load(&other->asleep) & ASLEEP_WHO))
		return posted_step(f, c, what);
	if (all || !gives) {
		rest_before_look(b, number, f->bytes, all);
		if (UNLIKELY(!has_come(f, other, number, what)))
			return posted_step(f, c, what);
		take_other(f, board_post(other, number)->bytes, all);
		b->reached = number;
	}
	return 1;
}
