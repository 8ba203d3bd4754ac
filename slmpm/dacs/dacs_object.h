/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared objects: regions, mutexes and groups. A process creates one and shares it with partners,
 * who accept, use and release it; then the owner may destroy it. They agree by active messages.
 */
#ifndef SLMPM_DACS_OBJECT_H
#define SLMPM_DACS_OBJECT_H

#include "slmpm/dacsbase/dacs_internal.h"

#define DACSI_HANDLES 65535

/* Of handles: dacs_remote_mem_*, dacs_mem_*, dacs_mutex_*, dacs_group_*; DACSI_ANY to find them. */
enum dacsi_family { DACSI_REMOTE = 0, DACSI_MEM, DACSI_MUTEX, DACSI_GROUP, DACSI_ANY };

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

struct dacsi_member { /* a partner's part in an object of this process */
	struct dacsi_member *next;
	struct dacsi_process *process; /* NULL: this process, or one that has left */
	uint64_t theirs;               /* its handle; 0 while it has not accepted */
	DACS_ERR_T outcome;            /* of the offer; DACS_WID_BUSY: none yet */
	bool left;                     /* is no member any more */
	uint32_t watchers;             /* threads that wait in a share for it */
	uint32_t asks; /* mutex: so many of its threads want it; group: it is at the barrier */
	uint32_t
		deferred; /* group: DACSI_PASS or FAIL, not sent yet for want of memory, or 0, ... */
	uint32_t puts;    /* group: to it, before the barrier under way */
	uint32_t round;   /* ... of this round */
	bool close_pending; /* group: likewise, that it is closed */
	uint64_t ticket;    /* mutex: asked with this one */
};

enum dacsi_word_type {
	DACSI_OFFER = 1,    /* owner: VALUE is the family */
	DACSI_WITHDRAW = 2, /* owner: offers of this object are void */
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
	DACSI_FAIL = 16,   /* a member cannot come any more */
	DACSI_FENCE = 17,  /* says nothing: who sends it asks SLMPM when it has been handled */
};

struct dacsi_word { /* what travels, little-endian */
	uint32_t type, value;
	uint64_t to, from; /* handles; TO is 0 in an offer */
};

struct dacsi_offer { /* likewise; of a mutex or group the word alone */
	struct dacsi_word word;
	uint32_t remote_access, local_access; /* DACS_MEM_* */
	struct slmpm_key key;
};

_Static_assert(sizeof(struct dacsi_word) == 24 && sizeof(struct dacsi_offer) == 96, "wire");

/* What a family does in its own way; NULL: nothing. */
struct dacsi_kind {
	size_t size;
	/* To share it with who has accepted. DACS_SUCCESS: it may be, and SLMPM counts acceptors. */
	DACS_ERR_T reshare;
	DACS_ERR_T withdrawn; /* a share that waits for an answer ends with it */
	bool downward;        /* shared with children alone */
	/* At the owner: can it be shared, and destroyed? Fills in an OFFER, DACS_WID_BUSY: not now. */
	DACS_ERR_T (*shareable)(const struct dacsi_object *object);
	DACS_ERR_T (*destroyable)(const struct dacsi_object *object);
	DACS_ERR_T (*key)(const struct dacsi_object *own, slmpm_peer to, struct dacsi_offer *offer);
	/* At the partner: takes up an OFFER, DACS_WID_BUSY: it is void; ends it, the same: not now. */
	DACS_ERR_T (*accept)(struct dacsi_object *object, const struct dacsi_offer *offer);
	DACS_ERR_T (*leave)(struct dacsi_object *object);
	/* A word about it; MEMBER is NULL at the partner. Returns what is to be answered, or 0. */
	uint32_t (*word)(struct dacsi_object *object, struct dacsi_member *member,
			 const struct dacsi_word *word, uint32_t *value);
	/* Carries out what words have changed. */
	void (*settle)(struct dacsi_object *object);
	/* MEMBER has left. DIED: not in order. */
	void (*left)(struct dacsi_object *object, struct dacsi_member *member, bool died);
	/* At the owner, when all have left; DACS_WID_BUSY: it is in use. */
	DACS_ERR_T (*destroy)(struct dacsi_object *object);
	/* What belongs to PROCESS, or to all for NULL, is given back. */
	void (*forget)(struct dacsi_object *object, const struct dacsi_process *process);
};

/* ---- dacs_object.c ---- */

/* What HANDLE names, or NULL. Pointers last until the lock is given back. */
void *dacsi_handle_find(uint64_t handle, enum dacsi_family family);
/* The same where it has to be an OWN one, or else an accepted one; NULL: *RC says why. */
void *dacsi_handle_find_as(uint64_t handle, enum dacsi_family family, bool own, DACS_ERR_T *rc);
/* A new one with its handle, which OWNER offers (NULL: this process's own), or NULL. */
struct dacsi_object *dacsi_object_new(enum dacsi_family family, struct dacsi_process *owner);
void dacsi_object_free(struct dacsi_object *object);
/* PROCESS's part in it: it has not left; or NULL. */
struct dacsi_member *dacsi_member_find(const struct dacsi_object *object,
				       const struct dacsi_process *process);
struct dacsi_member *dacsi_member_join(struct dacsi_object *object, struct dacsi_process *process);
/* MEMBER leaves; OUTCOME of an offer that stood. DACS_ERR_DE_TERM: its process has ended. */
void dacsi_member_leave(struct dacsi_object *object, struct dacsi_member *member,
			DACS_ERR_T outcome);
/* Partners that have ended do not leave by themselves: those of OBJECT do so now. */
void dacsi_member_check(struct dacsi_object *object);
/* OBJECT is to be settled. */
void dacsi_object_due(struct dacsi_object *object);
/* Settles those that are due; true when there were some. */
bool dacsi_object_settle(void);
/* Whether it can still be used: an own one, or an accepted one as far as is known. */
DACS_ERR_T dacsi_object_check(const struct dacsi_object *object);
/* PROCESS has ended, or is no more. */
void dacsi_object_forget(struct dacsi_process *process);
void dacsi_object_end(void);
/* A whole call: ENDS an object, own or accepted, as soon as that is possible, DACS_WID_BUSY until
 * then; *HANDLE becomes 0. */
DACS_ERR_T dacsi_object_until(enum dacsi_family family, bool own, uint64_t *handle,
			      DACS_ERR_T (*ends)(struct dacsi_object *object));

extern const struct dacsi_kind dacsi_group_kind, dacsi_mutex_kind;

/* ---- dacs_word.c ---- */

/* Words of partners come to this process's objects from now on. */
int dacsi_word_begin(void);
/* To PROCESS; never blocks. */
DACS_ERR_T dacsi_word_send(struct dacsi_process *process, enum dacsi_word_type type, uint32_t value,
			   uint64_t to, uint64_t from);
/* What has been put at PROCESS can be seen there when REQ is done. Negative SLMPM code. */
int dacsi_word_fence(struct dacsi_process *process, slmpm_req *req);
DACS_ERR_T dacsi_offer_send(struct dacsi_process *process, const struct dacsi_offer *offer);
/* The partner that sent AM, or NULL. */
struct dacsi_process *dacsi_word_sender(const struct slmpm_am *am);
/* To the owner of an accepted OBJECT. */
DACS_ERR_T dacsi_word_up(const struct dacsi_object *object, enum dacsi_word_type type,
			 uint32_t value);

/* ---- dacs_share.c: whole calls ---- */

/* Shares OBJECT with a partner, until that has accepted. */
DACS_ERR_T dacsi_share(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
		       uint64_t handle);
/* Ends an own one once all others have left; *HANDLE becomes 0. */
DACS_ERR_T dacsi_destroy(enum dacsi_family family, uint64_t *handle);
/* Takes back offers that nobody has accepted; not a call. */
void dacsi_share_withdraw(struct dacsi_object *object);

/* ---- dacs_accept.c ---- */

/* The next that a partner shares. */
DACS_ERR_T dacsi_accept(enum dacsi_family family, de_id_t de, dacs_process_id_t pid,
			uint64_t *handle);
/* Ends an accepted one; *HANDLE becomes 0. */
DACS_ERR_T dacsi_release(enum dacsi_family family, uint64_t *handle);
/* Sends the owner word: `leave` of families that need no more. */
DACS_ERR_T dacsi_object_leave(struct dacsi_object *object);
/* The calls of a family that differ in its name only. */
#define DACSI_SHARED_CALLS(name, family)                                                           \
	DACS_ERR_T dacs_##name##_share(de_id_t de, dacs_process_id_t pid, dacs_##name##_t handle)  \
	{                                                                                          \
		return dacsi_share(family, de, pid, handle);                                       \
	}                                                                                          \
	DACS_ERR_T dacs_##name##_accept(de_id_t de, dacs_process_id_t pid,                         \
					dacs_##name##_t *handle)                                   \
	{                                                                                          \
		return dacsi_accept(family, de, pid, handle);                                      \
	}                                                                                          \
	DACS_ERR_T dacs_##name##_release(dacs_##name##_t *handle)                                  \
	{                                                                                          \
		return dacsi_release(family, handle);                                              \
	}                                                                                          \
	DACS_ERR_T dacs_##name##_destroy(dacs_##name##_t *handle)                                  \
	{                                                                                          \
		return dacsi_destroy(family, handle);                                              \
	}
/* PROCESS offers one; false: it is not kept. */
bool dacsi_accept_offered(struct dacsi_process *process, const struct dacsi_offer *offer);
/* Forgets its offers of the object that it calls THEIRS; all of them. */
void dacsi_accept_withdrawn(struct dacsi_process *process, uint64_t theirs);
void dacsi_accept_drop(struct dacsi_process *process);

#endif
