/* SPDX-License-Identifier: BSD-3-Clause */
/* Boards: made, mapped, and given back; the boards of a group. */
#include "slmpm/board/board.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <slmpm.h>

#include "shm/mapping.h"
#include "slmpm/board/bell.h"

struct board {
	_Atomic uint64_t ended; /* 0, or what boards_end has said: error, and culprit + 1 */
};
_Static_assert(sizeof(struct board) <= BOARD_SIZE, "a board holds it");

int board_make(struct board **own, int *fd)
{
	struct mapping m;
	int rc = mapping_create(&m, "slmpm-board", BOARD_SIZE);

	if (rc == 0)
		rc = mapping_close_seals(&m);
	if (rc < 0) {
		mapping_destroy(&m);
		return rc;
	}
	*own = m.base;
	*fd = m.fd;
	return 0;
}

int board_map(const struct board **board, int fd)
{
	struct mapping m;
	int rc;

	if (!mapping_seals_closed(fd))
		return -EPROTO;
	rc = mapping_attach(&m, fd, BOARD_SIZE, MAPPING_READ);
	if (rc == -EPERM)
		return -EPROTO;
	*board = m.base;
	return rc;
}

void board_unmap(const struct board *board)
{
	struct mapping m = {.base = (void *)(uintptr_t)board, .size = BOARD_SIZE, .fd = -1};

	mapping_destroy(&m);
}

/* ---- of a group ----------------------------------------------------------------------------- */

int boards_open(struct boards *b, struct board *own, uint32_t size, uint32_t rank)
{
	*b = (struct boards){.size = size, .rank = rank, .own = own};
	b->of = calloc(size, sizeof(*b->of));
	b->bells = malloc(size * sizeof(*b->bells));
	if (!b->of || !b->bells) {
		free(b->of);
		free(b->bells);
		*b = (struct boards){0};
		return -ENOMEM;
	}
	for (uint32_t r = 0; r < size; r++)
		b->bells[r] = -1;
	if (own)
		b->of[rank] = own;
	return 0;
}

void boards_close(struct boards *b)
{
	for (uint32_t r = 0; r < b->size; r++) {
		board_unmap(b->of[r]);
		if (b->bells[r] >= 0)
			close(b->bells[r]);
	}
	free(b->of);
	free(b->bells);
	*b = (struct boards){0};
}

void boards_met(struct boards *b)
{
	(void)b;
}

void boards_end(struct boards *b, int error, uint32_t culprit)
{
	uint64_t word = (uint64_t)(uint32_t)(culprit + 1) << 32 | (uint32_t)(-error ? -error : 1);

	if (!b->own || atomic_load_explicit(&b->own->ended, memory_order_relaxed))
		return;
	/* Pairs with the acquire in boards_ended: what was posted before is seen by then. */
	atomic_store_explicit(&b->own->ended, word, memory_order_release);
	for (uint32_t r = 0; r < b->size; r++)
		if (r != b->rank && b->bells[r] >= 0)
			(void)bell_ring(b->bells[r]);
}

int boards_ended(const struct boards *b, uint32_t r, uint32_t *culprit)
{
	uint64_t word = b->of[r] ? atomic_load_explicit(&b->of[r]->ended, memory_order_acquire) : 0;
	uint32_t error = (uint32_t)word, named = (uint32_t)(word >> 32) - 1;

	if (!word)
		return 0;
	*culprit = error == 1 ? r : named < b->size ? named : BOARD_NONE;
	/* A member may lie: one of our errors, or that it has left. */
	return error > SLMPM_ERROR_BASE && slmpm_error_name((int)error) ? -(int)error :
									  -SLMPM_ECLOSED;
}
