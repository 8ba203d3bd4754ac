/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of regions, mutexes and groups, and what they name. */
#ifndef SLMPM_DACS_HANDLE_H
#define SLMPM_DACS_HANDLE_H

#include "slmpm/dacs/dacs_internal.h"

#define DACSI_HANDLES 65535

/* Of handles: dacs_remote_mem_*, dacs_mem_*, dacs_mutex_*, dacs_group_*. */
enum dacsi_family { DACSI_REMOTE = 0, DACSI_MEM = 1, DACSI_MUTEX = 2, DACSI_GROUP = 3 };

struct dacsi_object { /* what a handle names begins with it */
	uint64_t number;
	enum dacsi_family family;
};

/* What HANDLE names, or NULL. Pointers last until the lock is given back. */
void *dacsi_handle_find(uint64_t handle, enum dacsi_family family);
/* Gives OBJECT its number; false: no memory, or too many. */
bool dacsi_handle_give(struct dacsi_object *object, enum dacsi_family family);
/* Its number names nothing from now on. */
void dacsi_handle_take(const struct dacsi_object *object);
void dacsi_handle_end(void);

#endif
