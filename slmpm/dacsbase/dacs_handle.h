/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of regions, mutexes and groups, and what they name. */
#ifndef SLMPM_DACS_HANDLE_H
#define SLMPM_DACS_HANDLE_H

#include "slmpm/dacsbase/dacs_internal.h"

#define DACSI_HANDLES 65535

struct dacsi_member;

/* Of handles: dacs_remote_mem_*, dacs_mem_*, dacs_mutex_*, dacs_group_*. */
enum dacsi_family { DACSI_REMOTE = 0, DACSI_MEM = 1, DACSI_MUTEX = 2, DACSI_GROUP = 3 };

struct dacsi_object { /* a region, mutex or group: what a handle names begins with it */
	uint64_t number;
	enum dacsi_family family;
	bool owner;   /* else accepted from `process` */
	bool unknown; /* accepted, and destroyed by its owner since */
	bool due;     /* on the list of those to be settled */
	struct dacsi_object *due_next;
	struct dacsi_process *process; /* NULL once it was reaped */
	uint64_t theirs;               /* accepted: the owner's handle */
	struct dacsi_member *members;  /* own */
};

/* What HANDLE names, or NULL. Pointers last until the lock is given back. */
void *dacsi_handle_find(uint64_t handle, enum dacsi_family family);
/* Gives OBJECT its number; false: no memory, or too many. */
bool dacsi_handle_give(struct dacsi_object *object, enum dacsi_family family);
/* Its number names nothing from now on. */
void dacsi_handle_take(const struct dacsi_object *object);
void dacsi_handle_end(void);

#endif
