/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of references of a group, as this member has it. */
#ifndef SLMPM_SPACE_H
#define SLMPM_SPACE_H

#include "slmpm/group/group.h"

struct space {
	struct list node; /* of the group's */
	uint32_t number;
	uint32_t users; /* operations: while there are any it stays as it is */
	unsigned char *base;
	uint64_t len;
};

/* NULL: there is none. */
struct space *space_find(const struct group *g, uint32_t number);
/* LEN bytes from OFFSET on; NULL: they are not all in it. */
void *space_at(const struct space *s, uint64_t offset, uint64_t len);
/* The group goes. */
void spaces_free(struct group *g);

#endif
