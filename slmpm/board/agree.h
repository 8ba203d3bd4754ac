/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members of a broken group that are left agree on who is gone, by their boards, and go on
 * without those: the next generation. Ranks are renumbered in their order. None waits for another
 * here: a pass does what can be done.
 *
 * Each shows whom it knows to be gone (has seen to be dead, or to have left), which grows only. Who
 * finds that all others that are not gone show the same as it does stores that as its verdict. Who
 * comes to know of one more looks for a verdict first, on that one's board, too, and takes it over:
 * doc/decisions/0045-shrink.md says why there is only one then; 0052-groups-apart-go-on.md, why by
 * messages.
 */
#ifndef SLMPM_AGREE_H
#define SLMPM_AGREE_H

#include "slmpm/board/layout.h"

/* What a member has shown, or stored as its verdict: a copy. */
struct said {
	uint64_t generation, posted;
	uint64_t gone[BOARD_RANKS];
};

struct agreement {
	struct boards *b;
	/* The others' boards are copies, which messages bring: ends are not seen by all at once. */
	bool apart;
	/* Whether RANK, which another member names, is gone: it is looked at now. */
	bool (*is_gone)(void *arg, uint32_t rank);
	/* RANK is left out now. */
	void (*leaves)(void *arg, uint32_t rank);
	void *arg;
	uint64_t gone[BOARD_RANKS]; /* a bit for each rank that is known to be gone */
	bool shown;                 /* it has been, as it is now */
	bool again;                 /* one more has come to be known amidst a pass */
	uint32_t culprit;           /* of a negative error */
	uint64_t base;              /* operations posted by any that is left */
};

/* Not before the operations under way have been given up. */
void agree_begin(struct agreement *a, struct boards *b, bool (*is_gone)(void *arg, uint32_t rank),
		 void (*leaves)(void *arg, uint32_t rank), void *arg);
/* However it has ended; the boards are announced no more. */
void agree_end(struct agreement *a);
/* RANK's process has ended: the next pass counts on it. */
void agree_mark(struct agreement *a, uint32_t rank);
/* 1: the boards are those of the next generation, and those of the ones that are gone are closed;
 * 0: it waits for others; -SLMPM_EPROTO: a member lies, with the detail set. */
int agree_step(struct agreement *a);
/* After 0: rank R has not said the same. */
bool agree_waits_for(const struct agreement *a, uint32_t r);

/* Rank R of a group that this member has not shrunk does so: it takes part in nothing else. */
bool agree_has_begun(const struct boards *b, uint32_t r);

/* ---- by messages ----------------------------------------------------------------------------- */

/* What this member has shown, or its VERDICT, last. False: nothing yet. */
bool agree_give(const struct boards *b, bool verdict, struct said *said);
/* SAID has come from the member of COPY. */
void agree_take(struct board *copy, bool verdict, const struct said *said);

#endif
