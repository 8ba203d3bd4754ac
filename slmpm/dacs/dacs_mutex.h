/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutexes: what a process knows of one. */
#ifndef SLMPM_DACS_MUTEX_H
#define SLMPM_DACS_MUTEX_H

#include "slmpm/dacs/dacs_object.h"

struct dacsi_mutex {
	struct dacsi_object is;
	struct dacsi_member *holder; /* own: who has it */
	uint64_t tickets;
	uint32_t wanted;    /* threads here that wait for it */
	bool held, granted; /* by this process; and no thread has taken it yet */
	bool trying;        /* a try is not answered; ... */
	bool awaits_try;    /* ... a thread waits for that */
};

extern const struct dacsi_kind dacsi_mutex_kind;

/* ---- dacs_mutex_owner.c ---- */

/* This process's own. */
struct dacsi_member *dacsi_mutex_self(const struct dacsi_mutex *m);
/* MEMBER asks once more, or less; what it has it gives back. */
void dacsi_mutex_ask(struct dacsi_mutex *m, struct dacsi_member *member);
void dacsi_mutex_ask_less(struct dacsi_member *member);
void dacsi_mutex_unlock(struct dacsi_mutex *m, const struct dacsi_member *member);
/* For a try. */
bool dacsi_mutex_is_free(struct dacsi_mutex *m);
/* By a word of this TYPE; returns what is to be answered, or 0. */
uint32_t dacsi_mutex_asked(struct dacsi_mutex *m, struct dacsi_member *member, uint32_t type,
			   uint32_t *value);
/* To who asked first. */
void dacsi_mutex_settle(struct dacsi_object *object);
/* Whether a thread here takes what is granted. */
static inline bool dacsi_mutex_is_wanted(const struct dacsi_mutex *m)
{
	return (m->wanted || m->awaits_try) && !m->granted;
}

#endif
