/* SPDX-License-Identifier: BSD-3-Clause */
/* Boards: made, mapped, given back; who has posted how much; who has left; who sleeps. */
#include "slmpm/board/board.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "shm/barrier.h"
#include "shm/mapping.h"
#include "slmpm/board/bell.h"
#include "slmpm/board/flat.h"
#include "slmpm/board/layout.h"

/* ---- one ------------------------------------------------------------------------------------- */

int board_make(struct board **own, int *fd)
{
	struct mapping m;
	int rc = mapping_create(&m, "slmpm-board", sizeof(struct board));

	if (rc == 0)
		rc = mapping_close_seals(&m);
	if (rc < 0) {
		mapping_destroy(&m);
		return rc;
	}
	*own = m.base;
	*fd = m.fd;
	(*own)->magic = BOARD_MAGIC;
	(*own)->fences = !barrier_works();
	return 0;
}

int board_map(const struct board **board, int fd)
{
	struct mapping m;
	uint64_t magic;
	int rc;

	if (!mapping_seals_closed(fd))
		return -EPROTO;
	rc = mapping_attach(&m, fd, sizeof(struct board), MAPPING_READ);
	if (rc < 0)
		return rc == -EPERM ? -EPROTO : rc;
	*board = m.base;
	magic = *(const volatile uint64_t *)&(*board)->magic;
	if (magic != BOARD_MAGIC) {
		mapping_destroy(&m);
		return __builtin_bswap64(magic) == BOARD_MAGIC ? -ENOTSUP : -EPROTO;
	}
	mapping_populate(&m, fd);
	return 0;
}

void board_unmap(const struct board *board)
{
	struct mapping m = {.base = (void *)(uintptr_t)board, .size = sizeof(*board), .fd = -1};

	mapping_destroy(&m);
}

/* ---- those of a group ------------------------------------------------------------------------ */

static void free_arrays(struct boards *b)
{
	free(b->of);
	free(b->bells);
	free(b->answered);
	free(b->sources);
	free(b->scratch);
}

int boards_open(struct boards *b, struct board *own, uint32_t size, uint32_t rank)
{
	*b = (struct boards){.size = size, .rank = rank, .own = own};
	b->of = calloc(size, sizeof(struct board *));
	b->bells = calloc(size, sizeof(*b->bells));
	b->answered = calloc(size, sizeof(*b->answered));
	b->sources = calloc(size, sizeof(*b->sources));
	b->scratch = aligned_alloc(BOARD_LINE, BOARD_PIECE);
	if (!b->of || !b->bells || !b->answered || !b->sources || !b->scratch) {
		free_arrays(b);
		*b = (struct boards){0};
		return -ENOMEM;
	}
	for (uint32_t r = 0; r < size; r++)
		b->bells[r] = -1;
	if (own)
		b->of[rank] = own;
	return 0;
}

void boards_met(struct boards *b)
{
	for (uint32_t r = 0; r < b->size; r++)
		b->fences |= *(const volatile uint32_t *)&b->of[r]->fences != 0;
}

void boards_close(struct boards *b)
{
	for (uint32_t r = 0; r < b->size; r++) {
		if (b->of[r])
			board_unmap(b->of[r]);
		if (b->bells[r] >= 0)
			close(b->bells[r]);
	}
	free_arrays(b);
	*b = (struct boards){0};
}

bool boards_reach(struct boards *b, uint64_t number, uint32_t *who)
{
	if (b->reached >= number)
		return true;
	for (uint32_t r = 0; r < b->size; r++)
		if (r != b->rank && !boards_has(b, r, number)) {
			*who = r;
			return false;
		}
	b->reached = number;
	return true;
}

/* ---- ends ------------------------------------------------------------------------------------ */

#define ENDED_LEFT    1u
#define ENDED_CULPRIT 32 /* bits below; its rank + 1 */

void boards_end(struct boards *b, int error, uint32_t culprit)
{
	uint64_t word = error ? (uint32_t)-error : ENDED_LEFT;

	if (board_load(&b->own->ended))
		return;
	if (culprit < b->size)
		word |= (uint64_t)(culprit + 1) << ENDED_CULPRIT;
	/* Pairs with the acquire in boards_ended: whoever sees it sees all that was posted. */
	atomic_store_explicit(&b->own->ended, word, memory_order_release);
	/* In vain is all that is waited for here, whose ever. */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t r = 0; r < b->size; r++) {
		uint64_t asleep = board_load(&b->of[r]->asleep);

		if (r != b->rank && (asleep & ASLEEP_WHO))
			boards_ring(b, r, (asleep & ~ASLEEP_WHO) | ASLEEP_ANY);
	}
}

int boards_ended(const struct boards *b, uint32_t r, uint32_t *culprit)
{
	/* Pairs with the release in boards_end. */
	uint64_t word = atomic_load_explicit(&b->of[r]->ended, memory_order_acquire);
	uint32_t error = (uint32_t)word, named = (uint32_t)(word >> ENDED_CULPRIT);

	if (LIKELY(!word))
		return 0;
	*culprit = named && named <= b->size ? named - 1 : r;
	if (error == ENDED_LEFT)
		return -SLMPM_ECLOSED;
	return slmpm_error_name((int)error) && error > SLMPM_ERROR_BASE ? -(int)error :
									  -SLMPM_EPROTO;
}

/* ---- sleep ----------------------------------------------------------------------------------- */

COLD void boards_ring(struct boards *b, uint32_t r, uint64_t asleep)
{
	uint64_t who = asleep & ASLEEP_WHO;

	if (who != ASLEEP_ANY && who != b->rank + ASLEEP_RANK)
		return;
	asleep >>= ASLEEP_BITS;
	if (b->answered[r] == asleep)
		return;
	b->answered[r] = asleep;
	b->bells_rung++;
	if (b->bells[r] >= 0)
		(void)bell_ring(b->bells[r]);
}

void boards_announce(struct boards *b, uint32_t who)
{
	uint64_t word = ++b->announced << ASLEEP_BITS;

	word |= who < b->size ? who + ASLEEP_RANK : ASLEEP_ANY;
	board_store(&b->own->asleep, word);
	/* Pairs with those of boards_wake: it sees the announcement, or this member what was
	 * stored before it. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!b->fences)
		barrier_all();
}

void boards_awake(struct boards *b)
{
	board_store(&b->own->asleep, ++b->announced << ASLEEP_BITS);
}
