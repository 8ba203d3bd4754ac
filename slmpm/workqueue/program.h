/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries of several queues that are posted together (program.c), all of which can run
 * (simulation.c). */
#ifndef SLMPM_WORKQUEUE_PROGRAM_H
#define SLMPM_WORKQUEUE_PROGRAM_H

#include "slmpm/workqueue/workqueue.h"

struct program_entry {
	struct workqueue *wq;
	struct work *work; /* filled; in no list, and not yet numbered */
	uint64_t number;   /* that it will have */
};

struct program {
	struct program_entry *entries;
	int n;
};

/* Posts all N, or none and negative with the detail set; *AT is then the entry that is to blame, or
 * -1. Nothing else moves the totals of a CLOSED one. */
int program_enter(const slmpm_wq *queues, const struct slmpm_wr *wr, int n, bool closed, int *at);
/* What the detail says is said of WHOM: RC. */
int program_blame(int rc, const char *whom);
/* Goes through P: 0, all of it can run; or why not, with *AT and the detail set. */
int program_simulate(const struct program *p, int *at);

#endif
