/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a group, as the files of this room see it. */
#ifndef SLMPM_ALLOC_H
#define SLMPM_ALLOC_H

#include "shm/mapping.h"
#include "slmpm/board/bell.h"
#include "slmpm/board/shared.h"
#include "slmpm/group/group.h"

struct offer { /* of a member, as it is exchanged */
	uint32_t mark, id;
	int32_t place, error;
	uint64_t len, address;   /* of an error: the errno that is the reason, or 0 */
	uint32_t flags, left_ms; /* until its deadline; 0: it has none */
};

#define ALLOC_ABSENT (-1)
#define ALLOC_MISSED (-2) /* it could not be received then: it is asked for again */

struct allocation { /* a call of it */
	struct group *group;
	struct offer *all; /* by rank */
	int *fds;          /* by rank, what has come; or ALLOC_ABSENT, ALLOC_MISSED */
	struct mapping own;
	struct shared *shared;
	int32_t *errors;   /* by rank, of the last step */
	uint32_t unsent;   /* the first rank that may not have been given the own one */
	bool lost;         /* this process has no descriptor left for what came */
	uint64_t deadline; /* from the first step on that of the first member */
};

/* ---- group_memory.c: what is there, and what comes of others --------------------------------- */

/* WORD has come by the bell, of the member whose first rank it says. True: it was for a call that
 * waits for it, whose is the descriptor now. */
bool alloc_came(struct group *g, const struct bell_word *word);
void alloc_forked(const struct group *g);
/* S is a memory of G from now on: its handle; 0: there is no room. */
uint64_t memory_new(struct group *g, struct shared *s);
/* The group goes. */
void memories_free(struct group *g);

#endif
