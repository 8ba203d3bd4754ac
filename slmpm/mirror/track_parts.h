/* SPDX-License-Identifier: BSD-3-Clause */
/* What track*.c share: a tracker, of a finder that says where to look and a twin that says what. */
#ifndef SLMPM_MIRROR_TRACK_PARTS_H
#define SLMPM_MIRROR_TRACK_PARTS_H

#include "slmpm/mirror/track.h"
#include "slmpm/track/finder.h"

struct tracker {
	unsigned char *twin; /* as the peers know the memory */
	uint64_t size;
	uint64_t found;      /* bytes, so far */
	uint64_t inspected;  /* ticks */
	struct pages *pages; /* or NULL: all is compared */
	bool guards;         /* system calls that write into these may fail */
	uintptr_t lo, hi;    /* they are, or will be */
};

/* ---- track_twin.c --------------------------------------------------------------------------- */

/* From then on it is what is sent. */
int twin_open(struct tracker *t, struct mirror *m);
void twin_close(struct tracker *t);
/* What differs from LO to before HI is noted, and known from then on. */
void twin_compare(struct mirror *m, uint64_t lo, uint64_t hi);

#endif
