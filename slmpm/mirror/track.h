/* SPDX-License-Identifier: BSD-3-Clause */
/* Automatic tracking: finds by itself which bytes of a mirror the application has changed. */
#ifndef SLMPM_MIRROR_TRACK_H
#define SLMPM_MIRROR_TRACK_H

#include "slmpm/mirror/mirror.h"
#include "slmpm/track/finder.h"

struct tracker {             /* a finder shows where to compare, a twin shows what */
	unsigned char *twin; /* as the peers know the memory */
	uint64_t size;
	uint64_t found;      /* bytes, so far */
	uint64_t inspected;  /* ticks */
	struct pages *pages; /* or NULL: all is compared */
	bool guards;         /* system calls that write into these may fail */
	uintptr_t lo, hi;    /* they are, or will be */
};

/* By enum slmpm_mirror_track; negative with the detail set. */
int track_open(struct mirror *m, int how);
void track_close(struct mirror *m);
void track_forked(struct tracker *t);
/* "explicit" for NULL. */
const char *track_name(const struct tracker *t);
/* Does HOW work here? A real try: NULL, or why not. */
const char *track_try(int how);

/* ---- scans ---------------------------------------------------------------------------------- */

/* Scans for changes and notes them: bytes found. */
uint64_t track_scan(struct mirror *m);
/* Has progress left it alone for long enough? */
bool track_is_due(const struct mirror *m);
/* What lies there is known, however it came: no change to be found. */
void track_notified(struct mirror *m, uint64_t lo, uint64_t hi);
/* A peer's bytes, at FROM, have been stored there; what the application has since is a change. */
void track_stored(struct mirror *m, uint64_t lo, uint64_t hi, const void *from);

/* ---- what the kernel writes for a system call ------------------------------------------------ */

/* May it fail there, as the pages are protected? In no hurry. */
bool track_guards(const struct context *ctx, const void *at, uint64_t n);
/* It does not until the next scan. */
void track_unprotect(struct mirror *m, uint64_t lo, uint64_t hi);
/* The same for whatever mirrors lie there; false: none of protected pages do. From any thread. */
bool track_unprotect_any(void *at, uint64_t n);

/* ---- track_twin.c --------------------------------------------------------------------------- */

/* From then on it is what is sent. */
int twin_open(struct tracker *t, struct mirror *m);
void twin_close(struct tracker *t);
/* What differs from LO to before HI is noted, and known: also ahead of what will be stored. */
void twin_compare(struct mirror *m, uint64_t lo, uint64_t hi);

#endif
