/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that members have mapped of one another: of each member a part, an object that it alone
 * can write and none can cut short. What lies there others read by loads.
 */
#ifndef SLMPM_SHARED_H
#define SLMPM_SHARED_H

#include "slmpm/board/board.h"

struct shared_part {
	const unsigned char *base; /* NULL: there is none */
	uint64_t len, mapped;      /* bytes; of whole pages */
	uint64_t address;          /* of it in its owner's process */
};

struct shared {
	struct shared *next; /* of the same group */
	uint32_t id;         /* the same at all members; not 0 */
	uint32_t seats;
	struct shared_part part[]; /* by first rank */
};

/* Room for one of B's members, without parts; not B's before shared_add. NULL: no memory. */
struct shared *shared_new(const struct boards *b);
/* Operations find it from now on. */
void shared_add(struct boards *b, struct shared *s);
/* All that is mapped of it here. */
void shared_free(struct shared *s);
/* The same of one of B's, ... */
void shared_remove(struct boards *b, struct shared *s);
/* ... of all. */
void shared_close(struct boards *b);

/* In which of B's own parts N bytes AT some place lie: its id, or 0. */
uint32_t shared_id_of(const struct boards *b, const void *at, uint64_t n);
/* Where N bytes at ADDRESS of rank R's process, in its part of ID, lie here. 1; 0: no such part is
 * mapped here; -1: they do not lie in it. */
int shared_find(const struct boards *b, uint32_t r, uint32_t id, uint64_t address, uint64_t n,
		const unsigned char **at);

#endif
