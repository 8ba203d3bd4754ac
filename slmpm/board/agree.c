/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is gone, and going on without those (agree.h). */
#include "slmpm/board/agree.h"

#include <string.h>
#include <unistd.h>

#include "slmpm/base/error.h"

#define BASE_MAX (UINT64_C(1) << 62)

/* ---- sets of ranks --------------------------------------------------------------------------- */

static uint32_t rank_words(const struct boards *b)
{
	return (b->size + 63) / 64;
}

static bool includes(const uint64_t *set, uint32_t r)
{
	return set[r / 64] >> r % 64 & 1;
}

/* Are all of ONE in OTHER? */
static bool are_within(const struct boards *b, const uint64_t *one, const uint64_t *other)
{
	for (uint32_t w = 0; w < rank_words(b); w++)
		if (one[w] & ~other[w])
			return false;
	return true;
}

static bool are_alike(const struct boards *b, const uint64_t *one, const uint64_t *other)
{
	return memcmp(one, other, rank_words(b) * sizeof(*one)) == 0;
}

void agree_mark(struct agreement *a, uint32_t rank)
{
	if (includes(a->gone, rank))
		return;
	a->gone[rank / 64] |= UINT64_C(1) << rank % 64;
	a->shown = false;
	a->again = true;
}

static void mark_left(struct agreement *a)
{
	for (uint32_t r = 0; r < a->b->size; r++)
		if (r != a->b->rank && boards_left(a->b, r))
			agree_mark(a, r);
}

/* ---- what others say ------------------------------------------------------------------------- */

static int lies(struct agreement *a, uint32_t r, const char *what)
{
	a->culprit = r;
	return error_set(SLMPM_EPROTO, "rank %u of the group %s", r, what);
}

/* All that rank R says of SAID: 1: it may be; 0: it may be, and this member has learnt of one more,
 * or has yet to; negative. */
static int check_said(struct agreement *a, uint32_t r, const struct said *said)
{
	const struct boards *b = a->b;
	bool news = false;

	if (PEER_FAULT(said->posted > BASE_MAX))
		return lies(a, r, "has posted an impossible number of operations");
	if (PEER_FAULT(b->size % 64 && said->gone[b->size / 64] >> b->size % 64))
		return lies(a, r, "says that one is gone that has never been");
	if (PEER_FAULT(includes(said->gone, b->rank)))
		return lies(a, r, "says that this member is gone");
	for (uint32_t s = 0; s < b->size; s++) {
		if (!includes(said->gone, s) || includes(a->gone, s))
			continue;
		if (!boards_left(b, s) && !a->is_gone(a->arg, s)) {
			if (a->apart)
				continue;
			a->culprit = r;
			return error_set(SLMPM_EPROTO,
					 "rank %u of the group says that rank %u is gone, which "
					 "is not so",
					 r, s);
		}
		agree_mark(a, s);
		news = true;
	}
	return !news;
}

/* What rank R shows for the next generation; false: nothing yet, or it is just changing it. */
static bool read_view(const struct boards *b, uint32_t r, struct said *said)
{
	const struct view *v = &b->of[r]->view;
	/* Acquire pairs with the release in show. */
	uint64_t version = atomic_load_explicit(&v->version, memory_order_acquire);

	memset(said, 0, sizeof(*said));
	said->generation = board_load(&v->generation);
	said->posted = board_load(&v->posted);
	for (uint32_t w = 0; w < rank_words(b); w++)
		said->gone[w] = board_load(&v->gone[w]);
	/* Pairs with the release fence in show: who has read a word of the next version reads that
	 * it is the next one. */
	atomic_thread_fence(memory_order_acquire);
	return version % 2 == 0 && version == board_load(&v->version) &&
	       said->generation == b->generation + UINT64_C(1);
}

static bool read_verdict(const struct boards *b, uint32_t r, struct said *said)
{
	const struct verdict *v = &b->of[r]->verdict;

	memset(said, 0, sizeof(*said));
	/* Acquire pairs with the release in store_verdict. */
	said->generation = atomic_load_explicit(&v->generation, memory_order_acquire);
	if (said->generation != b->generation + UINT64_C(1))
		return false;
	said->posted = board_load(&v->base);
	for (uint32_t w = 0; w < rank_words(b); w++)
		said->gone[w] = board_load(&v->gone[w]);
	return true;
}

/* ---- what this member says ------------------------------------------------------------------- */

/* None need be woken for it: who shows the same last finds that all do. */
static void show(struct agreement *a)
{
	struct boards *b = a->b;
	struct view *v = &b->own->view;
	uint64_t version = board_load(&v->version);

	board_store(&v->version, version + 1);
	/* Pairs with the acquire fence in read_view. */
	atomic_thread_fence(memory_order_release);
	board_store(&v->generation, b->generation + UINT64_C(1));
	board_store(&v->posted, b->posted);
	for (uint32_t w = 0; w < rank_words(b); w++)
		board_store(&v->gone[w], a->gone[w]);
	/* Pairs with the acquire in read_view. */
	atomic_store_explicit(&v->version, version + 2, memory_order_release);
	/* Pairs with itself: of two that show theirs, one sees the other's in compare. */
	atomic_thread_fence(memory_order_seq_cst);
	a->shown = true;
}

/* The last one is not needed any more: all that are left have come to this generation. */
static void store_verdict(struct boards *b, const struct said *said)
{
	struct verdict *v = &b->own->verdict;

	board_store(&v->base, said->posted);
	for (uint32_t w = 0; w < rank_words(b); w++)
		board_store(&v->gone[w], said->gone[w]);
	/* Pairs with the acquire in read_verdict. */
	atomic_store_explicit(&v->generation, b->generation + UINT64_C(1), memory_order_release);
}

/* ---- the next generation --------------------------------------------------------------------- */

static void leave_out(struct boards *b, uint32_t r)
{
	board_unmap(b->of[r]);
	if (b->bells[r] >= 0)
		close(b->bells[r]);
	b->of[r] = NULL;
	b->bells[r] = -1;
}

static void move_down(struct boards *b, uint32_t from, uint32_t to)
{
	b->of[to] = b->of[from];
	b->bells[to] = b->bells[from];
	b->answered[to] = b->answered[from];
	b->seats[to] = b->seats[from];
	b->processes[to] = b->processes[from];
	b->watched[to] = b->watched[from];
	b->probes[to] = b->probes[from];
	b->numbers[to] = b->numbers[from];
	if (b->rank == from)
		b->rank = to;
}

/*
 * All that are left have given up what was under way before they showed anything: none reads the
 * rings or posts of before. Positions on the rings go on where they were, so that what is said in
 * `taken` and `written` stays behind; numbers behind all that have been posted.
 */
static void renumber(struct agreement *a, const struct said *said)
{
	struct boards *b = a->b;
	uint32_t n = 0;

	for (uint32_t r = 0; r < b->size; r++) {
		if (includes(said->gone, r)) {
			a->leaves(a->arg, r);
			leave_out(b, r);
		} else {
			move_down(b, r, n++);
		}
	}
	b->size = n;
	b->generation++;
	b->base = b->posted = b->reached = said->posted;
	b->freed = b->written;
	b->history = 0;
	b->broken = b->others_broke = false;
}

/* ---- a pass ---------------------------------------------------------------------------------- */

/* A verdict of another's: 1: it has been taken over; 0: there is none; negative. */
static int take_verdict(struct agreement *a)
{
	struct said said;

	for (uint32_t r = 0; r < a->b->size; r++) {
		int rc;

		if (r == a->b->rank || !read_verdict(a->b, r, &said))
			continue;
		rc = check_said(a, r, &said);
		/* This member is not among them, so it has shown them. */
		if (rc >= 0 && PEER_FAULT(!are_within(a->b, said.gone, a->gone)))
			rc = lies(a, r, "leaves out one that this member has not");
		if (rc >= 0 && PEER_FAULT(said.posted < a->b->posted))
			rc = lies(a, r, "begins again with numbers that have been");
		if (rc < 0 && includes(a->gone, r))
			continue; /* it can be asked nothing more */
		if (rc < 0)
			return rc;
		store_verdict(a->b, &said);
		renumber(a, &said);
		return 1;
	}
	return 0;
}

/* All others that are left show the same: 1; 0; negative. */
static int compare(struct agreement *a, struct said *verdict)
{
	bool all = true;

	*verdict = (struct said){.posted = a->b->posted};
	memcpy(verdict->gone, a->gone, sizeof(verdict->gone));
	for (uint32_t r = 0; r < a->b->size; r++) {
		struct said said;
		int rc;

		if (r == a->b->rank || includes(a->gone, r))
			continue;
		if (!read_view(a->b, r, &said)) {
			all = false;
			continue;
		}
		rc = check_said(a, r, &said);
		if (rc < 0)
			return rc;
		all &= rc && are_alike(a->b, said.gone, a->gone);
		if (said.posted > verdict->posted)
			verdict->posted = said.posted;
	}
	return all;
}

int agree_step(struct agreement *a)
{
	struct said verdict;
	int rc;

	do {
		mark_left(a);
		a->again = false;
		/* Behind the last look at who is gone: what that one has stored before is there. */
		rc = take_verdict(a);
		if (rc)
			return rc;
		if (!a->shown)
			show(a);
		rc = compare(a, &verdict);
	} while (a->again && rc >= 0);
	if (rc <= 0)
		return rc;
	/* Before anything else of the next generation. */
	store_verdict(a->b, &verdict);
	boards_wake_all(a->b);
	renumber(a, &verdict);
	return 1;
}

void agree_begin(struct agreement *a, struct boards *b, bool (*is_gone)(void *arg, uint32_t rank),
		 void (*leaves)(void *arg, uint32_t rank), void *arg)
{
	*a = (struct agreement){
		.b = b, .is_gone = is_gone, .leaves = leaves, .arg = arg, .culprit = BOARD_NONE};
	b->agrees = true;
}

void agree_end(struct agreement *a)
{
	struct boards *b = a->b;

	/* That it has broken the group is to be seen again, or is over. */
	if (!b->broken && (board_load(&b->own->asleep) & ASLEEP_WHO) == ASLEEP_OVER)
		boards_awake(b);
	b->agrees = false;
}

bool agree_waits_for(const struct agreement *a, uint32_t r)
{
	struct said said;

	return r != a->b->rank && !includes(a->gone, r) &&
	       (!read_view(a->b, r, &said) || !are_alike(a->b, said.gone, a->gone));
}

bool agree_has_begun(const struct boards *b, uint32_t r)
{
	struct said said;

	return b->of[r] && read_view(b, r, &said);
}

/* ---- by messages ----------------------------------------------------------------------------- */

bool agree_give(const struct boards *b, bool verdict, struct said *said)
{
	const struct view *v = &b->own->view;
	const struct verdict *d = &b->own->verdict;

	said->generation = board_load(verdict ? &d->generation : &v->generation);
	said->posted = board_load(verdict ? &d->base : &v->posted);
	for (uint32_t w = 0; w < BOARD_RANKS; w++)
		said->gone[w] = board_load(verdict ? &d->gone[w] : &v->gone[w]);
	return said->generation;
}

/* One thread at a time writes and reads it. */
void agree_take(struct board *copy, bool verdict, const struct said *said)
{
	struct view *v = &copy->view;
	struct verdict *d = &copy->verdict;

	for (uint32_t w = 0; w < BOARD_RANKS; w++)
		board_store(verdict ? &d->gone[w] : &v->gone[w], said->gone[w]);
	board_store(verdict ? &d->base : &v->posted, said->posted);
	board_store(verdict ? &d->generation : &v->generation, said->generation);
}
