/* SPDX-License-Identifier: BSD-3-Clause */
/* A group as DaCS has it: who has come to its barrier is counted by its owner, or, where all are on
 * this machine, by all of them in a group of SLMPM's. */
#ifndef SLMPM_DACS_GROUP_H
#define SLMPM_DACS_GROUP_H

#include <slmpm_group.h>

#include "slmpm/dacs/dacs_object.h"

struct dacsi_group {
	struct dacsi_object is;
	slmpm_group meets; /* its number is 0 where the owner counts */
	bool closed;
	bool joins;    /* not own: `meets` is to be joined */
	bool deserted; /* one does without `meets`, unless that has formed */
	bool founding; /* own: it may still fail: deaths are looked for (dacsi.awaited) */
	bool failed;   /* own: a member died before this round's end */
	bool inside;   /* a thread here waits at the barrier */
	bool there;    /* this process has come to it, ... */
	bool sent;     /* ... where the owner counts, that is to know; ... */
	bool answered; /* ... this is what came of it: */
	DACS_ERR_T answer;
	enum { FENCE_NONE, FENCE_WAITS, FENCE_OVER } fence; /* of what it had put before */
	uint32_t puts;                                      /* not own: to the owner */
	uint32_t round;                                     /* own: barriers that are over */
	uint32_t seen; /* of those, that this process as a member knows of */
};

/* ---- dacs_meeting.c ---- */

/* At the owner, which has closed it: begins to form; or the owner counts. */
void dacsi_meeting_found(struct dacsi_group *g);
/* At a member. */
void dacsi_meeting_join(struct dacsi_group *g);
bool dacsi_meeting_formed(const struct dacsi_group *g);
/* From now on the owner counts. */
void dacsi_meeting_end(struct dacsi_group *g);
/* DACS_WID_BUSY: some have not come, or the owner counts from now on. */
DACS_ERR_T dacsi_meeting_advance(struct dacsi_group *g);

#endif
