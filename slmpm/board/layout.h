/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A board as it lies in memory, and how its words are stored and loaded. A head of lines: who
 * sleeps, who has left, SLOTS posts, one for each of the last operations, and what agree.h has of
 * it; then how far this member has read the others' rings; then its own ring, where contributions
 * lie that are too long for the line of their post.
 *
 * Post S says that its member has finished operation S - 1: so a slot may be used again once all
 * have posted S - SLOTS + 1, and the ring up to where operation S began once all have posted S.
 * Within an operation longer than the ring, what each reader says in `taken` counts. Bytes on the
 * ring belong to the post; what comes later, `written` says.
 * So one that has posted P, and reads, finds the slots of operation P and later ones as they are;
 * those before may be written meanwhile. Their number says nothing then, as it is stored last:
 * `what` says by its lap which operation it is of, as no member is 96 operations ahead of another.
 * A post never waits for room on the ring, for posts are what makes room.
 */
#ifndef SLMPM_BOARD_LAYOUT_H
#define SLMPM_BOARD_LAYOUT_H

#include <slmpm_group.h>
#include <stdatomic.h>

#include "shm/attach.h"
#include "shm/compiler.h"
#include "slmpm/board/board.h"

#define BOARD_INLINE 40u
#define BOARD_RING   (256u * 1024)
#define BOARD_PIECE  (16u * 1024)
#define BOARD_FIRST  4096u /* bytes of the ring that have memory from the start */
#define BOARD_LINE   64u
#define BOARD_WHY    248u
#define BOARD_PAIRS  64u
#define BOARD_RANKS  (SLMPM_GROUP_MAX / 64) /* words with a bit for each rank */

#define BOARD_MAGIC UINT64_C(0x32647262706d6c73)

/* post.what: kind, type and operation (or of which call it is a step), a byte each; flags; root;
 * what else must be the same: some bits of all that was begun before, and of the counts. */
#define POST_TYPE    8
#define POST_OP      16
#define POST_ROOT    32
#define POST_SAME    48
#define POST_OWN     0xfc                /* operation: of the program's own, from here on */
#define POST_IN_LINE (UINT64_C(1) << 24) /* the contribution lies in the post */
#define POST_TABLE   (UINT64_C(1) << 25) /* it begins with where each member's block lies */
#define POST_ROTATED (UINT64_C(1) << 26) /* the first block is that of the next rank */
#define POST_LAP     27                  /* two bits of how often the slot has been written */
#define POST_DIRECT  (UINT64_C(1) << 29) /* from and to: others may copy straight from, to there */
#define POST_SHARED  (UINT64_C(1) << 30) /* they lie in memory that others have mapped: shared.h */
#define POST_FLAGS   (UINT64_C(0xff) << 24)
#define POST_HISTORY (UINT64_C(0xffff) << POST_SAME)
#define POST_BROKEN  UINT64_C(0x80) /* of no kind: its member has broken the group meanwhile */

struct post {
	_Alignas(BOARD_LINE) _Atomic uint64_t number; /* of the operation: stored last */
	_Atomic uint64_t what, count;
	union {
		unsigned char bytes[BOARD_INLINE];
		struct {
			_Atomic uint64_t at, length; /* on the ring */
			/* Of length: are there; with one of these two, the ids of the memories in
			 * which from (below) and to lie: 0: in none. */
			_Atomic uint64_t present;
			_Atomic uint64_t from, to; /* addresses in its process */
		};
	};
};
_Static_assert(sizeof(struct post) == BOARD_LINE, "a line");

/* Which members its owner knows to be gone, of those of GENERATION - 1, and how many operations it
 * has posted. VERSION is even while these go together. */
struct view {
	_Alignas(BOARD_LINE) _Atomic uint64_t version;
	_Atomic uint64_t generation, posted;
	_Atomic uint64_t gone[BOARD_RANKS];
};

/* With whom GENERATION begins: without those, by the ranks of the one before; and the number from
 * which it counts its operations. */
struct verdict {
	_Alignas(BOARD_LINE) _Atomic uint64_t generation; /* stored last */
	_Atomic uint64_t base;
	_Atomic uint64_t gone[BOARD_RANKS];
};

struct board {
	uint64_t magic;
	uint32_t fences; /* its process cannot be fenced from outside, or cannot fence others */
	_Atomic uint32_t reach; /* BOARD_REACHES: `probe` is there (reach.h) */
	struct attach_probe probe;
	_Atomic uint64_t by_ring; /* of its long blocks that could go straight: flat_route.c */
	_Alignas(BOARD_LINE) _Atomic uint64_t asleep;
	_Atomic uint64_t processor; /* + 1, on which its owner has last run; 0: not known */
	_Alignas(BOARD_LINE) _Atomic uint64_t ended;
	char why[BOARD_WHY];                        /* then, in words */
	_Alignas(BOARD_LINE) _Atomic uint64_t came; /* to so many meetings */
	_Alignas(BOARD_LINE) _Atomic uint64_t written;
	/* Operations: in which its member writes into others' memory, 0: in none; up to which it is
	 * through with all of that, as far as it could; the last in which it could not; and up to
	 * which nothing is to be written into its own. */
	_Alignas(BOARD_LINE) _Atomic uint64_t claims;
	_Atomic uint64_t through, failed, withdrawn;
	_Atomic uint64_t stage; /* in shared memory: the operation, and how far it is (two bits) */
	struct post posts[BOARD_SLOTS];
	_Atomic uint64_t pairs[BOARD_PAIRS]; /* connections that are to be: 0: none */
	_Atomic uint64_t object; /* inode of memory that its owner gives the others; 0: of none */
	/* Above, the tag of an operation in which its owner blocks, and starts no other; below, the
	 * last one in its lane. 0: of none. */
	_Atomic uint64_t blocked;
	struct view view;
	struct verdict verdict;
	_Alignas(4096) _Atomic uint64_t
		taken[SLMPM_GROUP_MAX]; /* by the ring's owner, its first rank */
	_Alignas(4096) unsigned char ring[BOARD_RING];
};

#define BOARD_LANES 2 /* boards of a member, one behind the other */

/* reach: */
#define BOARD_REACHES 1u /* its member may be reached, and reaches the others, as far as it knows */
#define BOARD_REFUSED 2u /* it does not */

/* asleep: below, who is waited for, 0 while awake; above, how many changes there have been. */
#define ASLEEP_BITS 12
#define ASLEEP_ANY  1u
#define ASLEEP_RANK 2u
#define ASLEEP_WHO  ((UINT64_C(1) << ASLEEP_BITS) - 1)
#define ASLEEP_OVER ASLEEP_WHO /* it has broken the group: those who are late see it as they post */
_Static_assert(SLMPM_GROUP_MAX + ASLEEP_RANK < ASLEEP_OVER, "a rank has room");

/* pairs: above, the other member's first rank and 1; below, which socket, that one is asked for, or
 * what this member lacks for it. */
#define PAIR_RANK 52
_Static_assert(SLMPM_GROUP_MAX < 1 << (64 - PAIR_RANK), "a rank has room");

/* ended: an error; has this member left; the rank of the culprit + 1; of which generation. */
#define ENDED_ERROR      UINT64_C(0xffff)
#define ENDED_LEFT       (UINT64_C(1) << 16)
#define ENDED_CULPRIT    17
#define ENDED_GENERATION 32
_Static_assert(2 * SLMPM_GROUP_MAX < 1 << (ENDED_GENERATION - ENDED_CULPRIT),
	       "a rank has room, and behind these one of a whole group");

static inline const struct post *board_post(const struct board *board, uint64_t number)
{
	return &board->posts[number % BOARD_SLOTS];
}

/* An operation of the program's own has no type: the bits of its width - 1 are there, behind those
 * of the operation, and behind those of the root. */
#define POST_RANK_BITS 10
_Static_assert(SLMPM_GROUP_MAX <= 1 << POST_RANK_BITS, "a root has room");
_Static_assert(SLMPM_COLL_WIDTH <= 1 << 16, "a width has");

static inline uint64_t post_own(uint64_t width)
{
	uint64_t w = width - 1;

	return (w & 0xff) << POST_TYPE | (POST_OWN | w >> 14) << POST_OP |
	       (w >> 8 & 0x3f) << (POST_ROOT + POST_RANK_BITS);
}

static inline bool post_is_own(uint64_t what)
{
	return (uint8_t)(what >> POST_OP) >= POST_OWN;
}

static inline uint64_t post_own_width(uint64_t what)
{
	return ((what >> POST_TYPE & 0xff) | (what >> (POST_ROOT + POST_RANK_BITS) & 0x3f) << 8 |
		(what >> POST_OP & 3) << 14) +
	       1;
}

/* The lap of operation NUMBER, in its place. */
static inline uint64_t post_lap(uint64_t number)
{
	return (number / BOARD_SLOTS & 3) << POST_LAP;
}

/* WHAT, which lay in the slot of NUMBER, is of that operation. */
static inline bool post_is_of(uint64_t what, uint64_t number)
{
	return !((what ^ post_lap(number)) & UINT64_C(3) << POST_LAP);
}

/* The number in the slot of NUMBER. Acquire pairs with the release in boards_post: the post's words
 * and bytes are seen with its number; and what its member has read before it posted it has read
 * before this member writes there again. */
static inline uint64_t board_number(const struct board *board, uint64_t number)
{
	return atomic_load_explicit(&board_post(board, number)->number, memory_order_acquire);
}

/* Where rank R says how it ends, and the group, whichever of its boards B has. */
static inline const struct board *boards_head(const struct boards *b, uint32_t r)
{
	return b->of[r] - b->lane;
}

static inline uint64_t board_load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void board_store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

/* This member runs on PROCESSOR (negative: not known): a hint for the others. */
static inline void boards_run_on(struct boards *b, int processor)
{
	uint64_t word = processor < 0 ? 0 : (uint64_t)processor + 1;

	if (UNLIKELY(board_load(&b->own->processor) != word))
		board_store(&b->own->processor, word);
}

/* Rank R has last run where this member does, or where this one runs is not known. */
static inline bool boards_share(const struct boards *b, uint32_t r)
{
	uint64_t own = board_load(&b->own->processor);

	return !own || board_load(&b->of[r]->processor) == own;
}

void boards_ring(struct boards *b, uint32_t r, uint64_t asleep);

/* Between a store that another member may wait for and a look whether it sleeps. */
static inline void boards_stored(const struct boards *b)
{
	if (b->fences)
		/* Pairs with the fence in boards_announce. */
		atomic_thread_fence(memory_order_seq_cst);
	else
		/* Pairs with the sleeper's barrier_all there. */
		atomic_signal_fence(memory_order_seq_cst);
}

/* After each such store. */
static inline void boards_wake(struct boards *b)
{
	boards_stored(b);
	for (uint32_t r = 0; r < b->size; r++) {
		uint64_t asleep = board_load(&b->of[r]->asleep);

		if (UNLIKELY(asleep & ASLEEP_WHO) && r != b->rank)
			boards_ring(b, r, asleep);
	}
}

/* Has another one broken the group? */
static inline void boards_scan(struct boards *b)
{
	for (uint32_t r = 0; r < b->size; r++)
		if (UNLIKELY((board_load(&b->of[r]->asleep) & ASLEEP_WHO) == ASLEEP_OVER))
			b->others_broke = true;
}

/* Whether rank R has posted NUMBER. */
static inline bool boards_has(const struct boards *b, uint32_t r, uint64_t number)
{
	return board_number(b->of[r], number) >= number;
}

/* Whether all others have; else *WHO has not. */
bool boards_reach(struct boards *b, uint64_t number, uint32_t *who);

/* The slot of the next operation. Its words may be stored once flat_may_post says so; then
 * boards_post. */
static inline struct post *boards_slot(struct boards *b)
{
	return &b->own->posts[(b->posted + 1) % BOARD_SLOTS];
}

/* Its first words. */
static inline void boards_say(struct post *slot, uint64_t what, uint64_t count)
{
	board_store(&slot->what, what);
	/* Pairs with the fence in said_by: who has read this count reads no `what` before it. */
	atomic_store_explicit(&slot->count, count, memory_order_release);
}

/* This processor is given to a member that waits for this one's last post but one: other processors
 * have read that, and so taken it away. It comes back during the switch. Inlined: gcc drops a call
 * of what only fetches. */
static INLINE void boards_give_way(const struct boards *b)
{
	fetch_ahead(board_post(b->own, b->posted - 1), sizeof(struct post));
}

/* Without waking any. */
static inline void boards_post_quietly(struct boards *b)
{
	struct post *slot = boards_slot(b);

	b->starts[++b->posted % BOARD_SLOTS] = b->written;
	/* Pairs with the acquire in board_number. */
	atomic_store_explicit(&slot->number, b->posted, memory_order_release);
}

static inline void boards_post(struct boards *b)
{
	boards_post_quietly(b);
	boards_wake(b);
}

#endif
