/* SPDX-License-Identifier: BSD-3-Clause */
/* How far members are, by their boards: for those who ask, not for operations. */
#include "slmpm/board/layout.h"

/* From this member's own number on: another one's is never that far from it. */
#define STEP_FAR (3 * BOARD_SLOTS)

/* What rank R has posted last, near AROUND: it has posted all up to it, and none behind it. */
static uint64_t last_near(const struct boards *b, uint32_t r, uint64_t around)
{
	uint64_t least = around > STEP_FAR ? around - STEP_FAR : 0, n = around;

	if (boards_has(b, r, n)) {
		while (n < around + STEP_FAR && boards_has(b, r, n + 1))
			n++;
		return n;
	}
	while (n > least && !boards_has(b, r, n))
		n--;
	return n;
}

/* The same where this process is no member. */
static uint64_t last_of_all(const struct boards *b, uint32_t r)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < BOARD_SLOTS; i++) {
		uint64_t number = board_number(b->of[r], i);

		last = number > last ? number : last;
	}
	return last;
}

/* Of a contribution that lies on the ring. */
static void step_on_ring(const struct board *board, const struct post *post, uint64_t what,
			 struct board_step *step)
{
	uint64_t at = board_load(&post->at), written = board_load(&board->written) - at;
	uint64_t length = board_load(&post->length), present = 0;

	if (!(what & (POST_DIRECT | POST_SHARED)))
		present = board_load(&post->present);
	if (written > present && written <= length)
		present = written;
	step->length = length;
	step->present = present < length ? present : length;
}

void boards_step(const struct boards *b, uint32_t r, struct board_step *step)
{
	const struct board *board = b->of[r];
	const struct post *post;
	uint64_t what;

	*step = (struct board_step){.number = b->own ? last_near(b, r, b->posted) :
						       last_of_all(b, r)};
	if (!step->number)
		return;
	post = board_post(board, step->number);
	what = board_load(&post->what);
	step->kind = (uint32_t)(what & 0xff & ~POST_BROKEN);
	if (!(what & POST_IN_LINE))
		step_on_ring(board, post, what, step);
	/* It has gone on meanwhile: the words are of another one. */
	atomic_thread_fence(memory_order_acquire);
	if (!post_is_of(what, step->number) || board_load(&post->number) != step->number)
		*step = (struct board_step){.number = step->number};
}
