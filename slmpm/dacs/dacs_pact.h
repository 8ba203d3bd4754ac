/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutexes and groups, and the words by which their owner and its partners agree. */
#ifndef SLMPM_DACS_PACT_H
#define SLMPM_DACS_PACT_H

#include "slmpm/dacs/dacs_handle.h"

struct dacsi_seat { /* a partner's share in a mutex or group of this process */
	struct dacsi_seat *next;
	struct dacsi_process *process; /* NULL: this process */
	uint64_t theirs;               /* its handle; 0 while it has not accepted */
	bool refused;                  /* it has no room for the offer */
	bool left;                     /* nobody's any more */
	uint32_t watchers;             /* threads that wait in a share for it */
	uint32_t asks;   /* mutex: so many of its threads want it; group: it is there */
	uint32_t owed;   /* group: 0, DACSI_PASS or FAIL, not told yet for want of memory, ... */
	uint32_t round;  /* ... of this round */
	bool uninformed; /* group: likewise, that it is closed */
	uint64_t ticket; /* mutex: asked with this one */
};

struct dacsi_pact { /* a mutex or group, which its owner and partners agree upon by words */
	struct dacsi_object is;
	bool owner;   /* else accepted from `process` */
	bool unknown; /* accepted, but the owner does not know it any more */
	bool due;     /* on the list of those to be settled */
	struct dacsi_pact *due_next;
	struct dacsi_process *process; /* NULL once it was reaped */
	uint64_t theirs;               /* accepted: the owner's handle */
	struct dacsi_seat *seats;      /* own */
};

struct dacsi_mutex {
	struct dacsi_pact pact;
	struct dacsi_seat *holder; /* own: who has it */
	uint64_t tickets;
	uint32_t wanted;    /* threads here that wait for it */
	bool held, granted; /* by this process; and no thread has taken it yet */
	bool trying;        /* a try is not answered; ... */
	bool awaits_try;    /* ... a thread waits for that */
};

struct dacsi_group {
	struct dacsi_pact pact;
	bool closed;
	bool failed;   /* own: a member died before this round's end */
	bool inside;   /* a thread here waits at the barrier */
	bool there;    /* this process has come to it, ... */
	bool answered; /* ... and this is what came of it: */
	DACS_ERR_T answer;
	uint32_t round; /* own: barriers that are over */
	uint32_t seen;  /* of those, that this process as a member knows of */
};

enum dacsi_word_type {
	DACSI_OFFER = 1,    /* owner: VALUE is the family */
	DACSI_WITHDRAW = 2, /* and not any more */
	DACSI_ACCEPT = 3,
	DACSI_REFUSE = 4, /* no room for the offer */
	DACSI_LEAVE = 5,
	DACSI_VOID = 6, /* owner: nothing is known of that handle */
	DACSI_LOCK = 7,
	DACSI_GIVE_UP = 8, /* one LOCK fewer, unless it has been granted */
	DACSI_TRY = 9,
	DACSI_UNLOCK = 10,
	DACSI_GRANT = 11, /* owner: VALUE 1 answers TRY */
	DACSI_BUSY = 12,  /* owner: TRY did not */
	DACSI_CLOSED = 13,
	DACSI_ARRIVE = 14, /* at barrier number VALUE */
	DACSI_PASS = 15,   /* owner: all have; */
	DACSI_FAIL = 16,   /* somebody cannot come any more */
};

struct dacsi_word { /* what travels, little-endian */
	uint32_t type, value;
	uint64_t to, from; /* handles; TO is 0 in an offer */
};

/* ---- dacs_pact.c ---- */

/* Words of partners come to this process's mutexes and groups from now on. */
int dacsi_pact_begin(void);
/* Carries out what words have changed; true when there was something. */
bool dacsi_pact_settle(void);
/* PROCESS has ended, or is no more. */
void dacsi_pact_forget(struct dacsi_process *process);
void dacsi_pact_end(void);
/* Says it to PROCESS; never blocks. */
DACS_ERR_T dacsi_pact_tell(struct dacsi_process *process, enum dacsi_word_type type, uint32_t value,
			   uint64_t to, uint64_t from);
/* PACT, new, is this process's own. */
DACS_ERR_T dacsi_pact_create(struct dacsi_pact *pact, enum dacsi_family family, uint64_t *handle);
struct dacsi_seat *dacsi_pact_seat(const struct dacsi_pact *pact,
				   const struct dacsi_process *process);
struct dacsi_seat *dacsi_pact_sit(struct dacsi_pact *pact, struct dacsi_process *process);
void dacsi_pact_due(struct dacsi_pact *pact);
/* SEAT counts no more. DIED: its process did not leave in order. */
void dacsi_pact_unseat(struct dacsi_pact *pact, struct dacsi_seat *seat, bool died);
/* Partners who have ended do not leave by themselves: those of PACT do so now. */
void dacsi_pact_look(struct dacsi_pact *pact);
/* Whether an accepted one can still be used. */
DACS_ERR_T dacsi_pact_check(const struct dacsi_pact *pact);
/* Ends own pacts once all others have left; *HANDLE becomes 0. */
DACS_ERR_T dacsi_pact_destroy(enum dacsi_family family, uint64_t *handle);
void dacsi_pact_free(struct dacsi_pact *pact);

/* ---- dacs_pact_share.c ---- */

/* Shares the pact with a partner, until that has accepted. */
DACS_ERR_T dacsi_pact_share(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
			    uint64_t handle);
/* The next that a partner shares; SIZE bytes of memory are for it. */
DACS_ERR_T dacsi_pact_accept(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
			     size_t size, uint64_t *handle);
/* Takes back offers that nobody has accepted. */
void dacsi_pact_withdraw(struct dacsi_pact *pact);
/* PROCESS offers one; false: it is not kept. */
bool dacsi_pact_offered(struct dacsi_process *process, const struct dacsi_word *word);
void dacsi_pact_withdrawn(struct dacsi_process *process, uint64_t theirs);
/* Forgets its offers. */
void dacsi_pact_drop(struct dacsi_process *process);

/* ---- dacs_mutex_owner.c ---- */

/* This process's own. */
struct dacsi_seat *dacsi_mutex_seat(const struct dacsi_mutex *m);
/* SEAT asks once more, or less; what it has it gives back. */
void dacsi_mutex_ask(struct dacsi_mutex *m, struct dacsi_seat *seat);
void dacsi_mutex_ask_less(struct dacsi_seat *seat);
void dacsi_mutex_let_go(struct dacsi_mutex *m, const struct dacsi_seat *seat);
/* For a try. */
bool dacsi_mutex_is_free(struct dacsi_mutex *m);
/* By a word of this TYPE; returns what is to be answered, or 0. */
uint32_t dacsi_mutex_asked(struct dacsi_mutex *m, struct dacsi_seat *seat, uint32_t type,
			   uint32_t *value);
/* Whether a thread here takes what is granted. */
static inline bool dacsi_mutex_is_wanted(const struct dacsi_mutex *m)
{
	return (m->wanted || m->awaits_try) && !m->granted;
}

/* ---- dacs_mutex.c, dacs_group.c ---- */

/* A word about it; returns what is to be answered, or 0. */
uint32_t dacsi_mutex_word(struct dacsi_mutex *m, struct dacsi_seat *seat,
			  const struct dacsi_word *word, uint32_t *value);
void dacsi_mutex_settle(struct dacsi_mutex *m);
uint32_t dacsi_group_word(struct dacsi_group *g, struct dacsi_seat *seat,
			  const struct dacsi_word *word, uint32_t *value);
void dacsi_group_settle(struct dacsi_group *g);
void dacsi_group_unseat(struct dacsi_group *g, bool died);

#endif
